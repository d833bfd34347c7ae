//! One wakeup put to the policy: under the hypothesis that is believed, and then,
//! to learn from its outcome, under the others.

use placewise_policy::*;

use super::beliefs::Beliefs;
use crate::steps::task::{NameId, TaskNumber};
use crate::verdict::Hypothesis;

/// What a wakeup asks the policy.
pub struct Question {
    pub waker: TaskNumber,
    pub wakee: TaskNumber,
    pub waking_cpu: u32,
    pub prev_cpu: u32,
    pub now: u64,
    pub interrupt: bool,
    pub may_be_sync: bool,
    /// Of the waker and the wakee.
    pub names: (NameId, NameId),
}

pub struct Answer {
    pub predicted: u32,
    pub decision: Decision,
    pub believed: Hypothesis,
}

impl Question {
    /// Answers under the hypothesis that is believed, then sees which would have been right.
    pub fn put(&self, policy: &mut Placement, beliefs: &mut Beliefs, actual: u32) -> Answer {
        let (waker, wakee) = self.names;
        let believed = beliefs.of(waker, wakee, self.may_be_sync);
        let before = Memory::of(policy, self);
        let predicted = self.ask(policy, believed);
        let decision = policy.decision;
        if beliefs.wants_trial(waker, wakee, predicted == actual) {
            let after = Memory::of(policy, self);
            let explained = Hypothesis::ALL.map(|hypothesis| {
                if hypothesis == believed {
                    return Some(predicted == actual);
                }
                (self.may_be_sync || !hypothesis.sync).then(|| {
                    before.restore(policy, self);
                    self.ask(policy, hypothesis) == actual
                })
            });
            beliefs.learn(waker, wakee, explained);
            after.restore(policy, self);
            policy.decision = decision;
        }
        Answer { predicted, decision, believed }
    }

    fn ask(&self, policy: &mut Placement, hypothesis: Hypothesis) -> u32 {
        let own = policy.task[self.waker as usize].wakee_flips;
        if hypothesis.wide {
            self.pretend_wide(policy);
        }
        let interrupt = if self.interrupt { WF_INTERRUPT } else { 0 };
        let sync = if hypothesis.sync { WF_SYNC } else { 0 };
        let flags = WF_TTWU | interrupt | sync;
        let answer =
            policy.select_task_rq(self.wakee, self.prev_cpu, self.waking_cpu, flags, self.now);
        if hypothesis.wide {
            policy.task[self.waker as usize].wakee_flips = own.saturating_add(1);
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
