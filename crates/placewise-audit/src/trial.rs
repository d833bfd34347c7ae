//! One wakeup put to the policy: under the hypothesis that is believed, and then,
//! to learn from its outcome, under the others.

use placewise_policy::*;

use crate::beliefs::Hypothesis;
use crate::reconstruction::Reconstruction;
use crate::task::{NameId, TaskId};

impl Reconstruction {
    /// Answers under the hypothesis that is believed, then sees which would have been right.
    pub(crate) fn judge(
        &mut self,
        question: &Question,
        actual: u32,
    ) -> (u32, Decision, Hypothesis) {
        let (waker, wakee) = question.names;
        let believed = self.beliefs.of(waker, wakee, question.may_be_sync);
        let before = Memory::of(&self.scheduler.policy, question);
        let predicted = self.ask(question, believed);
        let decision = self.scheduler.policy.decision;
        let after = Memory::of(&self.scheduler.policy, question);
        if self.beliefs.wants_trial(waker, wakee, predicted == actual) {
            let explained = Hypothesis::ALL.map(|hypothesis| {
                if hypothesis == believed {
                    return Some(predicted == actual);
                }
                (question.may_be_sync || !hypothesis.sync).then(|| {
                    before.restore(&mut self.scheduler.policy, question);
                    self.ask(question, hypothesis) == actual
                })
            });
            self.beliefs.learn(waker, wakee, explained);
        }
        after.restore(&mut self.scheduler.policy, question);
        self.scheduler.policy.decision = decision;
        (predicted, decision, believed)
    }

    fn ask(&mut self, question: &Question, hypothesis: Hypothesis) -> u32 {
        let own = self.scheduler.policy.task[question.waker as usize].wakee_flips;
        if hypothesis.wide {
            self.pretend_wide(question);
        }
        let interrupt = if question.interrupt { WF_INTERRUPT } else { 0 };
        let sync = if hypothesis.sync { WF_SYNC } else { 0 };
        let answer = self.scheduler.policy.select_task_rq(
            question.wakee,
            question.prev_cpu,
            question.waking_cpu,
            WF_TTWU | interrupt | sync,
            self.now,
        );
        if hypothesis.wide {
            self.scheduler.policy.task[question.waker as usize].wakee_flips = own.saturating_add(1);
        }
        answer
    }

    /// Gives both the fewest flips that make the wakeup wide.
    fn pretend_wide(&mut self, question: &Question) {
        let factor = self.scheduler.policy.llc
            [usize::from(self.scheduler.policy.cpu[question.waking_cpu as usize].llc)]
        .size;
        let wakee = &mut self.scheduler.policy.task[question.wakee as usize];
        wakee.wakee_flips = wakee.wakee_flips.max(factor);
        let flips = wakee.wakee_flips.saturating_mul(factor);
        // Whatever record_wakee() halves first.
        let waker = &mut self.scheduler.policy.task[question.waker as usize];
        waker.wakee_flips = waker.wakee_flips.max(flips.saturating_mul(2));
    }
}

/// What a wakeup asks the policy.
pub(crate) struct Question {
    pub waker: TaskId,
    pub wakee: TaskId,
    pub waking_cpu: u32,
    pub prev_cpu: u32,
    pub interrupt: bool,
    pub may_be_sync: bool,
    /// Of the waker and the wakee.
    pub names: (NameId, NameId),
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
