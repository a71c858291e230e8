// A table as text: what is shown of it, in the order in which it is shown.
const cellText = (cell) => {
  const copied = (cell.querySelector(".value") ?? cell.querySelector(".who") ?? cell).cloneNode(true);
  for (const extra of copied.querySelectorAll(".pad, .hidden, sup, .unit")) extra.remove();
  const stars = cell.querySelector(".stars")?.textContent ?? "";
  return `${copied.textContent.replace(/\s+/g, " ").trim()} ${stars}`.trim();
};

const contents = (table) => {
  const columns = headsOf(table).filter((head) => !head.hidden).map((head) => head.cellIndex);
  const rows = nodesOf(table, fitting(table));
  const head = columns.map((at) => {
    const cell = headsOf(table)[at];
    const unit = cell.querySelector(".unit")?.textContent ?? "";
    const name = cell.dataset.label || cellText(cell);
    return { text: unit ? `${name} (${unit})` : name, number: cell.classList.contains("number") };
  });
  const body = rows.map((row) =>
    columns.map((at) => {
      const cell = row.cells[at];
      const engine = cell.querySelector(".engine")?.textContent ?? "";
      const chips = [...cell.querySelectorAll(".chip")].map((chip) => chip.textContent);
      const said = [engine, ...chips].filter(Boolean).join("; ");
      const interval = cell.querySelector(".interval")?.textContent ?? "";
      return { text: cellText(cell), interval, said };
    })
  );
  return { title: titleOf(table).trim(), head, body };
};

const oneText = ({ text, interval, said }) =>
  [text, interval, said && `(${said})`].filter(Boolean).join(" ");

const asMarkdown = ({ head, body }) => {
  const safe = (text) =>
    text.replace(/[\\`*_[\]|~$#]/g, "\\$&").replace(/&/g, "&amp;").replace(/</g, "&lt;");
  const line = (texts) => `| ${texts.map(safe).join(" | ")} |`;
  return [
    line(head.map(({ text }) => text)),
    `|${head.map(({ number }) => (number ? "---:" : "---")).join("|")}|`,
    ...body.map((row) => line(row.map(oneText))),
  ].join("\n");
};

const asCsv = ({ head, body }) => {
  const bare = (text) => (/^[+−-]?[\d\s]+(\.\d+)?$/.test(text) ? text.replace(/\s/g, "") : text);
  const field = (text) => {
    const value = text === "–" ? "" : bare(text);
    // A spreadsheet would take such a text for a formula.
    const tame = /^[=+@-]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value;
    return /[",\r\n]/.test(tame) ? `"${tame.replaceAll('"', '""')}"` : tame;
  };
  const wide = head.map((_, at) => body.some((row) => row[at].interval));
  const titles = head.flatMap(({ text }, at) =>
    wide[at] ? [text, `${text}, ${say("low")}`, `${text}, ${say("high")}`] : [text]
  );
  const lines = body.map((row) =>
    row.flatMap((cell, at) => {
      if (!wide[at]) return [cell.said ? `${cell.text} (${cell.said})` : cell.text];
      const ends = cell.interval.replace(/[[\]]/g, "").split(", ");
      return [cell.text, ends[0] ?? "", ends[1] ?? ""];
    })
  );
  return [titles, ...lines].map((texts) => texts.map(field).join(",")).join("\r\n");
};

const LATEX = {
  "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}",
  "–": "--", "×": "$\\times$", "Δ": "$\\Delta$", "µ": "\\textmu{}", "★": "$\\star$", "☆": "$\\circ$",
  "≥": "$\\geq$", "≤": "$\\leq$", "−": "$-$", "\u202f": "\\,", "<": "\\textless{}", ">": "\\textgreater{}",
};

const asLatex = ({ title, head, body }) => {
  const safe = (text) =>
    text.replace(/[\\~^–×Δµ★☆≥≤−\u202f<>]|[&%$#_{}]/g, (sign) => LATEX[sign] ?? `\\${sign}`);
  const line = (texts) => `    ${texts.map(safe).join(" & ")} \\\\`;
  return [
    "% \\usepackage{booktabs}",
    "\\begin{table}",
    `  \\caption{${safe(title)}}`,
    `  \\begin{tabular}{${head.map(({ number }) => (number ? "r" : "l")).join("")}}`,
    "    \\toprule",
    line(head.map(({ text }) => text)),
    "    \\midrule",
    ...body.map((row) => line(row.map(oneText))),
    "    \\bottomrule",
    "  \\end{tabular}",
    "\\end{table}",
  ].join("\n");
};

const FORMS = { Markdown: asMarkdown, CSV: asCsv, LaTeX: asLatex };

const toClipboard = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page that was opened from a file may lack the right: the old way needs none.
    const area = make("textarea", { value: text, className: "hidden" });
    const focused = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return done;
  }
};

const copyButtons = (table, status) => {
  const group = make("span", { className: "copies", role: "group" }, make("span", {}, say("copy")));
  group.setAttribute("aria-label", `${say("copy")}: ${titleOf(table)}`);
  for (const [form, write] of Object.entries(FORMS)) {
    const copier = button(form);
    copier.setAttribute("aria-label", say("copy_as", { table: titleOf(table), form }));
    copier.addEventListener("click", async () => {
      const found = contents(table);
      const done = await toClipboard(write(found));
      status.textContent = done ? say("copied", { count: found.body.length, form }) : say("not_copied");
    });
    group.append(copier);
  }
  return group;
};
