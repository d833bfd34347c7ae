//! Answers that woke nobody. Where tasks of one class wake those of another, and are woken by these in
//! turn, each wakeup is a call or its answer; one that came while the other was awake is in no trace. It is
//! put where it must have been: a callee answers before it sleeps, and who calls again has had its answer.
//! Without them calls would be more or fewer than answers, and in the long run all or nobody would be
//! awake.
//!
//! Tasks of one name that wake each other as often one way as the other, and not in turn, hand on a lock. Who
//! holds it next depends on who wants it then: what is kept is that a task waits for it. Limit: so it is
//! with queues among peers.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use placewise_workload::program::Wake;

use super::act::ClassIndex;
use crate::recording::{RecordedTask, Recording, Step, TaskIndex};

/// Where tasks wake others, and fewer of a hundred of these wakeups are made the other way, those are no answers.
const FEWEST_PCT: u64 = 2;

/// Which tasks answer each other.
pub struct Answers<'a> {
    class_of: &'a [ClassIndex],
    /// Classes that wake each other.
    mutual: HashSet<(ClassIndex, ClassIndex)>,
    recording: &'a Recording,
    peers: Peers<'a>,
    /// How they do: of the class that wakes, and whom.
    ways: HashMap<(ClassIndex, ClassIndex), Wake>,
    /// Of each task, whom it owed an answer as the trace began.
    owed_at_first: Vec<Vec<TaskIndex>>,
}

impl<'a> Answers<'a> {
    pub fn of(recording: &'a Recording, class_of: &'a [ClassIndex]) -> Self {
        let class = |task: TaskIndex| class_of[task as usize];
        let mut ways = HashMap::new();
        let mut posts: HashMap<(ClassIndex, ClassIndex), u64> = HashMap::new();
        for (task, index) in recording.tasks.iter().zip(0..) {
            for step in &task.steps {
                if let Step::Post(to, wake) = *step {
                    ways.entry((class(index), class(to))).or_insert(wake);
                    *posts.entry((class(index), class(to))).or_default() += 1;
                }
            }
        }
        let peers = Peers::of(recording);
        let mut name_of: HashMap<ClassIndex, &str> = HashMap::new();
        for (task, index) in recording.tasks.iter().zip(0..) {
            name_of.insert(class(index), &task.name);
        }
        let is_mutual = |pair: &&(ClassIndex, ClassIndex)| {
            let [name, other] = [pair.0, pair.1].map(|class| name_of[&class]);
            if name == other && !peers.in_turn.contains(name) {
                return false;
            }
            let back = posts.get(&(pair.1, pair.0)).copied().unwrap_or_default();
            let fewer = back.min(posts[pair]) * 100 / FEWEST_PCT;
            fewer >= back.max(posts[pair])
        };
        let mutual = ways.keys().filter(is_mutual).copied().collect();
        let owed_at_first = Vec::new();
        let mut answers = Answers { class_of, mutual, recording, peers, ways, owed_at_first };
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

    pub fn is_mutual(&self, one: TaskIndex, other: TaskIndex) -> bool {
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
        let name = |task: TaskIndex| self.recording.tasks[task as usize].name.as_str();
        name(one) == name(other) && self.peers.handing_on.contains(name(one))
    }

    /// How `peer` hands on to a task, if that is what it does.
    pub fn hands_on(&self, peer: TaskIndex, task: TaskIndex) -> Option<Wake> {
        let way = self.ways.get(&(self.class(peer), self.class(task)));
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
                let way = (self.class(task), self.class(to));
                each(Step::Post(to, self.ways[&way]));
                called.insert(to);
            }
            match *step {
                Step::Post(peer, _) if self.are_peers(task, peer) => continue,
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

/// Names whose tasks wake each other: in turn, or as often one way as the other. The others have messages for
/// each other.
#[derive(Default)]
struct Peers<'a> {
    in_turn: HashSet<&'a str>,
    handing_on: HashSet<&'a str>,
}

impl<'a> Peers<'a> {
    fn of(recording: &'a Recording) -> Self {
        let name = |task: TaskIndex| recording.tasks[task as usize].name.as_str();
        // Of each two tasks of a name the posts of the first and of the second; of a name those in turn.
        let mut posts: BTreeMap<(TaskIndex, TaskIndex), [u64; 2]> = BTreeMap::new();
        let mut in_turn: HashMap<&str, u64> = HashMap::new();
        for (task, index) in recording.tasks.iter().zip(0..) {
            let mut called = HashSet::new();
            for step in &task.steps {
                match *step {
                    Step::Await(from) => _ = called.remove(&from),
                    Step::Post(to, _) if name(to) == task.name => {
                        let of_pair = posts.entry((index.min(to), index.max(to))).or_default();
                        of_pair[usize::from(index > to)] += 1;
                        *in_turn.entry(&task.name).or_default() += u64::from(called.insert(to));
                    }
                    _ => {}
                }
            }
        }
        let mut counts: HashMap<&str, [u64; 2]> = HashMap::new();
        for ((one, _), [there, back]) in posts {
            let [all, both_ways] = counts.entry(name(one)).or_default();
            *all += there + back;
            *both_ways += 2 * there.min(back);
        }
        let mut peers = Peers::default();
        for (name, [all, both_ways]) in counts {
            if 4 * in_turn[name] >= 3 * all {
                peers.in_turn.insert(name);
            } else if 2 * both_ways >= all {
                peers.handing_on.insert(name);
            }
        }
        peers
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
