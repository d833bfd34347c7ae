//! For how long a CPU stays idle while a task waits on another that may run there, and for how long
//! the balancer may leave it so.
//!
//! Followed from event to event, for each pair of a CPU with a waiting task and an idle one. A task
//! waits on a CPU if it is queued there and not current, and the CPU has another one to run
//! meanwhile: only then may the balancer take it away. A pair's time starts anew when the idle CPU
//! has had something to do, or when nothing waits on the other one that may run there. It goes on
//! when another task waits instead: what counts is that the balancer sees to the idle CPU, not who
//! is first.
//!
//! # The bound
//!
//! ```text
//! allowed = sum over the levels of sched domains up to the lowest one with both CPUs:
//!             max_interval + failures * min_interval + (failures + 2) * tick
//! min_interval = 1 ms for each CPU of the domain;  max_interval = 2 * min_interval
//! failures = cache_nice_tries + 3
//! ```
//!
//! - Newly-idle balance is no part of it: it comes first, but may be skipped (avg_idle, overload)
//!   and sees only what waits at that moment.
//! - After that one idle CPU of each group looks at each level, at its own tick or, tickless, when
//!   a busy CPU's tick finds two tasks there and kicks. An idle CPU's interval is not multiplied by
//!   busy_factor, and doubles from min_interval to max_interval as long as all is balanced.
//! - A pass that finds a busy group but moves nothing (cache-hot tasks, more load or utilisation
//!   than is to move) is repeated after min_interval. Once cache_nice_tries are failed hot tasks
//!   move; two later, at the third more, the running task is pushed (active balance).
//! - Each of these passes waits for a tick, the kick for one more, and so does the push.
//! - A task may come in steps: into the group by a pass at an upper level, and from the first idle
//!   CPU of that group on by passes at lower ones; hence the sum.
//! - Where some task may not run on all CPUs, max_interval is what doubling makes of it until it is
//!   no less than 512 ms: MAX_PINNED_INTERVAL.
//!
//! It holds for up to 32 CPUs, 8 cores in an LLC; with more in a group, its idle CPUs take turns, and
//! a pile of many tasks takes as many passes. Linux leaves a CPU idle for longer, and so does the
//! simulator, where groups are compared by what their CPUs cannot share: see
//! docs/work-conservation.md and the tests it names.

use placewise_machine::DomainSpan;
use placewise_policy::*;

use crate::engine::Engine;
use crate::error::SimError;
use crate::scenario::Scenario;
use crate::state::event_queue::Time;

/// The time of the pair of CPUs that came nearest to the bound, or farthest beyond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissedIdle {
    /// Index of the lowest sched domain that has both CPUs.
    pub level: u32,
    pub busy_cpu: u32,
    pub idle_cpu: u32,
    pub since: Time,
    pub lasted: Time,
    /// How long the balancer may take.
    pub allowed: Time,
}

impl MissedIdle {
    fn share(&self) -> f64 {
        self.lasted as f64 / self.allowed.max(1) as f64
    }
}

/// Runs a scenario; one for each level of sched domains at which a task waited beside an idle CPU.
pub fn simulate_watched(scenario: &Scenario) -> Result<Vec<MissedIdle>, SimError> {
    let mut engine = Engine::new(scenario, None)?;
    let mut observer = Observer::new(scenario.machine.cpus.len());
    engine.run_observed(|engine| observer.observe(engine))?;
    Ok(observer.finish(&engine))
}

struct Observer {
    /// Of each CPU: the idle CPUs that a task which waits on it may run on, and since when.
    missed: Table<CpuId, Cpumask>,
    since: Table<CpuId, Table<CpuId, Time>>,
    /// By level.
    worst: Vec<MissedIdle>,
}

/// Where affinity forbids all moves, intervals double until they are no shorter than this.
const MAX_PINNED_INTERVAL_MS: u32 = 512;

const NONE: Cpumask = Cpumask { bits: [0; CPUMASK_WORDS as usize] };

impl Observer {
    fn new(nr_cpus: usize) -> Self {
        Observer {
            missed: vec![NONE; nr_cpus].into(),
            since: vec![vec![0; nr_cpus].into(); nr_cpus].into(),
            worst: Vec::new(),
        }
    }

