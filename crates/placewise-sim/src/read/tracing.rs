//! The scheduler's tracepoints of a run, handed to a sink if there is one.

use placewise_policy::FIRST_TASK;
use placewise_trace::{Context, Event, Record};

use crate::engine::Engine;
use crate::state::task::TaskState;
use crate::state::waker::WakerContext;

/// Kernels keep 15 bytes of a task's name.
const COMM_LENGTH: usize = 15;

impl Engine<'_> {
    fn comm(&self, task: u32) -> String {
        if task < FIRST_TASK {
            return format!("swapper/{task}");
        }
        let name = &self.workload.programs[self.tasks[task as usize].program as usize].name;
        name.chars().take(COMM_LENGTH).collect()
    }

    pub(super) fn pid(&self, task: u32) -> u32 {
        self.tasks[task as usize].pid
    }

    fn prio(&self, task: u32) -> i32 {
        if task < FIRST_TASK {
            return 120;
        }
        let program = &self.workload.programs[self.tasks[task as usize].program as usize];
        match program.policy.rt_priority() {
            0 => 120 + i32::from(program.nice),
            priority => 99 - i32::from(priority),
        }
    }

    fn record(&mut self, cpu: u32, context: Context, event: Event<'_>) {
        let current = self.scheduler.current(cpu);
        let (comm, pid) = (self.comm(current), self.pid(current));
        let time_ns = self.now;
        self.tracer.record(&Record { time_ns, cpu, comm: &comm, pid, context, event });
    }

    /// A tracepoint about a wakee, printed on `cpu`.
    #[inline]
    pub(crate) fn trace_wakee(
        &mut self,
        cpu: u32,
        context: WakerContext,
        wakee: u32,
        event: impl for<'e> FnOnce(&'e str, u32, i32) -> Event<'e>,
    ) {
        if self.tracer.is_on() {
            let comm = self.comm(wakee);
            let event = event(&comm, self.pid(wakee), self.prio(wakee));
            self.trace_in(cpu, context, event);
        }
    }

    /// An event reached by a waker on `cpu`.
    pub(crate) fn trace_in(&mut self, cpu: u32, context: WakerContext, event: Event<'_>) {
        let context = match (context, self.scheduler.current(cpu) < FIRST_TASK) {
            (WakerContext::Task, _) => Context::Task,
            (WakerContext::Softirq, _) => Context::SoftInterrupt,
            (WakerContext::Interrupt, false) => Context::HardInterrupt,
            (WakerContext::Interrupt, true) => Context::HardInterruptResched,
        };
        self.record(cpu, context, event);
    }

    #[inline]
    pub(crate) fn trace_fork(&mut self, cpu: u32, parent: u32, child: u32) {
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
    pub(crate) fn trace_exit(&mut self, cpu: u32, task: u32) {
        if self.tracer.is_on() {
            let comm = self.comm(task);
            let event = Event::Exit { comm: &comm, pid: self.pid(task), prio: self.prio(task) };
            self.record(cpu, Context::Preemptible, event);
        }
    }

    /// Called when the next task is current already; the line is the previous one's.
    #[inline]
    pub(crate) fn trace_switch(&mut self, cpu: u32, prev: u32, next: u32) {
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
            cpu,
            comm: &prev_comm,
            pid: self.pid(prev),
            context: Context::Task,
            event,
        };
        self.tracer.record(&record);
    }

    fn prev_state(&self, prev: u32) -> &'static str {
        match self.tasks[prev as usize].state {
            _ if prev < FIRST_TASK => "R",
            TaskState::Runnable => "R+",
            TaskState::Exited => "X",
            _ => "S",
        }
    }
}
