// Sorting, filtering and hiding. One listener serves all tables; rows carry none.
const LEAST_TO_FILTER = 8;
const state = new WeakMap();

const bodyOf = (table) => table.tBodies[0];
const headsOf = (table) => [...table.tHead.rows[0].cells];

// Of a table of thousands of rows the page holds the first as elements and the rest as text: it opens
// and sorts at once, and a row becomes an element when it is first shown. A row here is an object
// with a node, or with the html that one is made of.
const SHOWN_AT_FIRST = 50;

const stateOf = (table) => {
  if (!state.has(table)) {
    const rows = [...bodyOf(table).rows].map((node) => ({ node }));
    const all = Number(table.dataset.rows ?? rows.length);
    const limit = all > rows.length ? SHOWN_AT_FIRST : Infinity;
    state.set(table, { rows, all, limit, order: rows, fits: null, keys: [], texts: null, hidden: new Set() });
  }
  return state.get(table);
};

// The state of a table with all of its rows.
const whole = (table) => {
  const own = stateOf(table);
  if (own.rows.length < own.all) {
    const text = table.closest(".table").querySelector("noscript").textContent;
    const body = text.slice(text.indexOf("<tbody>"));
    for (const [html] of body.matchAll(/<tr[^]*?<\/tr>/g)) own.rows.push({ html, node: null });
  }
  return own;
};

const dress = (table, node, hidden) => {
  node.setAttribute("role", "row");
  const [workload, variant] = node.querySelector(".drill")?.dataset.at.split(".") ?? [];
  headsOf(table).forEach((head, at) => {
    const cell = node.cells[at];
    if (!cell) return;
    cell.setAttribute("role", at ? "cell" : "rowheader");
    const unit = head.querySelector(".unit")?.textContent;
    const { label } = head.dataset;
    if (at) cell.dataset.label = unit ? say("labelled", { label, unit }) : label;
    cell.hidden = hidden.has(at);
    // A cell says where its samples are only where its column and its row don't.
    if (cell.dataset.at === "") delete cell.dataset.at;
    else if (at && variant && head.dataset.key) cell.dataset.at ??= `${workload}.${variant}.${head.dataset.key}`;
  });
};

const nodesOf = (table, rows) => {
  const missing = rows.filter(({ node }) => !node);
  if (missing.length) {
    const template = make("template");
    template.innerHTML = missing.map(({ html }) => html).join("");
    [...template.content.children].forEach((node, at) => {
      dress(table, node, stateOf(table).hidden);
      missing[at].node = node;
    });
  }
  return rows.map(({ node }) => node);
};

const decoder = make("textarea");
// What only aligns numbers, or is for screen readers, nobody sees: it is no text to look for.
const UNSEEN = /<span class="(?:pad|hidden)"[^>]*>[^<]*<\/span>/g;
const textOf = ({ node, html }) => {
  decoder.innerHTML = (html ?? node.outerHTML).replace(UNSEEN, "").replace(/<[^>]*>/g, " ");
  return decoder.value;
};

// The rows that fit the filter, in their order; of a large table more than it shows.
const fitting = (table) => {
  const { order, fits } = whole(table);
  return fits ? order.filter((row) => fits.has(row)) : order;
};

const refresh = (table) => {
  const rows = fitting(table).slice(0, stateOf(table).limit);
  bodyOf(table).replaceChildren(...nodesOf(table, rows));
};

const keyOfText = (text) => {
  if (text === "" || text.startsWith("–")) return null;
  const number = Number(text.replace(/[\s%]/g, ""));
  return Number.isNaN(number) ? text : number;
};

const keyOf = (row, column) => {
  if (!row.node) {
    row.cells ??= row.html.split(/<t[hd](?=[ >])/).slice(1);
    const stored = row.cells[column]?.match(/^[^>]* data-sort="([^"]*)"/);
    if (stored) return Number(stored[1]);
    return keyOfText(textOf({ html: `<td${row.cells[column] ?? ""}` }).trim());
  }
  const cell = row.node.cells[column];
  if (!cell) return null;
  if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
  return keyOfText((cell.querySelector(".value") ?? cell).firstChild?.textContent.trim() ?? "");
};

const collator = new Intl.Collator(document.documentElement.lang, { numeric: true });
const compare = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));

const sort = (table, column) => {
  const heads = headsOf(table);
  const head = heads[column];
  const first = head.dataset.first ?? "ascending";
  const other = first === "ascending" ? "descending" : "ascending";
  const direction = head.getAttribute("aria-sort") === first ? other : first;
  const sign = direction === "ascending" ? 1 : -1;
  const { rows, keys } = whole(table);
  keys[column] ??= new Map(rows.map((row) => [row, keyOf(row, column)]));
  const key = keys[column];
  const sorted = [...rows].sort((one, two) => {
    const [a, b] = [key.get(one), key.get(two)];
    // What was not measured is neither best nor worst: it goes last either way.
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * compare(a, b);
  });
  stateOf(table).order = sorted;
  refresh(table);
  heads.forEach((each, at) => {
    if (at === column) each.setAttribute("aria-sort", direction);
    else each.removeAttribute("aria-sort");
  });
};

