// The data of the page: unpacked, and laid out as the panels ask for it.

async function unpacked(script) {
  const text = script.textContent;
  const packed = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : bytesOf(atob(text));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

function bytesOf(binary) {
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

// Everything: results, and traces with their columns.
async function readPage() {
  const blocks = [...document.querySelectorAll("script.data, script.columns")];
  const [json, ...columns] = await Promise.all(blocks.map(unpacked));
  const data = JSON.parse(new TextDecoder().decode(json));
  data.traces = data.traces.map((trace, at) => new Trace(trace, columns[at], at));
  return data;
}

const DISTANCES = ["first run", "same CPU", "SMT", "LLC", "other LLC", "other node"];
const VERDICTS = ["not placed for this run", "as the policy", "another CPU of the LLC", "another LLC"];
const MISSED = ["", "missed an idle CPU in the LLC", "missed an idle CPU in the node", "missed an idle CPU beyond the node"];

const distanceOf = (kind) => kind & 7;
const verdictOf = (kind) => (kind >> 3) & 3;
const missedOf = (kind) => kind >> 5;

class Trace {
  constructor(recording, buffer, number) {
    Object.assign(this, recording);
    this.number = number;
    const u8 = ([at, count]) => new Uint8Array(buffer, at, count);
    const u16 = ([at, count]) => new Uint16Array(buffer, at, count);
    this.idleStrip = u16(recording.idle_strip);
    this.levels = recording.levels.map((level) => ({
      width: level.width_ns, bins: level.bins, busy: u8(level.busy), waiting: u16(level.waiting),
      arrivals: u16(level.arrivals), thread: u16(level.thread), kind: u8(level.class),
    }));
    this.wakeups = {
      oneOf: recording.wakeups.one_of, at: summed(varints(buffer, recording.wakeups.gaps)),
      from: u16(recording.wakeups.from), to: u16(recording.wakeups.to), thread: u16(recording.wakeups.thread),
    };
    this.runs = recording.runs && runsOf(recording.runs, buffer, u8, u16);
    this.layOut();
  }

  // CPUs in the order of the machine, and what they belong to.
  layOut() {
    const cpus = this.shape.cpus.map((cpu, id) => ({ id, ...cpu })).filter((cpu) => cpu.online);
    const order = (one, other) => one.package - other.package || one.node - other.node ||
      one.llc - other.llc || one.core - other.core || one.id - other.id;
    this.cpus = cpus.sort(order);
    this.llcs = grouped(this.cpus, (cpu) => cpu.llc);
    this.nodes = grouped(this.cpus, (cpu) => cpu.node);
    this.packages = grouped(this.cpus, (cpu) => cpu.package);
    this.position = new Map(this.cpus.map((cpu, at) => [cpu.id, at]));
  }

  // Each with its CPUs, of which one at least is among some; null is all.
  groupsOf(places, cpus) {
    return [...this[places]].filter(([, members]) => !cpus || members.some((cpu) => cpus.has(cpu.id)));
  }

  threadName(thread) {
    const { name, pid } = this.threads[thread];
    return pid ? `${name}-${pid}` : name;
  }

  // The finest level that has no more bins in a range than asked for.
  level(from, to, bins) {
    const fits = this.levels.find((level) => (to - from) / level.width <= bins);
    return fits ?? this.levels[this.levels.length - 1];
  }

  // Sums of some CPUs over a range: share busy, tasks waiting on average, arrivals.
  sums(cpus, from, to) {
    const level = this.levels[0];
    const first = Math.max(0, Math.floor(from / level.width));
    const last = Math.min(level.bins, Math.max(first + 1, Math.ceil(to / level.width)));
    let [busy, waiting, arrivals] = [0, 0, 0];
    for (const cpu of cpus) {
      for (let at = cpu.id * level.bins + first; at < cpu.id * level.bins + last; at++) {
        busy += level.busy[at];
        waiting += level.waiting[at];
        arrivals += level.arrivals[at];
      }
    }
    // The last bin goes beyond the trace.
    const length = Math.min(last * level.width, this.duration_ns) - first * level.width;
    const bins = Math.max(length / level.width, 1e-9);
    return { busy: Math.min(1, busy / 255 / bins / cpus.length), waiting: waiting / 256 / bins / cpus.length, arrivals };
  }

  // On the timeline, of a time as the trace has it.
  onTimeline(time_ns) {
    let at = time_ns - this.start_ns;
    for (const [when, left_out] of this.silences) if (at > when + left_out) at -= left_out;
    return at;
  }
}

function runsOf(runs, buffer, u8, u16) {
  const gaps = varints(buffer, runs.gaps);
  const lengths = varints(buffer, runs.lengths);
  const start = new Float64Array(gaps.length);
  const end = new Float64Array(gaps.length);
  const first = [0];
  let at = 0;
  for (const count of runs.of_cpu) {
    let now = 0;
    for (const stop = at + count; at < stop; at++) {
      start[at] = now + gaps[at];
      end[at] = now = start[at] + lengths[at];
    }
    first.push(at);
  }
  return { start, end, first, waited: varints(buffer, runs.waited), thread: u16(runs.thread), kind: u8(runs.class) };
}

function varints(buffer, [at, count]) {
  const bytes = new Uint8Array(buffer);
  const values = new Float64Array(count);
  for (let value = 0; value < count; value++) {
    let [sum, unit] = [0, 1];
    for (; bytes[at] & 0x80; at++, unit *= 128) sum += (bytes[at] & 0x7f) * unit;
    values[value] = sum + bytes[at++] * unit;
  }
  return values;
}

function summed(gaps) {
  let now = 0;
  return gaps.map((gap) => (now += gap));
}

function grouped(list, keyOf) {
  const groups = new Map();
  for (const one of list) {
    if (!groups.has(keyOf(one))) groups.set(keyOf(one), []);
    groups.get(keyOf(one)).push(one);
  }
  return groups;
}

// The first index from low to high for which a test holds that holds for all behind it, too.
function firstWhere(low, high, holds) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle; else low = middle + 1;
  }
  return low;
}
