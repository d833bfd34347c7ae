//! What things cost on the simulated machine, drawn from the machine's figures.
//!
//! Every cost acts through a mechanism: the distance between two CPUs, the
//! number of CPUs looked at, the time an LLC has been idle. Draws are uniform
//! around the figure, so that no two runs of different seeds are alike.

use placewise_machine::{Costs, Cpu, Domains, FULL_CLOCK, Machine};
use placewise_policy::instructions::SchedulerCosts;
use placewise_policy::{CpuId, MeasuredKernel, NR_SIBLINGS, Table};
use placewise_workload::program::ChannelKind;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::state::channel::{Channel, Side};
use crate::state::distance::{Distances, DistancesFrom, Figures};
use crate::state::event_queue::Time;
use crate::state::lock::FifoLock;
use crate::state::message_cost::{MessageCost, SlowWay};
use crate::state::speed::Speed;

/// In the order of their declaration.
const KINDS: [ChannelKind; 6] = [
    ChannelKind::Pipe,
    ChannelKind::UnixSocket,
    ChannelKind::PolledSockets,
    ChannelKind::LoopbackTcp,
    ChannelKind::LoopbackUdp,
    ChannelKind::KernelQueue,
];

pub struct CostModel<'a> {
    pub figures: &'a Costs,
    /// Of these, what hangs on the kernel.
    pub scheduler: SchedulerCosts,
    /// By kind of channel, and by side.
    messages: [[MessageCost; 2]; KINDS.len()],
    distances: Distances,
    cache_line: Figures,
    refill_per_kib: Figures,
    ipi_delivery: Figures,
    /// Of one thread of the core of each CPU, by how many threads of the core are busy.
    thread_speeds: Table<CpuId, [Speed; 1 + NR_SIBLINGS as usize]>,
    /// What a balance pass over each level of each CPU takes, before its spread.
    passes: Table<CpuId, Vec<Pass>>,
    rng: Pcg64Mcg,
    jitter: Jitter,
}

/// What a cache line takes to a CPU, for whoever asks for several.
#[derive(Clone, Copy)]
pub struct LineTo<'c> {
    distances: DistancesFrom<'c>,
    figures: &'c Figures,
}

impl LineTo<'_> {
    /// From the one that wrote it last.
    #[inline(always)]
    pub fn from(self, from: CpuId) -> Time {
        self.distances.figure(self.figures, from)
    }
}

/// What one pass over a level of sched domains does, and for how long it waits for lines meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pass {
    looks: Time,
    reads: Time,
}

/// Multiplies by a number drawn from 1 +- spread, in fixed point.
#[derive(Clone, Copy)]
struct Jitter {
    least: u64,
    span: u64,
}

const FIXED_POINT: u32 = 16;

impl Jitter {
    fn new(spread_pct: u32) -> Self {
        let spread = (u64::from(spread_pct) << FIXED_POINT) / 100;
        Jitter { least: (1 << FIXED_POINT) - spread, span: 2 * spread + 1 }
    }

    #[inline]
    fn apply(self, figure: Time, random: u32) -> Time {
        let factor = self.least + ((u64::from(random) * self.span) >> 32);
        (figure * factor) >> FIXED_POINT
    }
}

impl<'a> CostModel<'a> {
    pub fn new(machine: &'a Machine, domains: &Domains, kernel: MeasuredKernel, seed: u64) -> Self {
        let mut costs = CostModel {
            figures: &machine.costs,
            scheduler: SchedulerCosts::under(kernel, &machine.costs),
            messages: KINDS.map(|kind| {
                [Side::Writer, Side::Reader]
                    .map(|side| MessageCost::new(kind, side, &machine.costs, kernel))
            }),
            distances: Distances::new(machine),
            cache_line: Figures::new(&machine.costs.cache_line_ns),
            refill_per_kib: Figures::new(&machine.costs.refill_ns_per_kib),
            ipi_delivery: Figures::new(&machine.costs.ipi_delivery_ns),
            thread_speeds: machine
                .cpus
                .iter()
                .map(|cpu| thread_speeds(cpu, &machine.costs, FULL_CLOCK))
                .collect(),
            rng: Pcg64Mcg::seed_from_u64(seed),
            passes: Table::default(),
            jitter: Jitter::new(machine.costs.jitter_pct),
        };
        costs.set_domains(domains);
        costs
    }

