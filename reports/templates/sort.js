"use strict";
// Without this script the tables are plain tables, in the order of the run.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];

  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
    const text = cell.textContent.trim();
    if (text === "" || text.startsWith("–")) return null;
    const number = Number(text.replace(/[\s%]/g, ""));
    return Number.isNaN(number) ? text : number;
  };

  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), "en", { numeric: true });

  const sort = (column, direction) => {
    const sign = direction === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row) => ({ row, key: keyOf(row, column) }));
    rows.sort((a, b) => {
      // What was not measured is neither best nor worst: it goes last either way.
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
      return sign * compare(a.key, b.key);
    });
    body.append(...rows.map(({ row }) => row));
    heads.forEach((head, at) => {
      if (at === column) head.setAttribute("aria-sort", direction);
      else head.removeAttribute("aria-sort");
    });
  };

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const first = head.dataset.first ?? "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      sort(column, head.getAttribute("aria-sort") === first ? other : first);
    });
  });
}
