//! A machine on the table: sched domains, tasks and idle CPUs set by hand.

use placewise_policy::*;

/// Where a CPU sits.
#[derive(Clone, Copy)]
pub struct Seat {
    pub core: u32,
    pub cluster: u32,
    pub llc: u32,
    pub node: u32,
}

/// A placement with the wakee [`Lab::WAKEE`] and, on each CPU c that runs, the task [`runner`]`(c)`.
pub struct Lab {
    pub p: Placement,
    pub seats: Vec<Seat>,
}

pub const TICK: u64 = 4_000_000;
pub const NOW: u64 = 1000 * TICK;

/// The task that a busy CPU runs; a waking CPU's is the waker.
pub fn runner(cpu: u32) -> u32 {
    FIRST_TASK + 1 + cpu
}

fn set(mask: &mut Cpumask, cpu: u32, value: bool) {
    let bit = 1 << (cpu % 64);
    let word = &mut mask.bits[cpu as usize / 64];
    *word = if value { *word | bit } else { *word & !bit };
}

pub fn test(mask: &Cpumask, cpu: u32) -> bool {
    mask.bits[cpu as usize / 64] >> (cpu % 64) & 1 != 0
}

fn words(mask: &Cpumask) -> (u32, u32) {
    let filled = |word: &u64| *word != 0;
    let first = mask.bits.iter().position(filled).unwrap();
    let last = mask.bits.iter().rposition(filled).unwrap();
    (first as u32, last as u32 + 1)
}

impl Lab {
    pub const WAKEE: u32 = FIRST_TASK;

    /// All CPUs idle, all tasks long, no idle core known, scans of a whole LLC allowed.
    pub fn new(profile: Profile, seats: Vec<Seat>) -> Lab {
        let min_gran = Tunable { ns: 3_000_000, grows: false };
        let profile = Profile { min_gran, ..profile };
        let mut lab = Lab { p: Placement::new(profile), seats };
        lab.p.root.tick_ns = TICK as u32;
        lab.p.root.nr_cpu_ids = lab.len();
        lab.p.root.smt_active =
            lab.cpus().any(|cpu| lab.neighbours(cpu, |seat| seat.core).len() > 1).into();
        let clustered = |cpu| {
            let cluster = lab.neighbours(cpu, |seat| seat.cluster).len();
            cluster > lab.neighbours(cpu, |seat| seat.core).len()
        };
        let cluster_active = lab.cpus().any(clustered);
        lab.p.root.cluster_active = cluster_active.into();
        for cpu in lab.cpus() {
            set(&mut lab.p.root.online, cpu, true);
            lab.seat_cpu(cpu);
        }
        lab.build_domains(cluster_active);
        for task in std::iter::once(Self::WAKEE).chain(lab.cpus().map(runner)) {
            lab.init_task(task);
        }
        lab.cpus().for_each(|cpu| lab.idle(cpu));
        lab
    }

    /// Two sockets of 64 cores with two threads each (c and c + 128), 8 cores to an LLC, 16 to a node.
    pub fn zen3(profile: Profile) -> Lab {
        let seat = |cpu: u32| {
            let core = cpu % 128;
            Seat { core, cluster: core, llc: core / 8, node: core / 16 }
        };
        Lab::new(profile, (0..256).map(seat).collect())
    }

    /// One LLC of 16 CPUs without SMT, and a second one like it.
    pub fn plain(profile: Profile) -> Lab {
        let seat = |cpu: u32| Seat { core: cpu, cluster: cpu, llc: cpu / 16, node: cpu / 16 };
        Lab::new(profile, (0..32).map(seat).collect())
    }

    /// Two LLCs of 16 CPUs in clusters of 4.
    pub fn clustered(profile: Profile) -> Lab {
        let seat = |cpu: u32| Seat { core: cpu, cluster: cpu / 4, llc: cpu / 16, node: cpu / 16 };
        Lab::new(profile, (0..32).map(seat).collect())
    }

    pub fn len(&self) -> u32 {
        self.seats.len() as u32
    }