    /// What a balance pass reads follows the sched domains.
    pub fn set_domains(&mut self, domains: &Domains) {
        let of_cpu = |(cpu, chain): (usize, &Vec<usize>)| {
            let cpus = |span: usize| domains.spans[span].cpus.iter().map(CpuId::from);
            chain.iter().map(|&span| self.read_run_queues(cpu.into(), cpus(span))).collect()
        };
        self.passes = domains.chains.iter().enumerate().map(of_cpu).collect();
    }

    /// Looking at the run queues of `cpus` from `reader` costs the lines that come from them.
    fn read_run_queues(&self, reader: CpuId, cpus: impl Iterator<Item = CpuId>) -> Pass {
        let figures = self.figures;
        let (mut looks, mut reads) = (figures.balance_ns, 0);
        for cpu in cpus {
            looks += figures.balance_cpu_ns;
            reads += self.cache_lines(figures.balance_lines_per_cpu, cpu, reader);
        }
        Pass { looks, reads: reads / Time::from(figures.balance_overlap) }
    }

    /// The work of one pass of `cpu`, which has this speed, over a level of its sched domains.
    pub fn balance_pass(&mut self, cpu: CpuId, level: u32, pace: Speed) -> Time {
        let Pass { looks, reads } = self.passes[cpu][level as usize];
        self.draw(looks + pace.share(reads))
    }

    /// The dearest of many newly-idle ones, which nothing is drawn for: it takes a task from the CPU of the
    /// level that is farthest away, with the lock of the run queue, and is an outlier.
    pub fn dearest_pass(&self, cpu: CpuId, level: usize, domains: &Domains) -> Time {
        let figures = self.figures;
        let span = &domains.spans[domains.chains[usize::from(cpu)][level]];
        let lines = figures.wakeup_lines + figures.rq_lock_lines;
        let farthest = span.cpus.iter().map(|from| self.cache_lines(lines, from.into(), cpu)).max();
        let pull = figures.move_task_ns + self.scheduler.rq_lock_hold_ns + farthest.unwrap_or(0);
        let Pass { looks, reads } = self.passes[cpu][level];
        looks + reads + pull + figures.newidle_outlier_ns
    }

    /// `figure` with this machine's spread.
    #[inline]
    pub fn draw(&mut self, figure: Time) -> Time {
        let random = self.rng.next_u32();
        self.jitter.apply(figure, random)
    }

    /// Speed of one thread of the core of `cpu`, of whose threads so many are busy.
    pub fn thread_speed(&self, cpu: CpuId, busy: usize) -> Speed {
        self.thread_speeds[cpu][busy]
    }

    /// The core of a CPU is clocked so much slower, of [`FULL_CLOCK`].
    pub fn set_clock(&mut self, id: CpuId, cpu: &Cpu, clock: u32) {
        self.thread_speeds[id] = thread_speeds(cpu, self.figures, clock);
    }

