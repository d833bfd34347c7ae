//! Who waits on which CPU, and how long behind another task.
//!
//! A mirror of the reconstructed run queues: a task waits if it is queued, not
//! asleep there (delayed dequeue), and not current. It waits *behind another* as
//! long as its CPU runs another task; on an idle CPU it waits for the switch only.
//! After each step the tasks and CPUs that the step touched are looked at again,
//! so the mirror follows whatever the reconstruction makes of a trace with gaps.
//! Waits behind others are measured by what is idle ([`super::idle_beside`]) and by
//! who runs ([`super::behind`]), those that an idle CPU lets wait by
//! [`super::throttled`]; of tasks that count.
//!
//! Limit: the affinity of a wait is that at its beginning.

use placewise_policy::{FIRST_TASK, NO_TASK, NR_CPUS, State};

use super::behind::{BehindMeter, Role};
use super::idle_beside::{AudienceId, IdleBesideMeter};
use super::on_the_way::OnTheWay;
use super::places::Places;
use super::throttled::ThrottledMeter;
use crate::steps::by_number::ByTask;
use crate::steps::step::{Action, Step};
use crate::steps::task::{TaskNumber, Tasks};

#[derive(Clone, Copy)]
struct Waiter {
    /// The CPU it runs, waits or last was on; any before the first look.
    cpu: u16,
    waits: bool,
    /// Its neighbours in the queue of its CPU.
    before: TaskNumber,
    after: TaskNumber,
    /// It waits behind another task since then.
    behind: Option<Behind>,
    /// It is throttled since then.
    throttled: Option<u64>,
    /// It was forked and has not run yet.
    new: bool,
    /// What it has waited behind others since it last ran.
    behind_ns: u64,
}

#[derive(Clone, Copy)]
struct Behind {
    since: u64,
    /// As what it is measured; nothing, if it does not count.
    as_part: Option<(AudienceId, Role)>,
}

impl Default for Waiter {
    fn default() -> Self {
        Waiter {
            cpu: 0,
            waits: false,
            before: NO_TASK,
            after: NO_TASK,
            behind: None,
            throttled: None,
            new: false,
            behind_ns: 0,
        }
    }
}

#[derive(Clone, Copy)]
struct Queue {
    current: TaskNumber,
    first_waiter: TaskNumber,
}

/// The waiting tasks of all CPUs.
pub struct Waiting {
    tasks: ByTask<Waiter>,
    queues: Vec<Queue>,
    idle_beside: IdleBesideMeter,
    behind: BehindMeter,
    throttled: ThrottledMeter,
    /// The CPU that switches in this step: what ran on others may have left in a switch that the trace lacks.
    switches: Option<u32>,
    now: u64,
}

/// What a look at the run queues needs.
#[derive(Clone, Copy)]
struct View<'a> {
    state: &'a State,
    places: &'a Places,
    tasks: &'a Tasks,
}

impl Waiting {
    pub fn new(places: &Places, state: &State) -> Self {
        let queue = |cpu: usize| Queue { current: state.rq[cpu].curr, first_waiter: NO_TASK };
        Waiting {
            tasks: ByTask::default(),
            queues: (0..NR_CPUS as usize).map(queue).collect(),
            idle_beside: IdleBesideMeter::new(places, &state.root.idle.bits),
            behind: BehindMeter::new(places),
            throttled: ThrottledMeter::default(),
            switches: None,
            now: 0,
        }
    }

    pub fn idle_beside(&self) -> &IdleBesideMeter {
        &self.idle_beside
    }

    pub fn behind(&self) -> &BehindMeter {
        &self.behind
    }

    pub fn throttled(&self) -> &ThrottledMeter {
        &self.throttled
    }

