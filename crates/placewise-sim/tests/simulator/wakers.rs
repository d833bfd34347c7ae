//! Who wakes whom, sync or not, and in which context, by what carries the messages.

use std::collections::{BTreeMap, BTreeSet};

use placewise_sim::{Scenario, SimError, simulate};
use placewise_trace::{Context, Event, Readings, Record, Sink};

use placewise_machine::CpuSet;
use placewise_workload::program::{
    Call, Change, ChannelKind, FOREVER, Object, Op, Program, Setting, Wake, Workload,
};

use crate::common::{Setup, benchmark, counter, figure, main_of, proc_sched, programs};
use crate::trace::{Line, parse};

/// A wakeup that asked for a CPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wakeup {
    waker: String,
    wakee: String,
    sync: bool,
    /// in_task() is false, and a softirq, if anything, is under way.
    interrupt: bool,
    softirq: bool,
}

#[derive(Default)]
struct Wakeups {
    /// Of whom a CPU last began to wake.
    wakees: BTreeMap<u32, String>,
    seen: Vec<Wakeup>,
}

impl Sink for Wakeups {
    fn record(&mut self, record: &Record<'_>) {
        match &record.event {
            Event::Waking { comm, .. } => {
                self.wakees.insert(record.cpu, comm.to_string());
            }
            Event::Decision(decision) => {
                let Readings::Wakeup(readings) = &decision.placement else { return };
                self.seen.push(Wakeup {
                    waker: record.comm.to_string(),
                    wakee: self.wakees[&record.cpu].clone(),
                    sync: readings.sync,
                    interrupt: readings.interrupt,
                    softirq: record.context == Context::SoftInterrupt,
                });
            }
            _ => {}
        }
    }

    fn takes_decisions(&self) -> bool {
        true
    }
}

fn wakeups(name: &str, case: &str) -> Vec<Wakeup> {
    wakeups_of(&Setup::new("uma-8", "v6.0", "baseline", benchmark(name, case)))
}

fn wakeups_of(setup: &Setup) -> Vec<Wakeup> {
    let Setup { machine, policy, workload, seed } = setup;
    let mut wakeups = Wakeups::default();
    let scenario = Scenario { machine, policy, workload, seed: *seed };
    simulate(&scenario, Some(&mut wakeups)).expect("the run ends well");
    wakeups.seen
}

/// The wakeups between two kinds of tasks, each kind once.
fn kinds(wakeups: &[Wakeup], waker: &str, wakee: &str) -> Vec<Wakeup> {
    let between = |wakeup: &&Wakeup| (&*wakeup.waker, &*wakeup.wakee) == (waker, wakee);
    let kinds: BTreeSet<Wakeup> = wakeups.iter().filter(between).cloned().collect();
    kinds.into_iter().collect()
}

fn over_loopback(waker: &str, wakee: &str) -> Vec<Wakeup> {
    let (waker, wakee) = (waker.to_string(), wakee.to_string());
    vec![Wakeup { waker, wakee, sync: true, interrupt: true, softirq: true }]
}

fn in_task_context(waker: &str, wakee: &str, sync: bool) -> Vec<Wakeup> {
    let (waker, wakee) = (waker.to_string(), wakee.to_string());
    vec![Wakeup { waker, wakee, sync, interrupt: false, softirq: false }]
}

/// Fails if what arrives over loopback woke its reader in task context, without sync, or with
/// another task than the sender as the current one.
#[test]
fn data_over_loopback_wakes_in_a_softirq_of_the_sender() {
    for case in ["proto=TCP_RR,threads=2", "proto=UDP_RR,threads=2"] {
        let seen = wakeups("netperf", &format!("{case},warmup_ms=1,window_ms=3"));
        for (waker, wakee) in [("netperf", "netserver"), ("netserver", "netperf")] {
            assert_eq!(kinds(&seen, waker, wakee), over_loopback(waker, wakee));
        }
    }
    let seen = wakeups("tbench", "clients=3,warmup_ms=1,window_ms=3");
    assert_eq!(kinds(&seen, "tbench_srv", "tbench"), over_loopback("tbench_srv", "tbench"));
    assert_eq!(kinds(&seen, "tbench", "tbench_srv"), over_loopback("tbench", "tbench_srv"));
}

/// Fails if clients left the barrier by sync wakeups.
#[test]
fn tbench_clients_start_by_wakeups_that_are_not_sync() {
    let seen = wakeups("tbench", "clients=3,warmup_ms=1,window_ms=3");
    assert_eq!(kinds(&seen, "tbench", "tbench"), in_task_context("tbench", "tbench", false));
}

