//! Machines and states drawn at random, as an engine could leave them.
//!
//! The counts, lists and masks of a run queue always agree with the tasks that
//! are on it; what time and history would decide (averages, stamps, flips,
//! failures, hints) is anything. Machines have up to 1,024 CPUs, mostly far
//! fewer, with SMT, clusters, unequal and preferred CPUs.

use placewise_policy::*;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::machine::{LLC_BYTES, Machine, NOW, Shape, TICK, set};

/// States drawn on one machine before the next machine.
pub const STATES_PER_MACHINE: u32 = 100;

/// Weights of nice -20, -5, 0, 5 and 19, and of SCHED_IDLE.
const WEIGHTS: [u32; 6] = [88761, 3121, 1024, 335, 15, 3];

/// What PELT sums are divided by at the start of a period.
const LEAST_DIVIDER: u32 = 47742 - 1024;

pub struct Generator {
    pub rng: Pcg64Mcg,
    /// By kernel and policy.
    profiles: Vec<(String, Profile)>,
}

/// A machine whose state can be drawn again and again.
pub struct Drawn {
    pub m: Machine,
    /// Every task, in slots from `FIRST_TASK` on.
    pub tasks: Vec<u32>,
    /// The kernel and the policy of the state.
    pub policy: String,
    unequal: bool,
}

impl Drawn {
    /// Tasks that run or wait, those of other classes too.
    pub fn nr_queued(&self) -> u32 {
        self.m.cpus().map(|cpu| self.m.p.rq[cpu as usize].nr_running).sum()
    }
}

impl Generator {
    pub fn new(seed: u128) -> Self {
        Generator { rng: Pcg64Mcg::new(seed), profiles: profiles() }
    }

    pub fn chance(&mut self, one_in: u32) -> bool {
        self.rng.random_ratio(1, one_in)
    }

