// What is behind a figure: a dialog that is made when it is asked for.
let behind = null;
let dialog = null;
let opener = null;

const figures = () => {
  behind ??= JSON.parse(document.getElementById("figures-behind").textContent);
  return behind;
};

const MEDIAN = 0, INTERVAL = 1, LEAST = 2, MOST = 3, VARIATION = 4, N = 5, SOURCE = 6, REASON = 7,
  UNIT = 8, SAMPLES = 9, OF = 10;
const WINDOWS = 2, WINDOWS_TOGETHER = 10;

const svg = (tag, attributes, text = "") => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(text);
  return made;
};

const digits = (value) => (value === null ? "–" : String(value));

// Words differ with what samples are of: repetitions, loads of the model, windows of a text.
const sayOf = (figure, key, fields) =>
  say(`${key}_${figure[OF]}` in messages ? `${key}_${figure[OF]}` : key, fields);

const sampleList = (cell, figure) => {
  const samples = figure[SAMPLES];
  if (samples === null) return [];
  return Array.isArray(samples) ? samples : cell.b[figure[OF]].map(() => samples);
};

const strip = (cell, figure, samples, name) => {
  const WIDTH = 560, HEIGHT = 150, LEFT = 64, RIGHT = 8, TOP = 12, BOTTOM = 28;
  const known = samples.filter((value) => value !== null);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const room = (most - least) * 0.08 || Math.abs(most) * 0.02 || 1;
  const y = (value) =>
    TOP + ((most + room - value) / (most - least + 2 * room)) * (HEIGHT - TOP - BOTTOM);
  const step = (WIDTH - LEFT - RIGHT) / samples.length;
  const x = (at) => LEFT + (at + 0.5) * step;
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "strip" });
  picture.setAttribute("aria-label", name + say("colon") + sayOf(figure, "picture", { count: known.length, least, most }));
  cell.b[figure[OF]].forEach((block, at) => {
    // Every second block has a ground of its own.
    if (block % 2) {
      picture.append(svg("rect", { class: "ground", x: x(at) - step / 2, y: TOP, width: step, height: HEIGHT - TOP - BOTTOM }));
    }
  });
  for (const value of least === most ? [least] : [least, most]) {
    picture.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }));
    picture.append(svg("text", { class: "tick", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, digits(Number(value.toPrecision(4)))));
  }
  samples.forEach((value, at) => {
    if (value !== null) picture.append(svg("circle", { class: "dot", cx: x(at), cy: y(value), r: Math.min(4, Math.max(1.5, step / 3)) }));
  });
  picture.append(svg("text", { class: "tick", x: LEFT, y: HEIGHT - 8 }, sayOf(figure, "order")));
  return picture;
};

const blockTable = (cell, figure, samples) => {
  const blocks = cell.b[figure[OF]];
  const byBlock = new Map();
  samples.forEach((value, at) => {
    if (!byBlock.has(blocks[at])) byBlock.set(blocks[at], []);
    byBlock.get(blocks[at]).push(digits(value));
  });
  const nameOf = (block, { length }) => {
    const first = block * WINDOWS_TOGETHER + 1;
    return figure[OF] === WINDOWS ? `${first}–${first + length - 1}` : String(block);
  };
  const rows = [...byBlock].map(([block, values]) =>
    make("tr", {}, make("th", { scope: "row" }, nameOf(block, values)), make("td", {}, values.join("  ")))
  );
  const title = sayOf(figure, "by_block");
  return make("details", {}, make("summary", {}, title),
    make("table", { className: "samples" },
      make("caption", { className: "hidden" }, title),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, sayOf(figure, "block")), make("th", { scope: "col" }, sayOf(figure, "values")))),
      make("tbody", {}, ...rows)));
};

const showSamples = (place, cell, metric) => {
  const { metrics, texts } = figures();
  const figure = cell.m[metric];
  const name = metrics[metric][1];
  const unit = texts[figure[UNIT]];
  const samples = sampleList(cell, figure);
  const head = make("h3", {}, sayOf(figure, samples.length ? "samples" : "no_samples", { metric: name }));
  if (unit && samples.length) head.append(" ", make("span", { className: "unit" }, unit));
  const shown = [head];
  if (samples.length > 1 && !Array.isArray(figure[SAMPLES])) {
    shown.push(make("p", {}, sayOf(figure, "same_samples", { count: samples.length, value: digits(samples[0]) })));
  } else if (samples.length) {
    shown.push(strip(cell, figure, samples, name), blockTable(cell, figure, samples));
  }
  if (figure[REASON] !== undefined && texts[figure[REASON]]) {
    shown.push(make("p", { className: "why" }, texts[figure[REASON]]));
  }
  place.replaceChildren(...shown);
};