/// Fails if polled sockets woke like a futex, or the lock of the backends like a socket.
#[test]
fn pgbench_wakes_sync_over_sockets_and_not_for_locks() {
    let case = "clients=12,lock_ns=80000,warmup_ms=1,window_ms=20";
    let seen = wakeups("pgbench", case);
    let sync =
        |waker, wakee| assert_eq!(kinds(&seen, waker, wakee), in_task_context(waker, wakee, true));
    sync("pgbench", "postgres");
    sync("postgres", "pgbench");
    let lock = in_task_context("postgres", "postgres", false);
    assert_eq!(kinds(&seen, "postgres", "postgres"), lock);
}

/// Mean throughput of pgbench on x86-12 with v3.10.
fn pgbench(clients: u32, policy: &str) -> f64 {
    const SEEDS: u64 = 4;
    let case = format!("clients={clients}");
    let setup = Setup::new("x86-12", "v3.10", policy, benchmark("pgbench", &case));
    let run = |seed| figure(&Setup { seed, ..setup.clone() }.run(), "throughput");
    (1..=SEEDS).map(run).sum::<f64>() / SEEDS as f64
}

/// Published: nothing at 1 and 2 clients, +20 to +27 % at 16. Backends come to the client's core, to
/// take turns with it or to share it. Fails if a search of v3.10 saw idle CPUs beside busy ones, if a
/// lone sync waker did not pull, or if backends had no other wakee than the client.
#[test]
fn wide_wakeups_spare_the_core_of_pgbench() {
    let gain = |clients| pgbench(clients, "wake-wide") / pgbench(clients, "baseline") - 1.0;
    assert!(gain(2).abs() < 0.01, "{} at 2 clients", gain(2));
    assert!(gain(16) > 0.15, "{} at 16 clients", gain(16));
}

/// Iterations of a pair that wake each other on idle CPUs of one LLC, which do not watch their flags, with something
/// changed.
fn pair(kernel: &str, change: impl FnOnce(&mut Setup)) -> f64 {
    let workload = benchmark("context_switch1", "instances=1,warmup_ms=1,window_ms=20");
    let mut setup = Setup::new("uma-8", kernel, "baseline", workload);
    let costs = &mut setup.machine.costs;
    costs.idle_states.retain_mut(|state| {
        state.polling = false;
        state.name == "C1"
    });
    change(&mut setup);
    figure(&setup.run(), "throughput")
}

/// With a wake list or without: until v5.19 idle CPUs of the waker's LLC had none. Fails if only the list's interrupt
/// took time.
#[test]
fn who_wakes_an_idle_cpu_owes_what_the_interrupt_takes() {
    for kernel in ["v5.17", "v6.0"] {
        let sent_in = |ns| pair(kernel, |setup| setup.machine.costs.ipi_send_ns = ns);
        let [free, dear] = [0, 50_000].map(sent_in);
        assert!(dear < 0.5 * free, "{kernel}: {free} iterations, and {dear}");
    }
}

/// The same two ways to be told.
#[test]
fn an_idle_cpu_runs_a_wakee_as_late_as_its_program_says() {
    for kernel in ["v5.17", "v6.0"] {
        let takes = |idle_exit_ns| {
            let iterations = pair(kernel, |setup| {
                setup.machine.costs.jitter_pct = 0;
                let programs = setup.workload.programs.iter_mut();
                programs.for_each(|program| program.idle_exit_ns = idle_exit_ns);
            });
            1e9 / iterations
        };
        let [sooner, figures, later] = [-500, 0, 10_000].map(takes);
        assert!((later - figures - 10_000.0).abs() < 100.0, "{kernel}: {figures} ns, and {later}");
        assert!((figures - sooner - 500.0).abs() < 100.0, "{kernel}: {figures} ns, and {sooner}");
    }
}

/// Throughput and wakeup migrations on uma-8, v4.15: sums over seeds.
fn under_prev_idle(workload: &str, case: &str) -> [(f64, f64); 2] {
    const SEEDS: u64 = 8;
    ["baseline", "prev-idle"].map(|policy| {
        let setup = Setup::new("uma-8", "v4.15", policy, benchmark(workload, case));
        (1..=SEEDS).fold((0.0, 0.0), |(throughput, moved), seed| {
            let outcome = Setup { seed, ..setup.clone() }.run();
            let migrations = counter(&outcome, "migrations_wakeup");
            (throughput + figure(&outcome, "throughput"), moved + migrations)
        })
    })
}

