//! How an audit is printed: the finding first, then tables on one screen, or the figures for
//! programs.

use std::collections::BTreeMap;

use placewise_audit::cost::latency::Quantiles;
use placewise_audit::cost::missed_idle::MissedIdle;
use placewise_audit::cost::places::Nearest;
use placewise_audit::cost::turns::TurnsOfName;
use placewise_audit::{ByDistance, Distance, Explanation, Rule};

use serde::Serialize;

use super::args::Format;
use super::difference::{Change, Difference, Unit};
use super::element;
use super::explanation::heading;
use super::figures::{Count, Figures};
use super::finding::Finding;
use super::percent::percent;
use super::schedstat::Counted;
use super::units::{cause_words, cpus, time, trace_time};
use crate::report::foreign::{in_markdown, visible};
use crate::report::terminal::{empty_bare_table, fitting};
use crate::report::{Table, csv, json, markdown, number};

/// Findings that are told; programs get all.
const FINDINGS: usize = 2;
/// Problems that are told.
const PROBLEMS: usize = 6;
/// Columns of a line, but for commands: those can be copied as they are.
const WIDTH: usize = 100;

pub fn render(figures: &Figures, top: usize, format: Format) -> anyhow::Result<String> {
    match format {
        Format::Table => Ok(terminal(figures, top)),
        Format::Markdown => Ok(document(figures, top)),
        Format::Csv => in_csv(figures),
        Format::Json => json::render(figures),
    }
}

fn terminal(figures: &Figures, top: usize) -> String {
    let mut text = String::new();
    for finding in told(figures) {
        text += &lines(&finding.text);
        text += &lines(&format!("  {}", finding.extent));
        text += &format!("  {}\n", visible(&finding.command));
    }
    if figures.findings.is_empty() {
        text += &lines(&nothing_wrong(figures));
    }
    for line in about(figures) {
        text += &lines(&line);
    }
    for (heading, table) in tables(figures, top, empty_bare_table) {
        text += &format!("\n{}{}\n", lines(&heading), table.trimmed());
    }
    text += "\n";
    for line in remarks(figures) {
        text += &lines(&line);
    }
    text
}

/// What does not fit goes on below, further in.
fn lines(line: &str) -> String {
    let indent = if line.starts_with(' ') { "    " } else { "  " };
    let options = textwrap::Options::new(WIDTH).subsequent_indent(indent);
    textwrap::fill(&visible(line), options) + "\n"
}

fn document(figures: &Figures, top: usize) -> String {
    let mut text = String::new();
    for Finding { text: what, extent, command, .. } in told(figures) {
        let (what, extent) = (in_markdown(what), in_markdown(extent));
        text += &format!("**{what}**: {extent}\n\n    {}\n\n", visible(command));
    }
    if figures.findings.is_empty() {
        text += &format!("**{}**\n\n", in_markdown(&nothing_wrong(figures)));
    }
    for line in about(figures) {
        text += &format!("- {}\n", in_markdown(&line));
    }
    for (heading, table) in tables(figures, top, markdown::empty_table) {
        text += &format!("\n{}\n\n{table}\n", in_markdown(&heading));
    }
    text += "\n";
    for line in remarks(figures) {
        text += &format!("- {}\n", in_markdown(&line));
    }
    text
}

fn told(figures: &Figures) -> impl Iterator<Item = &Finding> {
    figures.findings.iter().take(FINDINGS)
}

fn nothing_wrong(figures: &Figures) -> String {
    let sum = |of: fn(&TurnsOfName) -> u64| figures.cost.turns.iter().map(of).sum::<u64>();
    let (waited, ran) = (sum(|of| of.waited_ns), sum(|of| of.run_ns));
    let idle_exit = time(figures.cost.idle_exit_ns);
    format!(
        "Nothing wrong: tasks ran {} and waited {} to run, {idle_exit} of it for idle CPUs to wake up.",
        time(ran),
        time(waited)
    )
}

