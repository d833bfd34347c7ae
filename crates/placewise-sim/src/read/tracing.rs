//! The scheduler's tracepoints of a run, handed to a sink if there is one.

use placewise_policy::{CpuId, TaskId};
use placewise_trace::{Context, Event, Record};

use crate::engine::Engine;
use crate::state::task::TaskState;
use crate::state::waker::WakerContext;

/// Kernels keep 15 bytes of a task's name.
const COMM_LENGTH: usize = 15;

impl Engine<'_> {
    fn comm(&self, task: TaskId) -> String {
        if task.is_idle() {
            return format!("swapper/{task}");
        }
        let name = &self.workload.programs[self.tasks[task].program as usize].name;
        name.chars().take(COMM_LENGTH).collect()
    }

    pub(super) fn pid(&self, task: TaskId) -> u32 {
        self.tasks[task].pid
    }

    fn prio(&self, task: TaskId) -> i32 {
        if task.is_idle() {
            return 120;
        }
        let program = &self.workload.programs[self.tasks[task].program as usize];
        match program.policy.rt_priority() {
            0 => 120 + i32::from(program.nice),
            priority => 99 - i32::from(priority),
        }
    }

    fn record(&mut self, cpu: CpuId, context: Context, event: Event<'_>) {
        let current = self.scheduler.current(cpu);
        let (comm, pid) = (self.comm(current), self.pid(current));
        let (time_ns, cpu) = (self.now, cpu.into());
        self.tracer.record(&Record { time_ns, cpu, comm: &comm, pid, tgid: None, context, event });
    }

    /// A tracepoint about a wakee, printed on `cpu`.
    #[inline]
    pub(crate) fn trace_wakee(
        &mut self,
        cpu: CpuId,
        context: WakerContext,
        wakee: TaskId,
        event: impl for<'e> FnOnce(&'e str, u32, i32) -> Event<'e>,
    ) {
        if self.tracer.is_on() {
            let comm = self.comm(wakee);
            let event = event(&comm, self.pid(wakee), self.prio(wakee));
            self.trace_in(cpu, context, event);
        }
    }

    /// An event reached by a waker on `cpu`.
    pub(crate) fn trace_in(&mut self, cpu: CpuId, context: WakerContext, event: Event<'_>) {
        let context = match (context, self.scheduler.current(cpu).is_idle()) {
            (WakerContext::Task, _) => Context::Task,
            (WakerContext::Softirq, _) => Context::SoftInterrupt,
            (WakerContext::Interrupt, false) => Context::HardInterrupt,
            (WakerContext::Interrupt, true) => Context::HardInterruptResched,
        };
        self.record(cpu, context, event);
    }

    #[inline]
    pub(crate) fn trace_fork(&mut self, cpu: CpuId, parent: TaskId, child: TaskId) {
        if self.tracer.is_on() {
            let (comm, child_comm) = (self.comm(parent), self.comm(child));
            let event = Event::Fork {
                comm: &comm,
                pid: self.pid(parent),
                child_comm: &child_comm,
                child_pid: self.pid(child),
            };
            self.record(cpu, Context::Preemptible, event);
        }
    }

    #[inline]
    pub(crate) fn trace_exit(&mut self, cpu: CpuId, task: TaskId) {
        if self.tracer.is_on() {
            let comm = self.comm(task);
            let event = Event::Exit { comm: &comm, pid: self.pid(task), prio: self.prio(task) };
            self.record(cpu, Context::Preemptible, event);
        }
    }

    /// Called when the next task is current already; the line is the previous one's.
    #[inline]
    pub(crate) fn trace_switch(&mut self, cpu: CpuId, prev: TaskId, next: TaskId) {
        if !self.tracer.is_on() {
            return;
        }
        let (prev_comm, next_comm) = (self.comm(prev), self.comm(next));
        let event = Event::Switch {
            prev_comm: &prev_comm,
            prev_pid: self.pid(prev),
            prev_prio: self.prio(prev),
            prev_state: self.prev_state(prev),
            next_comm: &next_comm,
            next_pid: self.pid(next),
            next_prio: self.prio(next),
        };
        let record = Record {
            time_ns: self.now,
            cpu: cpu.into(),
            comm: &prev_comm,
            pid: self.pid(prev),
            tgid: None,
            context: Context::Task,
            event,
        };
        self.tracer.record(&record);
    }

    fn prev_state(&self, prev: TaskId) -> &'static str {
        match self.tasks[prev].state {
            _ if prev.is_idle() => "R",
            TaskState::Runnable => "R+",
            TaskState::Exited => "X",
            _ => "S",
        }
    }
}