    /// Follows a step to the state that it led to.
    pub fn step(&mut self, now: u64, step: &Step, state: &State, places: &Places, tasks: &Tasks) {
        self.now = now;
        self.switches = matches!(step.action, Action::Switch { .. }).then_some(step.cpu);
        self.idle_beside.advance(now);
        self.idle_beside.set_idle(&state.root.idle.bits, places);
        let view = View { state, places, tasks };
        let looked_at = self.look_at_cpu(step.cpu, view);
        match step.action {
            Action::WakeupNew { task, .. } => {
                self.tasks.of(task).new = true;
                self.look_at_task(task, view);
            }
            Action::Running { task }
            | Action::Waking { task, .. }
            | Action::Wakeup { task, .. }
            | Action::Migrate { task, .. }
            | Action::Exec { task }
            | Action::Exit { task }
            | Action::Forgotten { task } => self.look_at_task(task, view),
            Action::Fork { parent, child } => {
                self.look_at_task(parent, view);
                self.look_at_task(child, view);
            }
            Action::Switch { prev, next, .. } => {
                for task in [prev, next] {
                    let is_there = u32::from(state.task[task as usize].cpu) == step.cpu;
                    if !(is_there && looked_at.contains(&task)) {
                        self.look_at_task(task, view);
                    }
                }
            }
            Action::Decided { .. }
            | Action::Lost { .. }
            | Action::Silence { .. }
            | Action::Begin { .. } => {}
        }
    }

    /// Settles what waits still: the trace is over.
    pub fn end(&mut self, places: &Places, tasks: &Tasks) {
        self.behind.end(&self.idle_beside, places);
        for task in FIRST_TASK..tasks.nr_tasks() {
            self.end_throttled(task, tasks);
        }
    }

    /// A placement onto a CPU where another ran took so long to its queue.
    pub fn arrived(&mut self, placement: &OnTheWay, runner: Role, ns: u64) {
        let OnTheWay { waiter, to_cpu, nearest_idle, .. } = *placement;
        self.behind.arrived((waiter, runner), to_cpu, nearest_idle, ns);
    }

    /// How long the task waited behind others since it last ran; it runs now.
    pub fn take_behind_ns(&mut self, task: TaskNumber) -> u64 {
        std::mem::take(&mut self.tasks.of(task).behind_ns)
    }

    fn look_at_task(&mut self, task: TaskNumber, view: View) {
        if task < FIRST_TASK {
            return;
        }
        self.look_at_cpu(view.state.task[task as usize].cpu.into(), view);
        self.requeue(task, view);
    }

    /// Who left the CPU and who came, if anybody did: where they wait is up to date then.
    #[inline]
    fn look_at_cpu(&mut self, cpu: u32, view: View) -> [TaskNumber; 2] {
        let current = view.state.rq[cpu as usize].curr;
        let before = std::mem::replace(&mut self.queues[cpu as usize].current, current);
        if before == current {
            return [NO_TASK; 2];
        }
        self.switched(cpu, before, current, view);
        [before, current]
    }

    /// Apart from [`look_at_cpu`](Self::look_at_cpu), which mostly finds that nobody did.
    #[inline(never)]
    fn switched(&mut self, cpu: u32, before: TaskNumber, current: TaskNumber, view: View) {
        // What waited for its turn has it, and waits behind nobody any more.
        if current >= FIRST_TASK {
            self.requeue(current, view);
            let runner = Role::of(current, view.tasks);
            self.behind.runs(cpu, runner, &self.idle_beside, view.places);
        }
        let (was_busy, is_busy) = (before >= FIRST_TASK, current >= FIRST_TASK);
        if was_busy != is_busy {
            self.current_came_or_went(cpu, view);
        }
        if before >= FIRST_TASK {
            self.requeue(before, view);
            let throttled = self.throttled_since(cpu);
            let waiter = self.tasks.of(before);
            if !is_busy && waiter.waits && u32::from(waiter.cpu) == cpu {
                waiter.throttled = throttled;
            }
        }
    }

    /// Who waits on a CPU that is idle from this step on is throttled since now, if it was seen to go idle.
    fn throttled_since(&self, cpu: u32) -> Option<u64> {
        (self.switches == Some(cpu)).then_some(self.now)
    }

    fn current_came_or_went(&mut self, cpu: u32, view: View) {
        let busy = self.queues[cpu as usize].current >= FIRST_TASK;
        let throttled = self.throttled_since(cpu);
        let mut task = self.queues[cpu as usize].first_waiter;
        while task != NO_TASK {
            if busy {
                self.end_throttled(task, view.tasks);
                self.begin_behind(task, cpu, view);
            } else {
                self.end_behind(task, view.places);
                self.tasks.of(task).throttled = throttled;
            }
            task = self.tasks.of(task).after;
        }
    }

