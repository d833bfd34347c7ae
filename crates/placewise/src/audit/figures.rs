//! An audit as the report has it: every figure by name, ready for programs.

use placewise_audit::cost::CostReport;
use placewise_audit::{
    Agreement, Audit, ByDistance, Confusion, Moves, Options, Other, Reason, Went,
};
use placewise_trace::Header;
use serde::Serialize;

use super::args::AuditArgs;
use super::finding::{self, Finding};
use super::origin::{Kernel, trace_name};
use super::percent::percent;
use super::problems;
use super::schedstat::Counted;

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
    #[serde(flatten)]
    pub cost: CostReport,
    pub agreement: AgreementFigures,
    pub no_placement: Vec<Count>,
    pub inferences: Vec<Count>,
    pub policies: Vec<PolicyFigures>,
    /// What the kernel has counted meanwhile, if that is known.
    pub schedstat: Option<Counted>,
}

#[derive(Serialize)]
pub struct Trace {
    pub name: String,
    /// The profile that stands for it.
    pub kernel: String,
    /// Of the header, if the profile was chosen by it.
    pub release: Option<String>,
    pub machine: String,
    /// The only tasks that count.
    pub task: Option<String>,
    pub events: u64,
    pub lost: u64,
    pub seconds: f64,
    /// What is missing or could not be read, one line each.
    pub problems: Vec<String>,
    /// What of the report is no better than a guess.
    pub cautions: Vec<String>,
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

fn counts(of: impl IntoIterator<Item = (&'static str, u64)>) -> Vec<Count> {
    of.into_iter().map(|(name, count)| Count { name, count }).collect()
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

impl Figures {
    pub fn new(
        args: &AuditArgs,
        kernel: &Kernel,
        options: &Options<'_>,
        header: &Header,
        audit: &Audit,
    ) -> Self {
        let Audit { moves, agreement, .. } = audit;
        let of_task = |(name, moves): &(String, Moves)| DistancesOfTask {
            name: name.clone(),
            distances: moves.into(),
        };
        Figures {
            trace: trace(args, kernel, options, header, audit),
            findings: finding::findings(args, audit),
            placements: Counts {
                wakeups: moves.wakeups.total(),
                forks: moves.forks.total(),
                balance: moves.balance.total(),
            },
            by_distance: moves.into(),
            predicted_by_distance: (&audit.predicted).into(),
            by_task: audit.moves_by_name.iter().map(of_task).collect(),
            cost: audit.cost.clone(),
            agreement: agreement_figures(agreement, audit.plain.as_ref()),
            no_placement: counts(audit.no_placement.iter().map(|(why, &n)| (why.word(), n))),
            inferences: counts(audit.inferred.by_word()),
            policies: options
                .others
                .iter()
                .zip(&audit.others)
                .map(|(policy, other)| policy_figures(&policy.name, other))
                .collect(),
            schedstat: None,
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
        lost: problems::lost(audit),
        seconds: audit.cost.duration_ns as f64 / 1e9,
        problems: problems::problems(header, audit),
        cautions: problems::cautions(&kernel.name, audit),
    }
}

/// `1 LLC`, `2 LLCs`
fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
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
    let places = Went::ALL.into_iter().zip(confusion.went);
    let elsewhere = places.filter(|&(place, count)| place != Went::Predicted && count > 0);
    let mut went = counts(elsewhere.map(|(place, count)| (place.word(), count)));
    went.sort_by_key(|went| std::cmp::Reverse(went.count));
    ReasonFigures {
        target,
        search,
        decisions: confusion.decisions(),
        disagreed: confusion.disagreed(),
        went,
    }
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
