//! A machine with its sched domains, and tasks queued on it by hand.
//!
//! Every queued task runs or waits all the time, so a queue of n tasks shows
//! a load and a runnable average of n * 1024 and is fully utilised; a test that
//! needs other averages writes them.

use std::ops::Range;

use placewise_policy::*;

/// How a machine is made up: each number counts what one of the next larger things holds.
#[derive(Clone, Copy)]
pub struct Shape {
    pub packages: u32,
    pub nodes: u32,
    pub llcs: u32,
    pub cores: u32,
    pub threads: u32,
}

pub const TICK: u64 = 4_000_000;
pub const NOW: u64 = 1_000_000 * TICK;

/// Of each last-level cache.
pub const LLC_BYTES: u64 = 32 << 20;

impl Shape {
    /// Two packages of one LLC with 32 cores and 64 threads.
    pub const ICX: Shape = Shape { packages: 2, nodes: 1, llcs: 1, cores: 32, threads: 2 };
    /// Two packages of eight LLCs with 8 cores and 16 threads each, one node to a package.
    pub const ZEN3: Shape = Shape { packages: 2, nodes: 1, llcs: 8, cores: 8, threads: 2 };
    /// One node with two LLCs of 4 CPUs.
    pub const TWO_LLCS: Shape = Shape { packages: 1, nodes: 1, llcs: 2, cores: 4, threads: 1 };
    /// Two nodes of 4 CPUs in one LLC each.
    pub const TWO_NODES: Shape = Shape { packages: 2, nodes: 1, llcs: 1, cores: 4, threads: 1 };
    /// One LLC with 4 cores of two threads.
    pub const SMT: Shape = Shape { packages: 1, nodes: 1, llcs: 1, cores: 4, threads: 2 };

    fn nr_cores(self) -> u32 {
        self.packages * self.nodes * self.llcs * self.cores
    }

    /// Which of the things that hold `cores` cores each `cpu` belongs to; thread t of core c is
    /// CPU c + t * cores.
    fn part(self, cpu: u32, cores: u32) -> u32 {
        cpu % self.nr_cores() / cores
    }

    /// Cores and flags of the domain levels, smallest first.
    fn levels(self) -> [(u32, u32); 5] {
        let llc = self.cores;
        let node = llc * self.llcs;
        let package = node * self.nodes;
        [
            (1, SD_SHARE_CPUCAPACITY | SD_SHARE_LLC | SD_PREFER_SIBLING),
            (llc, SD_SHARE_LLC | SD_PREFER_SIBLING),
            (node, SD_PREFER_SIBLING),
            (package, SD_NUMA | SD_SERIALIZE),
            (package * self.packages, SD_NUMA | SD_SERIALIZE),
        ]
    }
}

pub fn set(mask: &mut Cpumask, cpu: u32, value: bool) {
    let bit = 1 << (cpu % 64);
    let word = &mut mask.bits[cpu as usize / 64];
    *word = if value { *word | bit } else { *word & !bit };
}

fn mask_of(cpus: &[u32]) -> Cpumask {
    let mut mask = Cpumask { bits: [0; CPUMASK_WORDS as usize] };
    cpus.iter().for_each(|&cpu| set(&mut mask, cpu, true));
    mask
}

fn words(mask: &Cpumask) -> (u32, u32) {
    let first = mask.bits.iter().position(|&word| word != 0).unwrap();
    let last = mask.bits.iter().rposition(|&word| word != 0).unwrap();
    (first as u32, last as u32 + 1)
}

pub struct Machine {
    pub p: Placement,
    pub shape: Shape,
    next_task: u32,
}

impl Machine {
    /// All CPUs idle for a while, with their ticks.
    pub fn new(profile: Profile, shape: Shape) -> Machine {
        let mut m = Machine { p: Placement::new(profile), shape, next_task: FIRST_TASK };
        m.p.root.tick_ns = TICK as u32;
        m.p.root.nr_cpu_ids = m.nr_cpus();
        m.p.root.smt_active = (shape.threads > 1).into();
        m.p.root.nr_nodes = shape.packages * shape.nodes;
        m.p.root.nr_llcs = shape.nr_cores() / shape.cores;
        m.cpus().for_each(|cpu| m.add_cpu(cpu));
        m.cpus().for_each(|cpu| {
            let llc: Vec<usize> =
                m.members(cpu, shape.cores).into_iter().map(|cpu| cpu as usize).collect();
            share_lists(&mut m.p, &llc);
        });
        m.cpus().for_each(|cpu| m.idle(cpu));
        m.build_domains();
        m
    }