/// Published: about 10 % fewer migrations in dbench, and throughput within 3 % everywhere; here dbench gains
/// 8 %. Fails if the device's interrupts arrived where the sleeper is, or woke from CPUs that are busy.
#[test]
fn prev_idle_spares_migrations_after_device_interrupts() {
    let dbench = "groups=4,warmup_ms=100,window_ms=400";
    let pgbench = "clients=7,threads=4,log_us=60,warmup_ms=200,window_ms=200";
    for (workload, case) in [("dbench", dbench), ("pgbench", pgbench)] {
        let [(before, moved), (after, stayed)] = under_prev_idle(workload, case);
        assert!((after / before - 1.0).abs() < 0.1, "{workload}: {before} and {after}");
        assert!(stayed < 0.98 * moved, "{workload}: {moved} and {stayed} migrations");
    }
}

/// Fails if a transaction that only reads waited for the log.
#[test]
fn pgbench_that_only_reads_has_no_interrupts_for_prev_idle_to_act_on() {
    let [baseline, prev_idle] = under_prev_idle("pgbench", "clients=7,warmup_ms=100,window_ms=100");
    assert_eq!(baseline, prev_idle);
}

/// Fails if a flush did not go through kworker and interrupt, or if either waked with sync.
#[test]
fn dbench_is_woken_by_kworkers_that_interrupts_wake() {
    let kworker = "kworker/u";
    let (interrupts, by_tasks): (Vec<_>, Vec<_>) =
        wakeups("dbench", "groups=3,warmup_ms=0,window_ms=20")
            .into_iter()
            .partition(|wakeup| wakeup.wakee == kworker && wakeup.interrupt);
    let plain = |waker, wakee| {
        assert_eq!(kinds(&by_tasks, waker, wakee), in_task_context(waker, wakee, false));
    };
    plain("dbench", kworker);
    plain(kworker, "dbench");
    assert!(interrupts.len() > 20);
    assert!(interrupts.iter().all(|wakeup| !wakeup.sync && !wakeup.softirq));
}

/// Fails if a device interrupted the CPU that had asked it, as a timer does.
#[test]
fn device_interrupts_go_to_the_cpus_in_turn() {
    let wait = Op::Device { ns: 100_000, random_pct: 0 };
    let repeat = Op::Repeat { counter: 0, times: 16, to: 0 };
    let sleeper = Program::new("sleeper", vec![wait, repeat, Op::Exit]);
    let (_, text) = Setup::new("uma-8", "v6.0", "baseline", programs(vec![sleeper], 10)).traced();
    let wakings = parse(&text).into_iter().filter(|line| line.event == "sched_waking");
    let cpus: Vec<u32> = wakings.map(|line| line.cpu).collect();
    assert_eq!(cpus, (0..8).chain(0..8).collect::<Vec<u32>>());
}

/// Those of one that has a CPU of its own go there, unless the machine lacks it.
#[test]
fn device_interrupts_go_to_the_cpu_that_is_named() {
    for (named, expected) in [(5, 5), (800, 0)] {
        let wait = Op::Sleep { ns: 100_000, random_pct: 0 };
        let ops = vec![wait, Op::Repeat { counter: 0, times: 16, to: 0 }, Op::Exit];
        let cpus = Some(CpuSet::single(0));
        let sleeper = Program { interrupted_on: Some(named), cpus, ..Program::new("sleeper", ops) };
        let (_, text) =
            Setup::new("uma-8", "v6.0", "baseline", programs(vec![sleeper], 10)).traced();
        let wakings = parse(&text).into_iter().filter(|line| line.event == "sched_waking");
        let cpus: Vec<u32> = wakings.map(|line| line.cpu).collect();
        assert_eq!(cpus, [expected; 16]);
    }
}

fn tbench(clients: u32, policy: &str) -> f64 {
    let case = format!("clients={clients},warmup_ms=100,window_ms=20");
    let setup = Setup::new("zen3-2s-nps1", "v6.0", policy, benchmark("tbench", &case));
    figure(&setup.run(), "throughput")
}

/// Published: -9 to -54 % from 8 clients on, since the servers sleep while the next one is placed
/// and an LLC looks idle. Fails if servers were busy or awake when they are forked.
#[test]
fn sleeping_servers_pile_up_where_forks_stay_near() {
    let [spread, near] = ["baseline", "hint:fork_affine"].map(|policy| tbench(32, policy));
    assert!(near < 0.9 * spread, "{spread} without, {near} with fork_affine");
}

