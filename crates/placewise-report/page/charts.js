// Charts that are drawn once: distributions, matrices, tasks over time, predicted against published.

// Told apart by the colour-blind, too (Okabe and Ito).
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d3b", "#9467bd"];
const OTHER = "#8c959f";
const PLOT = { width: 720, height: 320, left: 64, right: 40, top: 12, bottom: 36 };

// Axes with ticks, each [place from 0 to 1, text]; returns the chart and where a place is.
function plot(label, xTicks, yTicks, xTitle) {
  const { width, height, left, right, top, bottom } = PLOT;
  const x = (share) => left + share * (width - left - right);
  const y = (share) => height - bottom - share * (height - top - bottom);
  const chart = drawn("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": label });
  for (const [share, text] of xTicks) {
    chart.append(drawn("line", { class: "axis", x1: x(share), x2: x(share), y1: y(0), y2: y(1) }),
      drawn("text", { x: x(share), y: y(0) + 16, "text-anchor": "middle" }, text));
  }
  for (const [share, text] of yTicks) {
    chart.append(drawn("line", { class: "axis", x1: x(0), x2: x(1), y1: y(share), y2: y(share) }),
      drawn("text", { x: x(0) - 6, y: y(share) + 4, "text-anchor": "end" }, text));
  }
  chart.append(drawn("text", { class: "quiet", x: x(1), y: height - 4, "text-anchor": "end" }, xTitle));
  return { chart, x, y };
}

const swatch = (fill) => element("span", { class: "swatch", style: `background:${fill}` });
const legend = (entries) => element("div", { class: "legend" },
  entries.map(([fill, text]) => element("span", {}, swatch(fill), text)));

function latencyPanel(shared) {
  const { traces } = shared;
  if (!traces.some((trace) => trace.latencies.length)) return [];
  const dashed = traces.length > 1 && element("p", { class: "quiet" }, `Solid: ${traces[0].name}; dashed: ${traces[1].name}.`);
  return [panel("latency", "From wakeup to running", shared.following(() => latencyChart(shared)), dashed || [])];
}

// How long wakeups took that ended on some LLCs: counts by time, the shortest first.
function countsOf({ by_llc }, llcs) {
  const counts = new Map();
  for (const [llc] of llcs) for (const [ns, count] of by_llc[llc]) counts.set(ns, (counts.get(ns) ?? 0) + count);
  return [...counts].sort(([one], [other]) => one - other);
}

function latencyChart(shared) {
  const { traces } = shared;
  const names = [...new Set(traces.flatMap((trace) => trace.latencies.map((of) => of.name)))].slice(0, COLOURS.length);
  const longest = Math.max(...traces.flatMap((trace) => trace.latencies.flatMap((of) => of.by_llc.flat().map(([ns]) => ns))), 1e4);
  const decades = Math.ceil(Math.log10(longest));
  const [least, along] = [2, (ns) => Math.max(0, (Math.log10(Math.max(ns, 1)) - 2) / (decades - 2))];
  const xTicks = Array.from({ length: decades - least + 1 }, (_, at) => [at / (decades - least), time(10 ** (at + least))]);
  const yTicks = [0, 0.25, 0.5, 0.75, 0.9, 1].map((share) => [share, percent(share)]);
  const { chart, x, y } = plot("distribution of the time from wakeup to running, by task", xTicks, yTicks, "from wakeup to running, at most");
  for (const trace of traces) {
    for (const of of trace.latencies.filter((one) => names.includes(one.name) && shared.hasTask(one.name))) {
      const counts = countsOf(of, trace.groupsOf("llcs", shared.cpus));
      const wakeups = counts.reduce((sum, [, count]) => sum + count, 0);
      if (!wakeups) continue;
      let below = 0;
      const path = counts.map(([ns, count]) => {
        const before = below / wakeups;
        below += count;
        return `L${x(along(ns)).toFixed(1)} ${y(before).toFixed(1)}L${x(along(ns)).toFixed(1)} ${y(below / wakeups).toFixed(1)}`;
      });
      chart.append(drawn("path", {
        d: `M${x(0)} ${y(0)}${path.join("")}`, fill: "none", stroke: COLOURS[names.indexOf(of.name)], "stroke-width": 1.8,
        "stroke-dasharray": trace.number ? "5 3" : "none",
      }, drawn("title", {}, `${of.name}: ${wakeups} wakeups, ${trace.name}`)));
    }
  }
  const entries = names.map((name, at) => [COLOURS[at], name]).filter(([, name]) => shared.hasTask(name));
  return [chart, legend(entries)];
}

// A table whose cells are as warm as their share of the largest.
function heatTable(caption, header, rows, shown) {
  const largest = Math.max(1, ...rows.flatMap((row) => row.values));
  const cell = (value) => ({
    text: value ? shown(value) : "", kind: "heat",
    style: value ? `background:color-mix(in srgb, var(--hot) ${Math.round(6 + 30 * value / largest)}%, transparent)` : undefined,
  });
  return table(caption, header, rows.map((row) => [row.name, ...row.values.map(cell)]));
}

function residencyPanel(trace, shared) {
  const heading = traceHeading("Where threads ran", trace, shared);
  return panel(`residency-${trace.number}`, heading,
    element("p", { class: "quiet" }, "Share of a thread's run time on each LLC; of chosen CPUs, on their LLCs. A thread shows the tasks of its name alone."),
    shared.following(() => residencyTable(trace, shared)));
}

