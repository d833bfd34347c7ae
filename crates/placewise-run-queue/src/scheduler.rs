//! One machine's scheduler: the policy's state, and the run queues whose order it does not know.
//!
//! Each operation is done to both, in the kernel's order, so that they tell the same. Where a
//! queue changes, its current task is to be accounted up to now first ([`Scheduler::account`]).
//!
//! Limits: RT tasks stand in the policy's lists only.

use placewise_machine::{Domains, Machine, MachineError};
use placewise_policy::*;

use crate::entity::{Dequeue, Enqueue, EnqueuedBy, Entity, Tunables, scale_load};
use crate::run_queue::RunQueue;

pub struct Scheduler {
    pub policy: Placement,
    pub(crate) cpus: Table<CpuId, Cpu>,
    pub(crate) entities: Table<TaskId, Entity>,
}

pub(crate) struct Cpu {
    pub queue: RunQueue,
    /// Where tasks of all groups compete at one level: those that wait for runtime, in no queue.
    pub throttled: Vec<TaskId>,
    /// The current task was put back in the queue, and another is looked for.
    pub current_waits: bool,
}

/// What came of accounting the current task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    pub ns: u64,
    /// It should be rescheduled.
    pub reschedule: bool,
}

/// What a task that was enqueued has come upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemption {
    Preempts,
    Waits,
    /// A delayed task was to run before it, which has left the queue: what the task does is to be asked again.
    Left(TaskId),
}

/// What a pick has come upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picked {
    /// The task to run next; it stays in the queue until it is taken.
    Next(TaskId),
    /// A delayed task, which has left the queue: the pick goes on.
    Left(TaskId),
}

impl Scheduler {
    /// `machine` idle since boot under `policy`, with task groups: of group 1 and each after it, the group it is
    /// in and its shares.
    pub fn boot(
        machine: &Machine,
        policy: &Policy,
        groups: &[(u32, u32)],
    ) -> Result<(Self, Domains), MachineError> {
        let Policy { profile, code, .. } = policy;
        let (mut policy, domains) = topology::boot(machine, profile)?;
        policy.decide_by(code);
        for &(parent, shares) in groups {
            policy.create_task_group(parent, shares);
        }
        let parents: Vec<u32> = groups.iter().map(|&(parent, _)| parent).collect();
        let tunables = Tunables::new(&policy.profile, u64::from(policy.root.tick_ns));
        let cpu = |_| Cpu {
            queue: RunQueue::with_groups(profile, tunables, &parents),
            throttled: Vec::new(),
            current_waits: false,
        };
        let cpus = (0..machine.cpus.len()).map(cpu).collect();
        let entities = vec![Entity::default(); FIRST_TASK as usize].into();
        Ok((Scheduler { policy, cpus, entities }, domains))
    }

    /// The task that runs on `cpu`, which may be its idle task.
    #[inline]
    pub fn current(&self, cpu: CpuId) -> TaskId {
        self.policy.rq[cpu].curr.into()
    }

    /// The current task, unless that is the idle task.
    #[inline]
    pub fn running(&self, cpu: CpuId) -> Option<TaskId> {
        let current = self.current(cpu);
        (!current.is_idle()).then_some(current)
    }

    /// The current task as far as it counts among the fair ones in the queue of `cpu`: not while it
    /// leaves, and not once it has been put back.
    #[inline]
    pub fn running_fair(&self, cpu: CpuId) -> Option<TaskId> {
        let counts = |current: &TaskId| {
            self.is_queued(*current) && !self.is_rt(*current) && !self.current_waits(cpu)
        };
        self.running(cpu).filter(counts)
    }

    #[inline]
    pub fn is_rt(&self, task: TaskId) -> bool {
        self.policy.task[task].rt_priority != 0
    }

    /// The current task was put back, and another is looked for.
    #[inline]
    pub fn current_waits(&self, cpu: CpuId) -> bool {
        self.cpus[cpu].current_waits
    }

    /// On a run queue, as the current task or waiting.
    #[inline]
    pub fn is_queued(&self, task: TaskId) -> bool {
        self.policy.task[task].on_rq != 0
    }

