//! What must hold of a scheduler between any two operations, for tests: counts and weights of the
//! policy that are those of the tasks, sums of the queues that are those of what waits there, a
//! task on one queue or on none, averages that were added once.
//!
//! Limits: util_est is not recomputed; averages are compared within a tolerance, for the kernel's
//! own arithmetic rounds them.

use std::collections::BTreeMap;

use placewise_policy::*;

use crate::entity::scale_load;
use crate::scheduler::Scheduler;

/// Checks a scheduler, and follows it for what tasks that left a queue may have left behind in its
/// averages.
///
/// A sleeping task that is migrated or ends takes its averages along, which are as of its last full
/// period. What it ran or waited since is still in the queue's sums and comes out in its averages
/// when the period ends, to decay from there. One task leaves little; but of tasks that all end
/// within a period, as those of a busy creator do, all that they ran stays.
#[derive(Default)]
pub struct Invariants {
    /// Where each task is attached: CPU and cgroup.
    attached: Table<TaskId, Option<(CpuId, u32)>>,
    left: BTreeMap<(u32, CpuId), Left>,
}

#[derive(Clone, Copy, Default)]
struct Left {
    util: f64,
    load: f64,
    /// The queue's clock when this was so.
    clock: u64,
    /// The period in which a task left last. In one period a CPU runs for no more than that.
    period: u64,
}

impl Invariants {
    /// What of all this does not hold of a CPU is a panic.
    pub fn check(&self, scheduler: &Scheduler, cpu: CpuId) {
        check_queue(scheduler, cpu);
        for group in 0..=scheduler.policy.root.nr_task_groups {
            check_averages(scheduler, group, cpu, self.left_on(scheduler, group, cpu));
        }
    }

    /// To be called after each operation.
    pub fn observe(&mut self, scheduler: &Scheduler) {
        for task in scheduler.tasks() {
            let record = &scheduler.policy.task[task];
            let attached = record.avg.last_update_time != 0;
            let now = attached.then(|| (record.cpu.into(), record.task_group));
            self.attached.grow_to(task);
            let before = std::mem::replace(&mut self.attached[task], now);
            if let Some((cpu, group)) = before.filter(|_| before != now) {
                self.leave(scheduler, group, cpu, record.weight);
            }
        }
    }

    fn leave(&mut self, scheduler: &Scheduler, group: u32, cpu: CpuId, weight: u32) {
        let mut left = self.left_on(scheduler, group, cpu);
        let clock = &cfs_rq(scheduler, group, cpu).avg;
        let period = (clock.last_update_time >> 10) - u64::from(clock.period_contrib);
        left.load += f64::from(weight) * PERIOD;
        if period != left.period {
            left.util += 1024.0 * PERIOD;
            left.period = period;
        }
        self.left.insert((group, cpu), left);
    }

    fn left_on(&self, scheduler: &Scheduler, group: u32, cpu: CpuId) -> Left {
        let left = self.left.get(&(group, cpu)).copied().unwrap_or_default();
        let clock = cfs_rq(scheduler, group, cpu).avg.last_update_time;
        let kept = kept_after(clock.saturating_sub(left.clock));
        Left { util: left.util * kept, load: left.load * kept, clock, ..left }
    }
}

/// The RT tasks of a CPU in their order, the current one included.
fn rt_tasks(scheduler: &Scheduler, cpu: CpuId) -> Vec<TaskId> {
    let follow = |task: u32| (task != NO_TASK).then_some(TaskId::from(task));
    let first = follow(scheduler.policy.rq[cpu].rt_head);
    let next = |&task: &TaskId| follow(scheduler.policy.task[task].mru_next);
    std::iter::successors(first, next).take(scheduler.entities.len()).collect()
}

/// The tasks that wait on a CPU, by the queue and the RT list.
pub fn waiting_on(scheduler: &Scheduler, cpu: CpuId) -> Vec<TaskId> {
    let mut waiting = scheduler.cpus[cpu].queue.tasks();
    waiting.extend(&scheduler.cpus[cpu].throttled);
    let current = scheduler.current(cpu);
    waiting.extend(rt_tasks(scheduler, cpu).into_iter().filter(|&task| task != current));
    waiting
}

