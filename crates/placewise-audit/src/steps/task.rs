//! Who is who in a trace: pids become dense numbers, names become shorter ones.
//!
//! A pid that is used again is a new task. A trace may mention more tasks than
//! there is room for, when it does not show their exits: then the one that was
//! mentioned longest ago makes room. Names are bounded as well; those beyond the
//! limit share one.

use std::collections::{HashMap, VecDeque};

use placewise_policy::{FIRST_TASK, NR_TASKS};

use super::selection::Selection;

/// A task by its number in the policy's state, plain as it stands there; a
/// [`TaskId`](placewise_policy::TaskId) is made of it. Below [`FIRST_TASK`] it is the idle task of a CPU.
pub type TaskNumber = u32;

/// A name, as its index in [`Tasks::name`].
pub type NameId = u32;

/// The kernel's limit of a pid.
pub const PID_MAX: u32 = 4 << 20;
const NAMES_MAX: usize = 1 << 16;
const OTHER_NAMES: &str = "(other names)";
/// The priority of nice 0.
pub const DEFAULT_PRIO: i32 = 120;
/// Priorities below are real-time.
const MAX_RT_PRIO: i32 = 100;

/// A comm, cut to 16 bytes: the first is the lowest, and those that it does not have are 0. It is
/// compared with what each event says as one number.
type Comm = u128;

/// What a trace says of a task.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub pid: u32,
    /// Its process, once the trace has said so.
    pub tgid: Option<u32>,
    pub name: NameId,
    /// The kernel's: below 100 real time, then 120 plus the nice level.
    pub prio: i32,
    /// The audit is about it.
    pub counts: bool,
    comm: Comm,
    last_mention: u64,
}

impl Task {
    /// Is it placed by the fair class?
    pub fn is_fair(&self) -> bool {
        self.prio >= MAX_RT_PRIO
    }
}

/// All tasks that the trace may still mention.
pub struct Tasks {
    tasks: Vec<Task>,
    /// 0 = a pid that stands for no task yet.
    by_pid: Vec<TaskNumber>,
    free: Vec<TaskNumber>,
    /// Who makes room next, and the last mention of each when they were put in order.
    leaving: VecDeque<(TaskNumber, u64)>,
    names: Vec<String>,
    name_ids: HashMap<Comm, NameId>,
    mentions: u64,
    selection: Selection,
    /// Any task counts.
    selected: bool,
}

impl Tasks {
    /// All of them count.
    pub fn new() -> Self {
        Self::of(Selection::default())
    }

    /// Those of a selection count.
    pub fn of(selection: Selection) -> Self {
        let mut tasks = Tasks {
            tasks: Vec::new(),
            by_pid: Vec::new(),
            free: Vec::new(),
            leaving: VecDeque::new(),
            names: vec![OTHER_NAMES.to_string()],
            name_ids: HashMap::new(),
            mentions: 0,
            selection,
            selected: false,
        };
        let idle = tasks.describe(0, "<idle>", DEFAULT_PRIO);
        tasks.tasks.resize(FIRST_TASK as usize, idle);
        tasks
    }

    pub fn get(&self, task: TaskNumber) -> &Task {
        &self.tasks[task as usize]
    }

    pub fn name_of(&self, task: TaskNumber) -> &str {
        self.name(self.get(task).name)
    }

    pub fn name(&self, name: NameId) -> &str {
        &self.names[name as usize]
    }

    /// Whether the audit is about any.
    pub fn any_counts(&self) -> bool {
        self.selected
    }