    /// Asleep on a run queue.
    #[inline]
    pub fn is_delayed(&self, task: TaskId) -> bool {
        self.policy.task[task].delayed != 0
    }

    /// Does any task sleep on the run queue of `cpu`, but in groups that are out of runtime, or is a group there
    /// without tasks?
    #[inline]
    pub fn has_delayed(&self, cpu: CpuId) -> bool {
        self.policy.rq[cpu].cfs.h_nr_delayed > 0 || self.cpus[cpu].queue.has_delayed_groups()
    }

    /// The CPU that a task is on, or was last.
    #[inline]
    pub fn cpu_of(&self, task: TaskId) -> CpuId {
        self.policy.task[task].cpu.into()
    }

    /// Does the task wait for runtime of a group that it is in (throttled_hierarchy), if it waits?
    pub fn waits_for_runtime(&self, task: TaskId) -> bool {
        let Task { task_group, cpu, rt_priority, .. } = self.policy.task[task];
        task_group != ROOT_TASK_GROUP
            && rt_priority == 0
            && self.policy.group_rq[task_group as usize][CpuId::from(cpu)].throttle_count != 0
    }

    /// The tasks there have been, without the idle tasks.
    pub fn tasks(&self) -> impl Iterator<Item = TaskId> + use<> {
        self.entities.ids_from(TaskId::FIRST)
    }

    /// A task whose record stands in the policy's state begins without a past.
    pub fn add(&mut self, task: TaskId) {
        self.entities.grow_to(task);
        let Task { weight, idle_policy, task_group, .. } = self.policy.task[task];
        self.entities[task] = Entity {
            weight: scale_load(weight),
            idle_policy: idle_policy != 0,
            group: task_group,
            ..Entity::default()
        };
    }

    /// `child`, just added, starts from the place of its creator, the current task of `cpu`.
    pub fn fork(&mut self, cpu: CpuId, child: TaskId) {
        let creator = self.entities[self.current(cpu)];
        let queue = &self.cpus[cpu].queue;
        let running = queue.len() as u64 + 1;
        queue.fork(&creator, &mut self.entities[child], running);
    }

    /// reweight_entity: of a task that is on no run queue. Limit: what it has left in the averages
    /// of the queue it slept on stays what it was.
    pub fn reweight(&mut self, task: TaskId, weight: u32) {
        let record = &mut self.policy.task[task];
        record.avg.load_avg = record.avg.load_avg * u64::from(weight) / u64::from(record.weight);
        record.weight = weight;
        self.entities[task].reweigh(scale_load(weight));
    }

    /// A task that sleeps turns out to have stayed queued until its lag was spent.
    pub fn spend_lag(&mut self, task: TaskId) {
        self.entities[task].lag = 0;
    }

    /// Brings the run time and the virtual time of the current task up to now.
    #[inline]
    pub fn account(&mut self, cpu: CpuId, now: u64) -> Ran {
        let ns = self.policy.update_curr(cpu.into(), now);
        if ns == 0 {
            return Ran { ns, reschedule: false };
        }
        let Some(current) = self.running_fair(cpu) else { return Ran { ns, reschedule: false } };
        let queue = &mut self.cpus[cpu].queue;
        Ran { ns, reschedule: queue.account(&mut self.entities, current, ns) }
    }

    /// A task on no run queue, or just taken off one, belongs to `cpu` from now on.
    pub fn set_task_cpu(&mut self, task: TaskId, cpu: CpuId) {
        let from = self.cpu_of(task);
        if from == cpu {
            return;
        }
        let entity = &mut self.entities[task];
        self.cpus[from].queue.leave(entity);
        entity.migrated = true;
        self.policy.set_task_cpu(task.into(), cpu.into());
    }