fn queued_on(scheduler: &Scheduler, cpu: CpuId) -> Vec<TaskId> {
    let here = |&task: &TaskId| scheduler.is_queued(task) && scheduler.cpu_of(task) == cpu;
    scheduler.tasks().filter(here).collect()
}

/// The policy's counts and lists are those of the tasks, and the same tasks wait in the queue, where
/// sums are right.
pub fn check_queue(scheduler: &Scheduler, cpu: CpuId) {
    let queued = queued_on(scheduler, cpu);
    let is_fair = |task: &TaskId| !scheduler.is_rt(*task);
    let fair: Vec<TaskId> = queued.iter().copied().filter(is_fair).collect();
    check_counts(scheduler, cpu, &queued);
    check_waiting(scheduler, cpu, &queued);
    check_rt(scheduler, cpu);
    check_recency(scheduler, cpu, &fair);
    for group in 0..=scheduler.policy.root.nr_task_groups {
        check_group(scheduler, group, cpu, &fair);
    }
}

fn check_counts(scheduler: &Scheduler, cpu: CpuId, queued: &[TaskId]) {
    let waits = |record: &&Task| {
        is_fair(record) && throttled_between(scheduler, record.task_group, ROOT_TASK_GROUP, cpu)
    };
    let records = queued.iter().map(|&task| &scheduler.policy.task[task]);
    let runnable: Vec<&Task> = records.filter(|record| !waits(record)).collect();
    let count = |of: fn(&Task) -> bool| runnable.iter().filter(|record| of(record)).count() as u32;
    let rq = &scheduler.policy.rq[cpu];
    let found = (rq.nr_running, rq.cfs.h_nr_queued, rq.cfs.h_nr_delayed, rq.cfs.h_nr_idle);
    let expected = (
        count(|_| true),
        count(is_fair),
        count(|record| record.delayed != 0),
        count(|record| record.idle_policy != 0),
    );
    assert_eq!(found, expected, "CPU {cpu}: running, queued, delayed, idle-policy");
}

fn check_waiting(scheduler: &Scheduler, cpu: CpuId, queued: &[TaskId]) {
    let queue = &scheduler.cpus[cpu].queue;
    queue.check(&scheduler.entities);
    for (group, weight) in queue.group_weights() {
        let entity = &scheduler.policy.group_rq[group as usize][cpu];
        assert_eq!(
            (entity.on_rq, scale_load(entity.weight)),
            (1, weight),
            "CPU {cpu}: is the entity of cgroup {group} queued, and its weight"
        );
    }
    let is_throttled = |task: &TaskId| scheduler.waits_for_runtime(*task);
    let kept_apart = |task: &TaskId| scheduler.competes_beside_groups(*task) && is_throttled(task);
    assert!(!queue.tasks().iter().any(kept_apart), "CPU {cpu}: what is throttled is in no queue");
    let throttled = &scheduler.cpus[cpu].throttled;
    assert!(throttled.iter().all(is_throttled), "CPU {cpu}: what is not is in the queue");
    let mut waiting = waiting_on(scheduler, cpu);
    waiting.sort_unstable();
    let runs = scheduler.running(cpu).filter(|_| !scheduler.current_waits(cpu));
    let others = queued.iter().copied().filter(|&task| Some(task) != runs);
    assert_eq!(waiting, others.collect::<Vec<TaskId>>(), "CPU {cpu}: the queue and the policy's");
}

fn is_fair(record: &Task) -> bool {
    record.rt_priority == 0
}

/// RT tasks stand in the order of their priorities, are counted, and run before all others.
fn check_rt(scheduler: &Scheduler, cpu: CpuId) {
    let tasks = rt_tasks(scheduler, cpu);
    let priorities: Vec<u8> =
        tasks.iter().map(|&task| scheduler.policy.task[task].rt_priority).collect();
    assert!(priorities.is_sorted_by(|a, b| a >= b), "CPU {cpu}: RT list {priorities:?}");
    let counted = scheduler.policy.rq[cpu].rt_nr_running as usize;
    assert_eq!(counted, tasks.len(), "CPU {cpu}: RT tasks");
}

fn cfs_rq(scheduler: &Scheduler, group: u32, cpu: CpuId) -> &CfsRq {
    match group {
        ROOT_TASK_GROUP => &scheduler.policy.rq[cpu].cfs,
        group => &scheduler.policy.group_rq[group as usize][cpu].cfs,
    }
}

