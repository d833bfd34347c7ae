//! What published patches are for: the mechanism, where its table shows it.

use placewise_machine::Machine;
use placewise_sim::Outcome;

use crate::common::{Setup, benchmark, benchmark_of, counter};

/// Counters of wakeups are means of all CPUs.
fn share(run: &Outcome, counters: &[&str]) -> f64 {
    let total = counter(run, "schedstat_try_to_wake_up_was_called");
    counters.iter().map(|name| counter(run, name)).sum::<f64>() / total
}

/// A pair whose tasks began in different clusters stays there as long as both CPUs idle in between, but
/// not if the search begins with the waker's cluster.
#[test]
fn cluster_scan_keeps_wakeups_within_the_cluster() {
    let case = "proto=TCP_RR;threads=16;nodes=0;warmup_ms=10;window_ms=5";
    let within = |policy: &str| {
        let run = Setup::new("kunpeng920", "v6.6", policy, benchmark_of("netperf", case)).run();
        let cpu = "schedstat_try_to_wake_up_was_called_to_wake_up_the_local_cpu";
        share(&run, &[cpu, "schedstat_wakeups_on_same_cls"])
    };
    let (before, after) = (within("baseline"), within("cluster-scan"));
    assert!(before < 0.9, "{before}");
    assert!(after > 0.99, "{after}");
}

/// Two tasks for each CPU, of which one waits for the other: most wakeups find their CPU taken by a
/// third, and take another's. Published: 76 % of them before, none after. On 28 CPUs of that machine.
#[test]
fn sis_cache_ends_the_chase_for_cpus() {
    let moved = |policy: &str| {
        let case = "proto=TCP_RR,threads=28,warmup_ms=20,window_ms=10";
        let mut setup =
            Setup::new("pack:1 l3:1 core:14 pu:2", "v6.6", policy, benchmark("netperf", case));
        let costs = placewise_machine::load("spr-2s-224").unwrap().costs;
        setup.machine = Machine { costs, ..setup.machine };
        let run = setup.run();
        let wakeups = counter(&run, "schedstat_try_to_wake_up_was_called");
        counter(&run, "migrations_wakeup") / (wakeups * setup.machine.cpus.len() as f64)
    };
    let (before, after) = (moved("baseline"), moved("sis-cache-v1"));
    assert!(before > 0.6, "{before}");
    assert!(after < 0.05, "{after}");
}

/// A busy LLC is not searched at all, once a busy CPU has balanced and told how busy it is: after 16 ms
/// for each of its CPUs. Target, previous and recent CPU are looked at before.
#[test]
fn sis_util_ends_searches_of_a_busy_llc() {
    let looked_at = |policy: &str| {
        let case = "proto=TCP_RR,threads=16,user_ns=20000,warmup_ms=400,window_ms=10";
        let run =
            Setup::new("pack:1 l3:1 core:8 pu:2", "v5.18", policy, benchmark("netperf", case))
                .run();
        counter(&run, "sis_scanned") / counter(&run, "sis_search")
    };
    let (before, after) = (looked_at("baseline"), looked_at("sis-util"));
    assert!(before > 5.0, "{before}");
    assert!(after <= 3.0, "{after}");
}