    /// Puts a task on the run queue of its CPU.
    #[inline]
    pub fn enqueue(&mut self, task: TaskId, why: Enqueue, now: u64) {
        let cpu = self.cpu_of(task);
        let migrated = std::mem::take(&mut self.entities[task].migrated);
        let flags = if why == Enqueue::Wakeup { ENQUEUE_WAKEUP } else { 0 }
            | if migrated { ENQUEUE_MIGRATED } else { 0 };
        self.policy.enqueue_task(task.into(), flags, now);
        self.weigh_groups(cpu, self.policy.task[task].task_group);
        if !self.is_rt(task) {
            self.join_queue(cpu, task, why);
        }
    }

    pub(crate) fn join_queue(&mut self, cpu: CpuId, task: TaskId, why: Enqueue) {
        if self.competes_beside_groups(task) && !self.joins_by_groups(cpu, task) {
            return;
        }
        let current = self.running_fair(cpu);
        let queue = &mut self.cpus[cpu].queue;
        queue.enqueue(&mut self.entities, current, task, why);
    }

    pub(crate) fn leave_queue(&mut self, cpu: CpuId, task: TaskId, why: Dequeue) {
        let current = self.running_fair(cpu);
        let queue = &mut self.cpus[cpu].queue;
        queue.dequeue(&mut self.entities, current, task, why);
    }

    /// Takes a task off its run queue. If it is current, it has gone unseen: the CPU idles.
    pub fn dequeue(&mut self, task: TaskId, why: Dequeue, now: u64) {
        let cpu = self.cpu_of(task);
        if !self.is_rt(task) && !self.leaves_throttled(cpu, task) {
            self.leave_queue(cpu, task, why);
        }
        if self.current(cpu) == task {
            self.policy.rq[cpu].curr = TaskId::idle(cpu).into();
        }
        let flags = if why == Dequeue::Sleep { DEQUEUE_SLEEP } else { DEQUEUE_MIGRATE };
        self.dequeued(cpu, task, flags, now);
    }

    /// A task has left the queue of `cpu`: the policy learns of it.
    #[inline]
    fn dequeued(&mut self, cpu: CpuId, task: TaskId, flags: u32, now: u64) {
        let group = self.policy.task[task].task_group;
        self.mark_delayed_groups(cpu, group);
        self.policy.dequeue_task(task.into(), flags, now);
        self.weigh_groups(cpu, group);
    }

    /// The policy learns which entities stay without tasks, of a group and of those that it is in.
    #[inline]
    fn mark_delayed_groups(&mut self, cpu: CpuId, mut group: u32) {
        while group != ROOT_TASK_GROUP {
            let delayed = self.cpus[cpu].queue.is_group_delayed(group);
            self.policy.group_rq[group as usize][cpu].delayed = delayed.into();
            group = self.policy.task_group[group as usize].parent;
        }
    }

    /// And which have left since.
    #[inline]
    fn dequeue_spent_groups(&mut self, cpu: CpuId, now: u64) {
        while let Some(group) = self.cpus[cpu].queue.take_spent_group() {
            self.mark_delayed_groups(cpu, group);
            self.policy.dequeue_delayed_group(group, cpu.into(), now);
            self.weigh_groups(cpu, group);
        }
    }

    /// The current task goes to sleep: it leaves the queue, or stays there delayed until its lag is
    /// spent; true if it stays. It may have run for `unseen` longer, in virtual time, than it was
    /// accounted.
    pub fn sleep(&mut self, cpu: CpuId, unseen: i64, now: u64) -> bool {
        let task = self.current(cpu);
        if !self.policy.profile.delayed_dequeue
            || self.is_rt(task)
            || self.is_eligible(cpu, task, unseen)
        {
            self.deactivate(cpu, now);
            return false;
        }
        self.policy.task[task].nvcsw += 1;
        self.policy.delay_dequeue(task.into(), now);
        self.cpus[cpu].queue.delay(&mut self.entities, task);
        self.wait(cpu, task);
        true
    }

    /// The current task leaves the queue at once: it has exited, or was stopped.
    #[inline]
    pub fn deactivate(&mut self, cpu: CpuId, now: u64) {
        let task = self.current(cpu);
        self.policy.task[task].nvcsw += 1;
        if !self.is_rt(task) {
            self.leave_queue(cpu, task, Dequeue::Sleep);
        }
        self.dequeued(cpu, task, DEQUEUE_SLEEP, now);
        self.cpus[cpu].current_waits = true;
    }