    pub fn cpus(&self) -> std::ops::Range<u32> {
        0..self.len()
    }

    /// The CPUs with the same `key` as `cpu`, in increasing order.
    pub fn neighbours(&self, cpu: u32, key: impl Fn(&Seat) -> u32) -> Vec<u32> {
        let of = |cpu: u32| key(&self.seats[cpu as usize]);
        self.cpus().filter(|&other| of(other) == of(cpu)).collect()
    }

    fn seat_cpu(&mut self, cpu: u32) {
        let seat = self.seats[cpu as usize];
        let siblings = self.neighbours(cpu, |seat| seat.core);
        let cluster_first = self.neighbours(cpu, |seat| seat.cluster)[0];
        let node_cpus = self.neighbours(cpu, |seat| seat.node).len();
        let llc = self.neighbours(cpu, |seat| seat.llc);

        let c = &mut self.p.cpu[cpu as usize];
        c.nr_siblings = siblings.len() as u16;
        for (place, sibling) in c.siblings.iter_mut().zip(siblings) {
            *place = sibling as u16;
        }
        c.llc = seat.llc as u16;
        c.cluster_first = cluster_first as u16;
        c.node = seat.node as u16;
        c.node_cpus = node_cpus as u16;
        c.capacity_orig = 1024;
        self.p.rq[cpu as usize].capacity = 1024;

        let record = &mut self.p.llc[seat.llc as usize];
        llc.iter().for_each(|&cpu| set(&mut record.cpus, cpu, true));
        (record.first_word, record.end_word) = words(&record.cpus);
        record.size = llc.len() as u32;
        record.nr_idle_scan = record.size;
        record.imbalance_pct = 117;
        record.domain_level = NR_LEVELS;
    }

    /// SMT, CLS, MC, NODE and the whole machine, as far as each adds something.
    fn build_domains(&mut self, cluster_active: bool) {
        type Key = fn(&Seat) -> u32;
        let cluster_flags = if cluster_active { SD_CLUSTER } else { 0 };
        let levels: [(Key, u32, u32); 5] = [
            (|seat| seat.core, SD_SHARE_CPUCAPACITY | SD_SHARE_LLC, 110),
            (|seat| seat.cluster, SD_SHARE_LLC | cluster_flags, 117),
            (|seat| seat.llc, SD_SHARE_LLC, 117),
            (|seat| seat.node, 0, 117),
            (|_| 0, SD_NUMA, 117),
        ];
        let (mut nr_spans, mut nr_groups) = (0, 0);
        for cpu in self.cpus() {
            let mut child: Option<(Vec<u32>, u32)> = None;
            let mut level = 0;
            for (key, flags, imbalance_pct) in levels {
                let span = self.neighbours(cpu, key);
                let child_size = child.as_ref().map_or(1, |(cpus, _)| cpus.len());
                if span.len() == child_size {
                    continue;
                }
                let local = &mut self.p.group[nr_groups];
                let (cpus, child_flags) = child.take().unwrap_or((vec![cpu], 0));
                cpus.iter().for_each(|&cpu| set(&mut local.cpus, cpu, true));
                (local.first_word, local.end_word) = words(&local.cpus);
                local.flags = child_flags;

                let record = &mut self.p.span[nr_spans];
                span.iter().for_each(|&cpu| set(&mut record.cpus, cpu, true));
                (record.first_word, record.end_word) = words(&record.cpus);
                record.weight = span.len() as u32;
                record.flags = flags | SD_WAKE_AFFINE;
                record.imbalance_pct = imbalance_pct;

                let sd = &mut self.p.domain[cpu as usize][level];
                sd.span = nr_spans as u32;
                sd.local_group = nr_groups as u32;
                if flags & SD_SHARE_LLC != 0 {
                    self.p.llc[self.seats[cpu as usize].llc as usize].domain_level = level as u32;
                }
                nr_spans += 1;
                nr_groups += 1;
                level += 1;
                child = Some((span, flags));
            }
            self.p.cpu[cpu as usize].nr_domains = level as u16;
        }
    }

