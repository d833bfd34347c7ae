//! One wakeup put to the policy: under the hypothesis that is believed, and then,
//! to learn from its outcome, under the others.

use placewise_policy::*;

use super::beliefs::{Beliefs, Sort};
use crate::steps::task::TaskNumber;
use crate::verdict::{Flips, Hypothesis};

/// What a wakeup asks the policy.
pub struct Question {
    pub waker: TaskNumber,
    pub wakee: TaskNumber,
    pub waking_cpu: u32,
    pub prev_cpu: u32,
    pub now: u64,
    pub may_be_sync: bool,
    pub sort: Sort,
}

pub struct Answer {
    pub predicted: u32,
    pub decision: Decision,
    pub believed: Hypothesis,
    /// Sync or not, the policy goes where the kernel went.
    pub is_explained: bool,
}

impl Question {
    /// Answers under the hypothesis that is believed, then sees which would have been right. The
    /// policy goes on from one that was, if that is possible: a wakeup may be sync where the one
    /// before was not, but flips from before the trace do not come and go.
    pub fn put(&self, policy: &mut Placement, beliefs: &mut Beliefs, actual: u32) -> Answer {
        let belief = beliefs.of(self.sort);
        let believed = belief.as_ref().map(|of| of.best(self.may_be_sync)).unwrap_or_default();
        let before = Memory::of(policy, self);
        let predicted = self.ask(policy, believed);
        let decision = policy.decision;
        let mut is_explained = predicted == actual;
        if let Some(belief) = belief
            && belief.wants_trial(is_explained)
        {
            let mut after = Memory::of(policy, self);
            let explained = Hypothesis::ALL.map(|hypothesis| {
                if hypothesis == believed {
                    return Some(predicted == actual);
                }
                if hypothesis.sync && !self.may_be_sync {
                    return None;
                }
                before.restore(policy, self);
                let explains = self.ask(policy, hypothesis) == actual;
                if explains && !is_explained && hypothesis.flips == believed.flips {
                    (after, is_explained) = (Memory::of(policy, self), true);
                }
                Some(explains)
            });
            belief.learn(explained);
            after.restore(policy, self);
            policy.decision = decision;
        }
        Answer { predicted, decision, believed, is_explained }
    }

    fn ask(&self, policy: &mut Placement, hypothesis: Hypothesis) -> u32 {
        let [waker, wakee] = [self.waker, self.wakee].map(|task| task as usize);
        let [of_waker, of_wakee] = [waker, wakee].map(|task| policy.task[task].wakee_flips);
        match hypothesis.flips {
            Flips::Counted => {}
            Flips::Wide => self.pretend_wide(policy),
            Flips::Narrow => policy.task[wakee].wakee_flips = of_wakee.max(of_waker),
        }
        let interrupt = if self.sort.context.is_interrupt() { WF_INTERRUPT } else { 0 };
        let sync = if hypothesis.sync { WF_SYNC } else { 0 };
        let flags = WF_TTWU | interrupt | sync;
        let answer =
            policy.select_task_rq(self.wakee, self.prev_cpu, self.waking_cpu, flags, self.now);
        match hypothesis.flips {
            Flips::Counted => {}
            Flips::Wide => policy.task[waker].wakee_flips = of_waker.saturating_add(1),
            Flips::Narrow => policy.task[wakee].wakee_flips = of_wakee,
        }
        answer
    }

    /// Gives both the fewest flips that make the wakeup wide.
    fn pretend_wide(&self, state: &mut State) {
        let factor = state.llc[usize::from(state.cpu[self.waking_cpu as usize].llc)].size;
        let wakee = &mut state.task[self.wakee as usize];
        wakee.wakee_flips = wakee.wakee_flips.max(factor);
        let flips = wakee.wakee_flips.saturating_mul(factor);
        // Whatever record_wakee() halves first.
        let waker = &mut state.task[self.waker as usize];
        waker.wakee_flips = waker.wakee_flips.max(flips.saturating_mul(2));
    }
}

/// What a wakeup decision changes, so that it can be made again.
struct Memory {
    waker: (u32, u32, u64, u16),
    wakee: (u32, u16),
    has_idle_cores: [u32; 2],
}

impl Memory {
    fn llcs(state: &State, question: &Question) -> [usize; 2] {
        [question.waking_cpu, question.prev_cpu].map(|cpu| usize::from(state.cpu[cpu as usize].llc))
    }

    fn of(state: &State, question: &Question) -> Self {
        let waker = &state.task[question.waker as usize];
        let wakee = &state.task[question.wakee as usize];
        Memory {
            waker: (
                waker.last_wakee,
                waker.wakee_flips,
                waker.wakee_flip_decay_ts,
                waker.recent_used_cpu,
            ),
            wakee: (wakee.wakee_flips, wakee.recent_used_cpu),
            has_idle_cores: Self::llcs(state, question).map(|llc| state.llc[llc].has_idle_cores),
        }
    }

    fn restore(&self, state: &mut State, question: &Question) {
        let waker = &mut state.task[question.waker as usize];
        (waker.last_wakee, waker.wakee_flips, waker.wakee_flip_decay_ts, waker.recent_used_cpu) =
            self.waker;
        let wakee = &mut state.task[question.wakee as usize];
        (wakee.wakee_flips, wakee.recent_used_cpu) = self.wakee;
        for (llc, has_idle_cores) in
            Self::llcs(state, question).into_iter().zip(self.has_idle_cores)
        {
            state.llc[llc].has_idle_cores = has_idle_cores;
        }
    }
}
