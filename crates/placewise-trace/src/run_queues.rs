//! Which task runs on each CPU, which wait on its run queue, and what that makes of each LLC, as far
//! as the tracepoints alone tell: no policy is asked, and nothing is known of the time before them.
//!
//! A CPU is idle as in the kernel's `idle_cpu()`: it runs its idle task and has nothing queued. A
//! wakee is queued from sched_wakeup on, not from sched_waking.
//!
//! Limits: a CPU without an event so far counts as idle, and tasks that have waited since before
//! the trace are queued once they are mentioned. What a gap of the trace hides is put right when
//! the task or the CPU is seen again.

use placewise_machine::Machine;

use crate::event::{Event, Record};

/// The kernel's limit of a pid.
const PID_MAX: u32 = 4 << 20;

/// An LLC at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LlcLoad {
    pub idle_cpus: u32,
    /// Tasks that wait on run queues, less those that run.
    pub queued: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Asleep, or unknown.
    #[default]
    Nowhere,
    Queued(u16),
    Running(u16),
}

#[derive(Clone, Copy)]
struct RunQueue {
    llc: u16,
    online: bool,
    /// The pid of what runs; 0 is the idle task.
    current: u32,
    queued: u32,
}

impl RunQueue {
    fn is_idle(&self) -> bool {
        self.current == 0 && self.queued == 0
    }
}

/// Follows the records of a trace.
pub struct RunQueues {
    cpus: Vec<RunQueue>,
    llcs: Vec<LlcLoad>,
    /// By pid.
    tasks: Vec<Place>,
}

impl RunQueues {
    pub fn new(machine: &Machine) -> Self {
        let cpu = |cpu: &placewise_machine::Cpu| RunQueue {
            llc: cpu.llc,
            online: cpu.online,
            current: 0,
            queued: 0,
        };
        let cpus: Vec<RunQueue> = machine.cpus.iter().map(cpu).collect();
        let mut llcs = vec![LlcLoad::default(); machine.nr_llcs()];
        for cpu in cpus.iter().filter(|cpu| cpu.online) {
            llcs[usize::from(cpu.llc)].idle_cpus += 1;
        }
        RunQueues { cpus, llcs, tasks: Vec::new() }
    }

    pub fn llcs(&self) -> &[LlcLoad] {
        &self.llcs
    }

    /// The pid of what runs on a CPU; 0 is the idle task.
    pub fn current(&self, cpu: u32) -> u32 {
        self.cpus.get(cpu as usize).map_or(0, |cpu| cpu.current)
    }

    /// Takes the next record. Those of CPUs that are not online in the machine say nothing.
    pub fn follow(&mut self, record: &Record<'_>) {
        let Some(cpu) = self.online(record.cpu) else { return };
        if matches!(record.event, Event::LostEvents { .. }) {
            return;
        }
        // What is in front of a line runs, whatever the lines before it said.
        self.run(record.pid, cpu);
        match record.event {
            Event::Wakeup { pid, target_cpu, .. } | Event::WakeupNew { pid, target_cpu, .. } => {
                if let Some(target) = self.online(target_cpu)
                    && self.place(pid) == Place::Nowhere
                {
                    self.put(pid, Place::Queued(target));
                }
            }
            Event::Migrate { pid, to, .. } => {
                if let (Some(to), Place::Queued(_)) = (self.online(to), self.place(pid)) {
                    self.put(pid, Place::Queued(to));
                }
            }
            Event::Switch { prev_pid, prev_state, next_pid, .. } => {
                let waits = prev_state == "R" || prev_state.ends_with('+');
                self.put(prev_pid, if waits { Place::Queued(cpu) } else { Place::Nowhere });
                self.run(next_pid, cpu);
            }
            _ => {}
        }
    }

    /// Much went on unseen: nobody waits for all that is known, while each CPU's next event tells what
    /// it runs by then.
    pub fn forget_queued(&mut self) {
        let queued = self.tasks.iter_mut().filter(|place| matches!(place, Place::Queued(_)));
        queued.for_each(|place| *place = Place::Nowhere);
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].queued > 0 {
                self.change(cpu as u16, |queue| queue.queued = 0);
            }
        }
    }

    fn online(&self, cpu: u32) -> Option<u16> {
        let is_online = self.cpus.get(cpu as usize).is_some_and(|cpu| cpu.online);
        is_online.then_some(cpu as u16)
    }

    fn place(&self, pid: u32) -> Place {
        self.tasks.get(pid as usize).copied().unwrap_or_default()
    }

    fn run(&mut self, pid: u32, cpu: u16) {
        let before = self.cpus[usize::from(cpu)].current;
        if before != pid {
            // Who ran there, and was not seen to go, sleeps for all that is known.
            self.put(before, Place::Nowhere);
            self.change(cpu, |queue| queue.current = pid);
            self.put(pid, Place::Running(cpu));
        }
    }

    /// The idle task, and pids that cannot be, have no place.
    fn put(&mut self, pid: u32, place: Place) {
        if pid == 0 || pid >= PID_MAX {
            return;
        }
        let at = pid as usize;
        if self.tasks.len() <= at {
            self.tasks.resize(at + 1, Place::Nowhere);
        }
        match std::mem::replace(&mut self.tasks[at], place) {
            Place::Queued(cpu) => self.change(cpu, |queue| queue.queued -= 1),
            Place::Running(cpu) => self.change(cpu, |queue| {
                if queue.current == pid {
                    queue.current = 0;
                }
            }),
            Place::Nowhere => {}
        }
        if let Place::Queued(cpu) = place {
            self.change(cpu, |queue| queue.queued += 1);
        }
    }

    /// Changes a CPU, and keeps its LLC in step.
    fn change(&mut self, cpu: u16, change: impl FnOnce(&mut RunQueue)) {
        let queue = &mut self.cpus[usize::from(cpu)];
        let llc = &mut self.llcs[usize::from(queue.llc)];
        llc.queued -= queue.queued;
        llc.idle_cpus -= u32::from(queue.is_idle());
        change(queue);
        llc.queued += queue.queued;
        llc.idle_cpus += u32::from(queue.is_idle());
    }
}