    /// Up to `most`, small numbers as likely as large ones.
    fn scaled(&mut self, most: u64) -> u64 {
        let bits = self.rng.random_range(0..=u64::BITS - most.leading_zeros());
        self.rng.random::<u64>().checked_shr(u64::BITS - bits).unwrap_or(0).min(most)
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.random_range(0..from.len())]
    }

    fn profile(&mut self) -> (String, Profile) {
        let at = self.rng.random_range(0..self.profiles.len());
        self.profiles[at].clone()
    }

    pub fn cpu(&mut self, drawn: &Drawn) -> u32 {
        self.rng.random_range(0..drawn.m.nr_cpus())
    }

    pub fn task(&mut self, drawn: &Drawn) -> u32 {
        self.pick(&drawn.tasks)
    }

    /// A moment after what the state remembers.
    pub fn now(&mut self) -> u64 {
        NOW + self.pick(&[0, 1, 1_000, 1_500_000, TICK, 40_000_000, 5_000_000_000])
    }

    fn shape(&mut self) -> Shape {
        if self.chance(100) {
            return Shape { packages: 2, nodes: 4, llcs: 4, cores: 16, threads: 2 };
        }
        Shape {
            packages: self.rng.random_range(1..=2),
            nodes: self.rng.random_range(1..=2),
            llcs: self.rng.random_range(1..=4),
            cores: self.rng.random_range(1..=8),
            threads: self.pick(&[1, 2, 2, 4]),
        }
    }

    /// A machine with some tasks, all of them asleep.
    pub fn machine(&mut self) -> Drawn {
        let shape = self.shape();
        self.machine_of(shape)
    }

    pub fn machine_of(&mut self, shape: Shape) -> Drawn {
        let (policy, profile) = self.profile();
        let mut m = Machine::new(profile, shape);
        let nr_tasks = self.rng.random_range(1..=2 * m.nr_cpus().min(64));
        let tasks = (0..nr_tasks).map(|_| m.new_task()).collect();
        if self.chance(3) {
            self.make_task_groups(&mut m);
        }
        let unequal = self.chance(4);
        if unequal {
            self.make_unequal(&mut m);
        }
        if self.chance(4) {
            self.make_clusters(&mut m);
        }
        if self.chance(8) {
            m.p.span.iter_mut().for_each(|span| span.flags |= SD_ASYM_PACKING);
        }
        Drawn { m, tasks, policy, unequal }
    }

    /// A few task groups below each other, for tasks to be drawn in.
    fn make_task_groups(&mut self, m: &mut Machine) {
        for group in 0..self.rng.random_range(1..=5) {
            let parent = self.rng.random_range(0..=group);
            let shares = self.pick(&[0, 2, 512, 1024, 1024, 10_240]);
            m.p.create_task_group(parent, shares);
        }
    }

    fn make_unequal(&mut self, m: &mut Machine) {
        let nr_cpus = m.nr_cpus() as usize;
        m.p.root.asym_capacity = 1;
        for cpu in 0..nr_cpus {
            m.p.cpu[cpu].capacity_orig = self.pick(&[400, 768, 1024]);
        }
        for level in 0..NR_LEVELS {
            for cpu in m
                .cpus()
                .filter(|&cpu| level < u32::from(m.p.cpu[cpu as usize].nr_domains))
                .collect::<Vec<_>>()
            {
                let top = level + 1 == u32::from(m.p.cpu[cpu as usize].nr_domains);
                let span = m.span(cpu, level);
                span.asym_capacity_max = 1024;
                if top {
                    span.flags |= SD_ASYM_CPUCAPACITY | SD_ASYM_CPUCAPACITY_FULL;
                }
            }
        }
        for group in 0..m.p.root.nr_groups as usize {
            let members = |cpu: &usize| m.p.group[group].cpus.bits[cpu / 64] >> (cpu % 64) & 1 != 0;
            let capacities: Vec<u32> =
                (0..nr_cpus).filter(members).map(|cpu| m.p.cpu[cpu].capacity_orig).collect();
            let group = &mut m.p.group[group];
            group.capacity = capacities.iter().sum();
            group.min_capacity = capacities.iter().copied().min().unwrap_or(0);
            group.max_capacity = capacities.iter().copied().max().unwrap_or(0);
        }
    }

    /// Pairs of neighbouring cores share a cluster; some groups are clusters.
    fn make_clusters(&mut self, m: &mut Machine) {
        m.p.root.cluster_active = 1;
        for cpu in 0..m.nr_cpus() as usize {
            m.p.cpu[cpu].cluster_first &= !1;
        }
        for group in 0..m.p.root.nr_groups as usize {
            if self.chance(2) {
                m.p.group[group].flags |= SD_CLUSTER;
            }
        }
    }

    /// Draws everything that changes while a machine runs.
    pub fn draw(&mut self, drawn: &mut Drawn) {
        (drawn.policy, drawn.m.p.profile) = self.profile();
        let busy = self.rng.random_range(0.0..1.0);
        let crowd = self.rng.random_range(1..=drawn.m.nr_cpus()); // so many CPUs have all tasks
        for &task in &drawn.tasks {
            let cpu = self.rng.random_range(0..crowd);
            self.draw_task(&mut drawn.m, task, cpu);
        }
        drawn.m.p.root.clock = NOW;
        self.draw_processes(drawn);
        for cpu in drawn.m.cpus() {
            self.draw_queue(drawn, cpu);
            for group in 1..=drawn.m.p.root.nr_task_groups {
                self.draw_group_queue(&mut drawn.m, group, cpu);
            }
        }
        for at in 0..drawn.tasks.len() {
            let task = drawn.tasks[at];
            if self.rng.random_bool(busy) {
                self.queue(&mut drawn.m, task);
            }
        }
        for cpu in drawn.m.cpus() {
            self.draw_current(&mut drawn.m, cpu);
        }
        self.draw_topology_history(&mut drawn.m);
        self.draw_masks(&mut drawn.m);
    }

    fn average(&mut self, weight: u32) -> SchedAvg {
        let period_contrib = self.rng.random_range(0..1024);
        let divider = u64::from(LEAST_DIVIDER + period_contrib);
        let runnable = self.scaled(1024);
        let util = self.rng.random_range(0..=runnable);
        SchedAvg {
            last_update_time: if self.chance(8) { 0 } else { NOW - self.scaled(100_000_000) },
            load_sum: runnable * divider / 1024,
            runnable_sum: runnable * divider,
            util_sum: (util * divider) as u32,
            period_contrib,
            load_avg: u64::from(weight) * runnable / 1024,
            runnable_avg: runnable,
            util_avg: util,
        }
    }

    /// A task asleep, last on `cpu`.
    fn draw_task(&mut self, m: &mut Machine, task: u32, cpu: u32) {
        let nr_cpus = m.nr_cpus();
        let weight = self.pick(&WEIGHTS);
        let online = m.p.root.online;
        let sum_exec_runtime = self.scaled(1 << 34);
        let pinned = self.chance(4);
        let rt_priority =
            if weight != 3 && self.chance(8) { self.pick(&[1, 50, 50, 99]) } else { 0 };
        let mut t = Task {
            avg: self.average(weight),
            exec_start: NOW - self.scaled(1 << 30),
            sum_exec_runtime,
            prev_sleep_runtime: self.rng.random_range(0..=sum_exec_runtime),
            run_length_avg: self.scaled(8_000_000),
            sleep_avg: self.scaled(1_000_000) as u32,
            nvcsw: self.scaled(10_000),
            nivcsw: self.scaled(10_000),
            wakee_flip_decay_ts: NOW / TICK - self.scaled(1000),
            last_wakee: FIRST_TASK + self.rng.random_range(0..4),
            wakee_flips: self.scaled(200) as u32,
            weight,
            util_est_enqueued: self.scaled(1024) as u32,
            util_est_ewma: self.scaled(1024) as u32,
            util_changed: self.chance(2).into(),
            mru_prev: NO_TASK,
            mru_next: NO_TASK,
            cpu: cpu as u16,
            recent_used_cpu: self.rng.random_range(0..nr_cpus) as u16,
            idle_policy: (weight == 3).into(),
            per_cpu_kthread: self.chance(8).into(),
            exiting: self.chance(16).into(),
            hint: self.pick(&[0, 0, 1, 2, 4, 8, 5, 6, 9, 10]),
            eligible: self.chance(2).into(),
            rt_priority,
            task_group: self.rng.random_range(0..=m.p.root.nr_task_groups),
            cpus_allowed: online,
            ..*m.task(task)
        };
        (t.on_rq, t.delayed, t.shared_next) = (0, 0, 0);
        if pinned {
            for word in &mut t.cpus_allowed.bits {
                *word &= self.rng.random::<u64>() & self.rng.random::<u64>();
            }
            set(&mut t.cpus_allowed, cpu, true);
        }
        t.nr_cpus_allowed =
            t.cpus_allowed.bits.iter().map(|word| word.count_ones()).sum::<u32>() as u16;
        *m.task(task) = t;
    }

    /// Processes of some tasks, and where they have run.
    fn draw_processes(&mut self, drawn: &mut Drawn) {
        let nr_processes = self.rng.random_range(0..=3);
        let Drawn { m, tasks, .. } = drawn;
        let nr_llcs = m.p.root.nr_llcs as u16;
        m.p.root.nr_processes = nr_processes;
        for process in 1..=nr_processes as usize {
            m.p.process[process] = Process {
                footprint: self.scaled(4 * LLC_BYTES),
                epoch: NOW / (2 * TICK) - self.scaled(8),
                nr_threads: 0,
                nr_running_avg: self.scaled(64) as u32,
                preferred_cpu: self.rng.random_range(0..=m.nr_cpus()),
                reserved: 0,
            };
            for cpu in m.cpus() {
                m.p.process_rq[cpu as usize][process] = ProcessRq {
                    runtime: self.scaled(20_000_000),
                    epoch: NOW / (2 * TICK) - self.scaled(8),
                    occupancy: self.scaled(1 << 20),
                };
            }
            if m.p.process[process].preferred_cpu == m.nr_cpus() {
                m.p.process[process].preferred_cpu = NO_CPU;
            }
        }
        for &task in tasks.iter() {
            let process = self.rng.random_range(0..=nr_processes);
            m.task(task).process = process as u16;
            m.task(task).preferred_llc = 0;
            if process > 0 {
                m.p.process[process as usize].nr_threads += 1;
                m.task(task).preferred_llc = self.rng.random_range(0..=nr_llcs);
            }
        }
        for llc in 0..usize::from(nr_llcs) {
            let capacity = 1024 * u64::from(m.p.llc[llc].size);
            m.p.llc[llc].capacity = if self.chance(4) { 0 } else { capacity };
            m.p.llc[llc].util = self.rng.random_range(0..=capacity);
        }
    }

    /// An empty queue with a history.
    fn draw_queue(&mut self, drawn: &mut Drawn, cpu: u32) {
        let capacity = match drawn.unequal {
            true => drawn.m.p.cpu[cpu as usize].capacity_orig,
            false => 1024,
        };
        let idle_exit_latency = match self.pick(&[0, 1, 2]) {
            0 => LATENCY_UNKNOWN,
            _ => self.pick(&[0, 1_000, 2_000, 50_000]),
        };
        let wake_avg_idle = self.scaled(2_000_000);
        *drawn.m.rq(cpu) = Rq {
            cfs: CfsRq {
                avg: SchedAvg {
                    last_update_time: NOW - self.scaled(10_000_000),
                    ..self.average(1024)
                },
                load_weight: 0,
                removed_load: self.scaled(500),
                removed_runnable: self.scaled(500),
                removed_util: self.scaled(500),
                removed_nr: self.chance(4).into(),
                util_est: 0,
                h_nr_queued: 0,
                h_nr_delayed: 0,
                h_nr_idle: 0,
                ..drawn.m.rq(cpu).cfs
            },
            curr: cpu,
            nr_running: self.chance(16).into(), // of another class
            capacity: capacity * self.rng.random_range(50..=100) / 100,
            idle_exit_latency,
            mru_head: NO_TASK,
            mru_tail: NO_TASK,
            shared_head: 0,
            misfit_task_load: if drawn.unequal { self.scaled(1024) } else { 0 },
            idle_stamp: if self.chance(3) { 0 } else { NOW - self.scaled(100_000_000) },
            avg_idle: self.scaled(2_000_000),
            wake_avg_idle,
            wake_stamp: NOW / TICK - self.scaled(20),
            max_idle_balance_cost: 500_000 + self.scaled(2_000_000),
            next_balance: NOW / TICK + 4 - self.scaled(8),
            ttwu_pending: self.chance(8).into(),
            active_balance: self.chance(8).into(),
            tick_stopped: self.chance(4).into(),
            nohz_flags: self.rng.random_range(0..4),
            avg_rt: self.average(1024),
            clock_pelt: NOW - self.scaled(100_000_000),
            clock_pelt_at: NOW - self.scaled(10_000_000),
            lost_idle_time: self.scaled(10_000_000),
            clock_rests: self.chance(2).into(),
            rt_nr_running: 0,
            rt_head: NO_TASK,
            rt_runs: 0,
            cache_runtime: self.scaled(20_000_000),
            cache_epoch: NOW / (2 * TICK) - self.scaled(8),
            reserved_until: NOW + self.scaled(2_000_000) - 1_000_000,
            last_rt_cpu: self.rng.random_range(0..drawn.m.nr_cpus()),
            ..*drawn.m.rq(cpu)
        };
    }

    /// A CPU's part of a task group, empty, with a history or never used.
    fn draw_group_queue(&mut self, m: &mut Machine, group: u32, cpu: u32) {
        let mut rq = GroupRq::default();
        if !self.chance(4) {
            rq.weight = self.rng.random_range(2..=1024);
            rq.avg = self.average(rq.weight);
            rq.cfs.avg =
                SchedAvg { last_update_time: NOW - self.scaled(10_000_000), ..self.average(1024) };
            rq.cfs.propagate = self.chance(2).into();
            rq.cfs.propagate_sum = self.scaled(50_000) as i64 - 25_000;
            (rq.cfs.removed_nr, rq.cfs.removed_load) = (self.chance(4).into(), self.scaled(500));
            (rq.cfs.removed_util, rq.cfs.removed_runnable) = (self.scaled(500), self.scaled(500));
            rq.cfs.h_load = self.scaled(1024);
            rq.cfs.last_h_load_update = NOW / TICK - self.scaled(2);
            rq.runnable = self.scaled(4) as u32;
            rq.last_update_tg_load_avg = NOW - self.scaled(4_000_000);
            rq.tg_load_avg_contrib = rq.cfs.avg.load_avg;
            rq.tg_runnable_avg_contrib = rq.cfs.avg.runnable_avg;
        }
        let before = std::mem::replace(&mut m.p.group_rq[group as usize][cpu as usize], rq);
        let tg = &mut m.p.task_group[group as usize];
        tg.load_avg = tg.load_avg - before.tg_load_avg_contrib + rq.tg_load_avg_contrib;
        tg.runnable_avg =
            tg.runnable_avg - before.tg_runnable_avg_contrib + rq.tg_runnable_avg_contrib;
    }

    /// Puts an RT task before those of lower priority.
    fn queue_rt(&mut self, m: &mut Machine, task: u32) {
        let cpu = u32::from(m.task(task).cpu);
        let priority = m.task(task).rt_priority;
        let (mut before, mut after) = (NO_TASK, m.rq(cpu).rt_head);
        while after != NO_TASK && m.task(after).rt_priority >= priority {
            (before, after) = (after, m.task(after).mru_next);
        }
        let t = m.task(task);
        (t.on_rq, t.mru_prev, t.mru_next) = (1, before, after);
        match before {
            NO_TASK => m.rq(cpu).rt_head = task,
            _ => m.task(before).mru_next = task,
        }
        if after != NO_TASK {
            m.task(after).mru_prev = task;
        }
        let rq = m.rq(cpu);
        (rq.nr_running, rq.rt_nr_running) = (rq.nr_running + 1, rq.rt_nr_running + 1);
        m.p.root.rt_seen = 1;
    }

    /// Puts a task at the tail of the list of its CPU, perhaps as a delayed one.
    fn queue(&mut self, m: &mut Machine, task: u32) {
        if m.task(task).rt_priority != 0 {
            return self.queue_rt(m, task);
        }
        let delayed = self.chance(6);
        let cpu = u32::from(m.task(task).cpu);
        let tail = m.rq(cpu).mru_tail;
        let t = m.task(task);
        (t.on_rq, t.delayed) = (1, delayed.into());
        (t.mru_prev, t.mru_next) = (tail, NO_TASK);
        t.avg.last_update_time = t.avg.last_update_time.max(NOW - 10_000_000);
        let t = *t;
        match tail {
            NO_TASK => m.rq(cpu).mru_head = task,
            _ => m.task(tail).mru_next = task,
        }
        let rq = m.rq(cpu);
        rq.mru_tail = task;
        rq.nr_running += 1;
        if !delayed {
            rq.cfs.util_est += t.util_est_enqueued.max(t.util_est_ewma);
        }
        let cfs = cfs_rq(m, t.task_group, cpu);
        cfs.load_weight += u64::from(t.weight);
        cfs.avg.load_avg += t.avg.load_avg;
        cfs.avg.load_sum += t.avg.load_sum * u64::from(t.weight);
        cfs.avg.runnable_avg += t.avg.runnable_avg;
        cfs.avg.runnable_sum += t.avg.runnable_sum;
        cfs.avg.util_avg += t.avg.util_avg;
        cfs.avg.util_sum += t.avg.util_sum;
        let mut group = t.task_group;
        loop {
            let cfs = cfs_rq(m, group, cpu);
            cfs.h_nr_queued += 1;
            cfs.h_nr_delayed += u32::from(delayed);
            cfs.h_nr_idle += u32::from(t.idle_policy);
            if group == ROOT_TASK_GROUP {
                break;
            }
            let parent = m.p.task_group[group as usize].parent;
            queue_entity(m, group, parent, cpu);
            group = parent;
        }
    }

    /// The head of a list runs, unless the CPU has not switched to it yet.
    fn draw_current(&mut self, m: &mut Machine, cpu: u32) {
        let (rt_head, head) = (m.rq(cpu).rt_head, m.rq(cpu).mru_head);
        if rt_head != NO_TASK && !self.chance(8) {
            (m.rq(cpu).curr, m.rq(cpu).rt_runs) = (rt_head, 1);
            return;
        }
        if head != NO_TASK && m.task(head).delayed == 0 && !self.chance(8) {
            m.rq(cpu).curr = head;
        }
    }

    fn draw_topology_history(&mut self, m: &mut Machine) {
        for cpu in 0..m.nr_cpus() as usize {
            for level in 0..usize::from(m.p.cpu[cpu].nr_domains) {
                let sd = &mut m.p.domain[cpu][level];
                sd.balance_interval = self.rng.random_range(sd.min_interval..=sd.max_interval);
                sd.nr_balance_failed = self.scaled(8) as u32;
                sd.last_balance = NOW / TICK - self.scaled(100);
                sd.max_newidle_lb_cost = self.scaled(1_000_000);
                sd.last_decay_max_lb_cost = NOW / TICK - self.scaled(500);
                sd.avg_scan_cost = self.scaled(100_000);
                sd.newidle_call = self.pick(&[0, 512, 1022, 1023]);
                sd.newidle_success = self.scaled(1200) as u32;
                sd.newidle_ratio = self.scaled(1200) as u32;
                sd.newidle_stamp = NOW - self.scaled(1 << 34);
            }
        }
        for llc in 0..m.nr_cpus() as usize {
            let llc = &mut m.p.llc[llc];
            llc.has_idle_cores = self.rng.random_range(0..2);
            llc.nr_idle_scan = self.rng.random_range(0..=llc.size);
            llc.nr_busy_cpus = self.rng.random_range(0..=llc.size);
        }
        for group in 0..m.p.root.nr_groups as usize {
            m.p.group[group].imbalance = self.chance(16).into();
            // As where groups overlap.
            m.p.group[group].first_copy = u32::from(group > 0 && self.chance(16));
            m.p.group[group].next_update = NOW / TICK + 4 - self.scaled(8);
        }
        m.p.root.rt_seen |= u32::from(self.chance(4));
        m.p.root.overload = self.rng.random_range(0..2);
        m.p.root.serialize_busy = self.chance(8).into();
        m.p.root.random = self.rng.random();
        m.p.root.nohz_next_balance = NOW / TICK + 4 - self.scaled(8);
        m.p.root.nohz_next_blocked = NOW / TICK + 4 - self.scaled(8);
    }

    /// The masks say what the queues show.
    fn draw_masks(&mut self, m: &mut Machine) {
        for cpu in m.cpus() {
            let rq = *m.rq(cpu);
            let idle = rq.curr == cpu && rq.nr_running == 0 && rq.ttwu_pending == 0;
            let sched_idle = rq.nr_running > 0 && rq.nr_running == rq.cfs.h_nr_idle;
            set(&mut m.p.root.idle, cpu, idle);
            set(&mut m.p.root.sched_idle, cpu, sched_idle);
            set(&mut m.p.root.filtered, cpu, self.chance(4));
            set(&mut m.p.root.tickless, cpu, rq.tick_stopped != 0);
        }
        for cpu in m.cpus() {
            let c = m.p.cpu[cpu as usize];
            let idle = m.p.root.idle;
            let all = c.siblings[..usize::from(c.nr_siblings)]
                .iter()
                .all(|&sibling| idle.bits[usize::from(sibling) / 64] >> (sibling % 64) & 1 != 0);
            set(&mut m.p.root.idle_core, cpu, all);
        }
    }
}

