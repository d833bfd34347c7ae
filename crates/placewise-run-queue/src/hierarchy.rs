//! Task groups: a queue for each, and an entity for each in the queue above.
//!
//! ```text
//!   queues[0]   task 7        entity of group 1
//!                                |
//!   queues[1]                 task 8    task 9
//! ```
//!
//! The entity of a task group is queued while the group has tasks, waiting or
//! current. Of the current task, the entities above it wait nowhere, like
//! itself. A pick goes down from the root; two tasks compare where the groups
//! they are in meet. When the task of a group that runs goes to sleep, another
//! of it may have what is left of the group's slice (EEVDF).
//!
//! The entity of a task group that is throttled is not queued; its tasks wait
//! below it until it is back.
//!
//! With delayed dequeue the entity of a group without tasks that has had more
//! than its share stays queued until its lag is spent, as a task does that
//! sleeps so. The policy does not know: in its averages the entity is gone.

use std::ops::{Index, IndexMut};

use placewise_policy::{NR_TASK_GROUP_LEVELS, Profile, TaskId};

use crate::cfs::share;
use crate::entity::{
    Dequeue, Enqueue, EnqueuedBy, Entity, EntityId, NICE_0_WEIGHT, Tasks, Tunables,
};
use crate::queue::Queue;

const ROOT: u32 = 0;

/// The most entities between a task and the root, both queues included.
const LEVELS: usize = NR_TASK_GROUP_LEVELS as usize + 1;

pub struct Hierarchy {
    /// By group, as is what follows.
    queues: Vec<Queue<Member>>,
    groups: Groups,
    /// The group of the task that was current last; the root's where that was none of these tasks.
    previous: u32,
    /// An entity without tasks may stay until its lag is spent.
    delays: bool,
    /// A wakeup that may preempt picks as a switch does.
    wakeup_picks: bool,
}

struct Groups {
    entities: Vec<Entity>,
    parents: Vec<u32>,
    queued: Vec<bool>,
    /// Queued without a task.
    delayed: Vec<bool>,
    throttled: Vec<bool>,
}

/// What competes in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Task(TaskId),
    Group(u32),
}

impl Member {
    fn task(self) -> Option<TaskId> {
        match self {
            Member::Task(task) => Some(task),
            Member::Group(_) => None,
        }
    }
}

impl EntityId for Member {
    fn is_group(self) -> bool {
        matches!(self, Member::Group(_))
    }
}

/// The entities of tasks and task groups.
struct Members<'a> {
    tasks: &'a mut Tasks,
    groups: &'a mut [Entity],
}

impl Index<Member> for Members<'_> {
    type Output = Entity;

    fn index(&self, id: Member) -> &Entity {
        entity(self.tasks, self.groups, id)
    }
}

impl IndexMut<Member> for Members<'_> {
    fn index_mut(&mut self, id: Member) -> &mut Entity {
        match id {
            Member::Task(task) => &mut self.tasks[task],
            Member::Group(group) => &mut self.groups[group as usize],
        }
    }
}

/// The same where nothing changes.
struct Readable<'a> {
    tasks: &'a Tasks,
    groups: &'a [Entity],
}

impl Index<Member> for Readable<'_> {
    type Output = Entity;

    fn index(&self, id: Member) -> &Entity {
        entity(self.tasks, self.groups, id)
    }
}

fn entity<'a>(tasks: &'a Tasks, groups: &'a [Entity], id: Member) -> &'a Entity {
    match id {
        Member::Task(task) => &tasks[task],
        Member::Group(group) => &groups[group as usize],
    }
}

/// What a task competes as, and in which queue: itself in its group's, the group in its parent's,
/// and so on to the root.
#[derive(Clone, Copy)]
struct Path {
    levels: [(u32, Member); LEVELS],
    len: usize,
}

impl Path {
    fn iter(&self) -> impl Iterator<Item = (u32, Member)> + use<> {
        self.levels.into_iter().take(self.len)
    }

    fn above(&self, queue: u32) -> impl Iterator<Item = (u32, Member)> + use<> {
        self.iter().skip_while(move |&(at, _)| at != queue).skip(1)
    }