    /// A number below `limit`, or 0.
    pub fn random_below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.rng.next_u64() % limit }
    }

    /// How long `lines` cache lines that `from` wrote last take to come to `to`, whatever the speed of that.
    #[inline]
    pub fn cache_lines(&self, lines: u32, from: CpuId, to: CpuId) -> Time {
        u64::from(lines) * self.line_to(to).from(from)
    }

    /// How long a line takes between two CPUs of one cache.
    pub fn line_within_cache(&self) -> Time {
        self.figures.cache_line_ns.llc
    }

    /// The lines that come with a lock to `by`, which asks for it at `asked`: these, and what it takes that others wait.
    #[inline]
    pub fn lock_lines(&self, lock: &FifoLock, lines: u32, asked: Time, by: CpuId) -> Time {
        self.cache_lines(lines + lock.lines_handed_on(asked), lock.last_owner, by)
    }

    /// How long one line to `to` takes.
    #[inline(always)]
    pub fn line_to(&self, to: CpuId) -> LineTo<'_> {
        LineTo { distances: self.distances.from(to), figures: &self.cache_line }
    }

    #[inline]
    pub fn message(&self, kind: ChannelKind, side: Side) -> &MessageCost {
        &self.messages[kind as usize][side as usize]
    }

    /// The work of transferring a message of so many bytes, which may open a page of a pipe or empty it.
    #[inline(always)]
    pub fn copy(&mut self, channel: &Channel, side: Side, bytes: u32, turns_page: bool) -> Time {
        let random = self.rng.next_u32();
        let cost = self.message(channel.kind, side);
        let is_slow = match channel.kind {
            ChannelKind::Pipe => turns_page && channel.pays_for_page(side),
            _ => SlowWay::is_drawn(random),
        };
        let ns = cost.slow_way.apply(cost.ns, is_slow);
        self.jitter.apply(ns + Time::from(bytes) * cost.ns_per_kib / 1024, random)
    }

    /// Refilling the caches with a task's footprint after it moved, whatever the speed of where it is now.
    pub fn refill(&self, footprint_kib: u32, from: CpuId, to: CpuId) -> Time {
        let per_kib = self.distances.figure(&self.refill_per_kib, to, from);
        (u64::from(footprint_kib) * per_kib).min(self.figures.refill_cap_ns)
    }

    /// From sending an interrupt to its handler.
    #[inline]
    pub fn interrupt_delivery(&self, from: CpuId, to: CpuId) -> Time {
        self.distances.figure(&self.ipi_delivery, to, from)
    }
}

fn thread_speeds(cpu: &Cpu, figures: &Costs, clock: u32) -> [Speed; 1 + NR_SIBLINGS as usize] {
    let core = cpu.speed * clock / FULL_CLOCK;
    std::array::from_fn(|busy| Speed::new(figures.thread_pct(busy as u32), core))
}

#[cfg(test)]
mod tests {
    use placewise_machine::ByDistance;
    use placewise_policy::{MEASURED_6_18, PIPE_WAKES_ON_FREED_SLOT};

    use super::*;

    /// By hand, with reads that cost nothing: siblings, an LLC, a node and the machine.
    #[test]
    fn a_pass_costs_by_the_cpus_it_looks_at_and_the_dearest_pulls_as_an_outlier() {
        let mut machine = placewise_machine::load("zen3-2s-nps1").unwrap();
        let figures = &mut machine.costs;
        (figures.balance_ns, figures.balance_cpu_ns, figures.balance_lines_per_cpu) = (500, 10, 0);
        (figures.move_task_ns, figures.rq_lock_hold_ns, figures.newidle_outlier_ns) =
            (1000, 100, 30_000);
        (figures.wakeup_lines, figures.rq_lock_lines) = (2, 1);
        figures.cache_line_ns = ByDistance { smt: 1, cluster: None, llc: 2, package: 3, remote: 4 };
        let v6_0 = placewise_policy::kernel::profile("v6.0").unwrap();
        let (_, domains) = placewise_policy::topology::boot(&machine, &v6_0).unwrap();
        let costs = CostModel::new(&machine, &domains, MEASURED_6_18, 1);
        let cpu = CpuId::new(0);
        let dearest = [0, 1, 2, 3].map(|level| costs.dearest_pass(cpu, level, &domains));
        let looking = [2, 16, 128, 256].map(|cpus| 500 + 10 * cpus);
        assert_eq!(costs.passes[cpu], looking.map(|looks| Pass { looks, reads: 0 }));
        let more = [1, 2, 3, 4].map(|line| 1000 + 100 + 3 * line + 30_000);
        assert_eq!(dearest, std::array::from_fn(|level| looking[level] + more[level]));
    }

