//! An audit as the report has it: every figure by name, ready for programs.

use placewise_audit::cost::CostReport;
use placewise_audit::cost::bouncing::BouncingReport;
use placewise_audit::cost::idle_beside::IdleBeside;
use placewise_audit::cost::latency::LatencyReport;
use placewise_audit::cost::missed_idle::{MissedIdle, MissedIdleReport};
use placewise_audit::{
    Agreement, Audit, ByDistance, Confusion, Moves, NoPlacement, Options, Other, Reason, Went,
};
use placewise_trace::Header;
use serde::Serialize;

use super::finding::{self, Finding};
use super::{AuditArgs, Kernel, trace_name};

/// Everything, in the order of the report.
#[derive(Serialize)]
pub struct Figures {
    pub trace: Trace,
    pub findings: Vec<Finding>,
    pub placements: Counts,
    pub by_distance: Distances,
    /// Of the answers of the kernel's policy.
    pub predicted_by_distance: Spreads,
    pub by_task: Vec<DistancesOfTask>,
    pub latency: LatencyReport,
    pub missed_idle: Missed,
    pub idle_beside: IdleBeside,
    pub bouncing: BouncingReport,
    pub agreement: AgreementFigures,
    pub no_placement: Vec<Count>,
    pub inferences: Vec<Count>,
    pub policies: Vec<PolicyFigures>,
}

#[derive(Serialize)]
pub struct Trace {
    pub name: String,
    /// The profile that stands for it.
    pub kernel: String,
    /// Of the header, if the profile was chosen by it.
    pub release: Option<String>,
    pub machine: String,
    /// The only name that counts.
    pub task: Option<String>,
    pub events: u64,
    pub lost: u64,
    pub seconds: f64,
    /// What is missing or could not be read, one line each.
    pub problems: Vec<String>,
}

#[derive(Serialize)]
pub struct Counts {
    pub wakeups: u64,
    pub forks: u64,
    pub balance: u64,
}

#[derive(Serialize)]
pub struct Distances {
    pub wakeups: ByDistance,
    pub forks: ByDistance,
    pub balance: ByDistance,
}

#[derive(Serialize)]
pub struct DistancesOfTask {
    pub name: String,
    #[serde(flatten)]
    pub distances: Distances,
}

/// Where a policy would have gone.
#[derive(Serialize)]
pub struct Spreads {
    pub wakeups: ByDistance,
    pub forks: ByDistance,
}

impl From<&Moves> for Spreads {
    fn from(moves: &Moves) -> Self {
        Spreads { wakeups: moves.wakeups, forks: moves.forks }
    }
}

impl From<&Moves> for Distances {
    fn from(moves: &Moves) -> Self {
        Distances { wakeups: moves.wakeups, forks: moves.forks, balance: moves.balance }
    }
}

/// Placements on a busy CPU while an allowed one was idle; `machine` is beyond the node.
#[derive(Serialize)]
pub struct Missed {
    pub same_llc: u64,
    pub same_node: u64,
    pub machine: u64,
    pub wait_ns: u64,
    #[serde(flatten)]
    pub of: MissedIdleReport,
}

impl Missed {
    fn new(of: &MissedIdleReport) -> Self {
        let sum = |count: fn(&MissedIdle) -> u64| count(&of.wakeups) + count(&of.forks);
        Missed {
            same_llc: sum(|count| count.missed.same_llc),
            same_node: sum(|count| count.missed.same_node),
            machine: sum(|count| count.missed.other_node),
            wait_ns: sum(|count| count.waited_ns.total()),
            of: of.clone(),
        }
    }
}

/// Percentages of no decisions are null.
#[derive(Serialize)]
pub struct AgreementFigures {
    #[serde(flatten)]
    pub shares: Shares,
    /// What a plain trace would have shown, if this one has recorded what decisions read.
    pub plain: Option<Shares>,
    /// The one that disagrees most often first.
    pub reasons: Vec<ReasonFigures>,
}

#[derive(Serialize)]
pub struct Shares {
    pub wakeups: u64,
    pub exact_cpu_pct: Option<f64>,
    pub same_llc_pct: Option<f64>,
    /// Of the trivial predictor.
    pub prev_cpu_exact_pct: Option<f64>,
    pub prev_cpu_same_llc_pct: Option<f64>,
    pub forks: u64,
    pub forks_exact_cpu_pct: Option<f64>,
    pub forks_same_llc_pct: Option<f64>,
    pub forks_prev_cpu_exact_pct: Option<f64>,
    pub forks_prev_cpu_same_llc_pct: Option<f64>,
}