function residencyTable(trace, shared) {
  const llcs = trace.groupsOf("llcs", shared.cpus).map(([llc]) => llc);
  const total = (one) => one.ns_by_llc.reduce((sum, ns) => sum + ns, 0);
  const row = (one) => {
    const name = trace.threads[one.thread].name;
    const press = button(trace.threadName(one.thread), () => shared.filterTask(shared.task === name ? null : name), { class: "label" });
    return { name: { child: press }, values: llcs.map((llc) => one.ns_by_llc[llc] / total(one)) };
  };
  const isShown = (one) => shared.hasTask(trace.threads[one.thread].name) && llcs.some((llc) => one.ns_by_llc[llc]);
  return heatTable("run time by thread and LLC", ["thread", ...llcs.map((llc) => `LLC ${llc}`)], trace.residency.filter(isShown).map(row), percent);
}

function movesPanel(trace, shared) {
  const heading = traceHeading("Moves between LLCs", trace, shared);
  return panel(`moves-${trace.number}`, heading,
    element("p", { class: "quiet" }, "How often a task ran on another CPU than before; on the diagonal within the LLC. Of chosen CPUs, from and to their LLCs; of all tasks."),
    shared.following(() => movesTable(trace, shared)));
}

function movesTable(trace, shared) {
  const llcs = [...trace.llcs.keys()];
  const chosen = new Set(trace.groupsOf("llcs", shared.cpus).map(([llc]) => llc));
  const moves = (from, to) => (chosen.has(from) || chosen.has(to) ? trace.moves[from][to] : 0);
  const rows = llcs.map((from) => ({ name: `from LLC ${from}`, values: llcs.map((to) => moves(from, to)) }));
  return heatTable("moves from LLC to LLC", ["", ...llcs.map((llc) => `to LLC ${llc}`)], rows, String);
}

const traceHeading = (text, trace, { traces }) => (traces.length > 1 ? `${text}: ${trace.name}` : text);

const SAMPLES = 240;

// Tasks that run or wait, by LLC or node, over the whole trace.
function tasksPanel(trace, shared) {
  let places = trace.llcs.size > COLOURS.length ? "nodes" : "llcs";
  const draw = () => {
    const groups = trace.groupsOf(places, shared.cpus);
    const shown = groups.slice(0, COLOURS.length);
    const series = shown.map(([, cpus]) => tasksOverTime(trace, cpus));
    const most = Math.max(1, ...series.flat());
    const ticks = [0, 0.25, 0.5, 0.75, 1];
    const { chart, x, y } = plot("running and waiting tasks over time",
      ticks.map((share) => [share, time(share * trace.duration_ns)]), ticks.map((share) => [share, figure(share * most, 2)]), "time");
    series.forEach((values, at) => {
      const points = values.map((value, place) => `${x((place + 0.5) / values.length).toFixed(1)},${y(value / most).toFixed(1)}`);
      chart.append(drawn("polyline", { points: points.join(" "), fill: "none", stroke: COLOURS[at], "stroke-width": 1.5 }));
    });
    const word = places === "llcs" ? "LLC" : "node";
    const more = groups.length > shown.length && element("p", { class: "quiet" }, `The first ${shown.length} of ${groups.length}.`);
    return [chart, legend(shown.map(([id], at) => [COLOURS[at], `${word} ${id}`])), more || ""];
  };
  const choose = (chosen) => { places = chosen; shared.filter(shared.cpus, shared.task); };
  return panel(`tasks-${trace.number}`, traceHeading("Tasks that run or wait", trace, shared),
    element("div", { class: "controls" }, select("By", [["llcs", "LLC"], ["nodes", "node"]], places, choose)), shared.following(draw));
}

function tasksOverTime(trace, cpus) {
  const level = trace.levels[trace.levels.length - 1];
  const step = Math.max(1, Math.ceil(level.bins / SAMPLES));
  const values = [];
  for (let bin = 0; bin < level.bins; bin += step) {
    const { busy, waiting } = trace.sums(cpus, bin * level.width, (bin + step) * level.width);
    values.push((busy + waiting) * cpus.length);
  }
  return values;
}

// Predicted against published changes: linear near 0, logarithmic beyond.
function scatter(rows) {
  const judged = rows.filter((row) => row.change_pct !== null && row.predicted_change_pct !== null);
  if (!judged.length) return element("p", { class: "quiet" }, "No row has a published and a predicted change.");
  const scaled = (pct) => Math.asinh(Math.max(-500, Math.min(500, pct)) / 5);
  const along = (pct) => (1 + scaled(pct) / scaled(500)) / 2;
  const ticks = [-200, -50, -20, -5, 0, 5, 20, 50, 200].map((pct) => [along(pct), signed(pct)]);
  const { chart, x, y } = plot("predicted against published changes, percent", ticks, ticks, "published change, % (positive is better)");
  chart.append(drawn("line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), stroke: colour("quiet"), "stroke-dasharray": "4 4" }));
  const workloads = [...new Set(judged.map((row) => row.workload))];
  for (const row of judged) {
    const fill = COLOURS[workloads.indexOf(row.workload) % COLOURS.length];
    const told = `${row.workload} ${row.case}, ${row.policy}: published ${signed(row.change_pct)} %, predicted ${signed(row.predicted_change_pct)} %`;
    chart.append(drawn("circle", {
      cx: x(along(row.change_pct)).toFixed(1), cy: y(along(row.predicted_change_pct)).toFixed(1), r: 4, stroke: fill,
      fill: row.in_sample.length ? "none" : fill, "fill-opacity": 0.7,
    }, drawn("title", {}, told)));
  }
  return element("div", { id: "scatter" }, element("h3", {}, "Predicted (up) against published (right) changes, %"), chart,
    legend(workloads.map((name, at) => [COLOURS[at % COLOURS.length], name])),
    element("p", { class: "quiet" }, "Hollow: in view when the simulator was made. On the dashed line a prediction is exact."));
}