    /// Has the current task had no more than its share, if it has run for `unseen` longer?
    fn is_eligible(&mut self, cpu: CpuId, task: TaskId, unseen: i64) -> bool {
        self.entities[task].vruntime += unseen;
        let queue = &self.cpus[cpu].queue;
        let eligible = queue.is_eligible(&self.entities, Some(task), task);
        self.entities[task].vruntime -= unseen;
        eligible
    }

    /// The current task waits again.
    #[inline]
    pub fn put_back(&mut self, cpu: CpuId, now: u64) {
        self.policy.put_prev_task(cpu.into(), now);
        self.wait(cpu, self.current(cpu));
    }

    fn wait(&mut self, cpu: CpuId, task: TaskId) {
        let is_rt = self.is_rt(task);
        let here = &mut self.cpus[cpu];
        here.current_waits = true;
        if !is_rt {
            here.queue.put_back(&self.entities, task);
        }
    }

    /// Looks for the next task by the order of the queue, but RT tasks first.
    #[inline]
    pub fn pick(&mut self, cpu: CpuId, now: u64) -> Option<Picked> {
        let rq = &self.policy.rq[cpu];
        if rq.rt_nr_running > 0 {
            return Some(Picked::Next(rq.rt_head.into()));
        }
        let task = self.cpus[cpu].queue.pick(&mut self.entities);
        self.dequeue_spent_groups(cpu, now);
        let task = task?;
        if self.policy.task[task].delayed == 0 {
            return Some(Picked::Next(task));
        }
        self.finish_delayed(cpu, task, now);
        Some(Picked::Left(task))
    }

    fn finish_delayed(&mut self, cpu: CpuId, task: TaskId, now: u64) {
        let current = self.running_fair(cpu);
        self.cpus[cpu].queue.finish_delayed(&mut self.entities, current, task);
        self.dequeued(cpu, task, DEQUEUE_SLEEP, now);
    }

    /// A task that waits becomes current, or the idle task.
    #[inline]
    pub fn take(&mut self, cpu: CpuId, next: TaskId, now: u64) {
        let is_fair = !next.is_idle() && !self.is_rt(next);
        if is_fair {
            self.weigh_by_groups(cpu, next);
            self.cpus[cpu].queue.take(&mut self.entities, next);
        } else {
            self.cpus[cpu].queue.rest();
        }
        self.cpus[cpu].current_waits = false;
        self.policy.set_next_task(cpu.into(), next.into(), now);
    }

    /// A delayed task is woken where it is. What current has run since it was accounted last does not
    /// count, which is so in kernels without `requeue_updates_curr`: from v7.3 on account it before.
    pub fn wake_delayed(&mut self, task: TaskId, now: u64) {
        let cpu = self.cpu_of(task);
        let current = self.running_fair(cpu);
        self.policy.requeue_delayed(task.into(), now);
        let here = &mut self.cpus[cpu];
        if !here.throttled.contains(&task) {
            here.queue.requeue_delayed(&mut self.entities, current, task);
        }
    }

    /// The same of the entity of a group that the task is in, which is to be enqueued: to be called before current
    /// is accounted for that.
    #[inline]
    pub fn wake_delayed_group(&mut self, task: TaskId) {
        if self.policy.task[task].task_group != ROOT_TASK_GROUP && !self.is_rt(task) {
            let cpu = self.cpu_of(task);
            let current = self.running_fair(cpu);
            self.cpus[cpu].queue.requeue_delayed_group(&mut self.entities, current, task);
        }
    }

    /// True if the current task has had its share.
    pub fn tick(&mut self, cpu: CpuId, now: u64) -> bool {
        self.tick_averages(cpu, now);
        let Some(current) = self.running_fair(cpu) else { return false };
        self.cpus[cpu].queue.tick(&self.entities, current)
    }

