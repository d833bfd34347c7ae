//! When an idle CPU went on to a task, where the trace does not show the switch.
//!
//! Some kernels never trace what some tasks do: on a virtual machine of two CPUs the switches from one CPU's idle task
//! were missing, all of them, in ftrace and in perf, and with them the wakeups that it made itself, from its wake list,
//! as it polled. What the CPU does next tells who ran; from when on is estimated: as long after the wakeup as where the
//! trace shows both, in the median of the last [`LAST`] of that [`Way`].
//!
//! A CPU on which such a switch was missing once is watched from then on: what it was given while it idled is held back
//! until it shows what it runs. Limit: the first one of each CPU may be known too late to be put in its place.

use std::collections::VecDeque;

use placewise_trace::Record;

use super::task::TaskNumber;

/// Switches whose delay is remembered: the median of so few follows a machine whose idle states change. A figure of
/// ours; no outcome was in view.
const LAST: usize = 31;

/// Tasks that an idle CPU is given and does not show, at most: so many bound what each wakeup costs.
const MOST: usize = 64;

/// How an idle CPU is given a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It was interrupted, and put it on its run queue.
    Interrupted,
    /// It took it from its wake list as it polled.
    Polled,
    /// Another CPU has put it there.
    ByOther,
    /// Unseen; the delay is from sched_waking on.
    Unseen,
}

impl Way {
    /// By the sched_wakeup of a record.
    pub fn of(record: &Record<'_>, cpu: u32) -> Self {
        match (record.cpu == cpu, record.context.is_interrupt()) {
            (true, true) => Way::Interrupted,
            (true, false) => Way::Polled,
            (false, _) => Way::ByOther,
        }
    }
}

/// A task that an idle CPU was given.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    pub task: TaskNumber,
    pub way: Way,
    /// Of sched_wakeup, and where it polled of sched_waking.
    pub time_ns: u64,
    pub waking_ns: Option<u64>,
    /// Of its step, counted from the start of the trace.
    pub position: u64,
}

/// When a switch was, and the position of a step that was before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    pub time_ns: u64,
    pub behind: u64,
}

#[derive(Default)]
struct Cpu {
    /// The first since it idles, and of each other task the first.
    given: Vec<Given>,
    is_watched: bool,
}

pub struct IdleExits {
    cpus: Vec<Cpu>,
    /// Of each way.
    delays: [VecDeque<u64>; 4],
}

impl IdleExits {
    pub fn new(nr_cpus: u32) -> Self {
        let cpus = (0..nr_cpus).map(|_| Cpu::default()).collect();
        IdleExits { cpus, delays: Default::default() }
    }

    /// The idle `cpu` is given a task.
    pub fn given(&mut self, cpu: u32, given: Given) {
        let all = &mut self.cpus[cpu as usize].given;
        if all.len() < MOST && !all.iter().any(|it| it.task == given.task) {
            all.push(given);
        }
    }

    /// The trace shows that the CPU stops to idle.
    pub fn seen(&mut self, cpu: u32, time_ns: u64) {
        let given = &mut self.cpus[cpu as usize].given;
        if let Some(first) = given.first() {
            remember(&mut self.delays[first.way as usize], time_ns.saturating_sub(first.time_ns));
            if let Some(waking_ns) = first.waking_ns {
                let delay = time_ns.saturating_sub(waking_ns);
                remember(&mut self.delays[Way::Unseen as usize], delay);
            }
        }
        given.clear();
    }

    /// What the CPU runs, or idles with, is not known any more.
    pub fn forget(&mut self, cpu: u32) {
        self.cpus[cpu as usize].given.clear();
    }

    /// The CPU turns out to run a task, which no switch has shown. `begun`: when that one's wakeup began whose end is
    /// not in the trace, and the position of its step.
    pub fn unseen(
        &mut self,
        cpu: u32,
        task: TaskNumber,
        begun: Option<(u64, u64)>,
    ) -> Option<Exit> {
        let Cpu { given, is_watched } = &mut self.cpus[cpu as usize];
        *is_watched = true;
        let all = std::mem::take(given);
        let own = all.iter().find(|it| it.task == task);
        if let Some((first, own)) = all.first().zip(own) {
            let delay = self.delay(first.way).unwrap_or(0);
            let time_ns = own.time_ns.max(first.time_ns.saturating_add(delay));
            return Some(Exit { time_ns, behind: own.position });
        }
        let (waking_ns, behind) = begun?;
        let time_ns = waking_ns.saturating_add(self.delay(Way::Unseen)?);
        Some(Exit { time_ns, behind })
    }

    /// A watched CPU was given this wakeup first, and has not shown yet what it runs.
    pub fn waits(&self, cpu: u32, position: u64) -> bool {
        let Cpu { given, is_watched } = &self.cpus[cpu as usize];
        *is_watched && given.first().is_some_and(|it| it.position == position)
    }

    /// A step is put into the trace before that of a wakeup.
    pub fn shift(&mut self, cpu: u32, position: u64) {
        let all = &mut self.cpus[cpu as usize].given;
        all.iter_mut().filter(|it| it.position == position).for_each(|it| it.position += 1);
    }

    /// The median.
    fn delay(&self, way: Way) -> Option<u64> {
        let mut delays: Vec<u64> = self.delays[way as usize].iter().copied().collect();
        delays.sort_unstable();
        delays.get(delays.len() / 2).copied()
    }
}

fn remember(delays: &mut VecDeque<u64>, delay: u64) {
    if delays.len() == LAST {
        delays.pop_front();
    }
    delays.push_back(delay);
}
