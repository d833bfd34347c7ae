// The page: what all panels share, and how they come into it.

// What part of the traces is looked at, and what is filtered.
class Shared {
  constructor(traces) {
    this.traces = traces;
    this.longest = Math.max(SHORTEST_VIEW, ...traces.map((trace) => trace.duration_ns));
    this.view = [0, this.longest];
    Object.assign(this, { cpus: null, task: null, mark: null, listeners: [], filtered: [], palettes: new Map() });
  }

  onView(listener) {
    this.listeners.push(listener);
  }

  // Whatever is made of the CPUs or the task that are filtered is made anew with them.
  following(make) {
    const holder = element("div");
    const fill = () => {
      const focused = holder.contains(document.activeElement) && document.activeElement.textContent;
      holder.replaceChildren(...[make()].flat(Infinity));
      if (focused) [...holder.querySelectorAll("button")].find((one) => one.textContent === focused)?.focus();
    };
    fill();
    this.filtered.push(fill);
    return holder;
  }

  hasTask(name) {
    return this.task === null || this.task === name;
  }

  // Draws anew, once for all that changes before the next frame.
  changed() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.listeners.forEach((listener) => listener());
    });
  }

  show(from, to, mark) {
    const span = Math.min(this.longest, Math.max(SHORTEST_VIEW, to - from));
    const start = Math.max(0, Math.min(this.longest - span, from));
    this.view = [start, start + span];
    if (mark) {
      this.mark = mark;
      document.getElementById("timeline").scrollIntoView();
    }
    this.changed();
  }

  zoom(factor, share) {
    const [from, to] = this.view;
    const span = Math.max(SHORTEST_VIEW, (to - from) * factor);
    const at = from + share * (to - from);
    this.show(at - share * span, at + (1 - share) * span);
  }

  pan(share) {
    const [from, to] = this.view;
    this.show(from + share * (to - from), to + share * (to - from));
  }

  whole() {
    this.show(0, this.longest);
  }

  filter(cpus, task) {
    Object.assign(this, { cpus, task });
    this.palettes.clear();
    this.filtered.forEach((fill) => fill());
    this.changed();
  }

  filterCpus(ids) {
    this.filter(ids && new Set(ids), this.task);
  }

  filterTask(name) {
    this.filter(this.cpus, name);
  }

  noFilter() {
    this.mark = null;
    this.filter(null, null);
  }

  palette(trace, mode) {
    const key = `${trace.number} ${mode}`;
    if (!this.palettes.has(key)) this.palettes.set(key, new Palette(trace, mode, this.task, ranked(this.traces, mode)));
    return this.palettes.get(key);
  }
}

function themeButton(shared) {
  const press = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const set = (theme) => {
    document.documentElement.dataset.theme = theme;
    themeColours.clear();
    press.textContent = theme === "dark" ? "Light" : "Dark";
    shared.changed();
  };
  set(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => set(dark.matches ? "dark" : "light"));
  press.addEventListener("click", () => set(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
}

async function main() {
  const page = document.getElementById("main");
  const data = await readPage();
  const shared = new Shared(data.traces);
  themeButton(shared);
  document.getElementById("made-with").textContent = `Made by placewise ${data.made_with}.`;
  const each = (make) => data.traces.map((trace) => make(trace, shared));
  page.append(...verdictPanels(data), ...resultPanels(data));
  if (data.traces.length) {
    page.append(...each(machinePanel), timelinePanel(shared), ...decisionPanels(data, shared), ...latencyPanel(shared),
      ...each(tasksPanel), ...each(residencyPanel), ...each(movesPanel));
    shared.changed();
    new ResizeObserver(() => shared.changed()).observe(page);
  } else {
    page.append(...decisionPanels(data, shared));
  }
  only(page);
  page.setAttribute("aria-busy", "false");
}

// `report.html#only=timeline`: one panel alone, for pictures.
function only(page) {
  const wanted = new URLSearchParams(location.hash.slice(1)).get("only");
  if (!wanted) return;
  document.body.classList.add("only");
  [...page.children].filter((section) => section.id !== wanted).forEach((section) => section.remove());
}

main().catch((error) => {
  document.getElementById("main").append(element("p", { role: "alert" }, `This page is damaged, or the browser is too old for it: ${error.message}`));
});
