//! Answers that woke nobody. Where tasks of one class wake those of another, and are woken by these in
//! turn, each wakeup is a call or its answer; one that came while the other was awake is in no trace. It is
//! put where it must have been: a callee answers before it sleeps, and who calls again has had its answer.
//! Without them calls would be more or fewer than answers, and in the long run all or nobody would be
//! awake.
//!
//! Tasks of one class that wake each other as often one way as the other, and not in turn, hand on a lock:
//! that is left out, for who holds it next depends on who wants it then. Limit: so are queues among peers.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use placewise_workload::program::Wake;

use super::act::ClassIndex;
use crate::recording::{RecordedTask, Recording, Step, TaskIndex};

/// Which tasks answer each other.
pub struct Answers<'a> {
    class_of: &'a [ClassIndex],
    /// Classes that wake each other.
    mutual: HashSet<(ClassIndex, ClassIndex)>,
    /// Classes whose tasks hand things on to each other.
    handing_on: HashSet<ClassIndex>,
    /// How they do: of the class that wakes, and whom.
    ways: HashMap<(ClassIndex, ClassIndex), Wake>,
    /// Of each task, whom it owed an answer as the trace began.
    owed_at_first: Vec<Vec<TaskIndex>>,
}

impl<'a> Answers<'a> {
    pub fn of(recording: &Recording, class_of: &'a [ClassIndex]) -> Self {
        let class = |task: TaskIndex| class_of[task as usize];
        let mut ways = HashMap::new();
        for (task, index) in recording.tasks.iter().zip(0..) {
            for step in &task.steps {
                if let Step::Post(to, wake) = *step {
                    ways.entry((class(index), class(to))).or_insert(wake);
                }
            }
        }
        let handing_on = handing_on(recording, class_of);
        let is_mutual = |pair: &&(ClassIndex, ClassIndex)| {
            let are_peers = pair.0 == pair.1 && handing_on.contains(&pair.0);
            ways.contains_key(&(pair.1, pair.0)) && !are_peers
        };
        let mutual = ways.keys().filter(is_mutual).copied().collect();
        let mut answers = Answers { class_of, mutual, handing_on, ways, owed_at_first: Vec::new() };
        let owed = |(task, index): (&RecordedTask, u32)| match task.is_forked {
            // What begins owes nothing.
            true => Vec::new(),
            false => answers.first(index, &task.steps),
        };
        answers.owed_at_first = recording.tasks.iter().zip(0..).map(owed).collect();
        answers
    }

    pub fn mutual(&self) -> impl Iterator<Item = (ClassIndex, ClassIndex)> {
        self.mutual.iter().copied()
    }

    fn class(&self, task: TaskIndex) -> ClassIndex {
        self.class_of[task as usize]
    }

    fn is_mutual(&self, one: TaskIndex, other: TaskIndex) -> bool {
        self.mutual.contains(&(self.class(one), self.class(other)))
    }

    /// Those that it posts to before it has awaited them.
    fn first(&self, task: TaskIndex, steps: &[Step]) -> Vec<TaskIndex> {
        let mut met = BTreeSet::new();
        let mut owed = Vec::new();
        for step in steps {
            match *step {
                Step::Await(from) => _ = met.insert(from),
                Step::Post(to, _) if met.insert(to) && self.is_mutual(task, to) => owed.push(to),
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
        let class = self.class(one);
        class == self.class(other) && self.handing_on.contains(&class)
    }

    /// The steps of a task with the answers that it made, and those that it had, but what peers hand on.
    pub fn steps(&self, task: TaskIndex, steps: &[Step], mut each: impl FnMut(Step)) {
        let silent = self.silent_answers(task, steps);
        let mut silent = silent.into_iter().peekable();
        // Whom it has called since it had an answer.
        let mut called = HashSet::new();
        for (at, step) in steps.iter().enumerate() {
            while let Some((_, to)) = silent.next_if(|(before, _)| *before == at) {
                let way = (self.class(task), self.class(to));
                each(Step::Post(to, self.ways[&way]));
                called.insert(to);
            }
            match *step {
                Step::Await(peer) | Step::Post(peer, _) if self.are_peers(task, peer) => continue,
                Step::Await(from) => _ = called.remove(&from),
                // What is computed before the next call takes the answer to the last.
                Step::Run(_) => {
                    if let Some(&Step::Post(to, _)) = steps.get(at + 1)
                        && called.remove(&to)
                        && self.is_mutual(task, to)
                    {
                        each(Step::Await(to));
                    }
                }
                Step::Post(to, _) if self.is_mutual(task, to) && !called.insert(to) => {
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
                Step::Await(from) if self.is_mutual(task, from) => {
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

/// Classes whose tasks wake each other, as often one way as the other, and not in turn.
fn handing_on(recording: &Recording, class_of: &[ClassIndex]) -> HashSet<ClassIndex> {
    let class = |task: TaskIndex| class_of[task as usize];
    // Of each two tasks of a class the posts of the first and of the second; of a class those in turn.
    let mut posts: BTreeMap<(TaskIndex, TaskIndex), [u64; 2]> = BTreeMap::new();
    let mut in_turn: HashMap<ClassIndex, u64> = HashMap::new();
    for (task, index) in recording.tasks.iter().zip(0..) {
        let mut called = HashSet::new();
        for step in &task.steps {
            match *step {
                Step::Await(from) => _ = called.remove(&from),
                Step::Post(to, _) if class(to) == class(index) => {
                    let of_pair = posts.entry((index.min(to), index.max(to))).or_default();
                    of_pair[usize::from(index > to)] += 1;
                    *in_turn.entry(class(index)).or_default() += u64::from(called.insert(to));
                }
                _ => {}
            }
        }
    }
    let mut counts: HashMap<ClassIndex, [u64; 2]> = HashMap::new();
    for ((one, _), [there, back]) in posts {
        let [all, both_ways] = counts.entry(class(one)).or_default();
        *all += there + back;
        *both_ways += 2 * there.min(back);
    }
    let is_handing_on = |(class, [all, both_ways]): (ClassIndex, [u64; 2])| {
        let is_in_turn = 4 * in_turn[&class] >= 3 * all;
        (2 * both_ways >= all && !is_in_turn).then_some(class)
    };
    counts.into_iter().filter_map(is_handing_on).collect()
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
    fn what_peers_hand_on_is_left_out_and_what_they_do_in_turn_is_not() {
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
        assert_eq!(kept(&twice, &awaits_first), 0);
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
