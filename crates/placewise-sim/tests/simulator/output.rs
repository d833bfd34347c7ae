//! Counters and traces in the kernel's own formats.

use std::collections::BTreeMap;

use placewise_policy::kernel_names;
use placewise_workload::program::{FOREVER, Op, Program};

use crate::common::{MS, Setup, benchmark, counter, programs};
use crate::trace::parse;

fn hackbench(kernel: &str) -> Setup {
    let workload = benchmark("hackbench", "groups=1,fds=3,warmup_ms=0,window_ms=8");
    Setup::new("pack:2 l3:2 core:2 pu:2", kernel, "baseline", workload)
}

/// Fails if a kernel's version were forgotten, or a domain line lost or gained a field.
#[test]
fn schedstat_has_the_layout_of_its_kernel() {
    for kernel in kernel_names() {
        let text = hackbench(kernel).run().statistics.schedstat;
        let (version, fields) = match kernel {
            "v6.12" | "v6.12.117" => ("16", 36),
            "v6.14" | "v6.15" | "v6.17" | "v6.18" | "v6.18.15" | "v6.18.32" | "v7.3" => ("17", 45),
            _ => ("15", 36),
        };
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(format!("version {version}").as_str()), "{kernel}");
        assert!(lines.next().is_some_and(|line| line.starts_with("timestamp ")), "{kernel}");
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let names = if words[0].starts_with("domain") && version == "17" { 3 } else { 2 };
            let numbers = match words[0].starts_with("cpu") {
                true => &words[1..],
                false => &words[names..],
            };
            let expected = if words[0].starts_with("cpu") { 9 } else { fields };
            assert_eq!(numbers.len(), expected, "{kernel}: {line}");
            assert!(numbers.iter().all(|number| number.parse::<u64>().is_ok()), "{line}");
        }
    }
}

/// Fails if a wakeup were counted at neither or both of its ends.
#[test]
fn wakeups_of_cpus_are_wakeups_of_tasks() {
    let outcome = hackbench("v6.0").run();
    let cpus = outcome.statistics.schedstat.lines().filter(|line| line.starts_with("cpu"));
    let column = |at: usize| -> u64 {
        let numbers = cpus.clone().map(|line| line.split(' ').nth(at).expect("a field"));
        numbers.map(|number| number.parse::<u64>().expect("a number")).sum()
    };
    let (all, local) = (column(5), column(6));
    // The last field but two of a domain line.
    let domains = outcome.statistics.schedstat.lines().filter(|line| line.starts_with("domain"));
    let remote = domains.map(|line| line.rsplit(' ').nth(2).expect("a field"));
    let remote: u64 = remote.map(|number| number.parse::<u64>().expect("a number")).sum();
    assert!(local > 0 && remote > 0);
    assert_eq!(all, local + remote);

    let (_, text) = hackbench("v6.0").traced();
    let events = parse(&text);
    let woken = events.iter().filter(|line| line.event == "sched_waking").count() as u64;
    let under_way = woken.abs_diff(all);
    assert!(under_way <= 12, "{woken} wakeups in the trace, {all} counted");
}

/// Fails if a wakeup were printed out of order, a migration without a move, or time went back.
#[test]
fn a_trace_tells_each_wakeup_in_order() {
    for kernel in ["v5.3", "v6.0", "v6.12"] {
        let (_, text) = hackbench(kernel).traced();
        let mut waking: BTreeMap<u32, bool> = BTreeMap::new();
        let mut last = 0;
        let mut seen = BTreeMap::new();
        for line in parse(&text) {
            assert!(line.micros >= last, "time runs backwards: {line:?}");
            last = line.micros;
            *seen.entry(line.event.clone()).or_insert(0) += 1;
            match line.event.as_str() {
                "sched_waking" => {
                    assert_eq!(waking.insert(line.number("pid"), false), None, "{line:?}");
                }
                "sched_migrate_task" => {
                    assert_ne!(line.text("orig_cpu"), line.text("dest_cpu"), "{line:?}");
                    if let Some(migrated) = waking.get_mut(&line.number("pid")) {
                        assert!(!*migrated, "moved twice: {line:?}");
                        *migrated = true;
                    }
                }
                "sched_wakeup" => {
                    let was_waking = waking.remove(&line.number("pid"));
                    assert!(was_waking.is_some(), "woken without waking: {line:?}");
                }
                _ => {}
            }
        }
        for event in ["sched_waking", "sched_wakeup", "sched_switch", "sched_migrate_task"] {
            assert!(seen.get(event).is_some_and(|&count| count > 10), "{kernel}: {event}");
        }
    }
}

/// Fails if a run waited for tasks that the first one leaves running, or if a task counted nowhere
/// while it sleeps.
#[test]
fn a_run_ends_with_its_first_task_and_counts_sleepers_where_they_ran_last() {
    let main = vec![
        Op::Fork { program: 1, count: 1, base: 0, step: 0 },
        Op::Sleep { ns: 40 * MS, random_pct: 0 },
        Op::Exit,
    ];
    let sleeper = vec![
        Op::Sleep { ns: 30 * MS, random_pct: 0 },
        Op::Repeat { counter: 0, times: FOREVER, to: 0 },
        Op::Exit,
    ];
    let all = vec![Program::new("main", main), Program::new("sleeper", sleeper)];
    let outcome =
        Setup::new("pack:1 l3:2 core:1 pu:1", "v6.0", "baseline", programs(all, 1_000)).run();
    let elapsed = outcome.statistics.simulated_ns;
    assert!((40 * MS..42 * MS).contains(&elapsed), "{elapsed} ns");
    let [here, there] = [0, 1].map(|llc| counter(&outcome, &format!("sleeper_on_llc_{llc}")));
    assert!(here + there > 0.95, "{here} and {there}");
}

/// The task that answers sleeps once a round; the first task is not on account, nor is its exit a sleep.
#[test]
fn tasks_are_on_account_without_the_first_one() {
    let workload = benchmark("schedpipe", "loops=50,warmup_ms=0,window_ms=800");
    let account = Setup::new("uma-8", "v6.0", "baseline", workload).run().statistics.account;
    assert_eq!((account.tasks, account.units), (1, 50));
    assert!((49..=50).contains(&account.sleeps), "{account:?}");
    assert_eq!(account.preemptions, 0);
}