const metricTable = (cell, chosen, choose) => {
  const { metrics, texts } = figures();
  const rows = Object.keys(cell.m).map((at) => {
    const figure = cell.m[at];
    const picker = button(metrics[at][1], { className: "pick" });
    picker.dataset.metric = at;
    picker.setAttribute("aria-pressed", String(at === chosen));
    const unit = texts[figure[UNIT]];
    const why = [texts[figure[SOURCE]], texts[figure[REASON]]].filter(Boolean).join(say("semicolon"));
    return make("tr", {},
      make("th", { scope: "row" }, picker, ...(unit ? [" ", make("span", { className: "unit" }, unit)] : [])),
      ...[MEDIAN, INTERVAL, LEAST, MOST, VARIATION, N].map((place) =>
        make("td", { className: "number" }, String(figure[place]))),
      make("td", { className: "why" }, why));
  });
  const heads = [["metric"], ["median", 1], ["interval", 1], ["least", 1], ["most", 1], ["variation", 1]];
  const cells = heads.map(([key, number]) =>
    make("th", { scope: "col", className: number ? "number" : "" }, say(key)));
  cells.push(make("th", { scope: "col", className: "number" }, "n"), make("th", { scope: "col" }, say("why")));
  const table = make("table", { className: "dense" },
    make("caption", { className: "hidden" }, say("metric")),
    make("thead", {}, make("tr", {}, ...cells)), make("tbody", {}, ...rows));
  table.addEventListener("click", (event) => {
    const picker = event.target.closest("tr")?.querySelector(".pick");
    if (!picker) return;
    for (const each of table.querySelectorAll(".pick")) {
      each.setAttribute("aria-pressed", String(each === picker));
    }
    choose(picker.dataset.metric);
  });
  return table;
};

const failureView = ({ what, message, log, href, tail }) => {
  const made = make("div", { className: "failure" },
    make("p", {}, make("strong", {}, say("failure", { what })), " ", message));
  if (tail) {
    const label = make("p", { className: "label" }, say("log"));
    if (log) {
      const [before, after] = say("in_brackets", { text: "\n" }).split("\n");
      label.append(" ", before, href ? make("a", { href }, log) : make("code", {}, log), after);
    }
    const end = make("pre", { tabIndex: 0 }, tail);
    end.setAttribute("role", "group");
    end.setAttribute("aria-label", say("log"));
    made.append(label, end);
  }
  return made;
};

const chosenMetric = (cell, key) => {
  const { metrics } = figures();
  const at = String(metrics.findIndex(([each]) => each === key));
  if (at in cell.m) return at;
  const known = Object.keys(cell.m);
  return known.find((each) => cell.m[each][SAMPLES] !== null) ?? known[0];
};

const fill = (workload, variant, key) => {
  const { workloads, variants, cells, flags, failures } = figures();
  const cell = cells[`${workload}.${variant}`];
  const whose = variants[variant];
  const title = make("h2", { id: "drill-h", tabIndex: -1 },
    make("span", { className: `mark ${whose.colour}`, ariaHidden: "true" }), whose.name);
  const close = button("×", { className: "close" });
  close.setAttribute("aria-label", say("close"));
  close.addEventListener("click", () => dialog.close());
  const choice = make("select", {},
    ...workloads.map((name, at) => make("option", { value: at, selected: at === workload }, name)));
  choice.addEventListener("change", () => {
    fill(Number(choice.value), variant, key);
    dialog.querySelector("select").focus();
  });
  const head = make("div", { className: "drill-head" }, make("div", {}, title,
    make("p", { className: "how" }, whose.engine)), close);
  const body = make("div", { className: "drill-body" },
    make("p", {}, make("label", {}, `${say("workload")} `, choice), " ",
      make("span", { className: "how" }, figures().texts[cell.n])));
  for (const flag of cell.f) {
    const [text, meaning] = flags[flag];
    body.append(make("p", {}, make("span", { className: "chip" }, text), ` ${meaning}`));
  }
  for (const at of cell.x) body.append(failureView(failures[at]));
  const samples = make("div", { className: "drill-samples" });
  const metric = chosenMetric(cell, key);
  if (metric !== undefined) {
    const choose = (at) => {
      key = figures().metrics[at][0];
      showSamples(samples, cell, at);
    };
    const scroll = make("div", { className: "scroll", tabIndex: 0, role: "region" },
      metricTable(cell, metric, choose));
    scroll.setAttribute("aria-label", say("all_metrics", { workload: workloads[workload] }));
    showSamples(samples, cell, metric);
    body.append(samples, make("h3", {}, say("all_metrics", { workload: workloads[workload] })), scroll);
  }
  body.append(make("h3", {}, say("options")));
  const facts = whose.options.map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  if (whose.file) facts.push(make("div", {}, make("dt", {}, say("file")), make("dd", {}, whose.file)));
  body.append(facts.length ? make("dl", { className: "facts" }, ...facts) : make("p", {}, say("no_options")));
  dialog.replaceChildren(head, body);
};

const drill = (address, from) => {
  const [workload, variant, ...key] = address.split(".");
  if (!dialog) {
    dialog = make("dialog", { id: "drill" });
    dialog.setAttribute("aria-labelledby", "drill-h");
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close();
    });
    dialog.addEventListener("close", () => opener?.focus());
    document.body.append(dialog);
  }
  opener = from;
  fill(Number(workload), Number(variant), key.join("."));
  dialog.showModal();
  dialog.querySelector("h2").focus();
};

// Names are links to the plain tables of all figures; with this script they open the dialog.
document.addEventListener("click", (event) => {
  const place = event.target.closest(".drill, td[data-at]");
  if (!place || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const name = place.closest("tr").querySelector(".drill");
  if (place === name) event.preventDefault();
  // A reader who marks text does not ask for a dialog.
  else if (!getSelection().isCollapsed) return;
  drill(place.dataset.at, name ?? place);
});
