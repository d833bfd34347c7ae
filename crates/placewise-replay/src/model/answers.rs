//! Answers that woke nobody. Where tasks of one class and of another wake each other, an answer that came while the
//! other was awake is in no trace. It is put where it must have been: a callee answers before it sleeps, and who calls
//! again has had its answer. Without them calls would be more or fewer than answers, and in the long run all or nobody
//! would be awake. Where all answers are there, or one is answered only if it waits, nothing is put in.

use std::collections::{BTreeSet, HashMap, HashSet};

use placewise_workload::program::Wake;

use super::act::ClassIndex;
use super::pairs::{Pair, Pairs};
use super::peers::Peers;
use crate::recording::{RecordedTask, Recording, Step, TaskIndex};

/// Which tasks answer each other.
pub struct Answers<'a> {
    class_of: &'a [ClassIndex],
    pub pairs: Pairs,
    peers: Peers,
    /// Of each task, whom it owed an answer as the trace began.
    owed_at_first: Vec<Vec<TaskIndex>>,
}

impl<'a> Answers<'a> {
    pub fn of(recording: &Recording, class_of: &'a [ClassIndex]) -> Self {
        let peers = Peers::of(recording, class_of);
        let pairs = Pairs::of(recording, class_of, &peers);
        let mut answers = Answers { class_of, pairs, peers, owed_at_first: Vec::new() };
        let owed = |(task, index): (&RecordedTask, u32)| match task.is_forked {
            // What begins owes nothing.
            true => Vec::new(),
            false => answers.first(index, &task.steps),
        };
        answers.owed_at_first = recording.tasks.iter().zip(0..).map(owed).collect();
        answers
    }

    fn pair(&self, one: TaskIndex, other: TaskIndex) -> Pair {
        (self.class_of[one as usize], self.class_of[other as usize])
    }

    pub fn is_mutual(&self, one: TaskIndex, other: TaskIndex) -> bool {
        self.pairs.mutual.contains(&self.pair(one, other))
    }

    /// The second answers the first if that waits.
    pub fn is_answered_if_it_waits(&self, caller: TaskIndex, callee: TaskIndex) -> bool {
        self.pairs.if_awaited.contains_key(&self.pair(caller, callee))
    }

    /// The second sleeps for others.
    pub fn is_rare(&self, waker: TaskIndex, wakee: TaskIndex) -> bool {
        self.pairs.rare.contains(&self.pair(waker, wakee))
    }

    /// They answer each other, and some of these answers are in no trace.
    fn miss_answers(&self, one: TaskIndex, other: TaskIndex) -> bool {
        self.is_mutual(one, other) && !self.pairs.in_turn.contains(&self.pair(one, other))
    }

    /// Those that it posts to before it has awaited them.
    fn first(&self, task: TaskIndex, steps: &[Step]) -> Vec<TaskIndex> {
        let mut met = BTreeSet::new();
        let mut owed = Vec::new();
        for step in steps {
            match *step {
                Step::Await(from) => _ = met.insert(from),
                Step::Post(to, _) if met.insert(to) => {
                    let owes =
                        self.miss_answers(task, to) || self.is_answered_if_it_waits(to, task);
                    owed.extend(Some(to).filter(|_| owes));
                }
                _ => {}
            }
        }
        owed
    }

    pub fn owed_at_first(&self, task: TaskIndex) -> Vec<TaskIndex> {
        self.owed_at_first[task as usize].clone()
    }

    /// One hands on to the other.
    fn are_peers(&self, one: TaskIndex, other: TaskIndex) -> bool {
        let (class, of_other) = self.pair(one, other);
        class == of_other && self.peers.handing_on.contains(&class)
    }

    /// How `peer` hands on to a task, if that is what it does.
    pub fn hands_on(&self, peer: TaskIndex, task: TaskIndex) -> Option<Wake> {
        let way = self.pairs.ways.get(&self.pair(peer, task));
        way.copied().filter(|_| self.are_peers(task, peer))
    }

    /// The steps of a task with the answers that it made, and those that it had, but what it hands on to peers.
    pub fn steps(&self, task: TaskIndex, steps: &[Step], mut each: impl FnMut(Step)) {
        let silent = self.silent_answers(task, steps);
        let mut silent = silent.into_iter().peekable();
        // Whom it has called since it had an answer.
        let mut called = HashSet::new();
        for (at, step) in steps.iter().enumerate() {
            while let Some((_, to)) = silent.next_if(|(before, _)| *before == at) {
                each(Step::Post(to, self.pairs.ways[&self.pair(task, to)]));
                called.insert(to);
            }
            match *step {
                Step::Post(peer, _) if self.are_peers(task, peer) => continue,
                Step::Await(from) => _ = called.remove(&from),
                // What is computed before the next call takes the answer to the last.
                Step::Run(_) => {
                    if let Some(&Step::Post(to, _)) = steps.get(at + 1)
                        && called.remove(&to)
                        && self.miss_answers(task, to)
                    {
                        each(Step::Await(to));
                    }
                }
                Step::Post(to, _) if self.miss_answers(task, to) && !called.insert(to) => {
                    each(Step::Await(to));
                }
                _ => {}
            }
            each(*step);
        }
    }