/// The cgroups right below one.
fn children(scheduler: &Scheduler, group: u32) -> impl Iterator<Item = u32> {
    let all = 1..=scheduler.policy.root.nr_task_groups;
    all.filter(move |&child| scheduler.policy.task_group[child as usize].parent == group)
}

fn is_within(scheduler: &Scheduler, group: u32, other: u32) -> bool {
    let above = |&group: &u32| {
        (group != ROOT_TASK_GROUP).then(|| scheduler.policy.task_group[group as usize].parent)
    };
    std::iter::successors(Some(group), above).any(|group| group == other)
}

/// Is a cgroup throttled, or one between it and `above`, which it is in?
fn throttled_between(scheduler: &Scheduler, group: u32, above: u32, cpu: CpuId) -> bool {
    let parent = |&group: &u32| Some(scheduler.policy.task_group[group as usize].parent);
    std::iter::successors(Some(group), parent)
        .take_while(|&group| group != above)
        .any(|group| scheduler.policy.group_rq[group as usize][cpu].throttled != 0)
}

/// A cgroup's counts are those of the tasks in it and below it that are not throttled there; its
/// weight that of the tasks and cgroups right in it that are queued, which is each cgroup with
/// tasks, and those that are queued for lag alone.
fn check_group(scheduler: &Scheduler, group: u32, cpu: CpuId, fair: &[TaskId]) {
    let cfs = cfs_rq(scheduler, group, cpu);
    let tasks = || fair.iter().map(|&task| &scheduler.policy.task[task]);
    let below = tasks().filter(|task| {
        is_within(scheduler, task.task_group, group)
            && !throttled_between(scheduler, task.task_group, group, cpu)
    });
    assert_eq!(cfs.h_nr_queued as usize, below.count(), "CPU {cpu}: in cgroup {group}");

    let own = tasks().filter(|task| task.task_group == group);
    let own = own.map(|task| u64::from(task.weight)).sum::<u64>();
    let entities = children(scheduler, group).map(|child| {
        let entity = &scheduler.policy.group_rq[child as usize][cpu];
        let has_tasks = entity.cfs.h_nr_queued > 0 && entity.throttled == 0;
        let stays = has_tasks || is_left_behind(scheduler, child, cpu);
        assert_eq!(entity.on_rq != 0, stays, "CPU {cpu}: cgroup {child} is queued");
        u64::from(entity.weight) * u64::from(entity.on_rq)
    });
    let weight = own + entities.sum::<u64>();
    assert_eq!(cfs.load_weight, weight, "CPU {cpu}: weight in cgroup {group}");
}

/// Is the entity of a cgroup queued for nothing but lag, its own or that of one below?
fn is_left_behind(scheduler: &Scheduler, group: u32, cpu: CpuId) -> bool {
    let entity = &scheduler.policy.group_rq[group as usize][cpu];
    let mut below = children(scheduler, group);
    entity.delayed != 0
        || entity.throttled == 0 && below.any(|child| is_left_behind(scheduler, child, cpu))
}

/// The list of CFS tasks by recency: the same in both directions, and complete.
fn check_recency(scheduler: &Scheduler, cpu: CpuId, fair: &[TaskId]) {
    let rq = &scheduler.policy.rq[cpu];
    let walk = |first: u32, next: fn(&Task) -> u32| {
        let follow = move |task: u32| (task != NO_TASK).then_some(TaskId::from(task));
        let step = move |&task: &TaskId| follow(next(&scheduler.policy.task[task]));
        std::iter::successors(follow(first), step)
            .take(scheduler.entities.len())
            .collect::<Vec<TaskId>>()
    };
    let forward = walk(rq.mru_head, |task| task.mru_next);
    let mut backward = walk(rq.mru_tail, |task| task.mru_prev);
    backward.reverse();
    assert_eq!(forward, backward, "CPU {cpu}: the two directions of its list");
    let mut listed = forward;
    listed.sort_unstable();
    assert_eq!(listed, fair, "CPU {cpu}: its list");
}

/// Nanoseconds in which an average halves.
const HALF_LIFE: f64 = 32.0 * 1024.0 * 1024.0;

