//! Who there is: the tasks that the trace has mentioned, what is remembered of each, and where it
//! may run.

use std::collections::{BTreeMap, HashMap};

use placewise_machine::{CpuSet, Machine};
use placewise_policy::weight::weight_of;
use placewise_policy::{Cpumask, FIRST_TASK, NO_TASK, Policy, ROOT_TASK_GROUP, SchedAvg, Task};
use placewise_run_queue::Scheduler;

use super::affinity::Affinity;
use super::trail::{Trail, Whereabouts};
use crate::steps::by_number::ByTask;
use crate::steps::task::{DEFAULT_PRIO, TaskNumber, Tasks};
use crate::verdict::Verdict;

pub struct Population {
    /// Of every task: no trace shows hints.
    hint: u8,
    affinity: Affinity,
    /// The task groups of tasks that the header names, by pid.
    groups: HashMap<u32, u32>,
    pub trails: ByTask<Trail>,
}

impl Population {
    pub fn new(
        machine: &Machine,
        policy: &Policy,
        affinities: &BTreeMap<u32, CpuSet>,
        groups: HashMap<u32, u32>,
    ) -> Self {
        Population {
            hint: policy.hint.mask() as u8,
            affinity: Affinity::new(machine, affinities.clone()),
            groups,
            trails: ByTask::default(),
        }
    }

    pub fn trail(&mut self, task: TaskNumber) -> &mut Trail {
        self.trails.of(task)
    }

    pub fn whereabouts(&self, task: TaskNumber) -> Whereabouts {
        self.trails.get(task).map_or(Whereabouts::Unseen, |trail| trail.whereabouts)
    }

    /// Tasks that are held to the CPUs where they were seen.
    pub fn nr_held(&self) -> usize {
        self.affinity.nr_held()
    }

    /// The trace mentions a task, which was on `cpu` last.
    pub fn meet(&mut self, task: TaskNumber, cpu: u32, tasks: &Tasks, scheduler: &mut Scheduler) {
        if task < FIRST_TASK {
            return;
        }
        let weight = weight_of_task(task, tasks);
        if self.whereabouts(task) == Whereabouts::Unseen {
            self.meet_first(task, weight, cpu, tasks, scheduler);
        }
        reweight(task, weight, scheduler);
        if self.trail(task).affinity_generation != self.affinity.generation() {
            self.look_up_affinity(task, cpu, tasks, scheduler);
        }
    }

    #[cold]
    fn meet_first(
        &mut self,
        task: TaskNumber,
        weight: u32,
        cpu: u32,
        tasks: &Tasks,
        scheduler: &mut Scheduler,
    ) {
        let mut entry = self.new_task(weight, cpu);
        let group = self.groups.get(&tasks.get(task).pid);
        entry.task_group = group.copied().unwrap_or(ROOT_TASK_GROUP);
        // It has slept for long, as far as one can tell.
        entry.avg.load_avg = 0;
        scheduler.policy.task[task as usize] = entry;
        scheduler.add(task.into());
        self.trail(task).whereabouts = Whereabouts::Asleep;
    }

    pub fn is_born(
        &mut self,
        child: TaskNumber,
        parent: TaskNumber,
        cpu: u32,
        tasks: &Tasks,
        scheduler: &mut Scheduler,
    ) {
        scheduler.policy.task[child as usize] = self.new_task(weight_of_task(parent, tasks), cpu);
        if parent >= FIRST_TASK {
            scheduler.policy.copy_task(child, parent, cpu);
        }
        if let Some(&group) = self.groups.get(&tasks.get(child).pid) {
            scheduler.policy.task[child as usize].task_group = group;
        }
        scheduler.add(child.into());
        self.affinity.inherit(child, parent, tasks);
        self.trail(child).whereabouts = Whereabouts::Asleep;
        self.look_up_affinity(child, cpu, tasks, scheduler);
    }

    pub fn is_queued(&mut self, task: TaskNumber, cpu: u32, tasks: &Tasks) {
        self.trail(task).whereabouts = Whereabouts::Queued;
        self.affinity.see(task, tasks.get(task).name, cpu);
    }

    pub fn forget(&mut self, task: TaskNumber) {
        self.affinity.forget(task);
        *self.trail(task) = Trail::default();
    }

    /// What a decision tells of where its task may run.
    pub fn learn_affinity(&mut self, verdict: &Verdict, tasks: &Tasks) {
        if let Verdict::Placed(placed) = verdict {
            let name = tasks.get(placed.task).name;
            self.affinity.learn(placed.task, name, placed.predicted, placed.actual);
        }
    }

    /// A task without a past.
    fn new_task(&self, weight: u32, cpu: u32) -> Task {
        Task {
            avg: SchedAvg { load_avg: u64::from(weight), ..SchedAvg::default() },
            weight,
            hint: self.hint,
            last_wakee: NO_TASK,
            recent_used_cpu: cpu as u16,
            cpu: cpu as u16,
            mru_prev: NO_TASK,
            mru_next: NO_TASK,
            eligible: 1,
            ..Task::default()
        }
    }

    #[cold]
    fn look_up_affinity(
        &mut self,
        task: TaskNumber,
        cpu: u32,
        tasks: &Tasks,
        scheduler: &mut Scheduler,
    ) {
        let allowed = self.affinity.of(task, cpu, tasks);
        let generation = self.affinity.generation();
        let trail = self.trail(task);
        trail.affinity_generation = generation;
        trail.bound = allowed.cpus.len() == 1 && !allowed.inferred;
        let entry = &mut scheduler.policy.task[task as usize];
        entry.cpus_allowed = Cpumask { bits: *allowed.cpus.words() };
        entry.nr_cpus_allowed = allowed.cpus.len() as u16;
        entry.per_cpu_kthread = allowed.per_cpu_kthread.into();
    }
}

/// The trace shows a new priority. That of a queued task waits until it sleeps.
fn reweight(task: TaskNumber, weight: u32, scheduler: &mut Scheduler) {
    let entry = &scheduler.policy.task[task as usize];
    if entry.weight != weight && entry.on_rq == 0 {
        scheduler.reweight(task.into(), weight);
    }
}

fn weight_of_task(task: TaskNumber, tasks: &Tasks) -> u32 {
    let task = tasks.get(task);
    if !task.is_fair() {
        return 1;
    }
    weight_of((task.prio - DEFAULT_PRIO).clamp(-20, 19) as i8, false)
}
