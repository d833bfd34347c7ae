//! Forks: a child is made, placed and enqueued, all by its creator.
//!
//! Nothing marks the chosen CPU in between, and the wake list is not used: the
//! creator takes the lock of the child's run queue. One operation of a program
//! may create many children; each is a step of its own.

use placewise_policy::*;
use placewise_trace::Event;

use crate::cpu::Then;
use crate::engine::Engine;
use crate::wakeup::WakerContext;
use placewise_run_queue::Enqueue;

impl Engine<'_> {
    /// One child of the fork that the current task is at.
    pub fn fork(
        &mut self,
        cpu: u32,
        task: u32,
        program: u32,
        count: u32,
        base: u32,
        step: u32,
    ) -> Then {
        let state = &mut self.tasks[task as usize];
        let at = state.stage;
        state.stage += 1;
        state.children += 1;
        let child_base = state.base + base + at * step;
        let child = self.new_task(program, child_base, cpu);
        self.tasks[child as usize].parent = task;
        self.trace_fork(cpu, task, child);
        self.scheduler.policy.copy_task(child, task, cpu);
        self.join_cgroup(child);
        self.account_current(cpu);
        self.scheduler.fork(cpu, child);
        self.place_child(cpu, child);
        if at + 1 < count { Then::Again } else { Then::Next }
    }

    /// wake_up_new_task: chosen and enqueued at once, under the lock of the target.
    fn place_child(&mut self, cpu: u32, child: u32) {
        let target = self.select_task_rq(cpu, WakerContext::Task, child, cpu, WF_FORK);
        let scan =
            u64::from(self.scheduler.policy.decision.scanned) * self.costs.figures.scan_cpu_ns;
        self.scheduler.policy.place_new_task(child, target);
        self.cpus[cpu as usize].debt += self.costs.draw(scan);
        self.lock_run_queue(target, cpu);
        self.measurement.migrations.fork += u64::from(target != cpu);
        self.enqueue(child, Enqueue::Fork);
        self.trace_wakee(cpu, WakerContext::Task, child, |comm, pid, prio| Event::WakeupNew {
            comm,
            pid,
            prio,
            target_cpu: target,
        });
        let preempts = self.scheduler.policy.profile.fork_preempts || self.scheduler.is_rt(child);
        if preempts || self.gives_way_to_all(target) {
            self.check_preempt(target, child, cpu);
        }
    }

    /// Nothing runs on `cpu`, or a SCHED_IDLE task does.
    fn gives_way_to_all(&self, cpu: u32) -> bool {
        let idle_policy =
            |current: u32| self.scheduler.policy.task[current as usize].idle_policy != 0;
        self.scheduler.running(cpu).is_none_or(idle_policy)
    }
}
