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
//! sleeps so. The policy is told, for whose averages it is there.

use std::ops::{Index, IndexMut};

use placewise_policy::{Profile, TaskId};

use crate::cfs::share;
use crate::entity::{
    Dequeue, Enqueue, EnqueuedBy, Entity, EntityId, NICE_0_WEIGHT, Tasks, Tunables,
};
use crate::queue::Queue;

const ROOT: u32 = 0;

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
    /// Not any more, since the policy was told last.
    spent: Vec<u32>,
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

/// A queue, and what competes in it for a task: itself in its group's, the group in its parent's,
/// and so on to the root.
type Level = (u32, Member);

impl Groups {
    /// The level above a queue.
    fn above(&self, queue: u32) -> Option<Level> {
        (queue != ROOT).then(|| (self.parents[queue as usize], Member::Group(queue)))
    }

    /// A level, and those above it.
    fn up_from(&self, level: Option<Level>) -> impl Iterator<Item = Level> {
        std::iter::successors(level, |&(at, _)| self.above(at))
    }

    /// What stands in a queue for a task, of which this is the lowest level.
    fn entity_in(&self, queue: u32, lowest: Option<Level>) -> Option<Member> {
        self.up_from(lowest).find(|&(at, _)| at == queue).map(|(_, entity)| entity)
    }

    /// A group, and those that it is in.
    fn around(&self, group: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(group), |&group| self.above(group).map(|(above, _)| above))
    }

    /// Is it throttled, or is a group that it is in?
    fn waits_for_runtime(&self, group: u32) -> bool {
        self.around(group).any(|group| self.throttled[group as usize])
    }

    /// The entity of a group has left its queue.
    fn left(&mut self, group: u32) {
        self.queued[group as usize] = false;
        self.entities[group as usize].ran = 0;
    }

    /// Is `group` the other one, or below it?
    fn is_within(&self, group: u32, other: u32) -> bool {
        self.around(group).any(|group| group == other)
    }
}