    /// What a tick changes whatever runs next.
    pub fn tick_averages(&mut self, cpu: CpuId, now: u64) {
        self.policy.task_tick(cpu.into(), now);
        if let Some(current) = self.running_fair(cpu) {
            self.weigh_groups(cpu, self.policy.task[current].task_group);
            self.weigh_by_groups(cpu, current);
        }
    }

    /// Does a task that was just enqueued preempt the one that runs? Not one that is leaving, or
    /// waits already. Among RT tasks only one of higher priority does, and any of them preempts a
    /// fair one.
    #[inline]
    pub fn preempts(
        &mut self,
        cpu: CpuId,
        (task, by): (TaskId, EnqueuedBy),
        now: u64,
    ) -> Preemption {
        let rival = self.rival(cpu, task, by);
        self.dequeue_spent_groups(cpu, now);
        match rival {
            Some(rival) if rival == task => Preemption::Preempts,
            Some(rival) if self.policy.profile.wakeup_picks && self.is_delayed(rival) => {
                self.finish_delayed(cpu, rival, now);
                Preemption::Left(rival)
            }
            _ => Preemption::Waits,
        }
    }

    fn rival(&mut self, cpu: CpuId, task: TaskId, by: EnqueuedBy) -> Option<TaskId> {
        let current = self.current(cpu);
        if self.current_waits(cpu) || !self.is_queued(current) || self.waits_for_runtime(task) {
            return None;
        }
        let priority = |task: TaskId| self.policy.task[task].rt_priority;
        let (now, then) = (priority(current), priority(task));
        if now > 0 || then > 0 {
            return (then > now).then_some(task);
        }
        self.cpus[cpu].queue.rival(&mut self.entities, (current, task), by)
    }

    /// The policy's balancer of some kernels leaves tasks alone that have had more than their
    /// share, which only the queues know.
    pub fn mark_eligible(&mut self, cpu: CpuId) {
        if self.policy.rq[cpu].nr_running < 2 {
            return;
        }
        let current = self.running_fair(cpu);
        let tasks = &mut self.policy.task;
        self.cpus[cpu].queue.for_each_waiting(&self.entities, current, |task, eligible| {
            tasks[task].eligible = eligible.into();
        });
    }

    /// A task group is out of runtime on `cpu`, where none of its tasks runs: it leaves with all.
    pub fn throttle(&mut self, group: u32, cpu: CpuId, now: u64) {
        let current = self.running_fair(cpu);
        self.cpus[cpu].queue.throttle(&mut self.entities, current, group);
        self.policy.throttle_cfs_rq(group, cpu.into(), now);
        self.dequeue_spent_groups(cpu, now);
        self.weigh_groups(cpu, group);
        self.throttle_tasks(cpu);
    }

    /// It has got some: it is back, if it has tasks.
    pub fn unthrottle(&mut self, group: u32, cpu: CpuId, now: u64) {
        self.policy.unthrottle_cfs_rq(group, cpu.into(), now);
        self.weigh_groups(cpu, group);
        let current = self.running_fair(cpu);
        self.cpus[cpu].queue.unthrottle(&mut self.entities, current, group);
        self.dequeue_spent_groups(cpu, now);
        self.unthrottle_tasks(cpu);
    }

    /// The policy has weighed a task group and those it is in anew; the queue of `cpu` follows.
    #[inline]
    fn weigh_groups(&mut self, cpu: CpuId, group: u32) {
        if group != ROOT_TASK_GROUP {
            self.weigh_groups_from(cpu, group);
        }
    }

    fn weigh_groups_from(&mut self, cpu: CpuId, mut group: u32) {
        let current = self.running_fair(cpu);
        while group != ROOT_TASK_GROUP {
            let weight = scale_load(self.policy.group_rq[group as usize][cpu].weight);
            // It has none before it was first queued, and a throttled group is not.
            if weight > 0 {
                let queue = &mut self.cpus[cpu].queue;
                queue.reweight_group(&mut self.entities, current, group, weight);
            }
            group = self.policy.task_group[group as usize].parent;
        }
    }
}