/// Every kernel, alone, with every patch that fits it, and with every knob that it has turned.
fn profiles() -> Vec<(String, Profile)> {
    let patches: Vec<String> = patch_names().into_iter().map(|(name, _)| name).collect();
    let mut profiles = Vec::new();
    for kernel in kernel_names() {
        for patch in ["baseline"].into_iter().chain(patches.iter().map(String::as_str)) {
            let policy = Policy::parse(kernel, patch).ok();
            profiles.extend(policy.map(|policy| (format!("{kernel} {patch}"), policy.profile)));
        }
    }
    for (knob, _, kernels) in knob_names() {
        let values = two_values_of(knob).expect("it has a name");
        let settings = kernels.iter().flat_map(|kernel| values.map(|value| (kernel, value)));
        profiles.extend(settings.map(|(kernel, value)| {
            let spec = format!("set:{knob}={value}");
            let policy = Policy::parse(kernel, &spec).expect("a kernel that has it");
            (format!("{kernel} {spec}"), policy.profile)
        }));
    }
    profiles
}

fn cfs_rq(m: &mut Machine, group: u32, cpu: u32) -> &mut CfsRq {
    match group {
        ROOT_TASK_GROUP => &mut m.rq(cpu).cfs,
        group => &mut m.p.group_rq[group as usize][cpu as usize].cfs,
    }
}

/// A task group's entity is on the queue of its parent.
fn queue_entity(m: &mut Machine, group: u32, parent: u32, cpu: u32) {
    let entity = &mut m.p.group_rq[group as usize][cpu as usize];
    if entity.on_rq == 0 {
        entity.on_rq = 1;
        entity.weight = entity.weight.max(2);
        entity.avg.last_update_time = entity.avg.last_update_time.max(NOW - 10_000_000);
        let weight = u64::from(entity.weight);
        cfs_rq(m, parent, cpu).load_weight += weight;
    }
}
