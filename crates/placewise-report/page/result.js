// What a result says: in a sentence, in a table, and as text to post.

function verdictPanels({ results }) {
  return results.map((result, at) => {
    const made = panel(`verdict-${at}`, "Verdict",
      element("p", { class: "sentence" }, result.verdict),
      element("p", { class: "quiet" }, result.confidence));
    made.classList.add("verdict");
    return made;
  });
}

function resultPanels({ results }) {
  return results.map((result, at) => {
    const tables = { compare: comparisonTable, reproduce: reproductionTable, audit: auditTables, difference: differenceTable, advise: adviceTable };
    const made = panel(`result-${at}`, "Result", posting(result), tables[result.kind](result.value));
    if (result.kind === "reproduce") made.append(scatter(result.value.rows));
    return made;
  });
}

function posting({ text }) {
  if (!text) return [];
  const shown = element("pre", { tabindex: "0", role: "region", "aria-label": "text to post" }, text);
  const press = button("Copy as text", () => copy(text, press));
  return element("div", {}, element("div", { class: "controls" }, press), element("details", {}, element("summary", {}, "The text"), shown));
}

const changeCell = (pct, significant) => ({
  text: signed(pct), kind: significant && pct ? (pct > 0 ? "good" : "bad") : "",
});

function comparisonTable({ rows }) {
  const cells = rows.map((row) => [
    row.case, row.metric, row.policy, row.kernel, row.machine,
    `${figure(row.states ? row.median : row.mean, 5)} ${row.unit}`, figure(row.std_pct),
    changeCell(row.change_pct, row.significant && row.better),
    row.change_low_pct === null ? "" : `${signed(row.change_low_pct)} to ${signed(row.change_high_pct)}`,
    row.change_pct === null ? "" : row.identical ? "same" : row.significant ? "beyond noise" : "noise",
    row.runs,
  ]);
  const header = ["case", "metric", "policy", "kernel", "machine", "figure", "std %", "change %", "95 % interval", "", "runs"];
  return [element("p", { class: "quiet" }, "Positive changes are better."), table("figures of the comparison", header, cells, 5)];
}

function reproductionTable({ rows }) {
  const cells = rows.filter((row) => !row.not_simulated).map((row) => [
    row.series, row.workload, row.case, row.policy, row.machine, figure(row.value, 5), figure(row.predicted, 5), signed(row.change_pct),
    signed(row.predicted_change_pct),
    row.predicted_change_low_pct === null ? "" : `${signed(row.predicted_change_low_pct)} to ${signed(row.predicted_change_high_pct)}`,
    { text: row.verdict ?? "", kind: { right: "good", quiet: "good", wrong: "bad", loud: "bad" }[row.verdict] ?? "" },
  ]);
  const header = ["series", "workload", "case", "policy", "machine", "published", "predicted", "published %", "predicted %", "95 % interval", "verdict"];
  return table("published and predicted", header, cells, 5);
}

function differenceTable({ changes, after }) {
  const shown = { percent: (value) => `${figure(value)} %`, ns: time, per_second: (value) => `${figure(value)} /s` };
  const text = (value, unit) => (value === null ? "" : shown[unit](value));
  const cells = changes.map(({ figure, unit, before, after }) => [figure, text(before, unit), text(after, unit)]);
  return [table("before and after", ["figure", "before", "after"], cells), element("h3", {}, "After"), auditTables(after)];
}

function adviceTable({ advice, goal }) {
  const beyond = (change) => `${signed(change.change_pct)} % (${signed(change.change_low_pct)} to ${signed(change.change_high_pct)})`;
  const commands = (list) => ({ child: element("code", {}, list.join("; ")) });
  const cells = advice.map((line) => [
    line.what, commands(line.commands), commands(line.undo), { text: beyond(line), kind: line.change_pct > 0 ? "good" : "bad" },
    line.costs.map((cost) => `${cost.task} ${beyond(cost)}`).join(", ") || "nobody, beyond noise",
  ]);
  return [element("p", { class: "quiet" }, "Positive changes are better."), table("advice", ["what", "do", "undo", goal, "costs"], cells, 3)];
}

function auditTables({ findings, turns, by_distance: by }) {
  const finding = ({ text, extent, command }) => element("li", {}, `${text}; ${extent} `, element("code", {}, command));
  const waits = turns.slice(0, 12).map((one) => [
    one.name, time(one.run_ns), one.switched_in, one.waits, time(one.waited_ns), one.worst_wait ? time(one.worst_wait.wait_ns) : "",
  ]);
  const distances = ["same_cpu", "smt", "llc", "other_llc", "other_node"];
  const placed = ["wakeups", "forks", "balance"].map((kind) => [kind, ...distances.map((distance) => by[kind][distance])]);
  const others = findings.length > 0 && element("ol", { class: "findings" }, findings.map(finding));
  return [others || [],
    element("div", { class: "pair" },
      table("tasks that waited longest", ["task", "ran", "switched in", "waits", "waited", "worst"], waits),
      table("placements by distance from the previous CPU", ["placements", ...DISTANCES.slice(1)], placed))];
}