/// How the policy came to its answers, and where the kernel went then.
#[derive(Serialize)]
pub struct ReasonFigures {
    /// What chose the target.
    pub target: &'static str,
    /// How the search from there ended.
    pub search: &'static str,
    pub decisions: u64,
    pub disagreed: u64,
    pub went: Vec<Count>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Count {
    pub name: &'static str,
    pub count: u64,
}

fn count(name: &'static str, count: u64) -> Count {
    Count { name, count }
}

/// What another policy would have done.
#[derive(Serialize)]
pub struct PolicyFigures {
    pub policy: String,
    pub decisions: u64,
    pub other_cpu: u64,
    pub other_cpu_pct: Option<f64>,
    pub other_llc: u64,
    pub other_llc_pct: Option<f64>,
    /// From the previous CPU to where it would have gone.
    pub by_distance: Spreads,
}

/// `None` of nothing.
pub fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

impl Figures {
    pub fn new(
        args: &AuditArgs,
        kernel: &Kernel,
        options: &Options<'_>,
        header: &Header,
        audit: &Audit,
    ) -> Self {
        let Audit { moves, cost, agreement, .. } = audit;
        let of_task = |(name, moves): &(String, Moves)| DistancesOfTask {
            name: name.clone(),
            distances: moves.into(),
        };
        Figures {
            trace: trace(args, kernel, options, header, audit),
            findings: finding::findings(audit),
            placements: Counts {
                wakeups: moves.wakeups.total(),
                forks: moves.forks.total(),
                balance: moves.balance.total(),
            },
            by_distance: moves.into(),
            predicted_by_distance: (&audit.predicted).into(),
            by_task: audit.moves_by_name.iter().map(of_task).collect(),
            latency: cost.latency,
            missed_idle: Missed::new(&cost.missed_idle),
            idle_beside: cost.idle_beside,
            bouncing: bouncing(cost, args.task.as_deref()),
            agreement: agreement_figures(agreement, audit.plain.as_ref()),
            no_placement: audit
                .no_placement
                .iter()
                .map(|(&why, &n)| count(no_placement_word(why), n))
                .collect(),
            inferences: inferences(audit),
            policies: options
                .others
                .iter()
                .zip(&audit.others)
                .map(|(policy, other)| policy_figures(&policy.name, other))
                .collect(),
        }
    }
}

fn trace(
    args: &AuditArgs,
    kernel: &Kernel,
    options: &Options<'_>,
    header: &Header,
    audit: &Audit,
) -> Trace {
    let machine = options.machine;
    Trace {
        name: trace_name(&args.trace),
        kernel: kernel.name.clone(),
        release: kernel.release.clone(),
        machine: [
            counted(machine.online().len(), "CPU"),
            counted(machine.nr_llcs(), "LLC"),
            counted(machine.nr_nodes(), "NUMA node"),
        ]
        .join(", "),
        task: args.task.clone(),
        events: audit.events,
        lost: lost(audit),
        seconds: audit.cost.duration_ns as f64 / 1e9,
        problems: problems(header, audit),
    }
}

/// `1 LLC`, `2 LLCs`
fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Marks within the trace, and what its header says, tell of the same events.
fn lost(audit: &Audit) -> u64 {
    audit.losses.lost_events.max(audit.losses.overrun)
}

fn problems(header: &Header, audit: &Audit) -> Vec<String> {
    let (losses, repairs) = (&audit.losses, &audit.repairs);
    let mut problems = Vec::new();
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            problems.push(format!("{count} {what}"));
        }
    };
    say(lost(audit), "events lost while recording");
    say(losses.gaps, "places where events are missing");
    let first = losses.first_malformed.as_ref();
    let first = first.map(|first| format!(", first line {}: {}", first.line, first.reason));
    say(losses.malformed_lines, &format!("lines cannot be read{}", first.unwrap_or_default()));
    say(u64::from(losses.truncated_last_line), "line, the last, is cut off and left out");
    say(u64::from(losses.truncated_file), "compressed file ends too early");
    say(losses.clock_steps, "times lie before the one in front of them");
    say(losses.cpus_out_of_range, "events name a CPU beyond those that the policies have room for");
    say(
        repairs.impossible_events,
        "events name a CPU that the machine lacks, or a pid that cannot be",
    );
    say(
        repairs.silences,
        &format!(
            "times no CPU had an event for more than 10 s: {:.0} s, which are left out",
            repairs.silent_ns as f64 / 1e9
        ),
    );
    say(repairs.missing_switches, "switches are missing");
    say(repairs.wakeups_without_end, "wakeups have no end");
    say(repairs.forgotten_tasks, "tasks were forgotten for want of room");
    if let Some(first) = header.problems.first() {
        say(
            header.problems.len() as u64,
            &format!("lines of the header cannot be read, first {first}"),
        );
    }
    problems
}

