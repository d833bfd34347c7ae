//! A trace that is written as it goes, on 16 CPUs: two nodes of two LLCs of two cores of two CPUs.
//! LLC 0 has CPUs 0 to 3, node 0 has CPUs 0 to 7.

use std::collections::BTreeMap;

use placewise_audit::cost::{Cost, CostReport};
use placewise_audit::{
    Action, Outcome, PrevState, Reconstruction, Stated, Step, TaskNumber, Tasks, Verdict,
};
use placewise_machine::{CpuSet, Machine, load};
use placewise_policy::{Policy, State};
use placewise_trace::Context;

pub struct World {
    pub machine: Machine,
    pub tasks: Tasks,
    pub now: u64,
    reconstruction: Reconstruction,
    cost: Cost,
}

impl World {
    pub fn new() -> Self {
        Self::with_affinities(&[])
    }

    /// Some pids may run on some CPUs only.
    pub fn with_affinities(affinities: &[(u32, Vec<usize>)]) -> Self {
        Self::of_kernel("v6.0", affinities)
    }

    pub fn of_kernel(kernel: &str, affinities: &[(u32, Vec<usize>)]) -> Self {
        let machine = load("numa:2 l3:2 core:2 pu:2").unwrap();
        let policy = Policy::parse(kernel, "baseline").unwrap();
        let affinities: BTreeMap<u32, CpuSet> =
            affinities.iter().map(|(pid, cpus)| (*pid, cpus.iter().copied().collect())).collect();
        let stated = Stated { affinities, ..Stated::default() };
        let reconstruction = Reconstruction::new(&machine, &policy, &stated).unwrap();
        let cost = Cost::new(&machine, reconstruction.state());
        World { machine, tasks: Tasks::new(), now: 0, reconstruction, cost }
    }

    pub fn state(&self) -> &State {
        self.reconstruction.state()
    }

    pub fn report(&mut self) -> CostReport {
        self.cost.report(&self.tasks)
    }

    pub fn task(&mut self, pid: u32, name: &str) -> TaskNumber {
        self.tasks.mention(pid, name, Some(120), &mut Vec::new()).unwrap()
    }

    pub fn at(&mut self, now: u64) -> &mut Self {
        self.now = now;
        self
    }

    pub fn step(&mut self, cpu: u32, action: Action) -> Verdict {
        self.step_in(Context::Task, cpu, action)
    }

    pub fn step_in(&mut self, context: Context, cpu: u32, action: Action) -> Verdict {
        let step = Step { time_ns: self.now, cpu, context, action };
        let verdict = self.reconstruction.step(&step, &self.tasks);
        self.cost.step(&step, &verdict, self.reconstruction.state(), &self.tasks);
        verdict
    }

    /// A new task that runs on `cpu`.
    pub fn running(&mut self, pid: u32, name: &str, cpu: u32) -> TaskNumber {
        let task = self.task(pid, name);
        self.step(cpu, Action::Running { task });
        task
    }

    /// sched_waking, and sched_migrate_task if it goes elsewhere.
    pub fn waking(&mut self, cpu: u32, task: TaskNumber, prev_cpu: u32, target: u32) -> Verdict {
        self.waking_in(Context::Task, cpu, task, prev_cpu, target)
    }

    pub fn waking_in(
        &mut self,
        context: Context,
        cpu: u32,
        task: TaskNumber,
        prev_cpu: u32,
        target: u32,
    ) -> Verdict {
        let migrated = prev_cpu != target;
        let outcome = Some(Outcome { cpu: target, migrated, woken_by: Some(cpu) });
        let verdict = self.step_in(context, cpu, Action::Waking { task, prev_cpu, outcome });
        if migrated {
            self.step(cpu, Action::Migrate { task, from: prev_cpu, to: target, placement: true });
        }
        verdict
    }

    pub fn wakeup(&mut self, cpu: u32, task: TaskNumber, target_cpu: u32) {
        self.step(cpu, Action::Wakeup { task, target_cpu });
    }

    /// A whole wakeup that takes no time.
    pub fn wake(&mut self, cpu: u32, task: TaskNumber, prev_cpu: u32, target: u32) {
        self.waking(cpu, task, prev_cpu, target);
        self.wakeup(cpu, task, target);
    }

    pub fn switch(&mut self, cpu: u32, prev_state: PrevState, next: TaskNumber) {
        let prev = self.state().rq[cpu as usize].curr;
        self.step(cpu, Action::Switch { prev, prev_state, next });
    }

    /// What runs on `cpu` goes to sleep, and nothing else is there.
    pub fn idles(&mut self, cpu: u32) {
        self.switch(cpu, PrevState::Asleep, cpu);
    }
}