    /// All names of tasks, in their order.
    pub fn names(&self) -> Vec<&str> {
        // Behind the names without a place of their own and that of the idle tasks.
        let mut names: Vec<&str> = self.names[2..].iter().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// One past the highest task in use.
    pub fn nr_tasks(&self) -> TaskNumber {
        self.tasks.len() as TaskNumber
    }

    /// One past the highest name in use.
    pub fn nr_names(&self) -> usize {
        self.names.len()
    }

    /// The task that `pid` is now; `forgotten` takes the task that had to make room, if one had to.
    #[inline]
    pub fn mention(
        &mut self,
        pid: u32,
        comm: &str,
        prio: Option<i32>,
        forgotten: &mut Vec<TaskNumber>,
    ) -> Option<TaskNumber> {
        if pid >= PID_MAX {
            return None;
        }
        let task = match self.by_pid.get(pid as usize) {
            Some(&task) if task != 0 => task,
            _ => self.admit(pid, comm, forgotten),
        };
        self.mentions += 1;
        let entry = &mut self.tasks[task as usize];
        entry.last_mention = self.mentions;
        if let Some(prio) = prio {
            entry.prio = prio;
        }
        let comm = packed(comm);
        if entry.comm != comm && comm as u8 != 0 {
            self.rename(task, comm);
        }
        Some(task)
    }

    /// The trace says to which process the task belongs.
    pub fn belongs_to(&mut self, task: TaskNumber, tgid: u32) {
        let entry = &mut self.tasks[task as usize];
        if entry.tgid.replace(tgid) != Some(tgid) {
            self.look_at_counts(task);
        }
    }

    /// `child` is new, and in the cgroup of `parent`.
    pub fn forked(&mut self, parent: TaskNumber, child: TaskNumber) {
        self.selection.forked(self.get(parent).pid, self.get(child).pid);
        self.look_at_counts(child);
    }

    /// The task that a pid is now, without mentioning it.
    pub fn find(&self, pid: u32) -> Option<TaskNumber> {
        self.by_pid.get(pid as usize).copied().filter(|&task| task != 0)
    }

    /// `pid` ends here: its next mention is another task.
    pub fn release_pid(&mut self, task: TaskNumber) {
        let pid = self.get(task).pid as usize;
        if self.by_pid.get(pid) == Some(&task) {
            self.by_pid[pid] = 0;
        }
    }

    /// Nobody speaks of `task` any more: another may take its place, unless one has already.
    pub fn reuse(&mut self, task: TaskNumber) {
        if self.find(self.get(task).pid) != Some(task) {
            self.free.push(task);
        }
    }

    #[cold]
    fn admit(&mut self, pid: u32, comm: &str, forgotten: &mut Vec<TaskNumber>) -> TaskNumber {
        let entry = self.describe(pid, comm, DEFAULT_PRIO);
        let task = match self.free.pop() {
            Some(task) => task,
            None if self.tasks.len() < NR_TASKS as usize => {
                self.tasks.push(entry);
                self.tasks.len() as TaskNumber - 1
            }
            None => self.make_room(forgotten),
        };
        self.tasks[task as usize] = entry;
        if self.by_pid.len() <= pid as usize {
            self.by_pid.resize(pid as usize + 1, 0);
        }
        self.by_pid[pid as usize] = task;
        task
    }

    fn make_room(&mut self, forgotten: &mut Vec<TaskNumber>) -> TaskNumber {
        let oldest = self.mentioned_longest_ago();
        self.release_pid(oldest);
        forgotten.push(oldest);
        oldest
    }

    /// All are put in order once, and again when that order is used up. Who has been mentioned
    /// since is later than all that have not.
    fn mentioned_longest_ago(&mut self) -> TaskNumber {
        loop {
            while let Some((task, last_mention)) = self.leaving.pop_front() {
                if self.get(task).last_mention == last_mention {
                    return task;
                }
            }
            let all = FIRST_TASK..NR_TASKS;
            self.leaving = all.map(|task| (task, self.get(task).last_mention)).collect();
            self.leaving.make_contiguous().sort_unstable_by_key(|&(_, last_mention)| last_mention);
        }
    }

    fn describe(&mut self, pid: u32, comm: &str, prio: i32) -> Task {
        let comm = packed(comm);
        let name = self.name_id(comm);
        let counts = self.counts(pid, None, name);
        Task { pid, tgid: None, name, prio, counts, comm, last_mention: self.mentions }
    }

    #[cold]
    fn rename(&mut self, task: TaskNumber, comm: Comm) {
        let name = self.name_id(comm);
        let entry = &mut self.tasks[task as usize];
        (entry.comm, entry.name) = (comm, name);
        self.look_at_counts(task);
    }

    fn look_at_counts(&mut self, task: TaskNumber) {
        let Task { pid, tgid, name, .. } = self.tasks[task as usize];
        self.tasks[task as usize].counts = self.counts(pid, tgid, name);
    }

    fn counts(&mut self, pid: u32, tgid: Option<u32>, name: NameId) -> bool {
        let counts = self.selection.has(pid, tgid, &self.names[name as usize]);
        self.selected |= counts && pid != 0;
        counts
    }

    fn name_id(&mut self, comm: Comm) -> NameId {
        if let Some(&id) = self.name_ids.get(&comm) {
            return id;
        }
        if self.names.len() >= NAMES_MAX {
            return 0;
        }
        let id = self.names.len() as NameId;
        let bytes = comm.to_le_bytes();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        self.names.push(String::from_utf8_lossy(&bytes[..end]).into_owned());
        self.name_ids.insert(comm, id);
        id
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

/// Two pieces of the same length, which may have bytes in common, make up most comms.
fn packed(comm: &str) -> Comm {
    let bytes = comm.as_bytes();
    if let Some(all) = bytes.first_chunk() {
        return Comm::from_le_bytes(*all);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let low = u64::from_le_bytes(*first);
        let high = u64::from_le_bytes(*last).unbounded_shr(8 * (16 - bytes.len() as u32));
        return Comm::from(high) << 64 | Comm::from(low);
    }
    let appended = |low: u64, &byte: &u8| low << 8 | u64::from(byte);
    Comm::from(bytes.iter().rev().fold(0, appended))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mention(tasks: &mut Tasks, pid: u32, comm: &str) -> TaskNumber {
        tasks.mention(pid, comm, None, &mut Vec::new()).unwrap()
    }

    #[test]
    fn a_pid_is_one_task_until_it_is_released() {
        let mut tasks = Tasks::new();
        let one = mention(&mut tasks, 5, "one");
        assert_eq!(mention(&mut tasks, 5, "one"), one);
        tasks.release_pid(one);
        assert_eq!(tasks.find(5), None);
        let other = mention(&mut tasks, 5, "other");
        assert_ne!(other, one);
        // The end of the first says nothing of the second.
        tasks.release_pid(one);
        assert_eq!(tasks.find(5), Some(other));
        assert_eq!((tasks.name_of(one), tasks.name_of(other)), ("one", "other"));
    }

    #[test]
    fn a_number_that_is_free_is_taken_first() {
        let mut tasks = Tasks::new();
        let one = mention(&mut tasks, 5, "one");
        mention(&mut tasks, 6, "two");
        tasks.release_pid(one);
        tasks.reuse(one);
        assert_eq!(mention(&mut tasks, 7, "three"), one);
        assert_eq!((tasks.name_of(one), tasks.get(one).prio), ("three", DEFAULT_PRIO));
    }

    #[test]
    fn a_task_that_becomes_another_program_has_its_name() {
        let mut tasks = Tasks::new();
        let task = mention(&mut tasks, 5, "sh");
        mention(&mut tasks, 5, "ls");
        assert_eq!(tasks.name_of(task), "ls");
        mention(&mut tasks, 5, "");
        assert_eq!(tasks.name_of(task), "ls", "no name is none");
    }

    #[test]
    fn the_priority_is_the_last_one_told() {
        let mut tasks = Tasks::new();
        let task = tasks.mention(5, "sh", Some(139), &mut Vec::new()).unwrap();
        mention(&mut tasks, 5, "sh");
        assert_eq!(tasks.get(task).prio, 139);
    }

    #[test]
    fn who_was_mentioned_longest_ago_makes_room() {
        let mut tasks = Tasks::new();
        let room = NR_TASKS - FIRST_TASK;
        for pid in 1..=room {
            mention(&mut tasks, pid, "x");
        }
        mention(&mut tasks, 1, "x");
        let mut forgotten = Vec::new();
        let new = tasks.mention(room + 1, "x", None, &mut forgotten).unwrap();
        assert_eq!(forgotten, [new], "it has the place of the one that went");
        assert_eq!(
            (tasks.find(1).is_some(), tasks.find(2), tasks.find(room + 1)),
            (true, None, Some(new))
        );
    }

    /// Each in turn, but for one that is mentioned again and again. Looking through all tasks for
    /// each of them takes minutes.
    #[test]
    fn all_pids_there_can_be_make_room_one_after_the_other() {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (mut tasks, mut left) = (Tasks::new(), Vec::new());
            for pid in 2..PID_MAX {
                mention(&mut tasks, 1, "busy");
                let mut forgotten = Vec::new();
                let place = tasks.mention(pid, "x", None, &mut forgotten).unwrap();
                assert!(forgotten.iter().all(|&task| task == place));
                left.extend(forgotten);
            }
            // They came into consecutive places, the busy one into the first.
            let turns = (FIRST_TASK + 1..NR_TASKS).cycle();
            sender.send(
                left.into_iter().eq(turns.take((PID_MAX - 1 - (NR_TASKS - FIRST_TASK)) as usize)),
            )
        });
        let in_turn = receiver.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(in_turn, Ok(true));
    }

    #[test]
    fn a_place_that_is_taken_is_not_free() {
        let mut tasks = Tasks::new();
        let dead = mention(&mut tasks, 1, "dead");
        tasks.release_pid(dead);
        for pid in 2..=NR_TASKS - FIRST_TASK {
            mention(&mut tasks, pid, "x");
        }
        let new = tasks.mention(70_000, "new", None, &mut Vec::new());
        assert_eq!(new, Some(dead));
        // Only now comes the end of the first.
        tasks.reuse(dead);
        assert_ne!(mention(&mut tasks, 70_001, "other"), dead);
    }

    #[test]
    fn names_beyond_the_limit_share_one() {
        let mut tasks = Tasks::new();
        for name in 0..NAMES_MAX {
            mention(&mut tasks, 5, &format!("name{name}"));
        }
        let task = mention(&mut tasks, 6, "one too many");
        assert_eq!(tasks.name_of(task), OTHER_NAMES);
        assert_eq!(tasks.nr_names(), NAMES_MAX);
    }

    #[test]
    fn a_pid_that_no_kernel_gives_is_none() {
        assert_eq!(Tasks::new().mention(PID_MAX, "x", None, &mut Vec::new()), None);
    }

    #[test]
    fn a_comm_of_any_length_is_the_name() {
        let letters = "abcdefghijklmnopqrstuvwxyz";
        for length in 1..letters.len() {
            let mut tasks = Tasks::new();
            let task = mention(&mut tasks, 5, &letters[..length]);
            assert_eq!(tasks.name_of(task), &letters[..length.min(16)]);
        }
    }

    #[test]
    fn names_are_cut_where_they_may_not_be() {
        let mut tasks = Tasks::new();
        let task = mention(&mut tasks, 5, "fifteen bytes \u{e9}\u{e9}");
        assert!(tasks.name_of(task).starts_with("fifteen bytes \u{e9}"));
    }
}