    pub fn nr_cpus(&self) -> u32 {
        self.shape.nr_cores() * self.shape.threads
    }

    pub fn cpus(&self) -> Range<u32> {
        0..self.nr_cpus()
    }

    fn members(&self, cpu: u32, cores: u32) -> Vec<u32> {
        let part = self.shape.part(cpu, cores);
        self.cpus().filter(|&other| self.shape.part(other, cores) == part).collect()
    }

    fn add_cpu(&mut self, cpu: u32) {
        let llc_index = self.shape.part(cpu, self.shape.cores);
        let node_cores = self.shape.cores * self.shape.llcs;
        let siblings = self.members(cpu, 1);
        let llc_cpus = self.members(cpu, self.shape.cores);
        let node_cpus = self.members(cpu, node_cores).len();
        let node = self.shape.part(cpu, node_cores);

        set(&mut self.p.root.online, cpu, true);
        let c = &mut self.p.cpu[cpu as usize];
        c.nr_siblings = siblings.len() as u16;
        for (place, sibling) in c.siblings.iter_mut().zip(&siblings) {
            *place = *sibling as u16;
        }
        c.llc = llc_index as u16;
        c.cluster_first = siblings[0] as u16;
        c.node = node as u16;
        c.node_cpus = node_cpus as u16;
        c.capacity_orig = 1024;
        c.asym_priority = -(cpu as i32);

        let rq = &mut self.p.rq[cpu as usize];
        rq.capacity = 1024;
        (rq.mru_head, rq.mru_tail, rq.rt_head) = (NO_TASK, NO_TASK, NO_TASK);
        rq.idle_stamp = 1;
        rq.avg_idle = 1_000_000;
        rq.next_balance = NOW / TICK;

        let llc = &mut self.p.llc[llc_index as usize];
        llc.cpus = mask_of(&llc_cpus);
        (llc.first_word, llc.end_word) = words(&llc.cpus);
        llc.size = llc_cpus.len() as u32;
        llc.nr_busy_cpus = llc.size;
        llc.domain_level = NR_LEVELS;
        llc.bytes = LLC_BYTES;
    }

    /// Levels that add no CPU to the one below are left out.
    fn build_domains(&mut self) {
        let mut child: Option<(u32, u32)> = None;
        let mut imb_numa_nr = 0;
        let mut first_numa_weight = 0;
        for (cores, flags) in self.shape.levels() {
            let weight = cores * self.shape.threads;
            if weight == child.map_or(1, |(child_cores, _)| child_cores * self.shape.threads) {
                continue;
            }
            let child_shares = child.is_none_or(|(_, flags)| flags & SD_SHARE_LLC != 0);
            if flags & SD_SHARE_LLC == 0 && child_shares {
                let llcs = self.shape.llcs;
                let node = self.shape.cores * llcs * self.shape.threads;
                imb_numa_nr = if llcs > 1 { llcs } else { (node / 8).max(1) };
                first_numa_weight = if flags & SD_NUMA != 0 { weight } else { 0 };
            } else if flags & SD_NUMA != 0 && first_numa_weight == 0 {
                first_numa_weight = weight;
            }
            let multiple = weight.checked_div(first_numa_weight).unwrap_or(1);
            let mut first_cpus: Vec<u32> =
                self.cpus().map(|cpu| self.members(cpu, cores)[0]).collect();
            first_cpus.sort_unstable();
            first_cpus.dedup();
            for first in first_cpus {
                self.add_span(first, cores, flags, child, imb_numa_nr * multiple);
            }
            child = Some((cores, flags));
        }
    }

