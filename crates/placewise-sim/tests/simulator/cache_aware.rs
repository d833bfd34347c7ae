//! Threads of a process gather on an LLC; tasks of different processes do not, unless a hint says that
//! they share a cache.

use placewise_sim::Outcome;
use placewise_workload::program::{FOREVER, Op, Program, Workload};

use crate::common::{Setup, counter, programs};

const TWO_LLCS: &str = "pack:1 l3:2 core:4 pu:1";

/// Main and three tasks that run for a third of the time each, threads of main or processes.
fn partners(process: bool) -> Workload {
    let ops = vec![
        Op::Run { ns: 500_000 },
        Op::Sleep { ns: 1_000_000, random_pct: 20 },
        Op::Repeat { counter: 0, times: FOREVER, to: 0 },
        Op::Exit,
    ];
    let partner = Program { process, ..Program::new("partner", ops) };
    let main = vec![
        Op::Fork { program: 1, count: 3, base: 0, step: 0 },
        Op::Run { ns: 50_000 },
        Op::Sleep { ns: 100_000_000_000, random_pct: 0 },
        Op::Exit,
    ];
    programs(vec![Program::new("main", main), partner], 1_000)
}

fn on_fuller_llc(outcome: &Outcome) -> f64 {
    let on = |llc| counter(outcome, &format!("partner_on_llc_{llc}"));
    on(0).max(on(1))
}

fn gathered(kernel: &str, policy: &str, process: bool) -> f64 {
    on_fuller_llc(&Setup::new(TWO_LLCS, kernel, policy, partners(process)).run())
}

/// Fails if threads were not accounted to their process, or its preference had no effect.
#[test]
fn threads_of_a_process_gather_on_an_llc_where_the_kernel_is_cache_aware() {
    for (kernel, policy) in
        [("v7.3", "baseline"), ("v6.15", "cache-aware-rfc3"), ("v6.17", "cache-aware-v1")]
    {
        let together = gathered(kernel, policy, false);
        assert!(together > 2.7, "{kernel} {policy}: {together} of 3");
    }
    for (kernel, policy) in [("v7.3", "set:llc_enabled=0"), ("v6.17", "baseline")] {
        let together = gathered(kernel, policy, false);
        assert!(together < 2.5, "{kernel} {policy}: {together} of 3");
    }
}

/// Fails if processes of one thread had a preference, or counted as one process.
#[test]
fn processes_stay_where_they_are() {
    let [on, off] = ["baseline", "set:llc_enabled=0"].map(|it| gathered("v7.3", it, true));
    assert_eq!(on, off);
}

/// Fails if the hint said nothing, or were obeyed where no process has a preference.
#[test]
fn processes_that_share_a_cache_gather_as_threads_do() {
    let together = gathered("v7.3", "hint:share_cache", true);
    assert!(together > 2.7, "{together} of 3");
    let off = ["set:llc_enabled=0", "set:llc_enabled=0,hint:share_cache"];
    let [without, with] = off.map(|policy| gathered("v7.3", policy, true));
    assert_eq!(without, with);
}
