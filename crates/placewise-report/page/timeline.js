// CPUs over time: rows by node and LLC, every single run where there are few enough in sight, else
// what dominates each bin. All traces share one time axis.

const GUTTER = 96;
const GROUP_HEIGHT = 15;
const STRIP_HEIGHT = 34;
const AXIS_HEIGHT = 22;
// More runs or arcs in sight than this are not drawn one by one.
const MOST_RUNS = 30_000;
const MOST_ARCS = 1_500;
const SHORTEST_VIEW = 1_000;

// The rows of one trace.
class Rows {
  constructor(trace, shared, told) {
    Object.assign(this, { trace, shared, told, closed: new Set(), chosen: 0 });
    const label = `${trace.name}: CPUs over time; arrows move, plus and minus zoom, Home shows all, Enter folds a group`;
    this.canvas = element("canvas", { class: "rows", tabindex: "0", role: "application", "aria-label": label });
    this.strip = element("canvas", { role: "img", "aria-label": `${trace.name}: tasks that waited beside an idle CPU, over time` });
    this.image = document.createElement("canvas");
    this.layOut();
    this.listen();
  }

  // Lines: groups, and the CPUs of those that are open.
  layOut() {
    const { trace, shared } = this;
    const shown = trace.cpus.filter((cpu) => !shared.cpus || shared.cpus.has(cpu.id));
    const height = shown.length > 256 ? 3 : shown.length > 96 ? 5 : shown.length > 32 ? 9 : 14;
    this.lines = [];
    let top = 0;
    const add = (line, size) => {
      this.lines.push({ ...line, top, height: size });
      top += size;
    };
    for (const [node, ofNode] of grouped(shown, (cpu) => cpu.node)) {
      const key = `node ${node}`;
      if (trace.nodes.size > 1) add({ key, cpus: ofNode, closed: this.closed.has(key) }, GROUP_HEIGHT);
      if (this.closed.has(key)) continue;
      for (const [llc, ofLlc] of grouped(ofNode, (cpu) => cpu.llc)) {
        const key = `LLC ${llc}`;
        add({ key, cpus: ofLlc, closed: this.closed.has(key), inset: trace.nodes.size > 1 }, GROUP_HEIGHT);
        if (!this.closed.has(key)) ofLlc.forEach((cpu) => add({ cpu }, height));
      }
    }
    this.height = Math.max(top, 1);
    this.lineOf = new Map(this.lines.filter((line) => line.cpu).map((line) => [line.cpu.id, line]));
    for (const line of this.lines.filter((line) => line.closed)) line.cpus.forEach((cpu) => this.lineOf.set(cpu.id, line));
  }

  fold(key) {
    if (!this.closed.delete(key)) this.closed.add(key);
    this.shared.changed();
  }

  foldAll(kind) {
    const keys = { cpus: [], llcs: [...this.trace.llcs.keys()].map((id) => `LLC ${id}`), nodes: [...this.trace.nodes.keys()].map((id) => `node ${id}`) };
    this.closed = new Set(keys[kind]);
  }