fn lowest(tasks: &Tasks, task: TaskId) -> Level {
    (tasks[task].group, Member::Task(task))
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
                spent: Vec::new(),
                throttled: vec![false; count],
            },
            previous: ROOT,
            delays: profile.delayed_dequeue,
            wakeup_picks: profile.wakeup_picks,
        }
    }

    /// What stands for the current task in a queue, if it is there.
    fn current_in(&self, queue: u32, tasks: &Tasks, current: Option<TaskId>) -> Option<Member> {
        self.groups.entity_in(queue, current.map(|current| lowest(tasks, current)))
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
        queued.map(|group| (group as u32, self.groups.entities[group].weight)).collect()
    }

    pub fn fork(&self, creator: &Entity, child: &mut Entity, running: u64) {
        let Queue::Cfs(queue) = &self.queues[child.group as usize] else {
            return child.start_without_lag();
        };
        // The creator is the current task: it, or a group it is in, may be in the child's queue.
        let creators = Some((creator.group, Member::Task(TaskId::default())));
        let weight_of = |entity: Member| match entity {
            Member::Task(_) => creator.weight,
            Member::Group(group) => self.groups.entities[group as usize].weight,
        };
        let beside = |queue| self.groups.entity_in(queue, creators).map_or(0, weight_of);
        let count = if queue.counts_all_tasks() {
            running
        } else {
            queue.waiting.len() as u64 + u64::from(beside(child.group) > 0)
        };
        let others = queue.waiting_weight() + beside(child.group);
        let mut slice = share(queue.period(count + 1), child.weight, others);
        for (above, id) in self.groups.up_from(self.groups.above(child.group)) {
            let Queue::Cfs(above_queue) = &self.queues[above as usize] else { continue };
            let Member::Group(group) = id else { continue };
            let entity = &self.groups.entities[group as usize];
            let is_current = self.groups.entity_in(above, creators) == Some(id);
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
        let mut level = Some(lowest(tasks, current));
        while let Some((at, entity)) = level {
            let (queue, mut members) = self.parts(tasks, at);
            reschedule |= queue.account(&mut members, entity, ns);
            level = self.groups.above(at);
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
        let mut level = Some(lowest(tasks, task));
        while let Some((at, entity)) = level {
            let why = if entity == Member::Task(task) { why } else { Enqueue::Wakeup };
            let beside = self.current_in(at, tasks, current);
            let (queue, mut members) = self.parts(tasks, at);
            queue.enqueue(&mut members, beside, entity, why);
            if self.groups.throttled[at as usize] {
                break;
            }
            if std::mem::replace(&mut self.groups.queued[at as usize], true) {
                self.requeue_if_delayed(tasks, current, at);
                break;
            }
            level = self.groups.above(at);
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
        let is_reached = |&group: &u32| !throttled[group as usize];
        let mut groups = self.groups.around(tasks[task].group).take_while(is_reached);
        if let Some(group) = groups.find(|&group| queued[group as usize]) {
            drop(groups);
            self.requeue_if_delayed(tasks, current, group);
        }
    }

    fn requeue_if_delayed(&mut self, tasks: &mut Tasks, current: Option<TaskId>, group: u32) {
        if std::mem::take(&mut self.groups.delayed[group as usize]) {
            let at = self.groups.parents[group as usize];
            let beside = self.current_in(at, tasks, current);
            let (queue, mut members) = self.parts(tasks, at);
            queue.requeue_delayed(&mut members, beside, Member::Group(group));
        }
    }

    /// An entity leaves that was delayed.
    fn finish_delayed_group(&mut self, tasks: &mut Tasks, current: Option<TaskId>, group: u32) {
        let at = self.groups.parents[group as usize];
        let beside = self.current_in(at, tasks, current);
        let (queue, mut members) = self.parts(tasks, at);
        queue.finish_delayed(&mut members, beside, Member::Group(group));
        self.groups.delayed[group as usize] = false;
        self.groups.spent.push(group);
        self.groups.left(group);
    }

    pub fn has_delayed(&self) -> bool {
        self.groups.delayed.contains(&true)
    }

    pub fn is_delayed(&self, group: u32) -> bool {
        self.groups.delayed[group as usize]
    }

    /// A group whose entity was delayed, and has left.
    pub fn take_spent(&mut self) -> Option<u32> {
        self.groups.spent.pop()
    }

    /// A task group leaves with all its tasks, none of which is current.
    pub fn throttle(&mut self, tasks: &mut Tasks, current: Option<TaskId>, group: u32) {
        self.groups.throttled[group as usize] = true;
        if self.groups.queued[group as usize] {
            self.dequeue_group(tasks, current, current, (group, false));
        }
    }

    /// It is back, if it has tasks.
    pub fn unthrottle(&mut self, tasks: &mut Tasks, current: Option<TaskId>, group: u32) {
        self.groups.throttled[group as usize] = false;
        if self.queues[group as usize].waiting().is_empty() {
            return;
        }
        let mut below = group;
        while let Some((at, entity)) = self.groups.above(below) {
            if self.groups.delayed[below as usize] {
                self.finish_delayed_group(tasks, current, below);
            }
            if self.groups.throttled[below as usize]
                || std::mem::replace(&mut self.groups.queued[below as usize], true)
            {
                break;
            }
            let beside = self.current_in(at, tasks, current);
            let (queue, mut members) = self.parts(tasks, at);
            queue.enqueue(&mut members, beside, entity, Enqueue::Wakeup);
            below = at;
        }
    }

    /// The entity of a task group leaves, and those above it that are left without tasks: none that
    /// waits, and none that is `running`, which is not so of a current task that is leaving. Where it `delays`,
    /// one that was not delayed may stay for its lag. Answers with the first group whose entity stays.
    fn dequeue_group(
        &mut self,
        tasks: &mut Tasks,
        current: Option<TaskId>,
        running: Option<TaskId>,
        (group, delays): (u32, bool),
    ) -> u32 {
        let mut group = group;
        while let Some((at, entity)) = self.groups.above(group) {
            if self.groups.delayed[group as usize] {
                self.finish_delayed_group(tasks, current, group);
            } else {
                let beside = self.current_in(at, tasks, current);
                let (queue, mut members) = self.parts(tasks, at);
                if delays && queue.delays(&members, beside, entity) {
                    self.groups.delayed[group as usize] = true;
                    break;
                }
                queue.dequeue(&mut members, beside, entity, Dequeue::Sleep);
                self.groups.left(group);
            }
            group = at;
            if !self.is_left_empty(tasks, running, group) {
                break;
            }
        }
        group
    }

    /// Has the group no tasks any more, but an entity that is queued?
    fn is_left_empty(&self, tasks: &Tasks, running: Option<TaskId>, group: u32) -> bool {
        self.groups.queued[group as usize]
            && self.queues[group as usize].waiting().is_empty()
            && self.current_in(group, tasks, running).is_none()
    }

    pub fn dequeue(
        &mut self,
        tasks: &mut Tasks,
        current: Option<TaskId>,
        task: TaskId,
        why: Dequeue,
    ) {
        let group = tasks[task].group;
        let beside = self.current_in(group, tasks, current);
        let (queue, mut members) = self.parts(tasks, group);
        queue.dequeue(&mut members, beside, Member::Task(task), why);
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
        let running = current.filter(|_| !was_current);
        let mut group = tasks[task].group;
        if self.is_left_empty(tasks, running, group) {
            group = self.dequeue_group(tasks, current, running, (group, self.delays));
        }
        let is_preferred = sleeps && !self.groups.delayed[group as usize];
        while let Some((at, entity)) = self.groups.above(group) {
            if !self.groups.queued[group as usize] {
                break;
            }
            let (queue, members) = self.parts(tasks, at);
            if was_current {
                queue.put_back(&members, entity);
            }
            if is_preferred {
                queue.set_next_buddy(entity);
            }
            group = at;
        }
    }

    pub fn leave(&self, entity: &mut Entity) {
        self.queues[entity.group as usize].leave(entity);
    }

    pub fn put_back(&mut self, tasks: &Tasks, current: TaskId) {
        self.previous = tasks[current].group;
        let Hierarchy { queues, groups, .. } = self;
        for (at, entity) in groups.up_from(Some(lowest(tasks, current))) {
            let members = Readable { tasks, groups: &groups.entities };
            queues[at as usize].put_back(&members, entity);
        }
    }

    /// The group that ran last, as it stands in a queue: a task of it may have gone to sleep, but the group has its slice.
    fn last_in(&self, queue: u32) -> Option<Member> {
        let last = self.groups.entity_in(queue, self.groups.above(self.previous))?;
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
                    self.dequeue_group(tasks, None, None, (group, self.delays));
                    at = ROOT;
                }
                Member::Group(group) => at = group,
            }
        }
    }

    /// A group that runs on, with the same task or another, is in the middle of its slice.
    pub fn take(&mut self, tasks: &mut Tasks, task: TaskId) {
        let mut level = Some(lowest(tasks, task));
        while let Some((at, entity)) = level {
            let goes_on = matches!(entity, Member::Group(group)
                if self.groups.is_within(self.previous, group));
            let (queue, mut members) = self.parts(tasks, at);
            let Entity { ran, protected_until, .. } = members[entity];
            queue.take(&mut members, entity);
            if goes_on {
                let entity = &mut members[entity];
                (entity.ran, entity.protected_until) = (ran, protected_until);
            }
            level = self.groups.above(at);
        }
    }

    pub fn tick(&mut self, tasks: &Tasks, current: TaskId) -> bool {
        let mut level = Some(lowest(tasks, current));
        let mut reschedule = false;
        while let Some((at, entity)) = level {
            let slice = self.slice(tasks, (at, entity));
            let members = Readable { tasks, groups: &self.groups.entities };
            reschedule |= match &mut self.queues[at as usize] {
                Queue::Cfs(queue) => queue.tick_with(&members, entity, slice),
                Queue::Eevdf(queue) => queue.tick(&members, entity),
            };
            level = self.groups.above(at);
        }
        reschedule
    }

    /// CFS: the slice of what stands for the current task at a level, through all those above.
    fn slice(&self, tasks: &Tasks, level: Level) -> u64 {
        let Queue::Cfs(lowest) = &self.queues[level.0 as usize] else { return 0 };
        let waiting =
            if lowest.counts_all_tasks() { self.waiting_tasks() } else { lowest.waiting.len() };
        let members = self.readable(tasks);
        let levels = self.groups.up_from(Some(level));
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
        let meet = |(at, entity)| Some((at, entity, self.current_in(at, tasks, Some(current))?));
        let met = self.groups.up_from(Some(lowest(tasks, task))).find_map(meet);
        let (at, entity, runs) = met.expect("all meet at the root");
        let rival = self.rival_at(tasks, (at, current), (runs, entity), by);
        let preempts = rival == Some(entity);
        let is_next = match &self.queues[at as usize] {
            Queue::Cfs(_) => preempts,
            Queue::Eevdf(queue) => queue.prefers(entity),
        };
        if is_next {
            let Hierarchy { queues, groups, .. } = self;
            for (above, group) in groups.up_from(groups.above(at)) {
                queues[above as usize].set_next_buddy(group);
            }
        }
        if preempts { Some(task) } else { rival.and_then(Member::task) }
    }

    /// Where wakeups pick, entities without tasks leave that have spent their lag.
    fn rival_at(
        &mut self,
        tasks: &mut Tasks,
        (at, current): (u32, TaskId),
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
                    self.finish_delayed_group(tasks, Some(current), group);
                }
                _ => return rival,
            }
        }
    }

    pub fn is_eligible(&self, tasks: &Tasks, current: Option<TaskId>, task: TaskId) -> bool {
        let at = tasks[task].group;
        let current = self.current_in(at, tasks, current);
        self.queues[at as usize].is_eligible(&self.readable(tasks), current, Member::Task(task))
    }

    pub fn for_each_waiting(
        &self,
        tasks: &Tasks,
        current: Option<TaskId>,
        mut visit: impl FnMut(TaskId, bool),
    ) {
        for (at, queue) in (0..).zip(&self.queues) {
            let current = self.current_in(at, tasks, current);
            queue.for_each_waiting(&self.readable(tasks), current, |entity, eligible| {
                if let Some(task) = entity.task() {
                    visit(task, eligible);
                }
            });
        }
    }

    pub fn requeue_delayed(&mut self, tasks: &mut Tasks, current: Option<TaskId>, task: TaskId) {
        let at = tasks[task].group;
        let current = self.current_in(at, tasks, current);
        let (queue, mut members) = self.parts(tasks, at);
        queue.requeue_delayed(&mut members, current, Member::Task(task));
    }

    pub fn finish_delayed(&mut self, tasks: &mut Tasks, current: Option<TaskId>, task: TaskId) {
        let group = tasks[task].group;
        let beside = self.current_in(group, tasks, current);
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
        let current = self.current_in(at, tasks, current);
        let (queue, mut members) = self.parts(tasks, at);
        queue.reweight(&mut members, current, Member::Group(group), weight);
    }
}