/// At full speed, which is 3.0 GHz.
fn netperf_pair(kernel: &str, cpus: usize, polling: bool) -> f64 {
    let workload = benchmark("netperf", "warmup_ms=20,window_ms=50");
    let mut setup =
        Setup::new("spr-112", kernel, "baseline", workload).without_spread().at_speed(1024);
    setup.machine.costs.idle_states.iter_mut().for_each(|state| state.polling = polling);
    for program in &mut setup.workload.programs {
        program.cpus = Some(CpuSet::first_n(cpus));
    }
    figure(&setup.run(), "throughput")
}

/// Published: 134,504 transactions per second on one CPU, 83,528 on two cores, of such a part, whose turbo is 3.8 GHz. Fails
/// if a message over loopback cost no more than one through a pipe, or if only waking another CPU cost anything.
#[test]
fn a_netperf_pair_is_near_the_published_rates() {
    for (cpus, published) in [(1, 134_504.0), (2, 83_528.0)] {
        let rate = 3.8 / 3.0 * netperf_pair("v6.6", cpus, true);
        assert!((rate / published - 1.0).abs() < 0.1, "{rate} on {cpus} CPUs");
    }
}

/// Fails if a CPU that polls its flag is sent an interrupt.
#[test]
fn a_polling_cpu_is_woken_by_a_store() {
    assert!((netperf_pair("v6.0", 1, true) / netperf_pair("v6.0", 1, false) - 1.0).abs() < 0.001);
    let [polled, interrupted] = [true, false].map(|polling| 1e9 / netperf_pair("v6.0", 2, polling));
    let delivery = placewise_machine::load("spr-112").expect("a preset").costs.ipi_delivery_ns.llc;
    let saved = (interrupted - polled) / 2.0;
    assert!(saved > 0.8 * delivery as f64, "{saved} ns a wakeup, an interrupt takes {delivery}");
}

/// A machine whose costs were measured where the kernels were watched.
const EMULATED: &str = "../../studies/interventions/machines/one-llc-8.toml";

/// By how much preemption quickens a pair that shares a CPU of it, in percent.
fn gained_by_preemption(kernel: &str) -> f64 {
    let [with, without] = ["baseline", "set:WAKEUP_PREEMPTION=0"].map(|policy| {
        let workload = benchmark("netperf", "warmup_ms=200,window_ms=50");
        let mut setup = Setup::new("uma-8", kernel, policy, workload);
        setup.machine = placewise_machine::load(EMULATED).expect("it is there");
        setup.workload.programs.iter_mut().for_each(|it| it.cpus = Some(CpuSet::single(0)));
        figure(&setup.run(), "throughput")
    });
    100.0 * (with / without - 1.0)
}

/// As on real kernels. Where the clock stands from a wakeup that preempts, the rest of the waker's call is the wakee's
/// time, and the lag that made it preempt goes away: under 6.1 after 700 round trips. Under 6.18 it goes on, in
/// turns where the kernel preempts lazily, and with each message where it preempts itself, for the waker comes back to
/// the rest of its call. Fails without any of the three.
#[test]
fn a_pair_on_one_cpu_stops_preempting_where_it_is_the_wakees_time() {
    let [stands, lazily, fully] = ["v6.0", "v6.18.15", "v6.18"].map(gained_by_preemption);
    assert!(stands.abs() < 0.5, "{stands} %");
    assert!(lazily > 1.0 && fully > 1.02 * lazily, "{lazily} % and {fully} %");
}

/// A poster that posts three times before the waiter takes any, and then in each way.
fn posts(wake: Wake) -> Workload {
    let semaphore = Object::shared(0);
    let post = Op::Post { semaphore, wake, call: Call::default(), answered_at: None };
    let take = Op::Await { semaphore, lines: 1 };
    let fork = |program| Op::Fork { program, count: 1, base: 0, step: 0 };
    let pause = Op::Sleep { ns: 100_000, random_pct: 0 };
    let main = vec![post, post, fork(1), pause, post, Op::Join, Op::Exit];
    let waiter = vec![take, take, take, Op::Count, Op::Exit];
    let all = vec![Program::new("poster", main), Program::new("waiter", waiter)];
    Workload { semaphores: vec![0], ..programs(all, 10) }
}

