// The machine, drawn to scale: packages, nodes, LLCs, cores and their threads, as a heat map of the
// part of the trace that the timeline shows.

const HEATS = {
  busy: { text: "busy", value: (sums) => sums.busy, shown: percent },
  waiting: { text: "tasks waiting", value: (sums) => sums.waiting, shown: (value) => figure(value, 2) },
  arrivals: { text: "wakeups from other LLCs", value: (sums) => sums.arrivals, shown: String },
};

const STILL_MS = 100;

function machinePanel(trace, shared) {
  const cells = new Map();
  const labels = [];
  const chooses = (attributes, cpus, text) => {
    const ids = cpus.map((cpu) => cpu.id);
    const press = button(text, () => shared.filterCpus(sameSet(shared.cpus, ids) ? null : ids), attributes);
    labels.push([press, ids]);
    return press;
  };
  const cpuButton = (cpu) => {
    const made = chooses({ class: "cpu", tabindex: "-1" }, [cpu], "");
    cells.set(cpu.id, made);
    return made;
  };
  const cores = (cpus) => element("div", { class: "cores" },
    [...grouped(cpus, (cpu) => cpu.core).values()].map((core) => element("div", { class: "core" }, core.map(cpuButton))));
  const llc = ([id, cpus]) => element("div", { class: "llc" }, chooses({ class: "label" }, cpus, `LLC ${id}`), cores(cpus));
  const node = ([id, cpus]) => element("div", { class: "node" },
    chooses({ class: "label" }, cpus, `node ${id}`), [...grouped(cpus, (cpu) => cpu.llc)].map(llc));
  const packages = [...trace.packages].map(([id, cpus]) => element("div", { class: "package" },
    chooses({ class: "label" }, cpus, `package ${id}`), [...grouped(cpus, (cpu) => cpu.node)].map(node)));
  const machine = element("div", { class: "machine", role: "group", "aria-label": "CPUs of the machine" }, packages);
  roving(machine, [...cells.values()]);
  const ramp = element("p", { class: "quiet" });
  let heat = "busy";
  const draw = () => drawHeat(trace, shared, cells, HEATS[heat], ramp);
  let later = 0;
  draw();
  shared.onView(() => {
    for (const [press, ids] of labels) press.setAttribute("aria-pressed", String(sameSet(shared.cpus, ids)));
    // Hundreds of elements: once the timeline stands still.
    clearTimeout(later);
    later = setTimeout(draw, STILL_MS);
  });
  const controls = element("div", { class: "controls" },
    select("Show", Object.entries(HEATS).map(([name, { text }]) => [name, text]), heat, (name) => { heat = name; draw(); }),
    button("All CPUs", () => shared.filterCpus(null)));
  return panel(`machine-${trace.number}`, traceHeading("The machine", trace, shared), controls, machine, ramp);
}

function drawHeat(trace, shared, cells, { text, value, shown }, ramp) {
  const [from, to] = shared.view;
  const values = new Map([...cells.keys()].map((id) => [id, value(trace.sums([{ id }], from, to))]));
  const largest = text === "busy" ? 1 : Math.max(...values.values()) || 1;
  for (const [id, cell] of cells) {
    const share = values.get(id) / largest;
    cell.style.background = `color-mix(in srgb, var(--hot) ${(100 * share).toFixed(0)}%, var(--idle))`;
    cell.setAttribute("aria-label", `CPU ${id}: ${shown(values.get(id))} ${text}`);
    cell.title = cell.getAttribute("aria-label");
  }
  const swatch = element("span", { class: "ramp", style: "background:linear-gradient(to right, var(--idle), var(--hot))" });
  ramp.replaceChildren(`0 `, swatch, ` ${shown(largest)} ${text}, in what the timeline shows. A CPU, an LLC, a node or a package shows its rows alone.`);
}

const sameSet = (cpus, ids) => cpus !== null && cpus.size === ids.length && ids.every((id) => cpus.has(id));

// One of many is reached by Tab, the others by arrows.
function roving(group, members) {
  members[0]?.setAttribute("tabindex", "0");
  group.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = members.indexOf(event.target);
    if (!step || at < 0) return;
    event.preventDefault();
    const next = members[(at + step + members.length) % members.length];
    event.target.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
}