    /// Fails if a core of half the speed waited twice as long for what it reads of other CPUs.
    #[test]
    fn a_pass_reads_other_cpus_in_the_same_time_at_any_speed() {
        let mut machine = placewise_machine::load("zen3-2s-nps1").unwrap();
        let figures = &mut machine.costs;
        (figures.balance_ns, figures.balance_cpu_ns, figures.jitter_pct) = (0, 0, 0);
        let mut costs = under_6_18(&machine);
        let mut takes = |speed| {
            let pace = Speed::new(100, speed);
            pace.time_for(costs.balance_pass(CpuId::new(0), 2, pace))
        };
        let (full, half) = (takes(1024), takes(512));
        assert!(full > 0 && full.abs_diff(half) <= 1, "{full} and {half} ns");
    }

    fn under_6_18(machine: &Machine) -> CostModel<'_> {
        let v6_18 = placewise_policy::kernel::profile("v6.18").unwrap();
        let (_, domains) = placewise_policy::topology::boot(machine, &v6_18).unwrap();
        CostModel::new(machine, &domains, v6_18.measured, 1)
    }

    /// Fails if messages all took their average, or those of one side what those of the other do.
    #[test]
    fn messages_differ_by_the_spread_of_their_side() {
        let mut machine = placewise_machine::load("uma-8").unwrap();
        machine.costs.jitter_pct = 0;
        machine.costs.message_spread_pct.socket = placewise_machine::BySide { write: 58, read: 0 };
        let mut costs = under_6_18(&machine);
        let socket = Channel::new(ChannelKind::UnixSocket, PIPE_WAKES_ON_FREED_SLOT);
        let mut drawn = |side| -> Vec<Time> {
            (0..32_000).map(|_| costs.copy(&socket, side, 100, false)).collect()
        };
        let [writes, reads] = [Side::Writer, Side::Reader].map(&mut drawn);
        assert!(reads.iter().all(|ns| *ns == reads[0]));
        let quick = *writes.iter().min().unwrap();
        let slow = writes.iter().filter(|ns| **ns > 3 * quick).count();
        assert!((900..1_100).contains(&slow), "{slow} of 32,000");
    }

    /// As a machine's file has it of calls half a pipe at a time. Fails if a pipe's calls were slow by chance, or if slow
    /// ones made the average longer.
    #[test]
    fn a_pipes_calls_are_slow_where_they_pay_for_a_page() {
        let mut machine = placewise_machine::load("uma-8").unwrap();
        machine.costs.jitter_pct = 0;
        machine.costs.message_spread_pct.pipe = placewise_machine::BySide { write: 58, read: 0 };
        machine.costs.pipe_message_ns = 100_000;
        let mut costs = under_6_18(&machine);
        let mut pipe = Channel::new(ChannelKind::Pipe, PIPE_WAKES_ON_FREED_SLOT);
        let mut half_a_pipe = || -> Vec<Time> {
            let write = |_| {
                let turns_page = pipe.turns_page(Side::Writer, 100);
                let ns = costs.copy(&pipe, Side::Writer, 100, turns_page);
                pipe.send(100, 0, false);
                ns
            };
            let writes = (0..320).map(write).collect();
            for _ in 0..320 {
                pipe.receive(100);
            }
            writes
        };
        half_a_pipe();
        let writes = half_a_pipe();
        let slow: Vec<usize> = (0..320).filter(|&at| writes[at] > 2 * writes[1]).collect();
        assert_eq!(slow, [80, 120, 160, 200, 240, 280], "two pages are kept");
        let mean = writes.iter().sum::<Time>() as f64 / 320.0;
        let expected = costs.message(ChannelKind::Pipe, Side::Writer).ns as f64;
        assert!((mean / expected - 1.0).abs() < 0.01, "{mean}, and {expected}");
    }

    /// Fails if a kind of channel had the costs of another.
    #[test]
    fn every_kind_of_channel_is_at_its_own_place() {
        assert_eq!(KINDS.map(|kind| kind as usize), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn jitter_stays_within_its_spread_and_is_centred() {
        let jitter = Jitter::new(10);
        assert_eq!(jitter.apply(1000, 0), 900);
        assert_eq!(jitter.apply(1000, u32::MAX), 1099);
        assert_eq!(jitter.apply(1000, 1 << 31), 1000);
        assert_eq!(Jitter::new(0).apply(1234, 77), 1234);
    }
}
