// What runs are coloured by: task, process, distance from the previous CPU, verdict.

const GREY = [150, 156, 163];

const MODES = {
  task: { text: "task", byThread: true, key: ({ name }) => name },
  process: { text: "process", byThread: true, key: ({ name, tgid, pid }) => (tgid ? `process ${tgid}` : pid ? name : "") },
  distance: { text: "distance from the previous CPU", pick: distanceOf, words: DISTANCES },
  verdict: { text: "verdict", pick: (kind) => (missedOf(kind) ? 4 : verdictOf(kind)), words: [...VERDICTS, "missed an idle CPU"] },
};
const DISTANCE_COLOURS = ["#8c959f", "#2f7dc4", "#56b4e9", "#009e73", "#e69f00", "#d55e00"];
const VERDICT_COLOURS = ["#8c959f", "#009e73", "#56b4e9", "#e69f00", "#d1242f"];
const fixedColours = (mode) => (mode === "distance" ? DISTANCE_COLOURS : VERDICT_COLOURS);
const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

// The colour of each thread, or of each kind of run, for one way to colour.
class Palette {
  constructor(trace, mode, task, ranks) {
    this.byThread = Boolean(MODES[mode].byThread);
    this.ranks = ranks;
    const count = this.byThread ? trace.threads.length : 256;
    this.colours = Array.from({ length: count }, (_, at) => this.choose(trace, mode, at));
    // With a filter by task the others are grey.
    this.matches = trace.threads.map(({ name }) => task === null || name === task);
    this.styles = this.colours.map((of) => `rgb(${of})`);
    this.grey = `rgba(${GREY}, 0.35)`;
  }

  choose(trace, mode, at) {
    if (!this.byThread) return rgb(fixedColours(mode)[MODES[mode].pick(at)] ?? DISTANCE_COLOURS[0]);
    return rgb(COLOURS[this.ranks.get(MODES[mode].key(trace.threads[at]))] ?? OTHER);
  }

  of(thread, kind) {
    return this.matches[thread] ? this.colours[this.byThread ? thread : kind] : GREY;
  }

  style(thread, kind) {
    return this.matches[thread] ? this.styles[this.byThread ? thread : kind] : this.grey;
  }
}

// Those that ran longest, of all traces together, in the order of their colours.
function ranked(traces, mode) {
  const ran = new Map();
  for (const trace of MODES[mode].byThread ? traces : []) {
    for (const { thread, ns_by_llc } of trace.residency) {
      const key = MODES[mode].key(trace.threads[thread]);
      ran.set(key, ns_by_llc.reduce((sum, ns) => sum + ns, ran.get(key) ?? 0));
    }
  }
  const order = [...ran].sort((one, other) => other[1] - one[1]).slice(0, COLOURS.length);
  return new Map(order.map(([key], at) => [key, at]));
}

function modeLegend(shared, mode) {
  const { byThread, words } = MODES[mode];
  if (!byThread) return legend(words.map((word, at) => [fixedColours(mode)[at], word])).children;
  const named = (key) => shared.traces.flatMap((trace) => trace.threads).find((thread) => MODES[mode].key(thread) === key).name;
  const shown = [...ranked(shared.traces, mode)].map(([key, at]) => [key, COLOURS[at], named(key)]);
  const press = ([key, fill, name]) => element("button", {
    type: "button", "aria-pressed": String(shared.task === name), onclick: () => shared.filterTask(shared.task === name ? null : name),
  }, swatch(fill), key);
  return [...shown.map(press), ...legend([[OTHER, "others"]]).children];
}