#[test]
fn a_semaphore_keeps_posts_and_wakes_in_the_way_of_the_post() {
    for (wake, sync, interrupt) in
        [(Wake::Plain, false, false), (Wake::Sync, true, false), (Wake::Softirq, true, true)]
    {
        let setup = Setup::new("uma-8", "v6.0", "baseline", posts(wake));
        let Setup { machine, policy, workload, seed } = &setup;
        let mut wakeups = Wakeups::default();
        let scenario = Scenario { machine, policy, workload, seed: *seed };
        simulate(&scenario, Some(&mut wakeups)).expect("the third post is waited for, and comes");
        let to_waiter: Vec<&Wakeup> =
            wakeups.seen.iter().filter(|it| it.wakee == "waiter").collect();
        let [only] = to_waiter[..] else { panic!("{to_waiter:?}: the first two were kept") };
        assert_eq!((only.sync, only.interrupt), (sync, interrupt), "{wake:?}");
    }
}

/// Two post to a semaphore, once, and one waits there four times.
#[test]
fn nobody_waits_at_a_semaphore_that_all_have_closed() {
    let semaphore = Object::shared(0);
    let fork = |program| Op::Fork { program, count: 1, base: 0, step: 0 };
    let call = Call::default();
    let posts = |ns| {
        let post = Op::Post { semaphore, wake: Wake::Plain, call, answered_at: None };
        let pause = Op::Sleep { ns, random_pct: 0 };
        Program::new("poster", vec![pause, post, Op::Close { semaphore }, Op::Exit])
    };
    let waits = [vec![Op::Await { semaphore, lines: 0 }; 4], vec![Op::Count, Op::Exit]].concat();
    let main = Program::new("main", vec![fork(1), fork(2), fork(3), Op::Join, Op::Exit]);
    let all = vec![main, Program::new("waiter", waits), posts(100_000), posts(200_000)];
    let workload = |posters| Workload { semaphores: vec![posters], ..programs(all.clone(), 10) };
    let run = |posters| Setup::new("uma-8", "v6.0", "baseline", workload(posters));
    let wakeups = wakeups_of(&run(2));
    let of_waiter = wakeups.iter().filter(|it| it.wakee == "waiter").count();
    assert_eq!(of_waiter, 2, "by each post; the last close finds it awake");
    let Setup { machine, policy, workload, seed } = &run(3);
    let scenario = Scenario { machine, policy, workload, seed: *seed };
    assert!(
        matches!(simulate(&scenario, None), Err(SimError::Deadlock { .. })),
        "a third may post"
    );
}

/// One who comes late is named first by the server. Whom its first answer goes to, and its second.
#[test]
fn an_answer_goes_to_whose_post_was_taken() {
    let [inbox, late, early] = [0, 1, 2].map(Object::shared);
    let fork = |program| Op::Fork { program, count: 1, base: 0, step: 0 };
    let serve = [
        Op::Await { semaphore: inbox, lines: 0 },
        Op::Answer { inbox, otherwise: late, wake: Wake::Plain, call: Call::default() },
    ];
    let main = [&[fork(1), fork(2)], &serve.repeat(2)[..], &[Op::Join, Op::Exit]].concat();
    let client = |name, ns, answered_at| {
        let post = Op::Post {
            semaphore: inbox,
            wake: Wake::Plain,
            call: Call::default(),
            answered_at: Some(answered_at),
        };
        let answer = Op::Await { semaphore: answered_at, lines: 0 };
        Program::new(name, vec![Op::Sleep { ns, random_pct: 0 }, post, answer, Op::Count, Op::Exit])
    };
    let clients = [client("late", 200_000, late), client("early", 100_000, early)];
    let all = std::iter::once(Program::new("server", main)).chain(clients).collect();
    let workload = Workload { semaphores: vec![0; 3], ..programs(all, 10) };
    let answers = wakeups_of(&Setup::new("uma-8", "v6.0", "baseline", workload));
    let answers = answers.iter().filter(|it| it.waker == "server");
    let woken: Vec<&str> = answers.map(|it| it.wakee.as_str()).collect();
    assert_eq!(woken, ["early", "late"]);
}

/// What the first wakeup by the child read of its flips.
#[derive(Default)]
struct Flips(Option<u32>);

impl Sink for Flips {
    fn record(&mut self, record: &Record<'_>) {
        if let Event::Decision(decision) = &record.event
            && let Readings::Wakeup(readings) = &decision.placement
            && record.comm == "child"
        {
            self.0.get_or_insert(readings.waker.wakee_flips);
        }
    }

    fn takes_decisions(&self) -> bool {
        true
    }
}