const filter = (table, query) => {
  const own = whole(table);
  own.texts ??= own.rows.map((row) => textOf(row).toLowerCase());
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (_row, at) => words.every((word) => own.texts[at].includes(word));
  own.fits = words.length ? new Set(own.rows.filter(fits)) : null;
  refresh(table);
  return own.fits?.size ?? own.all;
};

const hideColumn = (table, column, hidden) => {
  const own = stateOf(table);
  headsOf(table)[column].hidden = hidden;
  if (hidden) own.hidden.add(column);
  else own.hidden.delete(column);
  for (const { node } of own.rows) {
    if (node?.cells[column]) node.cells[column].hidden = hidden;
  }
};

const headText = (head) => head.querySelector("button") ?? head;

const columnMenu = (table) => {
  const menu = make("details", { className: "columns" }, make("summary", {}, say("columns")));
  menu.addEventListener("toggle", () => {
    if (menu.querySelector("fieldset")) return;
    const boxes = headsOf(table).slice(1).map((head, at) => {
      const box = make("input", { type: "checkbox", checked: !head.hidden });
      box.dataset.column = at + 1;
      return make("label", {}, box, head.dataset.label || headText(head).textContent.trim());
    });
    const legend = make("legend", { className: "hidden" }, say("shown_columns"));
    menu.append(make("fieldset", {}, legend, ...boxes));
  });
  menu.addEventListener("change", (event) =>
    hideColumn(table, Number(event.target.dataset.column), !event.target.checked)
  );
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.firstElementChild.focus();
  });
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false;
  });
  return menu;
};

const filterBox = (table, status) => {
  const box = make("input", { type: "search", placeholder: say("filter") });
  box.setAttribute("aria-label", say("filter") + say("colon") + titleOf(table));
  box.addEventListener("input", () => {
    const shown = filter(table, box.value);
    const { all } = stateOf(table);
    status.textContent = box.value.trim() ? say("rows", { shown, all }) : "";
  });
  return box;
};

const allRows = (table) => {
  const own = stateOf(table);
  const fields = { shown: SHOWN_AT_FIRST, all: own.all };
  const place = make("span", { className: "copies" }, make("span", {}, say("first", fields)));
  const more = button(say("all_rows"));
  more.addEventListener("click", () => {
    own.limit = Infinity;
    refresh(table);
    place.remove();
    headText(headsOf(table)[0]).focus();
  });
  place.append(more);
  return place;
};

const titleOf = (table) => (table.querySelector("caption .title") ?? table.caption).textContent;

const toolbar = (table) => {
  const status = make("span", { className: "status", role: "status" });
  const tools = make("div", { className: "tools" });
  if (stateOf(table).all >= LEAST_TO_FILTER) tools.append(filterBox(table, status));
  if (headsOf(table).length > 2) tools.append(columnMenu(table));
  tools.append(copyButtons(table, status), status);
  if (stateOf(table).limit < stateOf(table).all) tools.append(allRows(table));
  return tools;
};

const dressHeads = (table) => {
  for (const head of headsOf(table)) {
    const sorter = button("", { className: "sorter" });
    sorter.append(...head.childNodes);
    head.append(sorter);
  }
};

for (const table of document.querySelectorAll("table[data-sortable]")) {
  dressHeads(table);
  if (stateOf(table).all < 2) continue;
  if (!table.classList.contains("dense")) {
    table.parentElement.before(toolbar(table));
  }
}

// On paper a table has all of its rows, as far as paper may reach, and says so where it has not.
const PRINTED_AT_MOST = 5000;
let printed = [];
addEventListener("beforeprint", () => {
  for (const table of document.querySelectorAll("table[data-sortable]")) {
    if (!state.has(table)) continue;
    const own = stateOf(table);
    const { limit, all, fits } = own;
    own.limit = Math.max(limit, PRINTED_AT_MOST);
    if (own.limit !== limit) refresh(table);
    const shown = fits || limit < all ? bodyOf(table).rows.length : all;
    const note = make("p", { className: "cut" }, say("rows", { shown, all }));
    if (shown < all) table.parentElement.before(note);
    printed.push(() => {
      note.remove();
      own.limit = limit;
      if (limit < all) refresh(table);
    });
  }
});
addEventListener("afterprint", () => {
  for (const undo of printed) undo();
  printed = [];
});

document.addEventListener("click", (event) => {
  const head = event.target.closest("th");
  if (head?.parentElement.parentElement.tagName === "THEAD" && event.target.closest(".sorter")) {
    sort(head.closest("table"), head.cellIndex);
  }
});
