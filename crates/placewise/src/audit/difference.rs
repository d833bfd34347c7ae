//! Two traces of one load side by side: what a change has changed.
//!
//! Waiting is told relative to the time that tasks ran, and counts as shares or by second, so that
//! traces of unlike length can be compared. By how much two runs differ without any change, two traces
//! do not tell.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use placewise_audit::cost::causes::CauseKind;
use placewise_audit::cost::missed_idle::MissedIdle;
use placewise_audit::cost::turns::TurnsOfName;
use placewise_audit::{ByDistance, Distance};
use serde::Serialize;

use super::figures::Figures;
use super::percent::percent;
use super::units::cause_words;
use crate::report::json;

/// Two audits, and what differs.
#[derive(Serialize)]
pub struct Difference {
    /// What makes the traces unlike, whatever was changed.
    pub unlike: Vec<String>,
    pub changes: Vec<Change>,
    #[serde(serialize_with = "json::whole")]
    pub before: Figures,
    #[serde(serialize_with = "json::whole")]
    pub after: Figures,
}

/// A figure of both. `None`: there was nothing to count.
#[derive(Debug, Serialize)]
pub struct Change {
    pub figure: String,
    pub unit: Unit,
    pub before: Option<f64>,
    pub after: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Percent,
    Ns,
    PerSecond,
}

/// A figure of one trace.
struct Measure {
    figure: String,
    unit: Unit,
    value: Option<f64>,
}

impl Difference {
    /// With as many names of tasks as `top`.
    pub fn new(before: Figures, after: Figures, top: usize) -> Self {
        let names = most_waiting([&before, &after], top);
        let pairs = measures(&before, &names).into_iter().zip(measures(&after, &names));
        let changes = pairs.map(|(before, after)| Change {
            figure: before.figure,
            unit: before.unit,
            before: before.value,
            after: after.value,
        });
        let told =
            |change: &Change| [change.before, change.after].iter().flatten().any(|&of| of != 0.0);
        let changes = changes.filter(told).collect();
        Difference { unlike: unlike(&before, &after), changes, before, after }
    }
}

fn unlike(before: &Figures, after: &Figures) -> Vec<String> {
    let (before, after) = (&before.trace, &after.trace);
    let release = |of: &super::figures::Trace| of.release.clone().unwrap_or(of.kernel.clone());
    let facts = [
        ("machines", before.machine.clone(), after.machine.clone()),
        ("kernels", release(before), release(after)),
        ("policies to judge them by", before.kernel.clone(), after.kernel.clone()),
    ];
    let differ = facts.into_iter().filter(|(_, before, after)| before != after);
    differ.map(|(what, a, b)| format!("the {what} differ: {a} before, {b} after")).collect()
}

/// The names that waited longest in either, relative to the length of the trace.
fn most_waiting(of: [&Figures; 2], top: usize) -> Vec<String> {
    let mut waited: BTreeMap<&str, u64> = BTreeMap::new();
    for figures in of {
        for turns in &figures.cost.turns {
            let per_mille = turns.waited_ns.saturating_mul(1_000) / figures.cost.duration_ns.max(1);
            let most = waited.entry(&turns.name).or_default();
            *most = per_mille.max(*most);
        }
    }
    let mut names: Vec<(&str, u64)> = waited.into_iter().collect();
    names.sort_by_key(|&(_, per_mille)| Reverse(per_mille));
    names.into_iter().take(top).map(|(name, _)| name.to_owned()).collect()
}

/// The same figures of any trace, in the order of the report.
fn measures(of: &Figures, names: &[String]) -> Vec<Measure> {
    let mut measures = Vec::new();
    measures.extend(waits(of));
    names.iter().for_each(|name| measures.extend(waits_of_name(of, name)));
    measures.extend(latencies(of));
    measures.extend(placements(of));
    measures.extend(spread(&of.by_distance.wakeups));
    measures.extend(moves(of));
    measures
}

fn measure(figure: impl Into<String>, unit: Unit, value: Option<f64>) -> Measure {
    Measure { figure: figure.into(), unit, value }
}

/// By cause, of the time that all tasks ran.
fn waits(of: &Figures) -> impl Iterator<Item = Measure> {
    let ran: u64 = of.cost.turns.iter().map(|turns| turns.run_ns).sum();
    let waited: u64 = of.cost.turns.iter().map(|turns| turns.waited_ns).sum();
    let all = measure("waited, of run time", Unit::Percent, percent(waited, ran));
    let by_cause = CauseKind::ALL.into_iter().map(move |kind| {
        let causes = of.cost.causes.iter().filter(|cause| cause.cause == kind);
        let cost_ns = causes.map(|cause| cause.cost_ns).sum();
        measure(format!("  {}", cause_words(kind)), Unit::Percent, percent(cost_ns, ran))
    });
    std::iter::once(all).chain(by_cause)
}

fn waits_of_name(of: &Figures, name: &str) -> [Measure; 2] {
    let turns = of.cost.turns.iter().find(|turns| turns.name == name);
    let waited = |of: &TurnsOfName| percent(of.waited_ns, of.run_ns);
    let worst = |of: &TurnsOfName| of.worst_wait.map(|worst| worst.wait_ns as f64);
    [
        measure(format!("{name} waited, of its run time"), Unit::Percent, turns.and_then(waited)),
        measure(format!("  worst wait of {name}"), Unit::Ns, turns.and_then(worst)),
    ]
}

fn latencies(of: &Figures) -> impl Iterator<Item = Measure> {
    of.cost.latency.wakeups.iter().flat_map(|waits| {
        let (run, to) = (waits.wakeup_to_run, waits.distance.heading());
        let some = |ns: u64| (run.count > 0).then_some(ns as f64);
        [
            measure(format!("wakeup to run p50, {to}"), Unit::Ns, some(run.p50_ns)),
            measure(format!("wakeup to run p99, {to}"), Unit::Ns, some(run.p99_ns)),
        ]
    })
}

/// Those that missed an idle CPU, of all.
fn placements(of: &Figures) -> [Measure; 3] {
    let MissedIdle { placements: wakeups, .. } = of.cost.missed_idle.wakeups;
    let all = wakeups + of.cost.missed_idle.forks.placements;
    let missed = &of.cost.missed_idle;
    [
        ("missed an idle CPU in the LLC", missed.same_llc),
        ("missed an idle CPU in the node", missed.same_node),
        ("missed an idle CPU beyond", missed.machine),
    ]
    .map(|(figure, count)| measure(figure, Unit::Percent, percent(count, all)))
}

fn spread(wakeups: &ByDistance) -> impl Iterator<Item = Measure> {
    let total = wakeups.total();
    Distance::ALL.into_iter().map(move |distance| {
        let share = percent(wakeups.at(distance), total);
        measure(format!("wakeups to: {}", distance.heading()), Unit::Percent, share)
    })
}

fn moves(of: &Figures) -> [Measure; 4] {
    let bouncing = &of.cost.bouncing;
    let per_second = |count: u64| Some(count as f64 / of.trace.seconds).filter(|of| of.is_finite());
    let across = percent(bouncing.across_llcs, bouncing.wakeups_by_tasks);
    [
        measure("wakeups", Unit::PerSecond, per_second(of.placements.wakeups)),
        measure("forks", Unit::PerSecond, per_second(of.placements.forks)),
        measure("changes of LLC", Unit::PerSecond, per_second(bouncing.llc_changes)),
        measure("wakeups by tasks across LLCs", Unit::Percent, across),
    ]
}
