//! What deciding a wakeup costs: ns per call of `select_task_rq`, built natively and as BPF in
//! the running kernel, in two states of a machine with 384 CPUs.
//!
//! Both decide the same list of wakeups again and again, in turns, and must choose the same CPUs;
//! the list is too long for branch predictors to learn it by heart. What a loop that decides
//! nothing takes is subtracted. A turn takes less than half a millisecond of wall time, so that few
//! of them are preempted even on a busy host: the median of all does not show those, and beside it
//! stands the least. (The CPU time of a thread that is preempted within a BPF program is sometimes
//! counted far too low.)
//!
//! Limits: nobody enqueues the wakee, so the state is the same for each decision but for what
//! decisions write themselves, and what they read is in the caches. Without root and BPF a line says what is missing.

use std::hint::black_box;
use std::ptr;
use std::time::Instant;

use placewise_machine::{Machine, load};
use placewise_policy::topology::boot;
use placewise_policy::*;
use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_pcg::Pcg64Mcg;
use scx_placewise::{KernelPolicy, LoadError, NR_WAKEUPS, WakeupToDecide};

const MACHINE: &str = "epyc-9654-2s";
const KERNEL: &str = "v6.18";

/// Draws a half that leaves some LLCs without an idle core: searches end in every way.
const SEED: u128 = 2;

/// Tasks that are woken.
const SLEEPERS: usize = 1024;

/// How often each build decides all wakeups.
const TURNS: usize = 501;

fn main() {
    let mut kernel = match KernelPolicy::load() {
        Ok(kernel) => kernel,
        Err(LoadError::Unavailable(reason)) => {
            return println!("wakeups in BPF: skipped: {reason}");
        }
        Err(refused) => panic!("{refused}"),
    };
    let machine = load(MACHINE).expect("a preset");
    println!("a wakeup decided on {MACHINE}, {KERNEL} baseline: ns, median (least)");
    let nr_cpus = machine.cpus.len();
    for (name, nr_busy, tasks_per_cpu) in [("half busy", nr_cpus / 2, 1), ("saturated", nr_cpus, 2)]
    {
        let mut bench = Bench::new(&machine, nr_busy, tasks_per_cpu);
        let [native, bpf] = bench.run(&mut kernel);
        println!(
            "  {name:<12} native {:4.0} ({:.0})   BPF {:4.0} ({:.0})   BPF takes {:.2} times as long",
            native.median,
            native.least,
            bpf.median,
            bpf.least,
            bpf.median / native.median,
        );
    }
}

/// ns per decision.
struct Cost {
    median: f64,
    least: f64,
}

/// A state, and wakeups to decide in it.
struct Bench {
    policy: Placement,
    wakeups: Vec<WakeupToDecide>,
    now: u64,
}

impl Bench {
    /// `nr_busy` CPUs, drawn at random, have had that many tasks each for a second.
    fn new(machine: &Machine, nr_busy: usize, tasks_per_cpu: usize) -> Bench {
        let profile = Policy::parse(KERNEL, "baseline").expect("a policy").profile;
        let (policy, _) = boot(machine, &profile).expect("a preset has sched domains");
        let mut bench = Bench { policy, wakeups: Vec::new(), now: 1_000_000_000 };
        let mut random = Pcg64Mcg::new(SEED);

        let mut cpus: Vec<u32> = (0..machine.cpus.len() as u32).collect();
        cpus.shuffle(&mut random);
        let busy = &cpus[..nr_busy];
        let mut tasks = FIRST_TASK..NR_TASKS;
        for &cpu in busy {
            for task in tasks.by_ref().take(tasks_per_cpu) {
                bench.add_running(task, cpu);
            }
        }
        bench.pass_a_second(busy);
        bench.limit_searches();
        let sleepers: Vec<u32> = tasks.take(SLEEPERS).collect();
        for &task in &sleepers {
            bench.add_task(task, random.random_range(0..machine.cpus.len() as u32));
        }
        let wakeup =
            |_| bench.wakeup(*sleepers.choose(&mut random).expect("sleepers"), busy, &mut random);
        bench.wakeups = (0..NR_WAKEUPS).map(wakeup).collect();
        bench
    }