    /// Puts the task where the state has it.
    fn requeue(&mut self, task: TaskNumber, view: View) {
        let entry = &view.state.task[task as usize];
        let cpu = entry.cpu;
        let current = view.state.rq[usize::from(cpu)].curr == task;
        let waits = entry.on_rq != 0 && entry.delayed == 0 && !current;
        let waiter = self.tasks.of(task);
        waiter.new &= !current;
        if (waiter.waits, waiter.cpu) == (waits, cpu) {
            return;
        }
        if waiter.waits {
            self.leave(task, view);
        }
        let came_from = std::mem::replace(&mut self.tasks.of(task).cpu, cpu);
        if waits {
            self.join(task, cpu.into(), view);
        }
        // It may have been current there, and the step does not say that it is no longer.
        if came_from != cpu {
            self.look_at_cpu(came_from.into(), view);
        }
    }

    fn join(&mut self, task: TaskNumber, cpu: u32, view: View) {
        let queue = &mut self.queues[cpu as usize];
        let after = std::mem::replace(&mut queue.first_waiter, task);
        let busy = queue.current >= FIRST_TASK;
        if after != NO_TASK {
            self.tasks.of(after).before = task;
        }
        let beside_throttled = after != NO_TASK && self.tasks.of(after).throttled.is_some();
        let waiter = self.tasks.of(task);
        (waiter.waits, waiter.before, waiter.after) = (true, NO_TASK, after);
        waiter.throttled = beside_throttled.then_some(self.now);
        if busy {
            self.begin_behind(task, cpu, view);
        }
    }

    fn leave(&mut self, task: TaskNumber, view: View) {
        self.end_behind(task, view.places);
        self.end_throttled(task, view.tasks);
        let waiter = self.tasks.of(task);
        waiter.waits = false;
        let Waiter { cpu, before, after, .. } = *waiter;
        match before {
            NO_TASK => self.queues[usize::from(cpu)].first_waiter = after,
            before => self.tasks.of(before).after = after,
        }
        if after != NO_TASK {
            self.tasks.of(after).before = before;
        }
    }

    fn begin_behind(&mut self, task: TaskNumber, cpu: u32, view: View) {
        let new = self.tasks.of(task).new;
        let as_part = view.tasks.get(task).counts.then(|| {
            let entry = &view.state.task[task as usize];
            let (allowed, nr_allowed) = (&entry.cpus_allowed.bits, entry.nr_cpus_allowed);
            let place = view.places.of(cpu);
            let audience = self.idle_beside.wait(place, allowed, nr_allowed, view.places);
            let role = Role { new, ..Role::of(task, view.tasks) };
            self.behind.wait(cpu, role, audience, self.now, &self.idle_beside, view.places);
            (audience, role)
        });
        self.tasks.of(task).behind = Some(Behind { since: self.now, as_part });
    }

    fn end_behind(&mut self, task: TaskNumber, places: &Places) {
        let waiter = self.tasks.of(task);
        let Some(Behind { since, as_part }) = waiter.behind.take() else { return };
        waiter.behind_ns += self.now - since;
        if let Some((audience, role)) = as_part {
            let cpu = waiter.cpu.into();
            self.behind.end_wait(cpu, role, audience, self.now, &self.idle_beside, places);
            self.idle_beside.end_wait(audience, places.of(cpu));
        }
    }

    #[inline]
    fn end_throttled(&mut self, task: TaskNumber, tasks: &Tasks) {
        if let Some(since) = self.tasks.of(task).throttled.take() {
            self.ended_throttled(task, since, tasks);
        }
    }

    fn ended_throttled(&mut self, task: TaskNumber, since: u64, tasks: &Tasks) {
        let entry = tasks.get(task);
        if entry.counts {
            let (cpu, ns) = (self.tasks.of(task).cpu.into(), self.now - since);
            self.throttled.ended(entry.name, cpu, ns);
        }
    }
}