fn about(figures: &Figures) -> Vec<String> {
    let trace = &figures.trace;
    let chosen = trace.release.as_ref().map(|release| format!(" for release {release}"));
    let mut lines = vec![format!(
        "{}: {} events in {:.3} s on {}; kernel {}{}",
        trace.name,
        trace.events,
        trace.seconds,
        trace.machine,
        trace.kernel,
        chosen.unwrap_or_default()
    )];
    if let Some(task) = &trace.task {
        lines.push(format!("only tasks that are {task}"));
    }
    lines.extend(trace.problems.iter().take(PROBLEMS).map(|problem| format!("! {problem}")));
    let more = trace.problems.len().saturating_sub(PROBLEMS);
    if more > 0 {
        lines.push(format!("! {more} more kinds of problems: --format json has them"));
    }
    lines.extend(trace.cautions.iter().map(|caution| format!("! {caution}")));
    lines
}

fn remarks(figures: &Figures) -> Vec<String> {
    let waits = &figures.cost.idle_beside;
    let mut lines = vec![format!(
        "waited behind others: {}, while an allowed CPU was idle: {} in the LLC, {} in the node, \
         {} beyond",
        time(waits.waited_ns),
        time(waits.beside_idle_ns.same_llc),
        time(waits.beside_idle_ns.same_node),
        time(waits.beside_idle_ns.other_node)
    )];
    lines.extend(counted("no placement", &figures.no_placement));
    lines.extend(counted("inferred", &figures.inferences));
    lines
}

/// `inferred: believed_sync 12, delayed_by_lag 3`
fn counted(what: &str, counts: &[Count]) -> Option<String> {
    let told: Vec<String> = counts
        .iter()
        .filter(|count| count.count > 0)
        .map(|Count { name, count }| format!("{name} {count}"))
        .collect();
    (!told.is_empty()).then(|| format!("{what}: {}", told.join(", ")))
}

fn tables(figures: &Figures, top: usize, empty: impl Fn() -> Table) -> Vec<(String, Table)> {
    let kernel = &figures.trace.kernel;
    let mut tables = Vec::new();
    if !figures.cost.causes.is_empty() {
        tables.push(("what tasks waited for".to_owned(), causes(figures, top, empty())));
    }
    tables.push(("how long tasks ran and waited".to_owned(), turns(figures, top, empty())));
    if !figures.cost.worst_decisions.is_empty() {
        let heading = "worst placements of those that missed an idle CPU: --at TIME explains one";
        tables.push((heading.to_owned(), worst_decisions(figures, empty())));
    }
    tables.extend([
        ("by distance from the previous CPU".to_owned(), distances(figures, top, empty())),
        (
            "placed on a busy CPU while an allowed CPU was idle: the nearest one".to_owned(),
            missed_idle(figures, top, empty()),
        ),
    ]);
    if !figures.cost.bouncing.tasks.is_empty() || !figures.cost.bouncing.pairs.is_empty() {
        let bouncing = &figures.cost.bouncing;
        let heading = format!(
            "bouncing: {} changes of LLC, {} wakeups by tasks across LLCs",
            bouncing.llc_changes,
            part(bouncing.across_llcs, bouncing.wakeups_by_tasks)
        );
        tables.push((heading, bouncing_table(figures, top, empty())));
    }
    if !figures.policies.is_empty() {
        let heading = format!("decisions that differ from those of {kernel}");
        tables.push((heading, policies(figures, empty())));
    }
    if let Some(counted) = &figures.schedstat {
        let version = counted.version.map(|version| format!(", version {version}"));
        let heading = format!("beside /proc/schedstat{}", version.unwrap_or_default());
        tables.push((heading, beside_schedstat(figures, counted, empty())));
        let heading = "balance passes that /proc/schedstat has: all, failed, tasks pulled";
        tables.push((heading.to_owned(), balance_passes(counted, empty())));
    }
    let heading = format!("agreement of the kernel with {kernel}, %");
    tables.push((heading, agreement(figures, empty())));
    if figures.agreement.reasons.iter().any(|reason| reason.disagreed > 0) {
        let heading = format!("where they disagree: how {kernel} decided, where the kernel went");
        tables.push((heading, reasons(figures, top, empty())));
    }
    tables
}