/// What an average has become after `ns` in which its input was `input`.
fn after(average: f64, input: f64, ns: u64) -> f64 {
    input + (average - input) * kept_after(ns)
}

/// The part of an average that is left after `ns` without input.
fn kept_after(ns: u64) -> f64 {
    (-(ns as f64) / HALF_LIFE).exp2()
}

/// Averages with what belongs to the period that has not ended yet: of tasks that sleep, each in
/// another one, that adds up.
struct Exact {
    util: f64,
    load: f64,
}

fn exact(avg: &SchedAvg, weight: u32) -> Exact {
    let divider = f64::from(LOAD_AVG_MAX - PELT_PERIOD + avg.period_contrib);
    Exact {
        util: avg.util_sum as f64 / divider,
        load: f64::from(weight) * avg.load_sum as f64 / divider,
    }
}

const PELT_PERIOD: u32 = 1024;
const LOAD_AVG_MAX: u32 = 47742;

/// The averages of a queue are the sum of those of the tasks attached to it, and of the entities
/// of the cgroups below: an average that was added twice, or not taken along, shows.
fn check_averages(scheduler: &Scheduler, group: u32, cpu: CpuId, left: Left) {
    let cfs = cfs_rq(scheduler, group, cpu);
    let (mut util, mut load) = (cfs.removed_util as f64, cfs.removed_load as f64);
    let mut attached = 0.0;
    for task in scheduler.tasks() {
        let record = &scheduler.policy.task[task];
        let elsewhere = CpuId::from(record.cpu) != cpu || record.task_group != group;
        if elsewhere || record.avg.last_update_time == 0 {
            continue;
        }
        let since = cfs.avg.last_update_time.saturating_sub(record.avg.last_update_time);
        let runs = scheduler.current(cpu) == task && record.on_rq != 0;
        let queued = record.on_rq != 0;
        let Exact { util: own, load: own_load } = exact(&record.avg, record.weight);
        util += after(own, if runs { 1024.0 } else { 0.0 }, since);
        let full = if queued { f64::from(record.weight) } else { 0.0 };
        load += after(own_load, full, since);
        attached += 1.0;
    }
    let fair = scheduler.running(cpu).filter(|&current| !scheduler.is_rt(current));
    let current = fair.map(|current| scheduler.policy.task[current].task_group);
    for child in children(scheduler, group) {
        let entity = &scheduler.policy.group_rq[child as usize][cpu];
        if entity.avg.last_update_time == 0 {
            continue;
        }
        let since = cfs.avg.last_update_time.saturating_sub(entity.avg.last_update_time);
        let runs = entity.on_rq != 0
            && current.is_some_and(|current| is_within(scheduler, current, child));
        util += after(entity.avg.util_avg as f64, if runs { 1024.0 } else { 0.0 }, since);
        let full = if entity.on_rq != 0 { f64::from(entity.weight) } else { 0.0 };
        load += after(entity.avg.load_avg as f64, full, since);
        attached += 1.0;
    }
    let weights = scheduler.tasks().map(|task| scheduler.policy.task[task].weight);
    let heaviest = f64::from(weights.max().unwrap_or(0));
    let check = |what: &str, found: u64, sum: f64, full: f64, left: f64| {
        // Both sides are as of their last full period, which need not be the same; and each
        // average is rounded down.
        let rounding = 2.0 * PERIOD * (sum + full) + attached + 1.0;
        // What a migrated task takes along was rounded up to a whole period, so that a queue that
        // many leave loses more than they brought.
        let most_lost = left + rounding + 0.3 * full * f64::max(attached, 1.0);
        let excess = found as f64 - sum;
        assert!(
            -most_lost <= excess && excess <= left + rounding,
            "CPU {cpu}: {what} {found}, of its {attached} tasks {sum:.1}, left behind \
             {left:.1}, in cgroup {group}"
        );
    };
    check("utilisation", cfs.avg.util_avg, util, 1024.0, left.util);
    check("load", cfs.avg.load_avg, load, heaviest, left.load);
}

/// What a period adds to an average, or takes off it, at most: 1,024 of the 47,742 units that all
/// periods weigh together.
const PERIOD: f64 = 1024.0 / 47742.0;