    fn init_task(&mut self, task: u32) {
        let nr_cpus = self.len();
        let online = self.p.root.online;
        let t = self.task(task);
        t.weight = 1024;
        t.last_wakee = NO_TASK;
        t.wakee_flip_decay_ts = NOW / TICK;
        t.cpus_allowed = online;
        t.nr_cpus_allowed = nr_cpus as u16;
        t.recent_used_cpu = nr_cpus as u16 - 1;
        self.long(task);
    }

    pub fn task(&mut self, task: u32) -> &mut Task {
        &mut self.p.task[task as usize]
    }

    pub fn wakee(&mut self) -> &mut Task {
        self.task(Self::WAKEE)
    }

    pub fn rq(&mut self, cpu: u32) -> &mut Rq {
        &mut self.p.rq[cpu as usize]
    }

    pub fn llc(&mut self, cpu: u32) -> &mut Llc {
        &mut self.p.llc[self.seats[cpu as usize].llc as usize]
    }

    pub fn llc_domain(&mut self, cpu: u32) -> &mut SchedDomain {
        let level = self.llc(cpu).domain_level;
        &mut self.p.domain[cpu as usize][level as usize]
    }

    pub fn short(&mut self, task: u32) {
        let t = self.task(task);
        (t.sum_exec_runtime, t.nvcsw, t.run_length_avg) = (1_000, 1_000, 1_000);
    }

    pub fn long(&mut self, task: u32) {
        let t = self.task(task);
        (t.sum_exec_runtime, t.nvcsw, t.run_length_avg) = (1_000_000_000, 1, 10_000_000);
    }

    pub fn idle(&mut self, cpu: u32) {
        self.rq(cpu).nr_running = 0;
        self.rq(cpu).curr = cpu;
        set(&mut self.p.root.sched_idle, cpu, false);
        self.mark(cpu, true);
    }

    pub fn busy(&mut self, cpu: u32) {
        self.rq(cpu).nr_running = 1;
        self.rq(cpu).curr = runner(cpu);
        set(&mut self.p.root.sched_idle, cpu, false);
        self.mark(cpu, false);
    }

    /// Only SCHED_IDLE tasks run on `cpu`.
    pub fn sched_idle(&mut self, cpu: u32) {
        self.busy(cpu);
        set(&mut self.p.root.sched_idle, cpu, true);
    }

    pub fn busy_all(&mut self, cpus: impl IntoIterator<Item = u32>) {
        cpus.into_iter().for_each(|cpu| self.busy(cpu));
    }

    fn mark(&mut self, cpu: u32, idle: bool) {
        set(&mut self.p.root.idle, cpu, idle);
        let c = self.p.cpu[cpu as usize];
        let core: Vec<u32> =
            c.siblings[..c.nr_siblings as usize].iter().map(|&sibling| sibling.into()).collect();
        let core_idle = core.iter().all(|&sibling| test(&self.p.root.idle, sibling));
        core.iter().for_each(|&sibling| set(&mut self.p.root.idle_core, sibling, core_idle));
    }

    pub fn allow(&mut self, cpus: impl IntoIterator<Item = u32>) {
        let wakee = self.wakee();
        wakee.cpus_allowed.bits = [0; CPUMASK_WORDS as usize];
        wakee.nr_cpus_allowed = 0;
        for cpu in cpus {
            set(&mut wakee.cpus_allowed, cpu, true);
            wakee.nr_cpus_allowed += 1;
        }
    }

    /// The wakee last ran on `prev`; whoever runs on `cpu` wakes it.
    pub fn wake_with(&mut self, prev: u32, cpu: u32, flags: u32) -> u32 {
        self.wakee().cpu = prev as u16;
        self.p.select_task_rq(Self::WAKEE, prev, cpu, WF_TTWU | flags, NOW)
    }

    pub fn wake(&mut self, prev: u32, cpu: u32) -> u32 {
        self.wake_with(prev, cpu, 0)
    }

    pub fn affine(&self) -> AffineReason {
        self.p.decision.affine.into()
    }

    pub fn search(&self) -> SearchReason {
        self.p.decision.search.into()
    }
}