    /// After an event.
    fn observe(&mut self, engine: &Engine) {
        for cpu in self.missed.ids() {
            let missed = missed_by(engine, cpu);
            self.change(engine, cpu, missed);
        }
    }

    /// Those that last included.
    fn finish(mut self, engine: &Engine) -> Vec<MissedIdle> {
        for cpu in self.missed.ids() {
            self.change(engine, cpu, NONE);
        }
        self.worst.into_iter().filter(|missed| missed.lasted > 0).collect()
    }

    fn change(&mut self, engine: &Engine, busy_cpu: CpuId, missed: Cpumask) {
        // Most events change nothing here.
        if self.missed[busy_cpu].bits == missed.bits {
            return;
        }
        let before = std::mem::replace(&mut self.missed[busy_cpu], missed);
        let change = |word: usize| before.bits[word] ^ missed.bits[word];
        for idle_cpu in (Cpumask { bits: std::array::from_fn(change) }).iter() {
            if missed.contains(idle_cpu) {
                self.since[busy_cpu][idle_cpu] = engine.now;
            } else {
                self.ended(engine, busy_cpu, idle_cpu);
            }
        }
    }

    fn ended(&mut self, engine: &Engine, busy_cpu: CpuId, idle_cpu: CpuId) {
        let chain = &engine.hardware.domains.chains[usize::from(idle_cpu)];
        let has_both =
            |&span: &usize| engine.hardware.domains.spans[span].cpus.contains(busy_cpu.into());
        let Some(level) = chain.iter().position(has_both) else { return };
        let since = self.since[busy_cpu][idle_cpu];
        let missed = MissedIdle {
            level: level as u32,
            busy_cpu: busy_cpu.into(),
            idle_cpu: idle_cpu.into(),
            since,
            lasted: engine.now - since,
            allowed: allowed(engine, &chain[..=level]),
        };
        if self.worst.len() <= level {
            self.worst.resize(level + 1, MissedIdle::default());
        }
        if missed.share() > self.worst[level].share() {
            self.worst[level] = missed;
        }
    }
}

/// The idle CPUs that a task which waits on `cpu` may run on.
fn missed_by(engine: &Engine, cpu: CpuId) -> Cpumask {
    let policy = &engine.scheduler.policy;
    let rq = &policy.rq[cpu];
    let mut missed = NONE;
    if rq.nr_running < 2 || engine.scheduler.running(cpu).is_none() {
        return missed;
    }
    let mut task = rq.mru_head;
    while task != NO_TASK {
        let record = &policy.task[task as usize];
        let waits_for_cpu = !engine.scheduler.waits_for_runtime(task.into());
        if task != rq.curr && record.delayed == 0 && waits_for_cpu {
            let words = missed.bits.iter_mut().zip(&policy.root.idle.bits);
            for ((missed, idle), allowed) in words.zip(&record.cpus_allowed.bits) {
                *missed |= idle & allowed;
            }
        }
        task = record.mru_next;
    }
    missed
}

/// The bound of the module's documentation for a pair that meets at the last level of `chain`.
fn allowed(engine: &Engine, chain: &[usize]) -> Time {
    let pinned = engine.confinement.affinity.asked.iter().any(Option::is_some);
    chain.iter().map(|&span| allowed_at(engine, &engine.hardware.domains.spans[span], pinned)).sum()
}

fn allowed_at(engine: &Engine, span: &DomainSpan, pinned: bool) -> Time {
    let ms = 1_000_000;
    let min_interval = span.weight() as Time * ms;
    let most = Time::from(MAX_PINNED_INTERVAL_MS) * ms;
    let doubles = |interval: &Time| (pinned && *interval < most).then_some(2 * *interval);
    let max_interval = std::iter::successors(Some(2 * min_interval), doubles).last();
    let failures = Time::from(span.cache_nice_tries) + 3;
    let tick = Time::from(engine.scheduler.policy.root.tick_ns);
    max_interval.unwrap_or(0) + failures * min_interval + (failures + 2) * tick
}