    /// Before which sleep a task answers whom, where the trace has no answer until the next call.
    fn silent_answers(&self, task: TaskIndex, steps: &[Step]) -> Vec<(usize, TaskIndex)> {
        // Of each that has called: the sleep after which it was not answered yet.
        let mut unanswered: HashMap<TaskIndex, Option<usize>> = HashMap::new();
        let mut open: Vec<TaskIndex> = Vec::new();
        let mut silent = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            if step.sleeps() {
                for from in open.drain(..) {
                    unanswered.entry(from).and_modify(|sleep| *sleep = sleep.or(Some(at)));
                }
            }
            match *step {
                Step::Await(from) if self.miss_answers(task, from) => {
                    if let Some(Some(sleep)) = unanswered.insert(from, None) {
                        silent.push((sleep, from));
                    }
                    open.push(from);
                }
                Step::Post(to, _) => _ = unanswered.remove(&to),
                _ => {}
            }
        }
        silent.sort_unstable();
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps_of(tasks: &[&[Step]], task: TaskIndex) -> Vec<Step> {
        let recorded = |steps: &&[Step]| RecordedTask {
            name: "a".into(),
            steps: steps.to_vec(),
            ..RecordedTask::default()
        };
        let recording =
            Recording { tasks: tasks.iter().map(recorded).collect(), ..Recording::default() };
        let class_of: Vec<ClassIndex> = (0..tasks.len() as u32).collect();
        let mut steps = Vec::new();
        Answers::of(&recording, &class_of)
            .steps(task, tasks[task as usize], |step| steps.push(step));
        steps
    }

    /// The server was awake as the second client answered, and called it again.
    #[test]
    fn who_calls_again_has_had_its_answer_and_who_is_called_again_has_given_it() {
        let post = |to| Step::Post(to, Wake::Sync);
        let server =
            [Step::Await(1), post(1), post(2), Step::Await(1), post(1), Step::Run(9), post(2)];
        let first = [Step::Await(0), post(0), Step::Await(0), post(0), Step::Await(0)];
        let second =
            [Step::Await(0), Step::Run(3), Step::Sleep(1), Step::Run(1), Step::Await(0), post(0)];
        let tasks = [&server[..], &first, &second];
        let whole = [&server[..5], &[Step::Await(2)], &server[5..]].concat();
        assert_eq!(steps_of(&tasks, 0), whole);
        assert_eq!(steps_of(&tasks, 1), first);
        let whole = [&second[..2], &[post(0)], &second[2..]].concat();
        assert_eq!(steps_of(&tasks, 2), whole);
    }

    /// Each has the lock when the other gives it away, twice in a row now and then.
    #[test]
    fn what_peers_hand_on_is_waited_for_only_and_what_they_do_in_turn_is_kept() {
        let post = |to| Step::Post(to, Wake::Plain);
        let task =
            |steps: &[Step]| RecordedTask { steps: steps.to_vec(), ..RecordedTask::default() };
        let kept = |one: &[Step], other: &[Step]| {
            let tasks = vec![task(one), task(other)];
            let recording = Recording { tasks, ..Recording::default() };
            let mut steps = 0;
            Answers::of(&recording, &[0, 0]).steps(0, one, |_| steps += 1);
            steps
        };
        let twice = [post(1), post(1), Step::Await(1), Step::Await(1)].repeat(4);
        let awaits_first = [Step::Await(0), Step::Await(0), post(0), post(0)].repeat(4);
        assert_eq!(kept(&twice, &awaits_first), 8, "what it waits for");
        let in_turn = [post(1), Step::Await(1)].repeat(4);
        assert_eq!(kept(&in_turn, &[Step::Await(0), post(0)].repeat(4)), 8);
    }

    #[test]
    fn those_that_are_never_woken_in_turn_answer_nobody() {
        let post = Step::Post(1, Wake::Plain);
        let (waker, wakee) = ([post, post], [Step::Await(0), Step::Await(0)]);
        let tasks = [&waker[..], &wakee];
        assert_eq!(steps_of(&tasks, 0), waker);
        assert_eq!(steps_of(&tasks, 1), wakee);
    }
}
