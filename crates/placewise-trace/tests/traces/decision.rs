//! The text of a placement decision: what is written can be read, and nothing else.

use placewise_machine::CpuSet;
use placewise_trace::{
    AffineReason, CpuReadings, Decision, Readings, RunQueueReadings, SearchReason,
    SlowPathReadings, TaskReadings, WakeupReadings,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn cpu() -> impl Strategy<Value = u16> {
    0..CpuSet::MAX_CPUS as u16
}

fn cpus() -> impl Strategy<Value = CpuSet> {
    let some = vec(0..CpuSet::MAX_CPUS, 0..40).prop_map(CpuSet::from_iter);
    prop_oneof![some, Just(CpuSet::first_n(CpuSet::MAX_CPUS))]
}

fn cpu_readings() -> impl Strategy<Value = CpuReadings> {
    any::<(u32, u32, u64, bool, u32)>().prop_map(
        |(nr_running, h_nr_delayed, load, has_idle_cores, nr_idle_scan)| CpuReadings {
            nr_running,
            h_nr_delayed,
            load,
            has_idle_cores,
            nr_idle_scan,
        },
    )
}

fn task_readings() -> impl Strategy<Value = TaskReadings> {
    any::<(u32, u64, u32, [u64; 4])>().prop_map(
        |(wakee_flips, wakee_flip_decay_ts, last_wakee, rest)| TaskReadings {
            wakee_flips,
            wakee_flip_decay_ts,
            last_wakee,
            load: rest[0],
            sum_exec_runtime: rest[1],
            nvcsw: rest[2],
            run_length_avg: rest[3],
        },
    )
}

fn wakeup_readings() -> impl Strategy<Value = WakeupReadings> {
    let cpus = (cpu_readings(), cpu_readings(), cpu());
    let tasks = (task_readings(), task_readings(), task_readings());
    (any::<([bool; 3], [u64; 5], u32)>(), cpus, tasks).prop_map(|(plain, cpus, tasks)| {
        let ([sync, interrupt, waker_per_cpu_kthread], numbers, prev_curr_pid) = plain;
        WakeupReadings {
            sync,
            interrupt,
            waking: cpus.0,
            prev: cpus.1,
            avg_idle: numbers[0],
            wake_avg_idle: numbers[1],
            wake_stamp: numbers[2],
            avg_scan_cost: numbers[3],
            waker_per_cpu_kthread,
            waker: tasks.0,
            wakee: tasks.1,
            wakee_recent_used_cpu: cpus.2,
            wakee_util_est: numbers[4],
            prev_curr_pid,
            prev_curr: tasks.2,
        }
    })
}

fn run_queue_readings() -> impl Strategy<Value = RunQueueReadings> {
    (cpu(), any::<[u32; 4]>(), any::<[u64; 4]>(), any::<Option<u32>>()).prop_map(
        |(cpu, counts, averages, idle_exit_latency)| RunQueueReadings {
            cpu,
            nr_running: counts[0],
            h_nr_queued: counts[1],
            h_nr_delayed: counts[2],
            load: averages[0],
            runnable: averages[1],
            util: averages[2],
            util_est: counts[3],
            idle_stamp: averages[3],
            idle_exit_latency,
        },
    )
}

fn slow_path_readings() -> impl Strategy<Value = SlowPathReadings> {
    let lists = (vec(any::<u32>(), 0..4), vec(run_queue_readings(), 0..4));
    (any::<[u64; 4]>(), lists).prop_map(|(averages, (imbalanced_groups, rq))| SlowPathReadings {
        load: averages[0],
        runnable: averages[1],
        util: averages[2],
        util_est: averages[3],
        imbalanced_groups,
        rq,
    })
}

fn decision() -> impl Strategy<Value = Decision> {
    let placement = prop_oneof![
        wakeup_readings().prop_map(Readings::Wakeup),
        slow_path_readings().prop_map(Readings::Fork),
        slow_path_readings().prop_map(Readings::Exec),
    ];
    let sets = (cpus(), cpus(), cpus(), cpus());
    let answer = (cpu(), cpu(), select(AffineReason::ALL), select(SearchReason::ALL));
    let plain = any::<(u32, u32, u64, u32, bool)>();
    (plain, cpu(), cpu(), sets, placement, answer).prop_map(
        |(plain, waking_cpu, prev_cpu, sets, placement, answer)| Decision {
            pid: plain.0,
            waker_pid: plain.1,
            waking_cpu,
            prev_cpu,
            jiffies: plain.2,
            cpus: sets.0,
            idle: sets.1,
            sched_idle: sets.2,
            allowed: sets.3,
            hint: plain.3,
            idle_policy: plain.4,
            placement,
            target_cpu: answer.0,
            result_cpu: answer.1,
            affine: answer.2,
            search: answer.3,
        },
    )
}

fn details(decision: &Decision) -> String {
    let text = decision.to_string();
    text.strip_prefix("placewise_select_task_rq: ").expect("the name comes first").to_string()
}

proptest! {
    #[test]
    fn a_decision_is_one_line_and_comes_back(decision in decision()) {
        let text = details(&decision);
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(Decision::parse(&text).unwrap(), decision.clone());
        prop_assert_eq!(Decision::parse(&format!(" {text} \r\n")).unwrap(), decision);
    }

    /// A key that is missing, twice there or misspelt is named.
    #[test]
    fn each_key_is_needed_in_its_place(decision in decision(), at in any::<prop::sample::Index>()) {
        let text = details(&decision);
        let words: Vec<&str> = text.split(' ').collect();
        let at = at.index(words.len());
        let (key, _) = words[at].split_once('=').unwrap();
        let without: Vec<&str> = [&words[..at], &words[at + 1..]].concat();
        let message = Decision::parse(&without.join(" ")).unwrap_err().to_string();
        prop_assert!(message.contains(&format!("expected `{key}=`")), "{}", message);
        let twice = [&words[..=at], &words[at..]].concat();
        prop_assert!(Decision::parse(&twice.join(" ")).is_err());
    }

    #[test]
    fn a_line_with_a_change_is_read_or_refused(
        decision in decision(),
        at in any::<prop::sample::Index>(),
        by in "\\PC{0,3}",
    ) {
        let text = details(&decision);
        let at = at.index(text.len());
        let _ = Decision::parse(&[&text[..at], &by, &text[at + 1..]].concat());
        let _ = Decision::parse(&text[..at]);
    }

    #[test]
    fn any_text_is_refused(text in "\\PC{0,200}") {
        let message = Decision::parse(&text).unwrap_err().to_string();
        prop_assert!(message.starts_with("placewise_select_task_rq: expected `pid=`"));
        prop_assert!(message.chars().count() < 200);
    }
}

#[test]
fn values_out_of_range_are_refused() {
    for (bad, expected) in [
        ("pid=+1", "`pid=` and a number of 32 bits, found `+1`"),
        ("pid=4294967296", "`pid=` and a number of 32 bits"),
        ("pid=", "`pid=` and a number of 32 bits, found ``"),
        ("pid=1 waker_pid=0 waking_cpu=1024", "`waking_cpu=` and a CPU from 0 to 1023"),
        ("pid=1 waker_pid=0 waking_cpu=0 prev_cpu=0 jiffies=0 cpus=3-1", "`cpus=` and a CPU list"),
    ] {
        let message = Decision::parse(bad).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}