/// It wakes its parent, whom it has not woken before.
#[test]
fn a_task_begins_with_the_flips_that_its_program_names() {
    let fork = Op::Fork { program: 1, count: 1, base: 0, step: 0 };
    let main = vec![fork, Op::Wait { sample: false }, Op::Count, Op::Exit];
    let pause = Op::Sleep { ns: 100_000, random_pct: 0 };
    let read = [0, 700].map(|wakee_flips| {
        let child = Program::new("child", vec![pause, Op::WakeParent, Op::Exit]);
        let child = Program { wakee_flips, ..child };
        let all = vec![Program::new("main", main.clone()), child];
        let Setup { machine, policy, workload, seed } =
            Setup::new("uma-8", "v6.0", "baseline", programs(all, 10));
        let scenario = Scenario { machine: &machine, policy: &policy, workload: &workload, seed };
        let mut flips = Flips::default();
        simulate(&scenario, Some(&mut flips)).expect("the run ends well");
        flips.0.expect("the child wakes its parent")
    });
    assert_eq!(read, [0, 700]);
}

/// From its wakeup until the waiter is on the run queue, and from then until it preempts whoever computes, on the one
/// CPU that both may use.
fn preempts_after(computes: Vec<Op>, waits: Op, arrival: Call) -> [u64; 2] {
    let on_one = |name, ops| Program { cpus: Some(CpuSet::single(2)), ..Program::new(name, ops) };
    let main = on_one("computes", computes);
    let waiter = Program { arrival, ..on_one("waiter", vec![waits, Op::Exit]) };
    let workload = Workload { semaphores: vec![0], ..programs(vec![main, waiter], 100) };
    let mut setup = Setup::new("uma-8", "v6.0", "baseline", workload);
    setup.machine.costs.jitter_pct = 0;
    let lines = parse(&setup.traced().1);
    let at = |event: &str| {
        let is_it = |line: &Line| line.event == event && line.text("comm") == "waiter";
        lines.iter().position(is_it).expect("it is woken")
    };
    let (waking, woken) = (at("sched_waking"), at("sched_wakeup"));
    let runs = lines[woken..].iter().find(|line| line.event == "sched_switch");
    let runs = runs.filter(|line| line.text("next_comm") == "waiter").expect("it preempts");
    [lines[woken].micros - lines[waking].micros, runs.micros - lines[woken].micros]
}

const TAKES: Call = Call { queue_ns: 30_000, rest_ns: 50_000 };
const COMPUTE: Op = Op::Run { ns: 20_000_000 };
const FORK: Op = Op::Fork { program: 1, count: 1, base: 0, step: 0 };

#[test]
fn a_wakee_is_queued_and_preempts_as_late_as_the_call_says() {
    let semaphore = Object::shared(0);
    let preempts = |call| {
        let post = Op::Post { semaphore, wake: Wake::Softirq, call, answered_at: None };
        let poster = vec![FORK, Op::Yield, COMPUTE, post, COMPUTE, Op::Join, Op::Exit];
        preempts_after(poster, Op::Await { semaphore, lines: 0 }, Call::default())
    };
    let [queued, runs] = preempts(Call::default());
    assert_eq!(preempts(TAKES), [queued + 30, runs + 50]);
}

#[test]
fn whom_an_interrupt_wakes_is_queued_and_preempts_as_late_as_its_program_says() {
    let preempts = |arrival| {
        let computes = vec![FORK, Op::Yield, COMPUTE, COMPUTE, Op::Join, Op::Exit];
        preempts_after(computes, Op::Sleep { ns: 20_500_000, random_pct: 0 }, arrival)
    };
    let [queued, runs] = preempts(Call::default());
    assert_eq!(preempts(TAKES), [queued + 30, runs + 50]);
}

#[test]
fn a_task_begins_where_its_program_says_if_it_may_run_there() {
    for (begins_on, cpus, expected) in
        [(5, None, 5), (5, Some(CpuSet::single(2)), 2), (99, None, 1)]
    {
        let fork = Op::Fork { program: 1, count: 1, base: 0, step: 0 };
        let main = Program::new("main", vec![fork, Op::Join, Op::Exit]);
        let child = Program {
            begins_on: Some(begins_on),
            cpus,
            ..Program::new("child", vec![Op::Run { ns: 1_000 }, Op::Exit])
        };
        let setup = Setup::new("uma-8", "v6.0", "baseline", programs(vec![main, child], 10));
        let (_, text) = setup.traced();
        let new = parse(&text)
            .into_iter()
            .find(|line| line.event == "sched_wakeup_new" && line.text("comm") == "child");
        let cpu = new.expect("it is forked").number("target_cpu");
        assert_eq!(cpu, expected, "begins on {begins_on}");
    }
}