  draw(palette, arcs) {
    this.layOut();
    const { context, width } = fitted(this.canvas, this.height);
    this.context = context;
    this.width = width;
    const [from, to] = this.shared.view;
    this.x = (time) => GUTTER + ((time - from) / (to - from)) * (width - GUTTER);
    const seen = this.runsInSight();
    this.single = seen !== null && seen <= MOST_RUNS;
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, width - GUTTER, this.height);
    context.clip();
    if (this.single) this.drawRuns(palette); else this.drawCells(palette);
    this.lines.filter((line) => line.closed).forEach((line) => this.drawGroup(line));
    if (arcs) this.drawArcs();
    this.drawMark();
    context.restore();
    this.drawLabels();
    this.drawStrip();
  }

  span(cpu) {
    const { runs } = this.trace;
    const [from, to] = this.shared.view;
    const [low, high] = [runs.first[cpu], runs.first[cpu + 1]];
    const begin = firstWhere(low, high, (at) => runs.end[at] > from);
    return [begin, firstWhere(begin, high, (at) => runs.start[at] >= to)];
  }

  // None where the page does not have them.
  runsInSight() {
    if (!this.trace.runs) return null;
    return this.lines.filter((line) => line.cpu).reduce((sum, line) => {
      const [begin, end] = this.span(line.cpu.id);
      return sum + end - begin;
    }, 0);
  }

  drawRuns(palette) {
    const { context, x, trace: { runs } } = this;
    const wait = colour("bad");
    for (const { cpu, top, height } of this.lines) {
      if (!cpu) continue;
      const [begin, end] = this.span(cpu.id);
      for (let at = begin; at < end; at++) {
        const left = x(runs.start[at]);
        context.fillStyle = palette.style(runs.thread[at], runs.kind[at]);
        context.fillRect(left, top + 0.5, Math.max(0.8, x(runs.end[at]) - left), height - 1);
      }
      context.fillStyle = wait;
      for (let at = begin; at < end; at++) {
        const left = x(runs.start[at] - runs.waited[at]);
        if (x(runs.start[at]) - left >= 1) context.fillRect(left, top + height - 2, x(runs.start[at]) - left, 1.5);
      }
    }
  }

  // Open LLCs, each as a picture with a pixel for each CPU and bin.
  drawCells(palette) {
    const [from, to] = this.shared.view;
    const level = this.trace.level(from, to, 2 * (this.width - GUTTER));
    const first = Math.max(0, Math.floor(from / level.width));
    const bins = Math.min(level.bins, Math.ceil(to / level.width)) - first;
    if (bins <= 0) return;
    for (let at = 0; at < this.lines.length; at++) {
      if (!this.lines[at].cpu) continue;
      const begin = at;
      while (this.lines[at + 1]?.cpu) at++;
      this.drawPicture(this.lines.slice(begin, at + 1), level, first, bins, palette);
    }
  }

  drawPicture(lines, level, first, bins, palette) {
    const { image, context, x } = this;
    const pixels = new ImageData(bins, lines.length);
    const paper = rgb(colour("paper"));
    let out = 0;
    for (const { cpu } of lines) {
      for (let at = cpu.id * level.bins + first, end = at + bins; at < end; at++, out += 4) {
        const busy = level.busy[at];
        if (!busy) continue;
        const of = palette.of(level.thread[at], level.kind[at]);
        const share = busy / 255;
        for (let part = 0; part < 3; part++) pixels.data[out + part] = paper[part] + (of[part] - paper[part]) * share;
        pixels.data[out + 3] = 255;
      }
    }
    [image.width, image.height] = [bins, lines.length];
    image.getContext("2d").putImageData(pixels, 0, 0);
    context.imageSmoothingEnabled = false;
    const [left, right] = [x(first * level.width), x((first + bins) * level.width)];
    context.drawImage(image, 0, 0, bins, lines.length, left, lines[0].top, right - left, lines.length * lines[0].height);
  }

  // A group that is folded: how busy its CPUs are together, and who waits there.
  drawGroup({ cpus, top, height }) {
    const { context, x, trace } = this;
    const [from, to] = this.shared.view;
    const level = trace.level(from, to, this.width - GUTTER);
    const last = Math.min(level.bins, Math.ceil(to / level.width));
    const [hot, bad] = [colour("hot"), colour("bad")];
    for (let bin = Math.max(0, Math.floor(from / level.width)); bin < last; bin++) {
      let [busy, waiting] = [0, 0];
      for (const { id } of cpus) {
        busy += level.busy[id * level.bins + bin];
        waiting += level.waiting[id * level.bins + bin];
      }
      const left = x(bin * level.width);
      const width = x((bin + 1) * level.width) - left + 0.3;
      const share = (busy / 255 / cpus.length) * (height - 2);
      context.fillStyle = hot;
      context.fillRect(left, top + height - 1 - share, width, share);
      const waits = Math.min(1, waiting / 256 / cpus.length) * (height - 2);
      context.fillStyle = bad;
      context.fillRect(left, top + 1, width, waits);
    }
  }

  drawArcs() {
    const { context, x, trace: { wakeups } } = this;
    const [from, to] = this.shared.view;
    const begin = firstWhere(0, wakeups.at.length, (at) => wakeups.at[at] >= from);
    const end = firstWhere(begin, wakeups.at.length, (at) => wakeups.at[at] > to);
    const step = Math.max(1, Math.ceil((end - begin) / MOST_ARCS));
    context.strokeStyle = colour("ink");
    context.globalAlpha = Math.max(0.15, Math.min(0.7, 60 / (end - begin + 1)));
    context.beginPath();
    for (let at = begin; at < end; at += step) {
      const [one, other] = [this.lineOf.get(wakeups.from[at]), this.lineOf.get(wakeups.to[at])];
      if (!one || !other) continue;
      const [left, start, stop] = [x(wakeups.at[at]), one.top + one.height / 2, other.top + other.height / 2];
      context.moveTo(left, start);
      context.quadraticCurveTo(left + 18, (start + stop) / 2, left, stop);
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  drawMark() {
    const mark = this.shared.mark;
    if (!mark || mark[2] !== this.trace.number) return;
    const line = this.lineOf.get(mark[1]);
    this.context.strokeStyle = colour("accent");
    this.context.lineWidth = 2;
    this.context.strokeRect(this.x(mark[0]) - 1, 0, 0.1, this.height);
    if (line) this.context.strokeRect(GUTTER + 1, line.top, this.width - GUTTER - 2, line.height);
    this.context.lineWidth = 1;
  }

  drawLabels() {
    const { context } = this;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.lines.forEach((line, at) => {
      const middle = line.top + line.height / 2 + 0.5;
      if (line.key) {
        context.fillStyle = colour("line");
        context.fillRect(0, line.top, line.closed ? GUTTER : this.width, 1);
        context.fillStyle = colour("ink");
        context.fillText(`${line.closed ? "\u25b8" : "\u25be"} ${line.key}`, line.inset ? 14 : 4, middle);
      } else if (line.height >= 9) {
        context.fillStyle = colour("quiet");
        context.fillText(`CPU ${line.cpu.id}`, 30, middle);
      }
      if (at === this.chosen && document.activeElement === this.canvas) {
        context.strokeStyle = colour("accent");
        context.strokeRect(0.5, line.top + 0.5, GUTTER - 2, Math.max(2, line.height - 1));
      }
    });
  }

  // Tasks that wait while a CPU that they may use is idle: in the LLC, in the node, beyond.
  drawStrip() {
    const { context } = fitted(this.strip, STRIP_HEIGHT);
    const { trace, x } = this;
    const level = trace.levels[0];
    const [from, to] = this.shared.view;
    const [first, last] = [Math.max(0, Math.floor(from / level.width)), Math.min(level.bins, Math.ceil(to / level.width))];
    const sum = (bin) => [0, 1, 2].reduce((all, row) => all + trace.idleStrip[row * level.bins + bin], 0);
    let most = 32;
    for (let bin = first; bin < last; bin++) most = Math.max(most, sum(bin));
    for (let bin = first; bin < last; bin++) {
      let base = STRIP_HEIGHT;
      STRIP_COLOURS.forEach(([fill], row) => {
        const size = (trace.idleStrip[row * level.bins + bin] / most) * (STRIP_HEIGHT - 2);
        context.fillStyle = fill;
        const left = Math.max(GUTTER, x(bin * level.width));
        context.fillRect(left, base - size, Math.max(0, x((bin + 1) * level.width) - left + 0.3), size);
        base -= size;
      });
    }
    context.fillStyle = colour("quiet");
    context.font = "11px system-ui, sans-serif";
    context.fillText(`up to ${figure(most / 32, 2)} wait`, 4, 14);
    context.fillText("beside idle", 4, 27);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [from, to] = this.shared.view;
    const share = (event.clientX - box.left - GUTTER) / (box.width - GUTTER);
    const y = event.clientY - box.top;
    return { share, time: from + share * (to - from), line: this.lines.findIndex((line) => y < line.top + line.height) };
  }

  listen() {
    const { canvas, shared } = this;
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      shared.zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.max(0, this.at(event).share));
    }, { passive: false });
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      const { share, line } = this.at(event);
      if (share < 0 && this.lines[line]?.key) return this.fold(this.lines[line].key);
      drag = [event.clientX, ...shared.view];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => (drag = null));
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) return this.tell(this.at(event));
      const [start, from, to] = drag;
      const moved = ((start - event.clientX) / (canvas.clientWidth - GUTTER)) * (to - from);
      shared.show(from + moved, to + moved);
    });
    canvas.addEventListener("dblclick", (event) => shared.zoom(0.25, Math.max(0, this.at(event).share)));
    canvas.addEventListener("keydown", (event) => this.key(event));
    for (const kind of ["focus", "blur"]) canvas.addEventListener(kind, () => shared.changed());
  }

  key(event) {
    const { shared } = this;
    const move = (step) => {
      this.chosen = Math.max(0, Math.min(this.lines.length - 1, this.chosen + step));
      const [from, to] = shared.view;
      this.tell({ time: (from + to) / 2, line: this.chosen, share: 0.5 });
      shared.changed();
    };
    const actions = {
      ArrowLeft: () => shared.pan(-0.1), ArrowRight: () => shared.pan(0.1), ArrowUp: () => move(-1), ArrowDown: () => move(1),
      "+": () => shared.zoom(0.5, 0.5), "=": () => shared.zoom(0.5, 0.5), "-": () => shared.zoom(2, 0.5), Home: () => shared.whole(),
      Enter: () => this.lines[this.chosen]?.key && this.fold(this.lines[this.chosen].key),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  // What is at a place, in words.
  tell({ time: at, line: number, share }) {
    const line = this.lines[number];
    if (!line || share < 0) return;
    const when = `${traceTime(this.trace.start_ns + Math.max(0, at))} (${time(at)})`;
    this.told.textContent = line.cpu ? `${when}, CPU ${line.cpu.id}, LLC ${line.cpu.llc}: ${this.what(line.cpu.id, at)}` : `${when}, ${line.key}: ${this.sum(line.cpus, at)}`;
  }

  what(cpu, at) {
    const { runs, threads } = this.trace;
    if (!runs) return this.sum([{ id: cpu }], at);
    const index = firstWhere(runs.first[cpu], runs.first[cpu + 1], (run) => runs.end[run] > at);
    if (index === runs.first[cpu + 1] || runs.start[index] > at) return "idle";
    const kind = runs.kind[index];
    const words = [DISTANCES[distanceOf(kind)], VERDICTS[verdictOf(kind)], MISSED[missedOf(kind)]].filter(Boolean).join(", ");
    const process = threads[runs.thread[index]].tgid ? ` of process ${threads[runs.thread[index]].tgid}` : "";
    return `${this.trace.threadName(runs.thread[index])}${process} ran ${time(runs.end[index] - runs.start[index])} after waiting ${time(runs.waited[index])}; ${words}`;
  }

  sum(cpus, at) {
    const { busy, waiting } = this.trace.sums(cpus, at, at + 1);
    return `${percent(busy)} busy, ${figure(waiting * cpus.length, 2)} waiting around then`;
  }
}

const STRIP_COLOURS = [["#d1242f", "idle in the LLC"], ["#e69f00", "idle in the node"], ["#56b4e9", "idle beyond the node"]];

// A canvas as wide as its place, sharp on any screen.
function fitted(canvas, height) {
  const width = canvas.parentElement.clientWidth || 800;
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    [canvas.width, canvas.height] = [wide, high];
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width };
}