    /// The domain of `cores` cores around `first`, its groups, and every CPU's view of it.
    fn add_span(
        &mut self,
        first: u32,
        cores: u32,
        flags: u32,
        child: Option<(u32, u32)>,
        imb_numa_nr: u32,
    ) {
        let span_index = self.p.root.nr_spans;
        let first_group = self.p.root.nr_groups;
        let span_cpus = self.members(first, cores);
        let mut group_count = 0;
        for &cpu in &span_cpus {
            let group_cpus = child.map_or(vec![cpu], |(cores, _)| self.members(cpu, cores));
            let newest = group_cpus[0] == cpu;
            if newest {
                let group = &mut self.p.group[(first_group + group_count) as usize];
                group.cpus = mask_of(&group_cpus);
                group.balance_mask = group.cpus;
                (group.first_word, group.end_word) = words(&group.cpus);
                group.weight = group_cpus.len() as u32;
                group.flags = child.map_or(0, |(_, flags)| flags);
                group.cores = child.map_or(1, |(cores, _)| cores);
                group.capacity = 1024 * group.weight;
                (group.min_capacity, group.max_capacity) = (1024, 1024);
                group.asym_prefer_cpu = cpu;
                group_count += 1;
            }
        }
        let weight = span_cpus.len() as u32;
        let span = &mut self.p.span[span_index as usize];
        span.cpus = mask_of(&span_cpus);
        (span.first_word, span.end_word) = words(&span.cpus);
        span.weight = weight;
        span.flags =
            flags | SD_BALANCE_NEWIDLE | SD_BALANCE_EXEC | SD_BALANCE_FORK | SD_WAKE_AFFINE;
        let smt = flags & SD_SHARE_CPUCAPACITY != 0;
        span.imbalance_pct = if smt { 110 } else { 117 };
        span.cache_nice_tries = if smt { 0 } else { 1 + u32::from(flags & SD_NUMA != 0) };
        span.imb_numa_nr = imb_numa_nr;
        (span.first_group, span.nr_groups) = (first_group, group_count);
        self.p.root.nr_spans += 1;
        self.p.root.nr_groups += group_count;

        for &cpu in &span_cpus {
            let level = self.p.cpu[cpu as usize].nr_domains;
            let holds = |group: &u32| {
                self.p.group[*group as usize].cpus.bits[cpu as usize / 64] >> (cpu % 64) & 1 != 0
            };
            let local_group = (first_group..first_group + group_count).find(holds).unwrap();
            let sd = &mut self.p.domain[cpu as usize][level as usize];
            sd.span = span_index;
            sd.local_group = local_group;
            sd.min_interval = weight;
            sd.balance_interval = weight;
            sd.max_interval = 2 * weight;
            sd.last_balance = NOW / TICK;
            sd.last_decay_max_lb_cost = NOW / TICK;
            self.p.cpu[cpu as usize].nr_domains += 1;
            if flags & SD_SHARE_LLC != 0 {
                let llc = self.p.cpu[cpu as usize].llc as usize;
                self.p.llc[llc].domain_level = level.into();
                self.p.llc[llc].imbalance_pct = self.p.span[span_index as usize].imbalance_pct;
            }
        }
    }

    pub fn rq(&mut self, cpu: u32) -> &mut Rq {
        &mut self.p.rq[cpu as usize]
    }

    pub fn task(&mut self, task: u32) -> &mut Task {
        &mut self.p.task[task as usize]
    }

    pub fn sd(&mut self, cpu: u32, level: u32) -> &mut SchedDomain {
        &mut self.p.domain[cpu as usize][level as usize]
    }

    pub fn span(&mut self, cpu: u32, level: u32) -> &mut SchedSpan {
        let span = self.sd(cpu, level).span;
        &mut self.p.span[span as usize]
    }

    /// The group of `level` that `cpu` belongs to.
    pub fn group(&mut self, cpu: u32, level: u32) -> &mut SchedGroup {
        let group = self.sd(cpu, level).local_group;
        &mut self.p.group[group as usize]
    }

    /// A new nice-0 task that may run anywhere and is on no queue yet.
    pub fn new_task(&mut self) -> u32 {
        let task = self.next_task;
        self.next_task += 1;
        let online = self.p.root.online;
        let nr_cpus = self.nr_cpus() as u16;
        let t = self.task(task);
        t.weight = 1024;
        t.avg.load_avg = 1024;
        t.cpus_allowed = online;
        t.nr_cpus_allowed = nr_cpus;
        t.eligible = 1;
        (t.mru_prev, t.mru_next) = (NO_TASK, NO_TASK);
        task
    }