#[test]
fn the_first_task_begins_where_its_program_says_too() {
    for (begins_on, expected) in [(Some(5), 5), (Some(99), 0), (None, 0)] {
        let main =
            Program { begins_on, ..Program::new("main", vec![Op::Run { ns: 1_000 }, Op::Exit]) };
        let setup = Setup::new("uma-8", "v6.0", "baseline", programs(vec![main], 10));
        let (_, text) = setup.traced();
        let switch = parse(&text)
            .into_iter()
            .find(|line| line.event == "sched_switch" && line.text("next_comm") == "main");
        assert_eq!(switch.expect("it runs").cpu, expected, "begins on {begins_on:?}");
    }
}

/// All four wait there, and are woken one after the other: the policy, which is asked where none is named, spreads them.
#[test]
fn tasks_go_on_behind_a_gate_where_they_begin() {
    for (begins_on, expected) in [(Some(5), 1), (None, 4)] {
        let gate = Object::shared(0);
        let pause = Op::Sleep { ns: 1_000_000, random_pct: 0 };
        let ops = vec![
            Op::Fork { program: 1, count: 4, base: 0, step: 0 },
            pause,
            Op::GateOpen { gate },
            Op::Join,
            Op::Exit,
        ];
        let waits = vec![Op::GateWait { gate }, Op::Run { ns: 500_000 }, Op::Exit];
        let child = Program { begins_on, ..Program::new("child", waits) };
        let all = vec![Program::new("main", ops), child];
        let workload = Workload { gates: 1, ..programs(all, 10) };
        let (_, text) = Setup::new("uma-8", "v6.0", "baseline", workload).traced();
        let woken = parse(&text)
            .into_iter()
            .filter(|line| line.event == "sched_wakeup" && line.text("comm") == "child");
        let cpus: Vec<u32> = woken.map(|line| line.number("target_cpu")).collect();
        let distinct = cpus.iter().collect::<BTreeSet<_>>().len();
        assert_eq!((cpus.len(), distinct), (4, expected), "begins on {begins_on:?}: {cpus:?}");
    }
}

/// As poll() on one pipe has them, seen under Linux 6.18: all share its wait queue, and each goes to its head.
#[test]
fn who_came_last_to_a_gate_is_woken_first() {
    let gate = Object::shared(0);
    let comes = |name, ms: u64| {
        let pause = Op::Sleep { ns: ms * 1_000_000, random_pct: 0 };
        Program::new(name, vec![pause, Op::GateWait { gate }, Op::Exit])
    };
    let pause = Op::Sleep { ns: 10_000_000, random_pct: 0 };
    let opener = Program::new("opener", vec![pause, Op::GateOpen { gate }, Op::Exit]);
    let all = vec![main_of(4), comes("second", 2), comes("first", 1), comes("third", 3), opener];
    let workload = Workload { gates: 1, ..programs(all, 20) };
    let (_, text) = Setup::new("uma-8", "v6.18", "baseline", workload).traced();
    let lines = parse(&text).into_iter();
    let woken = lines.filter(|line| line.event == "sched_waking" && line.text("comm") != "main");
    let woken: Vec<String> = woken.map(|line| line.text("comm").to_owned()).collect();
    // By their timers, and by who opens.
    assert_eq!(woken, ["first", "second", "third", "opener", "third", "second", "first"]);
}

/// Fails if main opened the gate while some still begin: they would go through unwoken.
#[test]
fn a_herd_is_let_go_when_all_are_there() {
    let workload = benchmark("herd", "tasks=12,loops=1,startup_us=2000,warmup_ms=0,window_ms=50");
    let wakeups = wakeups_of(&Setup::new("uma-8", "v6.18", "baseline", workload));
    let let_go = ["driver", "follower"].map(|wakee| count(&wakeups, "herd", wakee));
    assert_eq!(let_go, [1, 12]);
}

/// How often a reader of a message each 20 us is searched a CPU, in 10 ms, by what a switch between tasks takes and
/// one to the idle task. It falls asleep after each message, and its CPU then idles.
fn searches_for_a_reader(context_switch_ns: u64, switch_to_idle_ns: u64) -> usize {
    let channel = Object::shared(0);
    let for_ever = |name, mut ops: Vec<Op>| {
        ops.extend([Op::Repeat { counter: 0, times: FOREVER, to: 0 }, Op::Exit]);
        Program::new(name, ops)
    };
    let writer = vec![Op::Sleep { ns: 20_000, random_pct: 0 }, Op::Send { channel, bytes: 100 }];
    let reader = vec![Op::Receive { channel, bytes: 100 }];
    let all = vec![main_of(2), for_ever("reader", reader), for_ever("writer", writer)];
    let workload = Workload { channels: vec![ChannelKind::Pipe], ..programs(all, 10) };
    let mut setup = Setup::new("uma-8", "v6.0", "baseline", workload);
    setup.machine.costs.context_switch_ns = context_switch_ns;
    setup.machine.costs.switch_to_idle_ns = switch_to_idle_ns;
    count(&wakeups_of(&setup), "writer", "reader")
}