fn causes(figures: &Figures, top: usize, mut table: Table) -> Table {
    table.set_header(["task", "cause", "waited", "of run time", "behind", "on"]);
    table.align_right([2, 3]);
    for cause in figures.cost.causes.iter().take(top) {
        let others = cause.others.first().map(|other| match cause.nr_others - 1 {
            0 => other.name.clone(),
            more => format!("{} +{more}", other.name),
        });
        table.add_row([
            cause.task.clone(),
            cause_words(cause.cause).to_owned(),
            time(cause.cost_ns),
            percent(cause.cost_ns, cause.run_ns).map_or(String::new(), |of| format!("{of:.1} %")),
            others.unwrap_or_default(),
            cpus(&cause.cpus),
        ]);
    }
    table
}

fn turns(figures: &Figures, top: usize, mut table: Table) -> Table {
    table.set_header(["task", "ran", "waited", "times", "worst", "at", "on"]);
    table.align_right_from(1);
    for of in figures.cost.turns.iter().take(top) {
        let worst = of.worst_wait.map(|worst| {
            [time(worst.wait_ns), trace_time(worst.time_ns), format!("CPU {}", worst.cpu)]
        });
        let figures = [of.name.clone(), time(of.run_ns), time(of.waited_ns), of.waits.to_string()];
        table.add_row(figures.into_iter().chain(worst.unwrap_or_default()));
    }
    table
}

fn worst_decisions(figures: &Figures, mut table: Table) -> Table {
    let kernel = &figures.trace.kernel;
    table.set_header(["at", "task", "from", "to", kernel, "idle was", "waited"]);
    table.align_right([2, 3, 4, 6]);
    for decision in &figures.cost.worst_decisions {
        table.add_row([
            trace_time(decision.time_ns),
            format!("{}-{}", decision.task, decision.pid),
            format!("CPU {}", decision.from_cpu),
            format!("CPU {}", decision.to_cpu),
            format!("CPU {}", decision.predicted_cpu),
            match decision.nearest_idle {
                Nearest::SameLlc => "in the LLC",
                Nearest::SameNode => "in the node",
                Nearest::OtherNode => "beyond",
            }
            .to_owned(),
            time(decision.cost_ns),
        ]);
    }
    table
}

/// How far tasks went, and how long they then waited to run.
fn distances(figures: &Figures, top: usize, mut table: Table) -> Table {
    let headings = Distance::ALL.map(Distance::heading);
    table.set_header(["", "placements"].map(str::to_owned).into_iter().chain(headings));
    table.align_right_from(1);
    add_spreads(figures, top, &mut table);
    add_latencies(figures, &mut table);
    table
}

fn add_spreads(figures: &Figures, top: usize, table: &mut Table) {
    let mut add = |name: &str, counts: &ByDistance| {
        let total = counts.total();
        let shares = Distance::ALL.map(|distance| pct(percent(counts.at(distance), total)));
        table.add_row([format!("{name}, %"), total.to_string()].into_iter().chain(shares));
    };
    let overall = &figures.by_distance;
    add("wakeups", &overall.wakeups);
    add("forks", &overall.forks);
    add("balance moves", &overall.balance);
    let woken = figures.by_task.iter().filter(|of| of.distances.wakeups.total() > 0);
    for of_task in woken.take(top) {
        add(&format!("wakeups of {}", of_task.name), &of_task.distances.wakeups);
    }
    if !figures.policies.is_empty() {
        let kernel = format!("wakeups under {}", figures.trace.kernel);
        add(&kernel, &figures.predicted_by_distance.wakeups);
    }
    for policy in &figures.policies {
        add(&format!("wakeups under {}", policy.policy), &policy.by_distance.wakeups);
    }
}

fn add_latencies(figures: &Figures, table: &mut Table) {
    let (wakeups, forks) = (&figures.cost.latency.wakeups, &figures.cost.latency.forks);
    let mut add =
        |name: &str, waits: [Quantiles; Distance::ALL.len()], ns: fn(&Quantiles) -> u64| {
            let count: u64 = waits.iter().map(|waits| waits.count).sum();
            let cells = waits
                .map(|waits| if waits.count == 0 { String::new() } else { micros(ns(&waits)) });
            table.add_row([format!("{name}, us"), count.to_string()].into_iter().chain(cells));
        };
    let to_run = wakeups.map(|waits| waits.wakeup_to_run);
    add("wakeup to run p50", to_run, |waits| waits.p50_ns);
    add("wakeup to run p99", to_run, |waits| waits.p99_ns);
    add("wakeup to run max", to_run, |waits| waits.max_ns);
    add("behind another p99", wakeups.map(|waits| waits.behind_another), |waits| waits.p99_ns);
    add("fork to run p99", forks.map(|waits| waits.wakeup_to_run), |waits| waits.p99_ns);
}

