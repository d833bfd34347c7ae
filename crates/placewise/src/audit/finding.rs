//! What to say first: what kept the tasks of the trace waiting most, as the causes of
//! `placewise_audit::cost::causes` have it, and the command that shows more.
//!
//! A cause is told if it cost its task 1 % of the time that the task ran, 0.1 % of that of the trace,
//! and 1 % of what all tasks waited. Less is what any scheduling costs; so is what idle CPUs take to
//! wake up, however much that is.

use placewise_audit::Audit;
use placewise_audit::cost::causes::{Cause, CauseKind};
use serde::Serialize;

use super::args::{AUTO, AuditArgs};
use super::percent::percent;
use super::units::{cpus, time, trace_time};

/// Per mille.
const OF_RUN_TIME: u128 = 10;
const OF_TRACE: u128 = 1;
const OF_ALL_WAITING: u128 = 10;

/// One kind of cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// In one sentence, for people.
    pub text: String,
    pub cost_ns: u64,
    pub task: String,
    pub cause: CauseKind,
    /// How much that is.
    pub extent: String,
    /// The command that shows more of it.
    pub command: String,
}

pub fn findings(args: &AuditArgs, audit: &Audit) -> Vec<Finding> {
    let causes = audit.cost.causes.iter().filter(|cause| tells(cause, audit));
    causes.map(|cause| finding(args, cause, audit)).collect()
}

fn tells(cause: &Cause, audit: &Audit) -> bool {
    let waited_ns = audit.cost.turns.iter().map(|turns| turns.waited_ns).sum();
    let at_least =
        |per_mille: u128, of: u64| u128::from(cause.cost_ns) * 1_000 >= per_mille * u128::from(of);
    cause.cause != CauseKind::IdleExit
        && at_least(OF_RUN_TIME, cause.run_ns)
        && at_least(OF_TRACE, audit.cost.duration_ns)
        && at_least(OF_ALL_WAITING, waited_ns)
}

fn finding(args: &AuditArgs, cause: &Cause, audit: &Audit) -> Finding {
    Finding {
        text: text(cause, audit),
        cost_ns: cause.cost_ns,
        task: cause.task.clone(),
        cause: cause.cause,
        extent: [
            extent(cause, audit.cost.duration_ns),
            crowded(cause, audit),
            placements(cause, audit),
        ]
        .concat(),
        command: command(args, cause),
    }
}

fn text(cause: &Cause, audit: &Audit) -> String {
    let (task, cost) = (&cause.task, time(cause.cost_ns));
    let on = cpus(&cause.cpus);
    let waited = || match behind(cause) {
        // An apposition ends with a comma.
        behind if behind.starts_with(',') => format!("{task} waited {cost}{behind}, on {on}"),
        behind => format!("{task} waited {cost}{behind} on {on}"),
    };
    match cause.cause {
        CauseKind::RealTime => waited(),
        CauseKind::Bound => format!("{}: {}; other CPUs were idle", waited(), bound(cause)),
        CauseKind::NewTasks => format!(
            "{} new {task} waited {cost} for their first run{}; {}",
            cause.forks,
            behind(cause),
            while_idle(cause)
        ),
        CauseKind::Throttled => {
            format!("{task} was throttled for {cost} on {on}, which idled: a quota (cpu.max)")
        }
        CauseKind::AcrossLlcs => across_llcs(cause, audit),
        CauseKind::IdleExit => format!("{task} waited {cost} for idle CPUs to wake up"),
        CauseKind::Overload => format!("{}; no CPU was idle{}", waited(), forked(cause, audit)),
        CauseKind::IdleInLlc | CauseKind::IdleInNode | CauseKind::IdleInOtherNode => {
            format!("{}; {}", waited(), while_idle(cause))
        }
    }
}

fn across_llcs(cause: &Cause, audit: &Audit) -> String {
    let Cause { task, times, .. } = cause;
    let waker = cause.others.first().map_or("", |other| &other.name);
    let mut pairs = audit.cost.bouncing.pairs.iter();
    let pair = pairs.find(|pair| pair.wakee == *task && pair.waker == waker);
    let of = pair.map_or(*times, |pair| pair.wakeups);
    let cost = time(cause.cost_ns);
    let took = match audit.cost.bouncing.within_llc_mean_ns {
        0 => format!("it took {cost} to run"),
        _ => format!("it ran {cost} later for that"),
    };
    format!("{waker} woke {task} across LLCs: {times} of {of} times, and {took}")
}