#[cfg(test)]
mod tests {
    use placewise_machine::load;

    use super::*;
    use crate::TraceReader;

    /// The idle CPUs and queued tasks of two LLCs of two CPUs after each line.
    fn loads(lines: &[&str]) -> Vec<[(u32, u32); 2]> {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut reader = TraceReader::from_reader("trace", std::io::Cursor::new(text)).unwrap();
        let mut queues = RunQueues::new(&load("pack:1 l3:2 core:2 pu:1").unwrap());
        let mut loads = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            queues.follow(&record);
            loads.push([0, 1].map(|llc| (queues.llcs()[llc].idle_cpus, queues.llcs()[llc].queued)));
        }
        loads
    }

    const A_RUNS: &str = "<idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=10 next_prio=120";
    const B_WAKES_ON_0: &str =
        "a-10 [000] d..2. 1.000010: sched_wakeup: comm=b pid=11 prio=120 target_cpu=000";

    #[test]
    fn a_wakee_is_queued_until_it_runs() {
        let lines = [
            A_RUNS,
            "a-10 [000] d..2. 1.000010: sched_waking: comm=b pid=11 prio=120 target_cpu=002",
            "a-10 [000] d..2. 1.000011: sched_wakeup: comm=b pid=11 prio=120 target_cpu=002",
            "<idle>-0 [002] d..2. 1.000020: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120",
            "b-11 [002] d..2. 1.000030: sched_switch: prev_comm=b prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/2 next_pid=0 next_prio=120",
        ];
        // A CPU with a task on its way is idle no more.
        let expected = [
            [(1, 0), (2, 0)],
            [(1, 0), (2, 0)],
            [(1, 0), (1, 1)],
            [(1, 0), (1, 0)],
            [(1, 0), (2, 0)],
        ];
        assert_eq!(loads(&lines), expected);
    }

    #[test]
    fn a_preempted_task_waits_and_a_migrated_one_waits_elsewhere() {
        let lines = [
            A_RUNS,
            B_WAKES_ON_0,
            "a-10 [000] d..2. 1.000020: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R+ ==> next_comm=b next_pid=11 next_prio=120",
            "b-11 [000] d..2. 1.000030: sched_migrate_task: comm=a pid=10 prio=120 orig_cpu=0 dest_cpu=3",
        ];
        let expected = [[(1, 0), (2, 0)], [(1, 1), (2, 0)], [(1, 1), (2, 0)], [(1, 0), (1, 1)]];
        assert_eq!(loads(&lines), expected);
    }

    #[test]
    fn who_waited_before_much_was_unseen_may_not_any_more() {
        let text = format!("{A_RUNS}\n{B_WAKES_ON_0}\n");
        let mut reader = TraceReader::from_reader("trace", std::io::Cursor::new(text)).unwrap();
        let mut queues = RunQueues::new(&load("pack:1 l3:2 core:2 pu:1").unwrap());
        while let Some(record) = reader.next_record().unwrap() {
            queues.follow(&record);
        }
        assert_eq!(queues.llcs()[0], LlcLoad { idle_cpus: 1, queued: 1 });
        queues.forget_queued();
        assert_eq!(queues.llcs()[0], LlcLoad { idle_cpus: 1, queued: 0 });
        assert_eq!(queues.place(11), Place::Nowhere);
        assert_eq!(queues.current(0), 10);
    }

    #[test]
    fn a_gap_is_put_right_when_the_cpu_is_seen_again() {
        let lines = [
            A_RUNS,
            B_WAKES_ON_0,
            "CPU:0 [LOST 5 EVENTS]",
            "b-11 [000] d..2. 1.000030: sched_waking: comm=a pid=10 prio=120 target_cpu=000",
        ];
        let loads = loads(&lines);
        assert_eq!(loads[2..], [[(1, 1), (2, 0)], [(1, 0), (2, 0)]], "b runs, a does not");
    }
}
