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
use placewise_workload::program::Workload;

use crate::cpu::Interrupt;
use crate::engine::Engine;

pub struct Affinity {
    /// Something confines tasks or will; if not, nothing else here is looked at.
    pub in_use: bool,
    /// The CPUs that are online when the machine boots: no others come.
    possible: CpuSet,
    /// What the tasks of each program have asked for.
    asked: Vec<Option<CpuSet>>,
    /// By task group, with the root: cpuset.cpus, and what comes of it.
    cpusets: Vec<Option<CpuSet>>,
    effective: Vec<CpuSet>,
    /// The last destination of a displaced task.
    rotor: usize,
}

impl Affinity {
    pub fn new(workload: &Workload, possible: CpuSet) -> Self {
        let cpusets = workload.cgroups.iter().map(|cgroup| cgroup.cpus);
        let cpusets: Vec<Option<CpuSet>> = std::iter::once(None).chain(cpusets).collect();
        Affinity {
            in_use: !workload.changes.is_empty() || cpusets.iter().any(Option::is_some),
            possible,
            asked: workload.programs.iter().map(|program| program.cpus).collect(),
            effective: vec![possible; cpusets.len()],
            cpusets,
            rotor: 0,
        }
    }
}

pub fn cpu_set(mask: &Cpumask) -> CpuSet {
    let cpus = |(word, bits): (usize, &u64)| {
        let bits = *bits;
        (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| word * 64 + bit)
    };
    mask.bits.iter().enumerate().filter(|(_, bits)| **bits != 0).flat_map(cpus).collect()
}

impl Engine<'_> {
    #[inline]
    pub fn is_online(&self, cpu: u32) -> bool {
        self.scheduler.policy.root.online.bits[cpu as usize / 64] >> (cpu % 64) & 1 != 0
    }

    fn online(&self) -> CpuSet {
        cpu_set(&self.scheduler.policy.root.online)
    }

    fn allowed(&self, task: u32) -> CpuSet {
        cpu_set(&self.scheduler.policy.task[task as usize].cpus_allowed)
    }

    /// Is `cpu` one that the task may be on?
    pub fn may_be_on(&self, task: u32, cpu: u32) -> bool {
        let allowed = &self.scheduler.policy.task[task as usize].cpus_allowed;
        allowed.bits[cpu as usize / 64] >> (cpu % 64) & 1 != 0 && self.is_online(cpu)
    }

    /// cpuset.cpus of a task group changes.
    pub fn set_cpuset(&mut self, group: u32, cpus: Option<CpuSet>) {
        self.affinity.cpusets[group as usize] = cpus;
        self.update_cpusets();
    }

    /// What the cpusets come to has changed: so it has for their tasks.
    pub fn update_cpusets(&mut self) {
        let online = self.online();
        let before = self.affinity.effective.clone();
        for group in 1..before.len() {
            let parent = self.scheduler.policy.task_group[group].parent as usize;
            let above = self.affinity.effective[parent];
            let own = self.affinity.cpusets[group].map(|cpus| cpus & above & online);
            self.affinity.effective[group] = own.filter(|cpus| !cpus.is_empty()).unwrap_or(above);
        }
        for task in FIRST_TASK..self.next_task {
            let group = self.scheduler.policy.task[task as usize].task_group as usize;
            if self.affinity.effective[group] != before[group] {
                self.confine(task);
            }
        }
    }

    /// The tasks of a program ask for CPUs.
    pub fn set_affinity(&mut self, name: &str, cpus: CpuSet) {
        let workload = self.workload;
        let is_meant = |program: usize| workload.programs[program].name == name;
        for program in (0..workload.programs.len()).filter(|&program| is_meant(program)) {
            self.affinity.asked[program] = Some(cpus);
        }
        for task in FIRST_TASK..self.next_task {
            if is_meant(self.tasks[task as usize].program as usize) {
                self.confine(task);
            }
        }
    }

    /// Lets a task run where it asked for, as far as its cpuset has that.
    pub fn confine(&mut self, task: u32) {
        let cpuset = self.cpuset_of(task);
        let asked = self.affinity.asked[self.tasks[task as usize].program as usize];
        let cpus = asked.map(|asked| asked & cpuset).filter(|cpus| !cpus.is_empty());
        let cpus = cpus.unwrap_or(cpuset);
        // The kernel refuses CPUs that are all offline.
        if cpus.intersects(&self.online()) {
            self.set_cpus_allowed(task, cpus);
            self.move_displaced(task);
        }
    }

    fn cpuset_of(&self, task: u32) -> CpuSet {
        self.affinity.effective[self.scheduler.policy.task[task as usize].task_group as usize]
    }

    pub fn set_cpus_allowed(&mut self, task: u32, cpus: CpuSet) {
        let record = &mut self.scheduler.policy.task[task as usize];
        record.cpus_allowed = Cpumask { bits: *cpus.words() };
        record.nr_cpus_allowed = cpus.len() as u16;
    }

    /// A task on a run queue leaves a CPU where it may not be.
    fn move_displaced(&mut self, task: u32) {
        let cpu = self.scheduler.cpu_of(task);
        if !self.scheduler.is_queued(task) || self.may_be_on(task, cpu) {
            return;
        }
        if self.scheduler.current(cpu) == task {
            self.cpus[cpu as usize].interrupts.push_back(Interrupt::Migrate(task));
            return self.interrupt(cpu);
        }
        let to = self.any_allowed_cpu(task);
        self.account_current(cpu);
        self.move_queued_task(cpu, task, to);
        self.measurement.migrations.displaced += 1;
    }

    /// migration_cpu_stop: the stopper of `cpu` moves a task that may not be there.
    pub fn migrate_displaced(&mut self, cpu: u32, task: u32) {
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
    fn any_allowed_cpu(&mut self, task: u32) -> u32 {
        let cpus = self.allowed(task) & self.online();
        let next = cpus.iter_wrap(self.affinity.rotor + 1).next();
        self.affinity.rotor = next.expect("a task may run on a CPU that is online");
        self.affinity.rotor as u32
    }

    /// The CPU for a task that is on its way to `cpu`, where it may not be any more.
    pub fn still_allowed_cpu(&mut self, task: u32, cpu: u32) -> u32 {
        if self.may_be_on(task, cpu) { cpu } else { self.fallback_cpu(task) }
    }

    /// select_fallback_rq.
    pub fn fallback_cpu(&mut self, task: u32) -> u32 {
        self.allow_some_cpu(task);
        self.scheduler.policy.select_fallback_rq(task)
    }

    /// A task all of whose CPUs are offline may run where its cpuset allows, and if these are
    /// offline too, anywhere.
    pub fn allow_some_cpu(&mut self, task: u32) {
        let online = self.online();
        if self.allowed(task).intersects(&online) {
            return;
        }
        let cpuset = self.cpuset_of(task);
        let cpus = if cpuset.intersects(&online) { cpuset } else { self.affinity.possible };
        self.set_cpus_allowed(task, cpus);
    }
}