    /// What stands for the task in a queue.
    fn entity_in(&self, queue: u32) -> Option<Member> {
        self.iter().find(|&(at, _)| at == queue).map(|(_, entity)| entity)
    }
}

impl Groups {
    fn path(&self, task: TaskId, group: u32) -> Path {
        let task = Member::Task(task);
        let mut path = Path { levels: [(ROOT, task); LEVELS], len: 1 };
        path.levels[0] = (group, task);
        let mut group = group;
        while group != ROOT {
            let parent = self.parents[group as usize];
            path.levels[path.len] = (parent, Member::Group(group));
            path.len += 1;
            group = parent;
        }
        path
    }

    /// That of any task in a group.
    fn path_from(&self, group: u32) -> Path {
        self.path(TaskId::default(), group)
    }

    /// The entities from that of `group` up, each with the queue it competes in.
    fn above(&self, group: u32) -> impl Iterator<Item = (u32, Member)> + use<> {
        self.path_from(group).above(group)
    }

    /// Is it throttled, or is a group that it is in?
    fn waits_for_runtime(&self, group: u32) -> bool {
        self.throttled[group as usize]
            || self.above(group).any(|(above, _)| self.throttled[above as usize])
    }

    /// The entity of a group has left its queue.
    fn left(&mut self, group: u32) {
        self.queued[group as usize] = false;
        self.entities[group as usize].ran = 0;
    }

    /// Is `group` the other one, or below it?
    fn is_within(&self, group: u32, other: u32) -> bool {
        group == other || self.path_from(group).entity_in(other).is_some()
    }
}

/// What stands for the current task in a queue, if it is there.
fn current_in(path: &Option<Path>, queue: u32) -> Option<Member> {
    path.as_ref().and_then(|path| path.entity_in(queue))
}

impl Hierarchy {
    pub fn new(profile: &Profile, tunables: Tunables, parents: &[u32]) -> Self {
        let count = parents.len() + 1;
        let entity = Entity { weight: NICE_0_WEIGHT, ..Entity::default() };
        Hierarchy {
            queues: (0..count).map(|_| Queue::new(profile, tunables)).collect(),
            groups: Groups {
                entities: vec![entity; count],
                parents: std::iter::once(ROOT).chain(parents.iter().copied()).collect(),
                queued: vec![false; count],
                delayed: vec![false; count],
                throttled: vec![false; count],
            },
            previous: ROOT,
            delays: profile.delayed_dequeue,
            wakeup_picks: profile.wakeup_picks,
        }
    }

    fn path(&self, tasks: &Tasks, task: TaskId) -> Path {
        self.groups.path(task, tasks[task].group)
    }

    fn path_of(&self, tasks: &Tasks, task: Option<TaskId>) -> Option<Path> {
        task.map(|task| self.path(tasks, task))
    }