    pub fn allow(&mut self, task: u32, cpus: &[u32]) {
        let t = self.task(task);
        t.cpus_allowed = mask_of(cpus);
        t.nr_cpus_allowed = cpus.len() as u16;
    }

    fn mark_idle(&mut self, cpu: u32, idle: bool) {
        set(&mut self.p.root.idle, cpu, idle);
        let core = self.members(cpu, 1);
        let all = core.iter().all(|&c| self.p.root.idle.bits[c as usize / 64] >> (c % 64) & 1 != 0);
        core.iter().for_each(|&c| set(&mut self.p.root.idle_core, c, all));
    }

    fn idle(&mut self, cpu: u32) {
        self.rq(cpu).curr = cpu;
        self.mark_idle(cpu, true);
    }

    /// Puts `task` on `cpu`, at the head of its list; it runs if the CPU was idle.
    pub fn enqueue(&mut self, task: u32, cpu: u32) {
        let head = self.rq(cpu).mru_head;
        self.task(task).mru_next = head;
        self.task(task).mru_prev = NO_TASK;
        self.task(task).cpu = cpu as u16;
        self.task(task).on_rq = 1;
        self.task(task).avg.last_update_time = NOW;
        self.task(task).avg.util_avg = 512;
        self.task(task).avg.runnable_avg = 1024;
        if head == NO_TASK {
            self.rq(cpu).mru_tail = task;
        } else {
            self.task(head).mru_prev = task;
        }
        let rq = self.rq(cpu);
        rq.mru_head = task;
        rq.nr_running += 1;
        rq.cfs.h_nr_queued += 1;
        rq.cfs.avg.load_avg += 1024;
        rq.cfs.avg.runnable_avg += 1024;
        rq.cfs.avg.util_avg = 1024;
        if rq.curr == cpu {
            rq.curr = task;
        }
        self.mark_idle(cpu, false);
    }

    /// Queues `nr` new tasks on `cpu`; the first one runs, and is at the tail of the list.
    pub fn queue(&mut self, cpu: u32, nr: u32) -> Vec<u32> {
        let tasks: Vec<u32> = (0..nr).map(|_| self.new_task()).collect();
        tasks.iter().for_each(|&task| self.enqueue(task, cpu));
        tasks
    }

    pub fn queue_each(&mut self, cpus: impl IntoIterator<Item = u32>, nr: u32) {
        for cpu in cpus {
            self.queue(cpu, nr);
        }
    }

    /// `cpu` has just lost its last task and looks for another: not idle yet.
    pub fn newly_idle(&mut self, cpu: u32) {
        let task = self.new_task();
        self.rq(cpu).curr = task;
        self.mark_idle(cpu, false);
    }

    /// Forks on `parent_cpu` and queues the child where it is placed.
    pub fn fork(&mut self, parent_cpu: u32, hint: u32) -> u32 {
        let child = self.new_task();
        self.task(child).hint = hint as u8;
        let cpu = self.place_fork(child, parent_cpu);
        self.enqueue(child, cpu);
        cpu
    }

    pub fn place_fork(&mut self, child: u32, parent_cpu: u32) -> u32 {
        self.p.select_task_rq(child, parent_cpu, parent_cpu, WF_FORK, NOW)
    }

    /// The children of a parent on CPU 0, with the parent: how many run in each NUMA node.
    pub fn fork_split(&mut self, threads: u32, hint: u32) -> Vec<u32> {
        self.queue(0, 1);
        (1..threads).for_each(|_| {
            self.fork(0, hint);
        });
        let mut split = vec![0; (self.shape.packages * self.shape.nodes) as usize];
        for cpu in self.cpus() {
            let node = self.p.cpu[cpu as usize].node as usize;
            split[node] += self.rq(cpu).nr_running;
        }
        split
    }

    /// One attempt to balance `level` for `cpu`.
    pub fn balance(&mut self, cpu: u32, level: u32, idle: u32) -> BalanceResult {
        self.p.load_balance(cpu, level, idle, NOW);
        self.p.balance
    }
}

/// The tasks that are to move, in the order of leaving.
pub fn moved(result: &BalanceResult) -> &[u32] {
    &result.task[..result.nr as usize]
}
