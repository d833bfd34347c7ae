// The placements that cost most, each with its place on the timeline and what led to it.

const NEAREST = { same_llc: "in the LLC", same_node: "in the node", other_node: "beyond the node" };

function decisionPanels({ results, traces }, shared) {
  const audits = results.flatMap(({ kind, value }) => (kind === "audit" ? [value] : kind === "difference" ? [value.before, value.after] : []));
  return audits.filter((audit) => audit.worst_decisions.length).map((audit, at) => {
    const trace = traces.find((one) => one.name === audit.trace.name) ?? traces[at];
    const isShown = ({ task, from_cpu, to_cpu }) => shared.hasTask(task) && (!shared.cpus || shared.cpus.has(from_cpu) || shared.cpus.has(to_cpu));
    const explained = (decision) => trace?.explained.find((one) => one.time_ns === decision.time_ns && one.pid === decision.pid);
    const row = (decision) => decisionRow(decision, explained(decision), trace, shared);
    const header = ["at", "task", "from", "to", "policy", "idle was", "waited", ""];
    return panel(`decisions-${at}`, trace ? traceHeading("Worst placements", trace, shared) : "Worst placements",
      element("p", { class: "quiet" }, "Of those that missed an idle CPU, by how long the task then waited behind others."),
      shared.following(() => {
        const shown = audit.worst_decisions.filter(isShown);
        return [table("placements that missed an idle CPU", header, shown.map(row), 2),
          element("h3", {}, "Rule by rule"), shown.map((decision) => rules(audit, decision, explained(decision)))];
      }));
  });
}

function decisionRow(decision, explained, trace, shared) {
  const { time_ns, task, pid, from_cpu, to_cpu, predicted_cpu, nearest_idle, cost_ns } = decision;
  const jump = trace && button("Show", () => {
    const at = explained ? explained.at_ns : trace.onTimeline(time_ns);
    shared.show(at - cost_ns / 4, at + cost_ns * 1.25, [at, to_cpu, trace.number]);
  }, { "aria-label": `Show the placement of ${task}-${pid} at ${traceTime(time_ns)} on the timeline` });
  return [
    traceTime(time_ns), `${task}-${pid}`, `CPU ${from_cpu}`, `CPU ${to_cpu}`, `CPU ${predicted_cpu}`, NEAREST[nearest_idle], time(cost_ns),
    jump ? { child: jump } : "",
  ];
}

function rules(audit, { time_ns, task, pid }, explained) {
  const name = `${traceTime(time_ns)} ${task}-${pid}`;
  if (!explained) return element("p", {}, `${name}: `, element("code", {}, `placewise audit ${audit.trace.name} --at ${traceTime(time_ns)}`));
  const { number, kind, waker, waker_pid, waking_cpu } = explained;
  const head = element("summary", {}, `${name}: ${kind} ${number}, by ${waker}-${waker_pid} on CPU ${waking_cpu}`);
  return element("details", {}, head, table(`rules of decision ${number}`, ["rule", "saw", "answer"], explained.rules.map(({ rule, saw, answer }) => [rule, saw, answer]), 3));
}