fn beside_schedstat(figures: &Figures, counted: &Counted, mut table: Table) -> Table {
    table.set_header(["", "trace", "schedstat"]);
    table.align_right_from(1);
    let sum = |of: fn(&TurnsOfName) -> u64| figures.cost.turns.iter().map(of).sum::<u64>();
    let no_placement: u64 = figures.no_placement.iter().map(|of| of.count).sum();
    let number = |count: u64| count.to_string();
    let switched_in = sum(|of| of.switched_in);
    for (what, trace, schedstat, shown) in [
        ("tasks switched in", switched_in, counted.switched_in, &number as &dyn Fn(u64) -> String),
        ("idle task switched in", figures.cost.idle_entries, counted.idle_entries, &number),
        ("wakeups", figures.placements.wakeups + no_placement, counted.wakeups, &number),
        ("moved by balancing", figures.placements.balance, counted.moved(), &number),
        ("ran", sum(|of| of.run_ns), counted.run_ns, &time),
        ("waited to run", sum(|of| of.waited_ns), counted.run_delay_ns, &time),
    ] {
        table.add_row([what.to_owned(), shown(trace), shown(schedstat)]);
    }
    table
}

fn balance_passes(counted: &Counted, mut table: Table) -> Table {
    table.set_header(["domain", "busy", "idle", "newly idle", "pushed", "wakeups across"]);
    table.align_right_from(1);
    for of in &counted.domains {
        let [busy, idle, newly_idle] = [of.busy, of.idle, of.newly_idle]
            .map(|of| format!("{}, {}, {}", of.passes, of.failed, of.pulled));
        let (pushed, across) = (of.active_pushed.to_string(), of.woken_remote.to_string());
        table.add_row([of.name.clone(), busy, idle, newly_idle, pushed, across]);
    }
    table
}

fn policies(figures: &Figures, mut table: Table) -> Table {
    table.set_header(["", "decisions", "another CPU", "another LLC"]);
    table.align_right_from(1);
    for policy in &figures.policies {
        table.add_row([
            policy.policy.clone(),
            policy.decisions.to_string(),
            part(policy.other_cpu, policy.decisions),
            part(policy.other_llc, policy.decisions),
        ]);
    }
    table
}

fn missed_idle(figures: &Figures, top: usize, mut table: Table) -> Table {
    table.set_header(["", "on a busy CPU", "in the LLC", "in the node", "beyond", "waited"]);
    table.align_right_from(1);
    let missed = &figures.cost.missed_idle;
    let mut add = |name: String, count: &MissedIdle| {
        table.add_row([
            name,
            count.on_busy_cpu.to_string(),
            part(count.missed.same_llc, count.placements),
            part(count.missed.same_node, count.placements),
            part(count.missed.other_node, count.placements),
            time(count.waited_ns.total()),
        ]);
    };
    add("wakeups".into(), &missed.wakeups);
    add("forks".into(), &missed.forks);
    for of_name in missed.by_name.iter().take(top) {
        add(of_name.name.clone(), &of_name.missed_idle);
    }
    table
}

/// `123 (4.1 %)`
fn part(part: u64, whole: u64) -> String {
    match percent(part, whole) {
        Some(share) if part > 0 => format!("{part} ({share:.1} %)"),
        _ => part.to_string(),
    }
}

fn bouncing_table(figures: &Figures, top: usize, mut table: Table) -> Table {
    table.set_header(["task", "changes", "per s", "waker, wakee", "wakeups", "across LLCs"]);
    table.align_right([1, 2, 4, 5]);
    let (tasks, pairs) = (&figures.cost.bouncing.tasks, &figures.cost.bouncing.pairs);
    for row in 0..tasks.len().max(pairs.len()).min(top) {
        let task = tasks.get(row).map(|task| {
            let changes = number::figure(task.llc_changes_per_second);
            [format!("{}-{}", task.name, task.pid), task.llc_changes.to_string(), changes]
        });
        let pair = pairs.get(row).map(|pair| {
            let across = part(pair.across_llcs, pair.wakeups);
            [format!("{}, {}", pair.waker, pair.wakee), pair.wakeups.to_string(), across]
        });
        table.add_row(task.unwrap_or_default().into_iter().chain(pair.unwrap_or_default()));
    }
    table
}