    /// As `sched_fork` leaves it.
    fn add_task(&mut self, task: u32, cpu: u32) {
        let online = self.policy.root.online;
        let nr_cpus = self.policy.root.nr_cpu_ids as u16;
        self.policy.task[task as usize] = Task {
            weight: NICE_0_LOAD,
            cpus_allowed: online,
            nr_cpus_allowed: nr_cpus,
            eligible: 1,
            last_wakee: NO_TASK,
            mru_prev: NO_TASK,
            mru_next: NO_TASK,
            ..Task::default()
        };
        self.policy.place_new_task(task, cpu);
    }

    fn add_running(&mut self, task: u32, cpu: u32) {
        self.add_task(task, cpu);
        self.policy.enqueue_task(task, 0, self.now);
        if is_idle_task(self.policy.rq[cpu as usize].curr) {
            self.policy.nohz_balance_exit_idle(cpu);
            self.policy.set_next_task(cpu, task, self.now);
        }
    }

    /// Averages become those of CPUs that never idle.
    fn pass_a_second(&mut self, busy: &[u32]) {
        let end = self.now + 1_000_000_000;
        while self.now < end {
            self.now += u64::from(self.policy.root.tick_ns);
            busy.iter().for_each(|&cpu| self.policy.task_tick(cpu, self.now));
        }
    }

    /// As the load balancer does now and then for each LLC.
    fn limit_searches(&mut self) {
        let mut used = [0; NR_CPUS as usize];
        for cpu in 0..self.policy.root.nr_cpu_ids {
            used[self.policy.cpu[cpu as usize].llc as usize] += self.policy.cpu_util(cpu);
        }
        let nr_llcs = self.policy.root.nr_llcs as usize;
        for (llc, used) in self.policy.llc[..nr_llcs].iter_mut().zip(used) {
            llc.nr_idle_scan = nr_idle_scan_of(used, llc.size, llc.imbalance_pct);
        }
    }

    /// `task` is woken on a busy CPU: every other time in its LLC.
    fn wakeup(&self, task: u32, busy: &[u32], random: &mut Pcg64Mcg) -> WakeupToDecide {
        let prev = self.policy.task[task as usize].cpu.into();
        let llc_of = |cpu: u32| self.policy.cpu[cpu as usize].llc;
        let near: Vec<u32> =
            busy.iter().copied().filter(|&cpu| llc_of(cpu) == llc_of(prev)).collect();
        let wakers = if random.random() { &near } else { busy };
        let cpu = *wakers.choose(random).expect("every LLC has a busy CPU");
        WakeupToDecide { task, prev, cpu, chosen: 0 }
    }

    /// What a decision costs natively and in BPF.
    fn run(&mut self, kernel: &mut KernelPolicy) -> [Cost; 2] {
        // SAFETY: both are whole States.
        unsafe { ptr::copy_nonoverlapping(&raw const *self.policy, kernel.state(), 1) };
        kernel.wakeups().copy_from_slice(&self.wakeups);

        let now = self.now;
        let mut in_kernel = |program: &str| {
            let decided = kernel.call(program, &[now], None);
            assert_eq!(decided, NR_WAKEUPS as u64);
        };
        let mut native = [const { Vec::new() }; 2];
        let mut bpf = [const { Vec::new() }; 2];
        for _ in 0..TURNS {
            native[0].push(time(|| self.decide_nothing()));
            native[1].push(time(|| self.decide_wakeups()));
            bpf[0].push(time(|| in_kernel("decide_nothing")));
            bpf[1].push(time(|| in_kernel("decide_wakeups")));
        }
        assert_eq!(self.wakeups, *kernel.wakeups(), "both choose the same CPUs");
        [native, bpf].map(|[empty, whole]| cost(empty, whole))
    }

    fn decide_wakeups(&mut self) {
        for WakeupToDecide { task, prev, cpu, chosen } in &mut self.wakeups {
            *chosen = self.policy.select_task_rq(*task, *prev, *cpu, WF_TTWU, self.now);
        }
    }

    fn decide_nothing(&mut self) {
        for wakeup in &mut self.wakeups {
            wakeup.chosen = black_box(wakeup.cpu);
        }
    }
}

fn is_idle_task(task: u32) -> bool {
    task < FIRST_TASK
}

/// The ns that `work` takes.
fn time(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64
}

fn cost(mut empty: Vec<f64>, mut whole: Vec<f64>) -> Cost {
    empty.sort_by(f64::total_cmp);
    whole.sort_by(f64::total_cmp);
    let per_decision = |at: usize| (whole[at] - empty[at]) / NR_WAKEUPS as f64;
    Cost { median: per_decision(TURNS / 2), least: per_decision(0) }
}
