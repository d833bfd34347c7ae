//! How often a policy's answers are what the kernel did, and by which of its rules they are not.
//!
//! Beside the policy stands the trivial predictor "always the previous CPU" (of a fork: the CPU of
//! the parent). An agreement that is no better than it says nothing for the policy.

use std::collections::BTreeMap;

use placewise_policy::{Decision, State};
use placewise_trace::{AffineReason, SearchReason};

use crate::verdict::{Kind, Placed};

/// Decisions, and how many of them are predicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub decisions: u64,
    /// The policy's answer is the kernel's CPU.
    pub exact: u64,
    /// It is in the LLC of the kernel's CPU.
    pub same_llc: u64,
    /// The previous CPU is the kernel's CPU.
    pub prev_exact: u64,
    /// It is in the LLC of the kernel's CPU.
    pub prev_same_llc: u64,
}

impl Tally {
    fn record(&mut self, placed: &Placed, llc: impl Fn(u32) -> u16) {
        let actual = llc(placed.actual);
        self.decisions += 1;
        self.exact += u64::from(placed.predicted == placed.actual);
        self.same_llc += u64::from(llc(placed.predicted) == actual);
        self.prev_exact += u64::from(placed.prev_cpu == placed.actual);
        self.prev_same_llc += u64::from(llc(placed.prev_cpu) == actual);
    }
}

/// How a policy came to its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// What chose the target of a wakeup, and how the search from there ended.
    Wakeup(Target, Search),
    /// The slow path compared sched groups.
    Fork,
}

/// What chose the CPU that the search of a wakeup starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    Hint,
    /// wake_wide() kept the previous CPU.
    Wide,
    /// A clause of wake_affine(), as an index of [`AffineReason::ALL`].
    Affine(u8),
}

/// An index of [`SearchReason::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Search(u8);

impl Reason {
    pub fn of(kind: Kind, decision: &Decision) -> Self {
        if kind == Kind::Fork {
            return Reason::Fork;
        }
        let target = if decision.hint_used != 0 {
            Target::Hint
        } else if decision.wide != 0 {
            Target::Wide
        } else {
            Target::Affine(decision.affine)
        };
        Reason::Wakeup(target, Search(decision.search))
    }

    /// The words of the policy: what chose the target, then how the search ended.
    pub fn words(self) -> (&'static str, &'static str) {
        let Reason::Wakeup(target, Search(search)) = self else {
            return ("fork", "slow_path");
        };
        let target = match target {
            Target::Hint => "hint",
            Target::Wide => "wide",
            Target::Affine(clause) => affine_reason(clause).word(),
        };
        (target, search_reason(search).word())
    }
}

/// The policy's `enum affine_reason` by name.
pub fn affine_reason(number: u8) -> AffineReason {
    AffineReason::ALL[usize::from(number).min(AffineReason::ALL.len() - 1)]
}

/// The policy's `enum search_reason` by name.
pub fn search_reason(number: u8) -> SearchReason {
    SearchReason::ALL[usize::from(number).min(SearchReason::ALL.len() - 1)]
}

/// Where the kernel went, as seen from the policy's answer: the first that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Went {
    Predicted,
    PrevCpu,
    WakingCpu,
    /// Another CPU of the LLC of the answer.
    PredictedLlc,
    /// Another CPU of the previous CPU's LLC.
    PrevLlc,
    /// Another CPU of the waking CPU's LLC.
    WakingLlc,
    Elsewhere,
}

impl Went {
    pub const ALL: [Went; 7] = [
        Went::Predicted,
        Went::PrevCpu,
        Went::WakingCpu,
        Went::PredictedLlc,
        Went::PrevLlc,
        Went::WakingLlc,
        Went::Elsewhere,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Went::Predicted => "predicted",
            Went::PrevCpu => "prev_cpu",
            Went::WakingCpu => "waking_cpu",
            Went::PredictedLlc => "predicted_llc",
            Went::PrevLlc => "prev_llc",
            Went::WakingLlc => "waking_llc",
            Went::Elsewhere => "elsewhere",
        }
    }

    fn of(placed: &Placed, llc: impl Fn(u32) -> u16) -> Self {
        let actual = placed.actual;
        let shares_llc = |cpu| llc(cpu) == llc(actual);
        if placed.predicted == actual {
            Went::Predicted
        } else if placed.prev_cpu == actual {
            Went::PrevCpu
        } else if placed.waking_cpu == actual {
            Went::WakingCpu
        } else if shares_llc(placed.predicted) {
            Went::PredictedLlc
        } else if shares_llc(placed.prev_cpu) {
            Went::PrevLlc
        } else if shares_llc(placed.waking_cpu) {
            Went::WakingLlc
        } else {
            Went::Elsewhere
        }
    }
}

/// A row of the confusion: where the kernel went when the policy answered for one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confusion {
    /// By [`Went`].
    pub went: [u64; Went::ALL.len()],
}

impl Confusion {
    pub fn decisions(&self) -> u64 {
        self.went.iter().sum()
    }

    pub fn disagreed(&self) -> u64 {
        self.decisions() - self.went[Went::Predicted as usize]
    }
}

/// All decisions of a trace against one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    pub wakeups: Tally,
    pub forks: Tally,
    reasons: BTreeMap<Reason, Confusion>,
}

