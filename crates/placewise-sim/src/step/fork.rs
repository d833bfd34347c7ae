//! Forks: a child is made, placed and enqueued, all by its creator.
//!
//! Nothing marks the chosen CPU in between, and the wake list is not used: the
//! creator takes the lock of the child's run queue. One operation of a program
//! may create many children; each is a step of its own.

use placewise_policy::weight::weight_of;
use placewise_policy::*;
use placewise_run_queue::{Enqueue, EnqueuedBy};
use placewise_trace::Event;
use placewise_workload::program::{Op, SchedPolicy};

use crate::engine::Engine;
use crate::state::confinement::task_group;
use crate::state::effect::{Effect, Then};
use crate::state::measure::Measurement;
use crate::state::programs::Step;
use crate::state::task::{Resume, Task, TaskState};
use crate::state::waker::WakerContext;

/// The first user task of a real boot has a pid of about this size.
const FIRST_PID: u32 = 1000;

impl Engine<'_> {
    /// A task that runs `program` from its beginning, not yet placed: the `nth` of one fork.
    pub(crate) fn new_task(&mut self, program: u32, nth: u32, base: u32, cpu: CpuId) -> TaskId {
        let number = self.tasks.push(Task::default());
        self.finished |= self.tasks.len() == NR_TASKS as usize;
        self.events.add_task();
        let attributes = &self.workload.programs[program as usize];
        let idle_policy = attributes.policy == SchedPolicy::Idle;
        let weight = weight_of(attributes.nice, idle_policy);
        let task = &mut self.tasks[number];
        task.state = TaskState::Runnable;
        task.program = program;
        task.pc = self.programs.begin(program);
        task.part = Measurement::part_of(attributes, nth);
        self.measurement.task_created(task.part, number);
        task.base = base;
        task.pid = FIRST_PID + u32::from(number) - FIRST_TASK;
        task.footprint_kib = attributes.footprint_kib;
        task.last_cpu = cpu;

        let allowed = match &self.confinement.affinity.asked[program as usize] {
            Some(cpus) => Cpumask { bits: *cpus.words() },
            None => self.scheduler.policy.root.online,
        };
        let record = &mut self.scheduler.policy.task[number];
        record.weight = weight;
        record.idle_policy = idle_policy.into();
        record.rt_priority = attributes.policy.rt_priority();
        record.cpus_allowed = allowed;
        record.nr_cpus_allowed = allowed.bits.iter().map(|word| word.count_ones() as u16).sum();
        number
    }

    /// A task that has just been copied goes to the cgroup its program names, if it names one.
    pub(crate) fn join_cgroup(&mut self, task: TaskId) {
        let program = self.tasks[task].program;
        let cgroup = self.workload.programs[program as usize].cgroup;
        if cgroup.is_some() {
            self.scheduler.policy.task_change_group(task.into(), task_group(cgroup), self.now);
        }
        self.scheduler.add(task);
        if self.confinement.affinity.in_use {
            self.confine(task);
        }
    }

    /// A task that has its creator's hint gets the one its program names, if it names one. So it is with flips.
    pub(crate) fn begin_as_named(&mut self, task: TaskId) {
        let program = &self.workload.programs[self.tasks[task].program as usize];
        let record = &mut self.scheduler.policy.task[task];
        if let Some(hint) = program.hint {
            record.hint = hint.mask() as u8;
        }
        if program.wakee_flips > 0 {
            record.wakee_flips = program.wakee_flips;
        }
    }

    /// The task is a process of its own, no longer a thread of its creator's.
    pub(crate) fn start_process(&mut self, task: TaskId) {
        let program = &self.workload.programs[self.tasks[task].program as usize];
        self.scheduler.policy.start_process(task.into(), program.memory_kib * 1024);
        self.begin_address_space(task, program.memory_kib);
    }

    /// One child of the fork that the current task is at.
    pub(super) fn fork(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        program: u32,
        count: u32,
        base: u32,
        step: u32,
    ) -> Then {
        let state = &mut self.tasks[task];
        let at = state.stage;
        state.stage += 1;
        state.children += 1;
        let child_base = state.base + base + at * step;
        let child = self.new_task(program, at, child_base, cpu);
        self.tasks[child].parent = task;
        self.tasks[child].leader = self.tasks[task].leader;
        self.trace_fork(cpu, task, child);
        self.scheduler.policy.copy_task(child.into(), task.into(), cpu.into());
        if self.workload.programs[program as usize].process {
            self.start_process(child);
        }
        self.begin_as_named(child);
        self.join_cgroup(child);
        self.account_current(cpu);
        self.scheduler.fork(cpu, child);
        self.place_child(cpu, child);
        if at + 1 < count { Then::Again } else { Then::Next }
    }

    /// wake_up_new_task: chosen and enqueued at once, under the lock of the target.
    fn place_child(&mut self, cpu: CpuId, child: TaskId) {
        let target = self.begins_on(child).unwrap_or_else(|| self.select_for_child(cpu, child));
        self.scheduler.policy.place_new_task(child.into(), target.into());
        self.lock_run_queue(target, cpu);
        self.measurement.migrations.fork += u64::from(target != cpu);
        self.enqueue(child, Enqueue::Fork);
        self.trace_wakee(cpu, WakerContext::Task, child, |comm, pid, prio| Event::WakeupNew {
            comm,
            pid,
            prio,
            target_cpu: target.into(),
        });
        let preempts = self.scheduler.policy.profile.fork_preempts || self.scheduler.is_rt(child);
        if preempts || self.gives_way_to_all(target) {
            self.check_preempt(target, child, (cpu, EnqueuedBy { task: true, sync: false }));
        }
    }

    fn select_for_child(&mut self, cpu: CpuId, child: TaskId) -> CpuId {
        let target = self.select_task_rq(cpu, WakerContext::Task, child, cpu, WF_FORK);
        let scan = self.scan(cpu);
        self.cpus[cpu].debt += self.costs.draw(scan);
        target
    }

    /// The CPU that its program names, if it may run there.
    pub(super) fn begins_on(&self, child: TaskId) -> Option<CpuId> {
        let program = self.tasks[child].program as usize;
        let cpu = self.named_cpu(self.workload.programs[program].begins_on)?;
        let may_run = |cpu| self.scheduler.policy.task[child].cpus_allowed.contains(cpu);
        (self.is_online(cpu) && may_run(cpu)).then_some(cpu)
    }

    /// Nothing runs on `cpu`, or a SCHED_IDLE task does.
    fn gives_way_to_all(&self, cpu: CpuId) -> bool {
        let idle_policy = |current: TaskId| self.scheduler.policy.task[current].idle_policy != 0;
        self.scheduler.running(cpu).is_none_or(idle_policy)
    }

    pub(super) fn join(&self, task: TaskId) -> Then {
        if self.tasks[task].children == 0 { Then::Next } else { Then::Block(Resume::Retry) }
    }

    pub(super) fn exit(&mut self, cpu: CpuId, task: TaskId, effect: &mut Effect) -> Then {
        self.scheduler.policy.task[task].exiting = 1;
        self.trace_exit(cpu, task);
        let parent = self.tasks[task].parent;
        if parent != task {
            self.tasks[parent].children -= 1;
            let joins = matches!(self.tasks[parent].state, TaskState::Blocked)
                && matches!(self.step_of(parent), Step::Op(Op::Join))
                && self.tasks[parent].children == 0;
            if joins {
                effect.wakees.push(parent);
            }
        }
        Then::Exit
    }
}