    /// A queue, and what is in queues.
    fn parts<'a>(
        &'a mut self,
        tasks: &'a mut Tasks,
        queue: u32,
    ) -> (&'a mut Queue<Member>, Members<'a>) {
        (&mut self.queues[queue as usize], Members { tasks, groups: &mut self.groups.entities })
    }

    fn readable<'a>(&'a self, tasks: &'a Tasks) -> Readable<'a> {
        Readable { tasks, groups: &self.groups.entities }
    }

    pub fn waiting_tasks(&self) -> usize {
        let queues = self.queues.iter().zip(0..);
        let queues = queues.filter(|&(_, group)| !self.groups.waits_for_runtime(group));
        let waiting = queues.flat_map(|(queue, _)| queue.waiting().iter());
        waiting.filter(|place| !place.entity.is_group()).count()
    }

    #[cfg(feature = "invariants")]
    pub fn check(&self, tasks: &Tasks) {
        self.queues.iter().for_each(|queue| queue.check(&self.readable(tasks)));
        for group in (0..self.queues.len()).filter(|&group| self.groups.delayed[group]) {
            assert!(self.groups.queued[group], "what is delayed is queued");
            assert_eq!(self.queues[group].waiting().len(), 0, "a delayed group has no tasks");
        }
    }

    #[cfg(feature = "invariants")]
    pub fn tasks(&self) -> Vec<TaskId> {
        let waiting = self.queues.iter().flat_map(|queue| queue.waiting().iter());
        waiting.filter_map(|place| place.entity.task()).collect()
    }

    #[cfg(feature = "invariants")]
    pub fn group_weights(&self) -> Vec<(u32, u64)> {
        let queued = (1..self.queues.len()).filter(|&group| self.groups.queued[group]);
        let with_tasks = queued.filter(|&group| !self.is_left_behind(group));
        with_tasks.map(|group| (group as u32, self.groups.entities[group].weight)).collect()
    }

    /// Is the entity queued for nothing but lag, its own or that of entities below?
    #[cfg(feature = "invariants")]
    fn is_left_behind(&self, group: usize) -> bool {
        let is_behind =
            |entity| matches!(entity, Member::Group(group) if self.is_left_behind(group as usize));
        let mut waiting = self.queues[group].waiting().iter().map(|place| place.entity).peekable();
        self.groups.delayed[group] || waiting.peek().is_some() && waiting.all(is_behind)
    }

    pub fn fork(&self, creator: &Entity, child: &mut Entity, running: u64) {
        let Queue::Cfs(queue) = &self.queues[child.group as usize] else {
            return child.start_without_lag();
        };
        // The creator is the current task: it, or a group it is in, may be in the child's queue.
        let creators = self.groups.path_from(creator.group);
        let weight_of = |entity: Member| match entity {
            Member::Task(_) => creator.weight,
            Member::Group(group) => self.groups.entities[group as usize].weight,
        };
        let beside = |queue: u32| creators.entity_in(queue).map_or(0, weight_of);
        let count = if queue.counts_all_tasks() {
            running
        } else {
            queue.waiting.len() as u64 + u64::from(beside(child.group) > 0)
        };
        let others = queue.waiting_weight() + beside(child.group);
        let mut slice = share(queue.period(count + 1), child.weight, others);
        for (above, id) in self.groups.above(child.group) {
            let Queue::Cfs(above_queue) = &self.queues[above as usize] else { continue };
            let Member::Group(group) = id else { continue };
            let entity = &self.groups.entities[group as usize];
            let is_current = creators.entity_in(above) == Some(id);
            let queued = self.groups.queued[group as usize];
            let mut total = above_queue.waiting_weight() + beside(above);
            if !queued && !is_current {
                total += entity.weight;
            }
            slice = share(slice, entity.weight, total - entity.weight);
        }
        let vruntime = (creator.group == child.group).then_some(creator.vruntime);
        queue.place_child(vruntime, child, queue.floored(slice));
    }

    pub fn account(&mut self, tasks: &mut Tasks, current: TaskId, ns: u64) -> bool {
        let mut reschedule = false;
        for (at, entity) in self.path(tasks, current).iter() {
            let (queue, mut members) = self.parts(tasks, at);
            reschedule |= queue.account(&mut members, entity, ns);
        }
        reschedule
    }

    pub fn enqueue(
        &mut self,
        tasks: &mut Tasks,
        current: Option<TaskId>,
        task: TaskId,
        why: Enqueue,
    ) {
        let current = self.path_of(tasks, current);
        for (at, entity) in self.path(tasks, task).iter() {
            let why = if entity == Member::Task(task) { why } else { Enqueue::Wakeup };
            let (queue, mut members) = self.parts(tasks, at);
            queue.enqueue(&mut members, current_in(&current, at), entity, why);
            if self.groups.throttled[at as usize] {
                break;
            }
            if std::mem::replace(&mut self.groups.queued[at as usize], true) {
                self.requeue_if_delayed(tasks, &current, at);
                break;
            }
        }
    }

    /// A task is to be enqueued: the entity above it that is queued is delayed no more, if it was.
    pub fn requeue_delayed_group(
        &mut self,
        tasks: &mut Tasks,
        current: Option<TaskId>,
        task: TaskId,
    ) {
        let Groups { queued, throttled, .. } = &self.groups;
        let path = self.path(tasks, task);
        let groups = path.iter().map(|(group, _)| group);
        let mut reached = groups.take_while(|&group| !throttled[group as usize]);
        if let Some(group) = reached.find(|&group| queued[group as usize]) {
            self.requeue_if_delayed(tasks, &self.path_of(tasks, current), group);
        }
    }

    fn requeue_if_delayed(&mut self, tasks: &mut Tasks, currents: &Option<Path>, group: u32) {
        if std::mem::take(&mut self.groups.delayed[group as usize]) {
            let at = self.groups.parents[group as usize];
            let (queue, mut members) = self.parts(tasks, at);
            queue.requeue_delayed(&mut members, current_in(currents, at), Member::Group(group));
        }
    }

    /// An entity leaves that was delayed.
    fn finish_delayed_group(&mut self, tasks: &mut Tasks, currents: &Option<Path>, group: u32) {
        let at = self.groups.parents[group as usize];
        let (queue, mut members) = self.parts(tasks, at);
        queue.finish_delayed(&mut members, current_in(currents, at), Member::Group(group));
        self.groups.delayed[group as usize] = false;
        self.groups.left(group);
    }

    /// A task group leaves with all its tasks, none of which is current.
    pub fn throttle(&mut self, tasks: &mut Tasks, current: Option<TaskId>, group: u32) {
        self.groups.throttled[group as usize] = true;
        if self.groups.queued[group as usize] {
            let currents = self.path_of(tasks, current);
            self.dequeue_group(tasks, &currents, &currents, (group, false));
        }
    }

    /// It is back, if it has tasks.
    pub fn unthrottle(&mut self, tasks: &mut Tasks, current: Option<TaskId>, group: u32) {
        self.groups.throttled[group as usize] = false;
        if self.queues[group as usize].waiting().is_empty() {
            return;
        }
        let currents = self.path_of(tasks, current);
        let mut below = group;
        for (at, entity) in self.groups.above(group) {
            if self.groups.delayed[below as usize] {
                self.finish_delayed_group(tasks, &currents, below);
            }
            if self.groups.throttled[below as usize]
                || std::mem::replace(&mut self.groups.queued[below as usize], true)
            {
                break;
            }
            let (queue, mut members) = self.parts(tasks, at);
            queue.enqueue(&mut members, current_in(&currents, at), entity, Enqueue::Wakeup);
            below = at;
        }
    }

    /// The entity of a task group leaves, and those above it that are left without tasks: none that
    /// waits, and none that is `running`, which is not so of a current task that is leaving. Where it `delays`,
    /// one that was not delayed may stay for its lag. Answers with the first group whose entity stays.
    fn dequeue_group(
        &mut self,
        tasks: &mut Tasks,
        currents: &Option<Path>,
        running: &Option<Path>,
        (group, delays): (u32, bool),
    ) -> u32 {
        let mut group = group;
        for (at, entity) in self.groups.above(group) {
            if self.groups.delayed[group as usize] {
                self.finish_delayed_group(tasks, currents, group);
            } else {
                let current = current_in(currents, at);
                let (queue, mut members) = self.parts(tasks, at);
                if delays && queue.delays(&members, current, entity) {
                    self.groups.delayed[group as usize] = true;
                    break;
                }
                queue.dequeue(&mut members, current, entity, Dequeue::Sleep);
                self.groups.left(group);
            }
            group = at;
            if !self.is_left_empty(running, group) {
                break;
            }
        }
        group
    }

    /// Has the group no tasks any more, but an entity that is queued?
    fn is_left_empty(&self, running: &Option<Path>, group: u32) -> bool {
        self.groups.queued[group as usize]
            && current_in(running, group).is_none()
            && self.queues[group as usize].waiting().is_empty()
    }

    pub fn dequeue(
        &mut self,
        tasks: &mut Tasks,
        current: Option<TaskId>,
        task: TaskId,
        why: Dequeue,
    ) {
        let path = self.path_of(tasks, current);
        let group = tasks[task].group;
        let (queue, mut members) = self.parts(tasks, group);
        queue.dequeue(&mut members, current_in(&path, group), Member::Task(task), why);
        self.empty_groups(tasks, current, task, why == Dequeue::Sleep);
        if current == Some(task) {
            self.previous = group;
        }
    }

    /// A task has left its queue: the entities of groups without tasks leave theirs. If it was
    /// current, the entities that stay wait again; if it sleeps, they are preferred.
    fn empty_groups(
        &mut self,
        tasks: &mut Tasks,
        current: Option<TaskId>,
        task: TaskId,
        sleeps: bool,
    ) {
        let was_current = current == Some(task);
        let currents = self.path_of(tasks, current);
        let running = currents.filter(|_| !was_current);
        let mut group = tasks[task].group;
        if self.is_left_empty(&running, group) {
            group = self.dequeue_group(tasks, &currents, &running, (group, self.delays));
        }
        let is_preferred = sleeps && !self.groups.delayed[group as usize];
        for (at, entity) in self.groups.above(group) {
            if matches!(entity, Member::Group(group) if !self.groups.queued[group as usize]) {
                break;
            }
            let (queue, members) = self.parts(tasks, at);
            if was_current {
                queue.put_back(&members, entity);
            }
            if is_preferred {
                queue.set_next_buddy(entity);
            }
        }
    }

    pub fn leave(&self, entity: &mut Entity) {
        self.queues[entity.group as usize].leave(entity);
    }

    pub fn put_back(&mut self, tasks: &Tasks, current: TaskId) {
        self.previous = tasks[current].group;
        let Hierarchy { queues, groups, .. } = self;
        for (at, entity) in groups.path(current, self.previous).iter() {
            let members = Readable { tasks, groups: &groups.entities };
            queues[at as usize].put_back(&members, entity);
        }
    }

    /// The group that ran last, as it stands in a queue: a task of it may have gone to sleep, but the group has its slice.
    fn last_in(&self, queue: u32) -> Option<Member> {
        let last = self.groups.path_from(self.previous).entity_in(queue)?;
        matches!(last, Member::Group(group) if self.groups.queued[group as usize]).then_some(last)
    }

    /// No group goes on: the CPU does something else.
    pub fn rest(&mut self) {
        self.previous = ROOT;
    }

    /// An entity without tasks that is picked has spent its lag.
    pub fn pick(&mut self, tasks: &mut Tasks) -> Option<TaskId> {
        let mut at = ROOT;
        loop {
            let last = self.last_in(at);
            let (queue, members) = self.parts(tasks, at);
            match queue.pick(&members, last)? {
                Member::Task(task) => return Some(task),
                Member::Group(group) if self.groups.delayed[group as usize] => {
                    self.dequeue_group(tasks, &None, &None, (group, self.delays));
                    at = ROOT;
                }
                Member::Group(group) => at = group,
            }
        }
    }

    /// A group that runs on, with the same task or another, is in the middle of its slice.
    pub fn take(&mut self, tasks: &mut Tasks, task: TaskId) {
        for (at, entity) in self.path(tasks, task).iter() {
            let goes_on = matches!(entity, Member::Group(group)
                if self.groups.is_within(self.previous, group));
            let (queue, mut members) = self.parts(tasks, at);
            let Entity { ran, protected_until, .. } = members[entity];
            queue.take(&mut members, entity);
            if goes_on {
                let entity = &mut members[entity];
                (entity.ran, entity.protected_until) = (ran, protected_until);
            }
        }
    }

    pub fn tick(&mut self, tasks: &Tasks, current: TaskId) -> bool {
        let path = self.path(tasks, current);
        let mut reschedule = false;
        for (at, entity) in path.iter() {
            let slice = self.slice(tasks, &path, at);
            let members = Readable { tasks, groups: &self.groups.entities };
            reschedule |= match &mut self.queues[at as usize] {
                Queue::Cfs(queue) => queue.tick_with(&members, entity, slice),
                Queue::Eevdf(queue) => queue.tick(&members, entity),
            };
        }
        reschedule
    }

    /// CFS: the slice of what stands for the current task in a queue, through all levels above.
    fn slice(&self, tasks: &Tasks, path: &Path, at: u32) -> u64 {
        let Queue::Cfs(lowest) = &self.queues[at as usize] else { return 0 };
        let waiting =
            if lowest.counts_all_tasks() { self.waiting_tasks() } else { lowest.waiting.len() };
        let members = self.readable(tasks);
        let levels = path.iter().skip_while(|&(level, _)| level != at);
        let slice = levels.fold(lowest.period(waiting as u64 + 1), |slice, (level, entity)| {
            let others = self.queues[level as usize].waiting().sums().1;
            share(slice, members[entity].weight, others)
        });
        lowest.floored(slice)
    }

    /// The task's group stands for it, and a task for its own group only.
    pub fn rival(
        &mut self,
        tasks: &mut Tasks,
        (current, task): (TaskId, TaskId),
        by: EnqueuedBy,
    ) -> Option<TaskId> {
        let currents = self.path(tasks, current);
        let path = self.path(tasks, task);
        let meet = |(at, entity)| Some((at, entity, currents.entity_in(at)?));
        let (at, entity, runs) = path.iter().find_map(meet).expect("all paths meet at the root");
        let rival = self.rival_at(tasks, (at, &Some(currents)), (runs, entity), by);
        let preempts = rival == Some(entity);
        let is_next = match &self.queues[at as usize] {
            Queue::Cfs(_) => preempts,
            Queue::Eevdf(queue) => queue.prefers(entity),
        };
        if is_next {
            for (above, group) in path.above(at) {
                self.queues[above as usize].set_next_buddy(group);
            }
        }
        if preempts { Some(task) } else { rival.and_then(Member::task) }
    }

    /// Where wakeups pick, entities without tasks leave that have spent their lag.
    fn rival_at(
        &mut self,
        tasks: &mut Tasks,
        (at, currents): (u32, &Option<Path>),
        members: (Member, Member),
        by: EnqueuedBy,
    ) -> Option<Member> {
        loop {
            let (queue, mut entities) = self.parts(tasks, at);
            let rival = queue.rival(&mut entities, members, by);
            match rival {
                Some(Member::Group(group))
                    if self.wakeup_picks && self.groups.delayed[group as usize] =>
                {
                    self.finish_delayed_group(tasks, currents, group);
                }
                _ => return rival,
            }
        }
    }

    pub fn is_eligible(&self, tasks: &Tasks, current: Option<TaskId>, task: TaskId) -> bool {
        let at = tasks[task].group;
        let current = current_in(&self.path_of(tasks, current), at);
        self.queues[at as usize].is_eligible(&self.readable(tasks), current, Member::Task(task))
    }

    pub fn for_each_waiting(
        &self,
        tasks: &Tasks,
        current: Option<TaskId>,
        mut visit: impl FnMut(TaskId, bool),
    ) {
        let current = self.path_of(tasks, current);
        for (at, queue) in self.queues.iter().enumerate() {
            let current = current_in(&current, at as u32);
            queue.for_each_waiting(&self.readable(tasks), current, |entity, eligible| {
                if let Some(task) = entity.task() {
                    visit(task, eligible);
                }
            });
        }
    }

    pub fn requeue_delayed(&mut self, tasks: &mut Tasks, current: Option<TaskId>, task: TaskId) {
        let at = tasks[task].group;
        let current = current_in(&self.path_of(tasks, current), at);
        let (queue, mut members) = self.parts(tasks, at);
        queue.requeue_delayed(&mut members, current, Member::Task(task));
    }

    pub fn finish_delayed(&mut self, tasks: &mut Tasks, current: Option<TaskId>, task: TaskId) {
        let group = tasks[task].group;
        let beside = current_in(&self.path_of(tasks, current), group);
        let (queue, mut members) = self.parts(tasks, group);
        queue.finish_delayed(&mut members, beside, Member::Task(task));
        self.empty_groups(tasks, current, task, true);
    }

    pub fn reweight_group(
        &mut self,
        tasks: &mut Tasks,
        current: Option<TaskId>,
        group: u32,
        weight: u64,
    ) {
        let entity = &mut self.groups.entities[group as usize];
        if entity.weight == weight {
            return;
        }
        if !self.groups.queued[group as usize] {
            return entity.reweigh(weight);
        }
        let at = self.groups.parents[group as usize];
        let current = current_in(&self.path_of(tasks, current), at);
        let (queue, mut members) = self.parts(tasks, at);
        queue.reweight(&mut members, current, Member::Group(group), weight);
    }
}
