//! Where tasks may run, and how they get away from where they may not.
//!
//! A task may run on the CPUs that it asked for (sched_setaffinity) and that the cpuset of its
//! cgroup has; on all of the cpuset's if these have none in common. When that changes
//! (__set_cpus_allowed_ptr), a task that waits on another CPU is moved at once; one that runs
//! there is moved by that CPU's stopper, which preempts it; one that sleeps goes elsewhere when
//! it is woken, and one that is being woken when it arrives.
//!
//! Limits: the destination is cpumask_any_and_distribute() of all kernels, with one rotor for the
//! machine where the kernel has one for each CPU (before v5.8 it was the first CPU); what a task
//! asked for outlasts changes of its cpuset, as from v6.2 on; cpusets are those of cgroup v2.

use placewise_machine::CpuSet;
use placewise_policy::*;

use crate::engine::Engine;
use crate::state::affinity::cpu_set;
use crate::state::cpu::Interrupt;

impl Engine<'_> {
    /// That a program names, if the machine has it.
    pub(super) fn named_cpu(&self, cpu: Option<u32>) -> Option<CpuId> {
        cpu.map(CpuId::from).filter(|&cpu| usize::from(cpu) < self.cpus.len())
    }

    #[inline]
    pub(crate) fn is_online(&self, cpu: CpuId) -> bool {
        self.scheduler.policy.root.online.contains(cpu)
    }

    pub(super) fn online(&self) -> CpuSet {
        cpu_set(&self.scheduler.policy.root.online)
    }

    fn allowed(&self, task: TaskId) -> CpuSet {
        cpu_set(&self.scheduler.policy.task[task].cpus_allowed)
    }

    /// Is `cpu` one that the task may be on?
    pub(crate) fn may_be_on(&self, task: TaskId, cpu: CpuId) -> bool {
        let allowed = &self.scheduler.policy.task[task].cpus_allowed;
        allowed.contains(cpu) && self.is_online(cpu)
    }

    /// cpuset.cpus of a task group changes.
    pub(super) fn set_cpuset(&mut self, group: u32, cpus: Option<CpuSet>) {
        self.confinement.affinity.cpusets[group as usize] = cpus;
        self.update_cpusets();
    }

    /// What the cpusets come to has changed: so it has for their tasks.
    pub(crate) fn update_cpusets(&mut self) {
        let online = self.online();
        let before = self.confinement.affinity.effective.clone();
        for group in 1..before.len() {
            let parent = self.scheduler.policy.task_group[group].parent as usize;
            let above = self.confinement.affinity.effective[parent];
            let own = self.confinement.affinity.cpusets[group].map(|cpus| cpus & above & online);
            self.confinement.affinity.effective[group] =
                own.filter(|cpus| !cpus.is_empty()).unwrap_or(above);
        }
        for task in self.user_tasks() {
            let group = self.scheduler.policy.task[task].task_group as usize;
            if self.confinement.affinity.effective[group] != before[group] {
                self.confine(task);
            }
        }
    }

    /// The tasks of a program ask for CPUs.
    pub(super) fn set_affinity(&mut self, name: &str, cpus: CpuSet) {
        let workload = self.workload;
        let is_meant = |program: usize| workload.programs[program].name == name;
        for program in (0..workload.programs.len()).filter(|&program| is_meant(program)) {
            self.confinement.affinity.asked[program] = Some(cpus);
        }
        for task in self.user_tasks() {
            if is_meant(self.tasks[task].program as usize) {
                self.confine(task);
            }
        }
    }

    /// Lets a task run where it asked for, as far as its cpuset has that.
    pub(super) fn confine(&mut self, task: TaskId) {
        let cpuset = self.cpuset_of(task);
        let asked = self.confinement.affinity.asked[self.tasks[task].program as usize];
        let cpus = asked.map(|asked| asked & cpuset).filter(|cpus| !cpus.is_empty());
        let cpus = cpus.unwrap_or(cpuset);
        // The kernel refuses CPUs that are all offline.
        if cpus.intersects(&self.online()) {
            self.set_cpus_allowed(task, cpus);
            self.move_displaced(task);
        }
    }

    fn cpuset_of(&self, task: TaskId) -> CpuSet {
        self.confinement.affinity.effective[self.scheduler.policy.task[task].task_group as usize]
    }

    fn set_cpus_allowed(&mut self, task: TaskId, cpus: CpuSet) {
        let record = &mut self.scheduler.policy.task[task];
        record.cpus_allowed = Cpumask { bits: *cpus.words() };
        record.nr_cpus_allowed = cpus.len() as u16;
    }

    /// A task on a run queue leaves a CPU where it may not be.
    fn move_displaced(&mut self, task: TaskId) {
        let cpu = self.scheduler.cpu_of(task);
        if !self.scheduler.is_queued(task) || self.may_be_on(task, cpu) {
            return;
        }
        if self.scheduler.current(cpu) == task {
            self.cpus[cpu].interrupts.push_back(Interrupt::Migrate(task));
            return self.interrupt(cpu);
        }
        let to = self.any_allowed_cpu(task);
        self.account_current(cpu);
        self.move_queued_task(cpu, task, to);
        self.measurement.migrations.displaced += 1;
    }

    /// migration_cpu_stop: the stopper of `cpu` moves a task that may not be there.
    pub(super) fn migrate_displaced(&mut self, cpu: CpuId, task: TaskId) {
        let here = self.scheduler.cpu_of(task) == cpu;
        if !here
            || !self.scheduler.is_queued(task)
            || self.may_be_on(task, cpu)
            || !self.is_online(cpu)
        {
            return self.begin_interrupt(cpu);
        }
        let to = self.any_allowed_cpu(task);
        self.run_stopper(cpu, |engine| {
            engine.move_queued_task(cpu, task, to);
            engine.measurement.migrations.displaced += 1;
            1
        });
    }

    /// cpumask_any_and_distribute: the allowed CPUs take turns.
    fn any_allowed_cpu(&mut self, task: TaskId) -> CpuId {
        let cpus = self.allowed(task) & self.online();
        let next = cpus.iter_wrap(self.confinement.affinity.rotor + 1).next();
        self.confinement.affinity.rotor = next.expect("a task may run on a CPU that is online");
        self.confinement.affinity.rotor.into()
    }

    /// The CPU for a task that is on its way to `cpu`, where it may not be any more.
    pub(super) fn still_allowed_cpu(&mut self, task: TaskId, cpu: CpuId) -> CpuId {
        if self.may_be_on(task, cpu) { cpu } else { self.fallback_cpu(task) }
    }

    /// select_fallback_rq.
    pub(super) fn fallback_cpu(&mut self, task: TaskId) -> CpuId {
        self.allow_some_cpu(task);
        self.scheduler.policy.select_fallback_rq(task.into()).into()
    }

    /// A task all of whose CPUs are offline may run where its cpuset allows, and if these are
    /// offline too, anywhere.
    pub(super) fn allow_some_cpu(&mut self, task: TaskId) {
        let online = self.online();
        if self.allowed(task).intersects(&online) {
            return;
        }
        let cpuset = self.cpuset_of(task);
        let cpus =
            if cpuset.intersects(&online) { cpuset } else { self.confinement.affinity.possible };
        self.set_cpus_allowed(task, cpus);
    }
}