impl Agreement {
    pub fn decisions(&self) -> u64 {
        self.wakeups.decisions + self.forks.decisions
    }

    /// `state` is that of the policy; its topology counts.
    pub fn record(&mut self, placed: &Placed, state: &State) {
        let llc = |cpu: u32| state.cpu[cpu as usize].llc;
        match placed.kind {
            Kind::Wakeup => self.wakeups.record(placed, llc),
            Kind::Fork => self.forks.record(placed, llc),
        }
        let reason = Reason::of(placed.kind, &placed.decision);
        self.reasons.entry(reason).or_default().went[Went::of(placed, llc) as usize] += 1;
    }

    /// The policy's reasons, the one that disagrees most often first.
    pub fn reasons(&self) -> Vec<(Reason, Confusion)> {
        let mut reasons: Vec<_> = self.reasons.iter().map(|(&why, &row)| (why, row)).collect();
        reasons.sort_by_key(|(_, row)| std::cmp::Reverse((row.disagreed(), row.decisions())));
        reasons
    }
}

#[cfg(test)]
mod tests {
    use placewise_machine::load;
    use placewise_policy::{AFFINE_SYNC, AFFINE_UNDECIDED, SEARCH_IDLE_CPU, SEARCH_TARGET};
    use placewise_policy::{Placement, Policy, topology};

    use super::*;
    use crate::verdict::Hypothesis;

    /// Four LLCs of four CPUs.
    fn state() -> Placement {
        let machine = load("pack:2 l3:2 core:2 pu:2").unwrap();
        let policy = Policy::parse("v6.12", "baseline").unwrap();
        topology::boot(&machine, &policy.profile).unwrap().0
    }

    /// A wakeup from CPU 4 of a task that last ran on CPU 8.
    fn wakeup(state: &Placement, predicted: u32, actual: u32) -> Placed {
        Placed {
            kind: Kind::Wakeup,
            task: 2000,
            waker: 2001,
            waking_cpu: 4,
            prev_cpu: 8,
            actual,
            predicted,
            decision: Decision {
                affine: AFFINE_SYNC as u8,
                search: SEARCH_IDLE_CPU as u8,
                ..state.decision
            },
            believed: Hypothesis::default(),
        }
    }

    fn recorded(answers: &[(u32, u32)]) -> Agreement {
        let state = state();
        let mut agreement = Agreement::default();
        for &(predicted, actual) in answers {
            agreement.record(&wakeup(&state, predicted, actual), &state);
        }
        agreement
    }

    #[test]
    fn exact_is_the_cpu_and_same_llc_its_neighbours_too() {
        let agreement = recorded(&[(5, 5), (5, 6), (5, 9)]);
        let tally = agreement.wakeups;
        assert_eq!((tally.decisions, tally.exact, tally.same_llc), (3, 1, 2));
        assert_eq!(agreement.forks, Tally::default());
    }

    #[test]
    fn the_trivial_predictor_is_judged_by_the_same_measure() {
        let tally = recorded(&[(5, 8), (5, 9), (5, 5)]).wakeups;
        assert_eq!((tally.prev_exact, tally.prev_same_llc), (1, 2));
    }

    #[test]
    fn each_place_the_kernel_goes_has_its_column() {
        let places = [(5, 5), (5, 8), (5, 4), (5, 6), (5, 9), (1, 6), (5, 0)];
        let (_, row) = recorded(&places).reasons()[0];
        assert_eq!(row.went, [1; 7]);
        assert_eq!((row.decisions(), row.disagreed()), (7, 6));
    }

    #[test]
    fn the_reason_that_disagrees_most_comes_first() {
        let state = state();
        let mut agreement = Agreement::default();
        for _ in 0..3 {
            agreement.record(&wakeup(&state, 5, 5), &state);
        }
        let mut other = wakeup(&state, 8, 5);
        other.decision.affine = AFFINE_UNDECIDED as u8;
        other.decision.search = SEARCH_TARGET as u8;
        agreement.record(&other, &state);
        let words: Vec<_> = agreement.reasons().iter().map(|(why, _)| why.words()).collect();
        assert_eq!(words, [("undecided", "target"), ("sync", "idle_cpu")]);
    }

    #[test]
    fn hints_and_wide_wakers_choose_the_target_before_any_clause() {
        let state = state();
        let words = |change: fn(&mut Decision)| {
            let mut decision = wakeup(&state, 5, 5).decision;
            change(&mut decision);
            Reason::of(Kind::Wakeup, &decision).words().0
        };
        assert_eq!(words(|_| {}), "sync");
        assert_eq!(words(|decision| decision.wide = 1), "wide");
        assert_eq!(words(|decision| (decision.wide, decision.hint_used) = (1, 1)), "hint");
    }

    #[test]
    fn forks_are_tallied_apart() {
        let state = state();
        let mut agreement = Agreement::default();
        agreement.record(&Placed { kind: Kind::Fork, ..wakeup(&state, 5, 6) }, &state);
        assert_eq!((agreement.forks.decisions, agreement.wakeups.decisions), (1, 0));
        assert_eq!(agreement.reasons()[0].0.words(), ("fork", "slow_path"));
    }
}
