// Without this script the page is whole, its tables plain and in the order of the run.
const messages = JSON.parse(document.getElementById("messages").textContent);

const say = (key, fields = {}) =>
  messages[key].replace(/\{(\w+)\}/g, (all, name) => fields[name] ?? all);

const make = (tag, properties = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
};

const button = (text, properties = {}) => make("button", { type: "button", ...properties }, text);

document.documentElement.classList.add("scripted");

// On paper what is folded away can't be opened; afterwards the page is as it was.
let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll("details.print:not([open])")];
  for (const each of unfolded) each.open = true;
});
addEventListener("afterprint", () => {
  for (const each of unfolded) each.open = false;
  unfolded = [];
});

// The place in the page is marked in the list of sections.
const links = new Map(
  [...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link])
);
const spot = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(target.id)?.setAttribute("aria-current", "true");
    }
  },
  { rootMargin: "-10% 0px -80% 0px" }
);
for (const section of document.querySelectorAll("main > section")) spot.observe(section);
