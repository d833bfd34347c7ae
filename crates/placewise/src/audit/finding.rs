//! What to say first: what cost the tasks of the trace most time.
//!
//! The rule: each kind of cost is measured in time that tasks waited, and those that cost any are
//! told, the most expensive first.
//!
//! - A placement put its task on a busy CPU while an allowed CPU was idle in the LLC, elsewhere in
//!   the node, or in another node: the time these tasks waited to run. The task that waited longest
//!   is named.
//! - Wakeups left their LLC: how much longer they waited to run, on average, than those that stayed,
//!   for each of them. What a cold cache costs after that is in no trace.
//! - Tasks waited behind others while no allowed CPU was idle: the time they did. There was too much
//!   to do; placement could not have helped.

use placewise_audit::cost::latency::Latency;
use placewise_audit::cost::missed_idle::{MissedIdle, MissedIdleOfName};
use placewise_audit::{Audit, ByDistance, Distance};
use serde::Serialize;

use super::percent::percent;

/// One kind of cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// In one sentence, for people.
    pub text: String,
    pub cost_ns: u64,
}

pub fn findings(audit: &Audit) -> Vec<Finding> {
    let mut findings: Vec<Finding> = [
        missed(audit, "an idle CPU was in the LLC", |n| (n.missed.same_llc, n.waited_ns.same_llc)),
        missed(audit, "an idle CPU was in the node, none in the LLC", |n| {
            (n.missed.same_node, n.waited_ns.same_node)
        }),
        missed(audit, "the only idle CPUs were in other nodes", |n| {
            (n.missed.other_node, n.waited_ns.other_node)
        }),
        left_llc(audit),
        overload(audit),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.cost_ns));
    findings
}

/// `of`: how often, and the time waited.
fn missed(audit: &Audit, place: &str, of: impl Fn(&MissedIdle) -> (u64, u64)) -> Option<Finding> {
    let report = &audit.cost.missed_idle;
    let cost_ns = of(&report.wakeups).1 + of(&report.forks).1;
    // Equal ones in the order of the report.
    let waited = |name: &&MissedIdleOfName| std::cmp::Reverse(of(&name.missed_idle).1);
    let worst = report.by_name.iter().min_by_key(waited).filter(|_| cost_ns > 0)?;
    let (missed, _) = of(&worst.missed_idle);
    let share = percent(missed, worst.missed_idle.placements)?;
    let text = format!(
        "{share:.1} % of {} placements ({missed}) queued on a busy CPU while {place}",
        worst.name
    );
    Some(Finding { text, cost_ns })
}

fn left_llc(audit: &Audit) -> Option<Finding> {
    let waits = &audit.cost.latency.wakeups;
    let mean = |wanted: fn(Distance) -> bool| mean_latency(waits, wanted);
    let away = mean(leaves_llc)?;
    let home = mean(|distance| !leaves_llc(distance))?;
    let longer = (away > home).then_some(away - home)?;
    let left: u64 = of_distance(waits, leaves_llc).map(|wait| wait.wakeup_to_run.count).sum();
    let (name, wakeups) = left_most(audit)?;
    let share = percent(wakeups.left_llc(), wakeups.total())?;
    let text = format!(
        "{share:.1} % of {name} wakeups left their LLC; wakeups that do wait {:.1} us longer to run",
        longer / 1e3
    );
    Some(Finding { text, cost_ns: (longer * left as f64) as u64 })
}

fn leaves_llc(distance: Distance) -> bool {
    distance >= Distance::OtherLlc
}

fn of_distance(
    waits: &[Latency],
    wanted: impl Fn(Distance) -> bool,
) -> impl Iterator<Item = &Latency> {
    waits.iter().filter(move |wait| wanted(wait.distance))
}

/// In ns.
fn mean_latency(waits: &[Latency], wanted: impl Fn(Distance) -> bool) -> Option<f64> {
    let sums = of_distance(waits, wanted).fold((0, 0), |(count, total), wait| {
        (count + wait.wakeup_to_run.count, total + wait.wakeup_to_run.total_ns)
    });
    (sums.0 > 0).then(|| sums.1 as f64 / sums.0 as f64)
}

/// The name whose wakeups left their LLC most often.
fn left_most(audit: &Audit) -> Option<(&str, ByDistance)> {
    let left = |wakeups: &ByDistance| std::cmp::Reverse(wakeups.left_llc());
    let names = audit.moves_by_name.iter().map(|(name, moves)| (name.as_str(), moves.wakeups));
    names.min_by_key(|(_, wakeups)| left(wakeups))
}

fn overload(audit: &Audit) -> Option<Finding> {
    let waits = &audit.cost.idle_beside;
    let cost_ns = waits.waited_ns.checked_sub(waits.beside_idle_ns.total()).filter(|&ns| ns > 0)?;
    let share = percent(cost_ns, waits.waited_ns)?;
    let text = format!(
        "{share:.1} % of the time that tasks waited behind others, no CPU they may use was idle"
    );
    Some(Finding { text, cost_ns })
}