fn agreement(figures: &Figures, mut table: Table) -> Table {
    table.set_header(["", "decisions", "exact CPU", "same LLC"]);
    table.align_right_from(1);
    let mut add = |name: &str, decisions: u64, exact, same_llc| {
        table.add_row([name.to_owned(), decisions.to_string(), pct(exact), pct(same_llc)]);
    };
    let of = &figures.agreement.shares;
    add("wakeups", of.wakeups, of.exact_cpu_pct, of.same_llc_pct);
    let (exact, same_llc) = (of.prev_cpu_exact_pct, of.prev_cpu_same_llc_pct);
    add("  always the previous CPU", of.wakeups, exact, same_llc);
    add("forks", of.forks, of.forks_exact_cpu_pct, of.forks_same_llc_pct);
    let (exact, same_llc) = (of.forks_prev_cpu_exact_pct, of.forks_prev_cpu_same_llc_pct);
    add("  always the parent's CPU", of.forks, exact, same_llc);
    if let Some(of) = &figures.agreement.plain {
        add("wakeups, had nothing been recorded", of.wakeups, of.exact_cpu_pct, of.same_llc_pct);
        let (exact, same_llc) = (of.forks_exact_cpu_pct, of.forks_same_llc_pct);
        add("forks, had nothing been recorded", of.forks, exact, same_llc);
    }
    table
}

fn reasons(figures: &Figures, top: usize, mut table: Table) -> Table {
    table.set_header(["target by", "search ended", "decisions", "disagreed", "the kernel went to"]);
    table.align_right([2, 3]);
    let disagreed = figures.agreement.reasons.iter().filter(|reason| reason.disagreed > 0);
    for reason in disagreed.take(top) {
        let went: Vec<String> = reason
            .went
            .iter()
            .take(3)
            .map(|Count { name, count }| format!("{name} {count}"))
            .collect();
        table.add_row([
            reason.target.to_owned(),
            reason.search.to_owned(),
            reason.decisions.to_string(),
            part(reason.disagreed, reason.decisions),
            went.join(", "),
        ]);
    }
    table
}

fn pct(value: Option<f64>) -> String {
    value.map(|value| format!("{value:.1}")).unwrap_or_default()
}

fn micros(ns: u64) -> String {
    number::figure(ns as f64 / 1e3)
}

/// Two traces side by side.
pub fn difference(difference: &Difference, format: Format) -> anyhow::Result<String> {
    match format {
        Format::Table => {
            let heading: String = side_by_side(difference).iter().map(|line| lines(line)).collect();
            let table = changes(difference, empty_bare_table());
            Ok(format!("{heading}\n{}\n", table.trimmed()))
        }
        Format::Markdown => {
            let told = side_by_side(difference).into_iter();
            let heading: String = told.map(|line| format!("- {}\n", in_markdown(&line))).collect();
            Ok(format!("{heading}\n{}\n", changes(difference, markdown::empty_table())))
        }
        Format::Csv => in_csv(difference),
        Format::Json => json::render(difference),
    }
}

fn side_by_side(difference: &Difference) -> Vec<String> {
    let mut lines = Vec::new();
    let both = [("before", &difference.before), ("after", &difference.after)];
    for (when, figures) in both {
        let first = told(figures).next().map(|finding| finding.text.clone());
        lines.push(format!("{when}: {}", first.unwrap_or_else(|| nothing_wrong(figures))));
    }
    for (when, figures) in both {
        let about = about(figures).into_iter();
        lines.extend(about.map(|line| match line.strip_prefix("! ") {
            Some(problem) => format!("! {when}: {problem}"),
            None => format!("{when}: {line}"),
        }));
    }
    lines.extend(difference.unlike.iter().map(|unlike| format!("! {unlike}")));
    lines
}

