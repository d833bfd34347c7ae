//! Who wakes whom, sync or not, and in which context, by what carries the messages.

use std::collections::BTreeSet;

use placewise_sim::{Scenario, simulate};
use placewise_trace::{Context, Event, Readings, Record, Sink};

use crate::common::{Setup, benchmark, figure};

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
    wakee: String,
    seen: Vec<Wakeup>,
}

impl Sink for Wakeups {
    fn record(&mut self, record: &Record<'_>) {
        match &record.event {
            Event::Waking { comm, .. } => self.wakee = comm.to_string(),
            Event::Decision(decision) => {
                let Readings::Wakeup(readings) = &decision.placement else { return };
                self.seen.push(Wakeup {
                    waker: record.comm.to_string(),
                    wakee: self.wakee.clone(),
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
    let setup = Setup::new("uma-8", "v6.0", "baseline", benchmark(name, case));
    let Setup { machine, policy, workload, seed } = &setup;
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
    let case = "clients=12,lock_ns=20000,warmup_ms=1,window_ms=20";
    let seen = wakeups("pgbench", case);
    let sync =
        |waker, wakee| assert_eq!(kinds(&seen, waker, wakee), in_task_context(waker, wakee, true));
    sync("pgbench", "postgres");
    sync("postgres", "pgbench");
    let lock = in_task_context("postgres", "postgres", false);
    assert_eq!(kinds(&seen, "postgres", "postgres"), lock);
}

/// Fails if a flush did not go through kworker and interrupt, or if either waked with sync.
#[test]
fn dbench_is_woken_by_kworkers_that_interrupts_wake() {
    let seen = wakeups("dbench", "groups=3,warmup_ms=0,window_ms=20");
    let kworker = "kworker/u";
    let plain =
        |waker, wakee| assert_eq!(kinds(&seen, waker, wakee), in_task_context(waker, wakee, false));
    plain("dbench", kworker);
    plain(kworker, "dbench");
    let from_device = |wakeup: &&Wakeup| wakeup.wakee == kworker && wakeup.interrupt;
    let interrupts: Vec<&Wakeup> = seen.iter().filter(from_device).collect();
    assert!(interrupts.len() > 20);
    assert!(interrupts.iter().all(|wakeup| !wakeup.sync && !wakeup.softirq));
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

fn netperf_pair(cpus: usize) -> f64 {
    let workload = benchmark("netperf", "warmup_ms=20,window_ms=50");
    let mut setup = Setup::new("spr-112", "v6.0", "baseline", workload);
    for program in &mut setup.workload.programs {
        program.cpus = Some(placewise_machine::CpuSet::first_n(cpus));
    }
    figure(&setup.run(), "throughput")
}

/// Published: 134,504 transactions per second on one CPU, 83,528 on two cores. Fails if a message
/// over loopback cost no more than one through a pipe, or if only waking another CPU cost anything.
#[test]
fn a_netperf_pair_is_near_the_published_rates() {
    for (cpus, published) in [(1, 134_504.0), (2, 83_528.0)] {
        let rate = netperf_pair(cpus);
        assert!((rate / published - 1.0).abs() < 0.2, "{rate} on {cpus} CPUs");
    }
}