function drawAxis(canvas, [from, to]) {
  const { context, width } = fitted(canvas, AXIS_HEIGHT);
  const rough = ((to - from) / (width - GUTTER)) * 110;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((of) => of * power).find((size) => size >= rough);
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = colour("quiet");
  context.strokeStyle = colour("line");
  context.beginPath();
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const x = GUTTER + ((at - from) / (to - from)) * (width - GUTTER);
    context.moveTo(x, AXIS_HEIGHT - 6);
    context.lineTo(x, AXIS_HEIGHT);
    // With as many digits as ticks differ in.
    const [unit, size] = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]].find(([, size]) => step >= size) ?? ["ns", 1];
    context.fillText(`${Number((at / size).toFixed(2))} ${unit}`, Math.min(x - 12, width - 60), 11);
  }
  context.stroke();
}

function timelinePanel(shared) {
  const told = element("p", { class: "status", id: "told", "aria-live": "polite" });
  const rows = shared.traces.map((trace) => new Rows(trace, shared, told));
  const axis = element("canvas", { role: "img", "aria-label": "time" });
  const colours = element("div", { class: "legend", id: "colours" });
  const [state, spanned] = [{ mode: "task", arcs: true }, element("span", { class: "quiet", id: "span" })];
  const draw = () => {
    drawAxis(axis, shared.view);
    for (const of of rows) of.draw(shared.palette(of.trace, state.mode), state.arcs);
    const [from, to] = shared.view;
    const single = rows.every((of) => of.single) ? "every run" : "what dominates each bin";
    spanned.textContent = `${time(from)} to ${time(to)}: ${time(to - from)}; ${single}`;
    colours.replaceChildren(...modeLegend(shared, state.mode));
  };
  shared.onView(draw);
  const set = (name, value) => { state[name] = value; shared.changed(); };
  const arcs = element("input", { type: "checkbox", checked: true, onchange: () => set("arcs", arcs.checked) });
  const controls = element("div", { class: "controls" },
    select("Colour by", Object.entries(MODES).map(([name, { text }]) => [name, text]), state.mode, (mode) => set("mode", mode)),
    select("Rows", [["cpus", "CPUs"], ["llcs", "LLCs"], ["nodes", "nodes"]], "cpus", (kind) => { rows.forEach((of) => of.foldAll(kind)); shared.changed(); }),
    element("label", {}, arcs, " Wakeups across LLCs"),
    button("\u2212", () => shared.zoom(2, 0.5), { "aria-label": "Zoom out" }), button("+", () => shared.zoom(0.5, 0.5), { "aria-label": "Zoom in" }),
    button("All", () => shared.whole()), button("No filter", () => shared.noFilter()), spanned);
  const frames = rows.map((of) => [
    element("h3", {}, of.trace.name), element("div", {}, of.strip),
    element("div", { class: "rows-frame" }, of.canvas)]);
  const hint = "Drag to move; Ctrl and the wheel, or a double click, zoom; a group's name folds it. A red line below a run is its wait. " +
    "The strip shows tasks that waited while a CPU was idle that they may use.";
  const strip = element("div", { class: "legend" }, STRIP_COLOURS.map(([fill, text]) => element("span", {}, swatch(fill), text)));
  return panel("timeline", "CPUs over time", controls, colours, element("div", {}, axis), frames.flat(), told, strip, element("p", { class: "quiet" }, hint));
}
