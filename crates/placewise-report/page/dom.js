// Elements, and figures as text. Whatever comes from a trace gets into the page as text, here.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null));
  return made;
}

function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.flat());
  return made;
}

function panel(id, heading, ...children) {
  const title = element("h2", { id: `${id}-heading` }, heading);
  return element("section", { id, "aria-labelledby": `${id}-heading` }, title, children);
}

// Rows of cells; a cell is a text, or { text, kind, style, child }.
function table(caption, header, rows, words = 1) {
  const cell = (tag, value, at) => {
    const { text = "", kind = "", style, child } = typeof value === "object" && value ? value : { text: value ?? "" };
    const attributes = { class: `${at < words ? "word " : ""}${kind}`.trim() || undefined, style, scope: tag === "th" ? "col" : undefined };
    return element(tag, attributes, child ?? String(text));
  };
  const line = (tag, cells) => element("tr", {}, cells.map((value, at) => cell(tag, value, at)));
  const head = element("thead", {}, line("th", header));
  const made = element("table", { "aria-label": caption }, head, element("tbody", {}, rows.map((row) => line("td", row))));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, made);
}

function select(label, options, chosen, changed) {
  const choice = element("select", { "aria-label": label, onchange: () => changed(choice.value) },
    options.map(([value, text]) => element("option", { value, selected: value === chosen }, text)));
  return element("label", {}, `${label} `, choice);
}

const button = (text, pressed, attributes = {}) => element("button", { type: "button", onclick: pressed, ...attributes }, text);

function figure(value, digits = 3) {
  if (value === null || value === undefined) return "";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 10 ** digits ? String(Math.round(value)) : String(Number(value.toPrecision(digits)));
}

function time(ns) {
  const [unit, size] = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]].find(([, size]) => Math.abs(ns) >= size) ?? ["ns", 1];
  return `${figure(ns / size)} ${unit}`;
}

const percent = (share) => `${figure(100 * share)} %`;
const signed = (value) => (value === null || value === undefined ? "" : `${value > 0 ? "+" : ""}${figure(value)}`);
// As the trace has it, and as `--at` takes it.
const traceTime = (ns) => `${Math.floor(ns / 1e9)}.${String(Math.floor((ns % 1e9) / 1e3)).padStart(6, "0")}`;

// The colours of the theme, asked for once: the browser works out all styles to tell one.
const themeColours = new Map();
function colour(name) {
  if (!themeColours.has(name)) themeColours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return themeColours.get(name);
}

async function copy(text, told) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", { "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  told.textContent = "Copied";
}