/// ` behind b`, `, mostly behind b,` or ` behind b and 2 others`.
fn behind(cause: &Cause) -> String {
    let class = if cause.cause == CauseKind::RealTime { "real-time " } else { "" };
    match (cause.others.as_slice(), cause.nr_others) {
        ([only], _) => format!(" behind {class}{}", only.name),
        ([most, ..], _) if most.cost_ns * 2 > cause.cost_ns => {
            format!(", mostly behind {class}{}", most.name)
        }
        ([most, _], 2) => format!(" behind {class}{} and 1 other", most.name),
        ([most, ..], all) => format!(" behind {class}{} and {} others", most.name, all - 1),
        ([], _) => String::new(),
    }
}

fn bound(cause: &Cause) -> String {
    let both = matches!(cause.others.as_slice(), [other] if other.stayed_there && other.name != cause.task);
    let them = if cause.cpus.len() == 1 { "it" } else { "them" };
    match both {
        true => format!("both are bound to {them}"),
        false => format!("{} is bound to {them}", cause.task),
    }
}

/// More than there are CPUs for.
fn forked(cause: &Cause, audit: &Audit) -> String {
    match cause.forks {
        forks if forks > audit.cost.nr_cpus => format!(", {forks} were forked"),
        _ => String::new(),
    }
}

fn while_idle(cause: &Cause) -> &'static str {
    let idle = &cause.beside.idle_ns;
    let parts = [
        (idle.same_llc, "an idle CPU was in the LLC"),
        (idle.same_node, "only other LLCs had idle CPUs"),
        (idle.other_node, "only other nodes had idle CPUs"),
        (cause.beside.none_idle_ns, "no CPU was idle"),
    ];
    // Of equal ones the nearest.
    parts.into_iter().rev().max_by_key(|&(ns, _)| ns).map_or("", |(_, text)| text)
}

fn beyond_llc(cause: &Cause) -> bool {
    matches!(cause.cause, CauseKind::IdleInNode | CauseKind::IdleInOtherNode)
}

/// Where most of such waiting was, if that is one LLC.
fn crowded(cause: &Cause, audit: &Audit) -> String {
    let of_llcs = &audit.cost.crowded_llcs_ns;
    let (total, most) = (of_llcs.iter().sum::<u64>(), of_llcs.iter().max().copied());
    let llc = of_llcs.iter().position(|&ns| Some(ns) == most);
    match (llc, most) {
        (Some(llc), Some(most)) if beyond_llc(cause) && most > total / 2 && of_llcs.len() > 2 => {
            format!("; most of it on LLC {llc}")
        }
        _ => String::new(),
    }
}

/// `46.1 % of its run time; in 82.0 % of the elapsed time one waited, 4.6 at a time`
fn extent(cause: &Cause, duration_ns: u64) -> String {
    let of_run_time = match percent(cause.cost_ns, cause.run_ns) {
        Some(share) if share >= 100.0 => format!("{:.1} times as long as it ran", share / 100.0),
        Some(share) => format!("{share:.1} % of the time that it ran"),
        None => "it did not run".to_owned(),
    };
    let at_a_time = cause.cost_ns as f64 / duration_ns.max(1) as f64;
    match percent(cause.elapsed_ns, duration_ns) {
        Some(share) if share > 0.0 && waits_behind(cause) => format!(
            "{of_run_time}; in {share:.1} % of the elapsed time one waited, {at_a_time:.2} on average"
        ),
        _ => of_run_time,
    }
}

/// `; 660 of 928 placements missed an idle CPU`
fn placements(cause: &Cause, audit: &Audit) -> String {
    let by_placement = matches!(
        cause.cause,
        CauseKind::NewTasks
            | CauseKind::IdleInLlc
            | CauseKind::IdleInNode
            | CauseKind::IdleInOtherNode
    );
    let mut names = audit.cost.missed_idle.by_name.iter();
    match names.find(|of| of.name == cause.task).map(|of| of.missed_idle) {
        Some(of) if by_placement => {
            let (missed, all) = (of.missed.total(), of.placements);
            format!("; {missed} of {all} placements missed an idle CPU")
        }
        _ => String::new(),
    }
}

fn waits_behind(cause: &Cause) -> bool {
    !matches!(cause.cause, CauseKind::Throttled | CauseKind::AcrossLlcs | CauseKind::IdleExit)
}

/// With the options that the trace was read with.
fn command(args: &AuditArgs, cause: &Cause) -> String {
    let mut words = vec!["placewise".to_owned(), "audit".into(), args.trace.display().to_string()];
    if let Some(machine) = &args.machine {
        words.extend(["--machine".into(), machine.clone()]);
    }
    if args.kernel != AUTO {
        words.extend(["--kernel".into(), args.kernel.clone()]);
    }
    words.extend(["--task".into(), cause.task.clone()]);
    if let Some(time_ns) = cause.worst_time_ns.filter(|_| waits_behind(cause)) {
        words.extend(["--at".into(), trace_time(time_ns)]);
    }
    shell_words::join(words)
}