/// Lists of tasks keep to the name that counts; sums are of all.
fn bouncing(cost: &CostReport, task: Option<&str>) -> BouncingReport {
    let mut bouncing = cost.bouncing.clone();
    if let Some(task) = task {
        bouncing.tasks.retain(|bouncing| bouncing.name == task);
        bouncing.names.retain(|bouncing| bouncing.name == task);
    }
    bouncing
}

fn agreement_figures(agreement: &Agreement, plain: Option<&Agreement>) -> AgreementFigures {
    AgreementFigures {
        shares: shares(agreement),
        plain: plain.map(shares),
        reasons: agreement.reasons().iter().map(reason_figures).collect(),
    }
}

fn shares(agreement: &Agreement) -> Shares {
    let (wakeups, forks) = (agreement.wakeups, agreement.forks);
    Shares {
        wakeups: wakeups.decisions,
        exact_cpu_pct: percent(wakeups.exact, wakeups.decisions),
        same_llc_pct: percent(wakeups.same_llc, wakeups.decisions),
        prev_cpu_exact_pct: percent(wakeups.prev_exact, wakeups.decisions),
        prev_cpu_same_llc_pct: percent(wakeups.prev_same_llc, wakeups.decisions),
        forks: forks.decisions,
        forks_exact_cpu_pct: percent(forks.exact, forks.decisions),
        forks_same_llc_pct: percent(forks.same_llc, forks.decisions),
        forks_prev_cpu_exact_pct: percent(forks.prev_exact, forks.decisions),
        forks_prev_cpu_same_llc_pct: percent(forks.prev_same_llc, forks.decisions),
    }
}

fn reason_figures((reason, confusion): &(Reason, Confusion)) -> ReasonFigures {
    let (target, search) = reason.words();
    let places = Went::ALL.iter().zip(confusion.went);
    let mut went: Vec<Count> = places
        .filter(|&(&place, count)| place != Went::Predicted && count > 0)
        .map(|(place, n)| count(place.word(), n))
        .collect();
    went.sort_by_key(|went| std::cmp::Reverse(went.count));
    ReasonFigures {
        target,
        search,
        decisions: confusion.decisions(),
        disagreed: confusion.disagreed(),
        went,
    }
}

fn no_placement_word(why: NoPlacement) -> &'static str {
    match why {
        NoPlacement::StillQueued => "still_queued",
        NoPlacement::StillOnCpu => "still_on_cpu",
        NoPlacement::Delayed => "delayed",
        NoPlacement::Bound => "bound",
        NoPlacement::OtherClass => "other_class",
        NoPlacement::NoEnd => "no_end",
        NoPlacement::BeforeComplete => "before_complete",
    }
}

fn inferences(audit: &Audit) -> Vec<Count> {
    let inferred = &audit.inferred;
    vec![
        count("believed_sync", inferred.believed_sync),
        count("believed_wide", inferred.believed_wide),
        count("delayed_by_lag", inferred.delayed_by_lag),
        count("delayed_by_wake_list", inferred.delayed_by_wake_list),
        count("still_switching_out", inferred.still_switching_out),
        count("perhaps_delayed", inferred.perhaps_delayed),
        count("held_to_seen_cpus", inferred.held_to_seen_cpus as u64),
        count("scan_limits", inferred.scan_limits),
        count("tick_phase", u64::from(inferred.tick_phase_ns.is_some())),
    ]
}

fn policy_figures(policy: &str, other: &Other) -> PolicyFigures {
    PolicyFigures {
        policy: policy.to_owned(),
        decisions: other.decisions,
        other_cpu: other.other_cpu,
        other_cpu_pct: percent(other.other_cpu, other.decisions),
        other_llc: other.other_llc,
        other_llc_pct: percent(other.other_llc, other.decisions),
        by_distance: (&other.moves).into(),
    }
}