fn count(wakeups: &[Wakeup], waker: &str, wakee: &str) -> usize {
    let between = |wakeup: &&Wakeup| (&*wakeup.waker, &*wakeup.wakee) == (waker, wakee);
    wakeups.iter().filter(between).count()
}

/// Fails if a task were off its CPU before it has left the run queue: who is woken before goes nowhere. Or if to switch
/// to the idle task took as long as to another's memory.
#[test]
fn a_task_is_off_its_cpu_once_it_has_left_the_run_queue() {
    let soon = searches_for_a_reader(1_000, 1_000);
    let [to_another, late] = [(60_000, 1_000), (1_000, 60_000)]
        .map(|(switch, to_idle)| searches_for_a_reader(switch, to_idle));
    assert!(soon > 50, "{soon} searches");
    assert!(to_another > soon * 3 / 4, "{to_another} searches, {soon} with short switches");
    assert!(late < soon / 4, "{late} searches, {soon} where its CPU soon idles");
}

/// How long the wakeup of a task takes that slept on CPU 3 and may run on `cpu` alone since, in us.
fn wakeup_takes(cpu: usize, wake_elsewhere_ns: u64) -> u64 {
    let channel = Object::shared(0);
    let pause = Op::Sleep { ns: 2_000_000, random_pct: 0 };
    let mut reader = Program::new("reader", vec![Op::Receive { channel, bytes: 1 }, Op::Exit]);
    reader.cpus = Some(CpuSet::single(3));
    let writer = Program::new("writer", vec![pause, Op::Send { channel, bytes: 1 }, Op::Exit]);
    let to = Setting::Affinity { task: "reader".to_owned(), cpus: CpuSet::single(cpu) };
    let workload = Workload {
        channels: vec![ChannelKind::Pipe],
        changes: vec![Change { at: 1_000_000, to }],
        ..programs(vec![main_of(2), reader, writer], 10)
    };
    let mut setup = Setup::new("uma-8", "v6.18", "baseline", workload);
    setup.policy.profile.ttwu_queue = false;
    setup.machine.costs.wake_elsewhere_ns = wake_elsewhere_ns;
    let lines = parse(&setup.traced().1);
    let [waking, woken] = ["sched_waking", "sched_wakeup"].map(|event| {
        let of_reader = |line: &&Line| line.event == event && line.text("comm") == "reader";
        lines.iter().rfind(of_reader).expect("it is woken").micros
    });
    woken - waking
}

#[test]
fn a_wakeup_takes_longer_that_moves_its_wakee() {
    let longer = [3, 5].map(|cpu| wakeup_takes(cpu, 100_000) - wakeup_takes(cpu, 0));
    assert!(longer[0] == 0 && longer[1].abs_diff(100) < 12, "{longer:?} us");
}

/// What a task that its timer wakes on an idle CPU is said to have run each time, in us, if the idle task takes so
/// long to go.
fn runs_from_idle(idle_switch_ns: u64) -> f64 {
    let again = Op::Repeat { counter: 0, times: FOREVER, to: 0 };
    let sleep = Op::Sleep { ns: 1_000_000, random_pct: 0 };
    let sleeper = Program::new("sleeper", vec![sleep, Op::Run { ns: 20_000 }, again, Op::Exit]);
    let workload = programs(vec![main_of(1), sleeper], 50);
    let mut setup = Setup::new("uma-8", "v6.18", "baseline", workload);
    setup.machine.costs.jitter_pct = 0;
    setup.machine.costs.idle_switch_ns = idle_switch_ns;
    let run = setup.run();
    let of_sleeper = |field| proc_sched(&run, "sleeper", field);
    of_sleeper("se.sum_exec_runtime") * 1_000.0 / of_sleeper("nr_wakeups")
}

/// Fails if what the idle task does once somebody is enqueued were its own time: schedule() does not update the clock.
#[test]
fn who_ends_a_cpus_rest_runs_from_when_it_is_enqueued() {
    let [soon, late] = [1_000, 101_000].map(runs_from_idle);
    assert!((95.0..105.0).contains(&(late - soon)), "{late} and {soon} us");
}