fn changes(difference: &Difference, mut table: Table) -> Table {
    table.set_header(["", "before", "after", "change"]);
    table.align_right_from(1);
    for Change { figure, unit, before, after } in &difference.changes {
        let shown =
            |value: &Option<f64>| value.map(|value| in_unit(value, *unit)).unwrap_or_default();
        let change = before.zip(*after).map(|(before, after)| changed(before, after, *unit));
        table.add_row([figure.clone(), shown(before), shown(after), change.unwrap_or_default()]);
    }
    table
}

fn in_unit(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Percent => format!("{value:.1} %"),
        Unit::Ns => time(value as u64),
        Unit::PerSecond => format!("{} /s", number::figure(value)),
    }
}

/// Shares by points, all else by how many times as much it is.
fn changed(before: f64, after: f64, unit: Unit) -> String {
    match unit {
        _ if before == after => "=".to_owned(),
        Unit::Percent if (after - before).abs() < 0.05 => "<0.1 points".to_owned(),
        Unit::Percent => format!("{:+.1} points", after - before),
        _ if before > 0.0 => format!("x{}", number::figure(after / before)),
        _ => "new".to_owned(),
    }
}

/// One row per figure: the path of the JSON report, and the value.
fn in_csv(figures: &impl Serialize) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    flatten(String::new(), &serde_json::to_value(figures)?, &mut rows);
    csv::table(&["figure", "value"], rows)
}

/// `by_task.hackbench.wakeups.smt`
fn flatten(path: String, value: &serde_json::Value, rows: &mut Vec<[String; 2]>) {
    use serde_json::Value;

    let within = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| flatten(within(key), value, rows));
        }
        Value::Array(values) => {
            let values = element::names(values).into_iter().zip(values);
            values.for_each(|(name, value)| flatten(within(&name), value, rows));
        }
        Value::Null => rows.push([path, String::new()]),
        Value::String(text) => rows.push([path, text.clone()]),
        value => rows.push([path, value.to_string()]),
    }
}

/// Decisions step by step.
pub fn explanations(
    explained: &[Explanation],
    cautions: &[String],
    format: Format,
) -> anyhow::Result<String> {
    match format {
        Format::Table => {
            let text = step_by_step(explained, |heading, rules| {
                format!(
                    "{}\n{}\n",
                    visible(heading),
                    fitting(filled(rules, empty_bare_table())).trimmed()
                )
            });
            let cautions = cautions.iter().map(|caution| lines(&format!("! {caution}")));
            Ok(text + &cautions.collect::<String>())
        }
        Format::Markdown => {
            let text = step_by_step(explained, |heading, rules| {
                format!("{}\n\n{}\n", in_markdown(heading), filled(rules, markdown::empty_table()))
            });
            let cautions = cautions.iter().map(|caution| format!("\n{}\n", in_markdown(caution)));
            Ok(text + &cautions.collect::<String>())
        }
        Format::Csv => explanations_csv(explained),
        Format::Json => json::render(&BTreeMap::from([("decisions", explained)])),
    }
}

/// `text_of` a heading and the rules below it.
fn step_by_step(explained: &[Explanation], text_of: impl Fn(&str, &[Rule]) -> String) -> String {
    let texts = explained.iter().map(|one| text_of(&heading(one), &one.rules));
    texts.collect::<Vec<_>>().join("\n")
}

fn filled(rules: &[Rule], mut table: Table) -> Table {
    table.set_header(["rule", "saw", "answer"]);
    for rule in rules {
        table.add_row([rule.rule, &rule.saw, &rule.answer]);
    }
    table
}

fn explanations_csv(explained: &[Explanation]) -> anyhow::Result<String> {
    let row = |of: &Explanation, rule: &Rule| {
        [of.number.to_string(), rule.rule.to_owned(), rule.saw.clone(), rule.answer.clone()]
    };
    let rows = explained.iter().flat_map(|of| of.rules.iter().map(move |rule| row(of, rule)));
    csv::table(&["decision", "rule", "saw", "answer"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_in_what_it_is_of() {
        assert_eq!(changed(12.0, 9.5, Unit::Percent), "-2.5 points");
        assert_eq!(changed(0.04, 0.0, Unit::Percent), "<0.1 points");
        assert_eq!(changed(4e6, 1e6, Unit::Ns), "x0.2500");
        assert_eq!(changed(0.0, 2.0, Unit::PerSecond), "new");
        assert_eq!(changed(7.0, 7.0, Unit::Percent), "=");
    }
}
