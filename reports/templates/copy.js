// A table as text: what is shown of it, in the order in which it is shown.
const cellText = (cell) => {
  const copied = (cell.querySelector(".value") ?? cell.querySelector(".who") ?? cell).cloneNode(true);
  for (const extra of copied.querySelectorAll(".pad, .hidden, sup, .unit, .source")) extra.remove();
  return copied.textContent.replace(/\s+/g, " ").trim();
};

// What stands below a table: its footnotes by number, and its other sentences.
const below = (table) => {
  const place = table.closest(".table").querySelector(".notes");
  const texts = (chosen) => [...(place?.querySelectorAll(chosen) ?? [])]
    .filter((each) => !each.querySelector(".best-key"))
    .map((each) => {
      const copied = each.cloneNode(true);
      copied.querySelector(".chip")?.append(say("colon"));
      return copied.textContent.replace(/\s+/g, " ").trim();
    });
  return { footnotes: texts("ol > li"), sentences: texts(":scope > p") };
};

const contents = (table) => {
  const columns = headsOf(table).filter((head) => !head.hidden).map((head) => head.cellIndex);
  const rows = nodesOf(table, fitting(table));
  const head = columns.map((at) => {
    const cell = headsOf(table)[at];
    const unit = cell.querySelector(".unit")?.textContent ?? "";
    const name = cell.dataset.label || cellText(cell);
    return {
      name,
      text: unit ? say("with_unit", { label: name, unit }) : name,
      number: cell.classList.contains("number"),
    };
  });
  const body = rows.map((row) =>
    columns.map((at) => {
      const cell = row.cells[at];
      const engine = cell.querySelector(".engine")?.textContent ?? "";
      const chips = [...cell.querySelectorAll(".chip")].map((chip) => chip.textContent);
      const marker = cell.querySelector(".value .source")?.textContent ?? "";
      const interval = cell.querySelector(".interval")?.textContent ?? "";
      const stars = cell.querySelector(".stars")?.textContent ?? "";
      const note = cell.querySelector(".value sup")?.textContent ?? "";
      return { text: cellText(cell), interval, stars, engine, chips, marker, note };
    })
  );
  return { title: titleOf(table).trim(), head, body, ...below(table) };
};

const listed = (texts) => texts.filter(Boolean).join(say("semicolon"));

// A cell as one text, but for the number of its footnote.
const oneText = ({ text, interval, stars, engine, chips, marker }) => {
  const said = listed([engine, ...chips, marker]);
  return [text, interval, stars, said && say("in_brackets", { text: said })].filter(Boolean).join(" ");
};

const asMarkdown = ({ head, body, footnotes, sentences }) => {
  const safe = (text) =>
    text.replace(/[\\`*_[\]|~$#]/g, "\\$&").replace(/&/g, "&amp;").replace(/</g, "&lt;");
  const line = (texts) => `| ${texts.map(safe).join(" | ")} |`;
  const noted = (cell) => (cell.note ? `${oneText(cell)} (${cell.note})` : oneText(cell));
  const used = new Set(body.flat().map(({ note }) => note));
  const reasons = footnotes.map((text, at) => [at + 1, text]).filter(([at]) => used.has(String(at)));
  return [
    line(head.map(({ text }) => text)),
    `|${head.map(({ number }) => (number ? "---:" : "---")).join("|")}|`,
    ...body.map((row) => line(row.map(noted))),
    ...reasons.map(([at, text]) => `\n(${at}) ${safe(text)}`),
    ...sentences.map((text) => `\n${safe(text)}`),
  ].join("\n");
};

// Names and numbers alone, so that other tables can be joined; what else is said has its columns.
const asCsv = ({ head, body, footnotes }) => {
  const bare = (text) => (/^[+−-]?[\d\s]+(\.\d+)?$/.test(text) ? text.replace(/\s/g, "") : text);
  const field = (text) => {
    const value = text === "–" ? "" : bare(text);
    // A spreadsheet would take such a text for a formula.
    const tame = /^[=+@-]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value;
    return /[",\r\n]/.test(tame) ? `"${tame.replaceAll('"', '""')}"` : tame;
  };
  const wide = head.map((_, at) => body.some((row) => row[at].interval));
  const titles = head.flatMap(({ text }, at) =>
    wide[at] ? [text, say("labelled", { label: text, unit: say("low") }),
      say("labelled", { label: text, unit: say("high") })] : [text]
  );
  const lines = body.map((row) =>
    row.flatMap((cell, at) => {
      if (!wide[at]) return [cell.text];
      const ends = cell.interval.replace(/[[\]]/g, "").split(", ");
      return [cell.text, ends[0] ?? "", ends[1] ?? ""];
    })
  );
  // One reason of several columns is told once.
  const about = (row) => {
    const columns = new Map();
    row.forEach(({ marker, note }, at) => {
      const why = listed([marker, note && footnotes[Number(note) - 1]]);
      if (why) columns.set(why, [...(columns.get(why) ?? []), head[at].name]);
    });
    return listed([...columns].map(([why, names]) => names.join(say("comma")) + say("colon") + why));
  };
  const more = {
    engine: body.map(([{ engine }]) => engine),
    remarks: body.map(([{ chips }]) => listed(chips)),
    notes: body.map((row) => about(row)),
  };
  for (const [key, texts] of Object.entries(more)) {
    if (!texts.some(Boolean)) continue;
    titles.push(say(key));
    lines.forEach((line, at) => line.push(texts[at]));
  }
  return [titles, ...lines].map((texts) => texts.map(field).join(",")).join("\r\n");
};

const LATEX = {
  "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}",
  "–": "--", "×": "$\\times$", "Δ": "$\\Delta$", "µ": "\\textmu{}", "★": "$\\star$", "☆": "$\\circ$",
  "≥": "$\\geq$", "≤": "$\\leq$", "−": "$-$", "\u202f": "\\,", "<": "\\textless{}", ">": "\\textgreater{}",
};

const asLatex = ({ title, head, body, footnotes, sentences }) => {
  const safe = (text) =>
    text.replace(/[\\~^–×Δµ★☆≥≤−\u202f<>]|[&%$#_{}]/g, (sign) => LATEX[sign] ?? `\\${sign}`);
  const row = (texts) => `    ${texts.join(" & ")} \\\\`;
  const raised = (note) => `\\textsuperscript{${note}}`;
  const noted = (cell) => safe(oneText(cell)) + (cell.note && raised(cell.note));
  const used = new Set(body.flat().map(({ note }) => note));
  const under = [
    ...footnotes.flatMap((text, at) =>
      used.has(String(at + 1)) ? [`${raised(at + 1)}~${safe(text)}`] : []),
    ...sentences.map(safe),
  ];
  return [
    "% \\usepackage{booktabs}",
    "\\begin{table}",
    `  \\caption{${safe(title)}}`,
    `  \\begin{tabular}{${head.map(({ number }) => (number ? "r" : "l")).join("")}}`,
    "    \\toprule",
    row(head.map(({ text }) => safe(text))),
    "    \\midrule",
    ...body.map((cells) => row(cells.map(noted))),
    "    \\bottomrule",
    "  \\end{tabular}",
    ...under.map((text) => `  \\par\\smallskip\\footnotesize ${text}`),
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
  group.setAttribute("aria-label", say("copy") + say("colon") + titleOf(table));
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
