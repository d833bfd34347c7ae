//! Traces that no kernel writes: the audit says what is wrong with them, and goes on.

use std::io::Cursor;

use placewise_audit::{AuditError, NoPlacement, Options, audit};
use placewise_machine::load;
use placewise_policy::{FIRST_TASK, NR_TASKS, Policy};
use placewise_trace::TraceReader;

use super::script::{Audited, MACHINE, Script};

#[test]
fn a_truncated_line_and_garbage_are_counted() {
    let mut bytes = b"\x00\xff\xfe[000] 1.0: sched_waking\n\n\x1b[0m [abc\n".to_vec();
    bytes.extend(b"  a-1 [000] d..2. 1.000000: sched_waking: comm=x pid=\n");
    bytes.extend(
        b"  a-1 [000] d..2. 1.000000: sched_waking: comm=x pid=2 prio=120 target_cpu=001\n",
    );
    bytes.extend(b"  a-1 [000] d..2. 1.000000: sched_switch: prev_comm=x prev_pid=1 prev_prio=1");
    let mut reader = TraceReader::from_reader("trace", Cursor::new(bytes)).unwrap();
    let machine = load(MACHINE).unwrap();
    let policy = Policy::parse("v6.0", "baseline").unwrap();
    let options = Options { machine: &machine, kernel: &policy, others: &[], task: None };
    let audit = audit(&mut reader, &options, &mut ()).unwrap();
    assert_eq!((audit.events, audit.losses.malformed_lines), (1, 3));
    assert!(audit.losses.truncated_last_line);
    assert_eq!(audit.losses.non_utf8_lines, 1);
}

#[test]
fn cpus_that_cannot_be_are_left_out() {
    let mut script = Script::new();
    script.runs(4, 200).sleeps(4).runs(0, 100).after(1_000);
    // The machine has 16; there is no policy for 10,000.
    script.runs(20, 300).sleeps(20).runs(9_999, 301).sleeps(9_999);
    script.waking(0, 200, 99).migrate(0, 200, 4, 1_000).wakeup(0, 200, 4_294_967_295);
    let seen = script.audit("v6.0");
    assert_eq!(seen.audit.losses.cpus_out_of_range, 2);
    assert_eq!(seen.audit.repairs.impossible_events, 3);
    assert_eq!(seen.decisions.len(), 0);
}

#[test]
fn pids_that_cannot_be_are_left_out() {
    let mut script = Script::new();
    script.runs(0, 100).waking(0, 4_294_967_295, 4).wakeup(0, 4_294_967_295, 4);
    assert_eq!(script.audit("v6.0").audit.repairs.impossible_events, 2);
}

#[test]
fn time_that_goes_back_stands_still() {
    let mut script = Script::new();
    script.runs(0, 100).at(500).runs(4, 200).sleeps(4).at(10).wake(0, 200, 4, 4);
    script.at(600).switch(4, "R", 200).at(0).sleeps(4);
    let seen = script.audit("v6.0");
    assert_eq!(seen.audit.losses.clock_steps, 2);
    assert_eq!(seen.wakeups_of(200) + seen.audit.no_placement.values().sum::<u64>() as usize, 1);
}

#[test]
fn a_clock_that_does_not_count_from_boot_is_refused() {
    let text = b"  a-1 [000] d..2. 18446744073.000000: sched_waking: comm=x pid=2 prio=120 target_cpu=001\n";
    let mut reader = TraceReader::from_reader("trace", Cursor::new(text.to_vec())).unwrap();
    let machine = load(MACHINE).unwrap();
    let policy = Policy::parse("v6.0", "baseline").unwrap();
    let options = Options { machine: &machine, kernel: &policy, others: &[], task: None };
    let refused = audit(&mut reader, &options, &mut ());
    assert!(matches!(refused, Err(AuditError::Clock { line: 1, .. })));
}

/// A suspended machine, or a clock that is set: 200 waits behind 100 before and after it.
#[test]
fn time_without_any_event_is_no_waiting() {
    const HOUR_US: u64 = 3_600_000_000;
    let waits = |silence_us: u64| {
        let mut script = Script::new();
        script.runs(0, 100).after(10).wake(0, 200, 0, 0).after(1_000).wake(1, 300, 1, 1);
        script.after(silence_us).wake(1, 400, 1, 1).after(1_000).switch(0, "R", 200);
        script.after(10).wake(0, 300, 1, 1).audit("v6.0")
    };
    let (short, hour) = (waits(1_000), waits(HOUR_US));
    let waited = |seen: &Audited| seen.audit.cost.idle_beside.waited_ns;
    assert!(waited(&hour) <= waited(&short), "{} ns", waited(&hour));
    assert!(waited(&hour) >= 2_000_000, "{} ns", waited(&hour));
    assert!(hour.audit.cost.duration_ns <= short.audit.cost.duration_ns);
    assert_eq!((short.audit.repairs.silences, hour.audit.repairs.silences), (0, 1));
    assert_eq!(hour.audit.repairs.silent_ns.div_ceil(1_000_000_000), 3_600);
    assert_eq!(hour.audit.repairs.missing_switches, 0);
    // A decision has the time that the trace shows.
    let (last_short, last_hour) = (short.decisions.last().unwrap(), hour.decisions.last().unwrap());
    assert_eq!(last_hour.us - last_short.us, HOUR_US - 1_000);
}

/// What a long wait is, as long as another CPU has events.
#[test]
fn a_wait_beside_events_of_other_cpus_is_one_however_long() {
    let mut script = Script::new();
    script.runs(0, 100).after(10).wake(0, 200, 0, 0);
    for _ in 0..60 {
        script.after(1_000_000).wake(1, 300, 1, 1).after(10).sleeps(1);
    }
    let seen = script.switch(0, "R", 200).audit("v6.0");
    assert_eq!(seen.audit.repairs.silences, 0);
    assert!(seen.audit.cost.idle_beside.waited_ns >= 60_000_000_000);
}

/// Nothing is known of the time before.
#[test]
fn events_lost_before_the_first_take_no_time() {
    let mut script = Script::new();
    script.raw("CPU:3 [LOST 12 EVENTS]").runs(0, 100).after(10).wake(0, 200, 4, 4);
    let audit = script.audit("v6.0").audit;
    assert_eq!((audit.repairs.silences, audit.losses.lost_events), (0, 12));
    assert!(audit.cost.duration_ns < 1_000_000, "{} ns", audit.cost.duration_ns);
}

/// One task current on two CPUs at once.
#[test]
fn a_pid_that_runs_twice_is_where_it_was_seen_last() {
    let mut script = Script::new();
    script.runs(0, 100).runs(4, 200).switch(4, "R", 200).after(10);
    script.switch(9, "R", 200).after(10);
    let (reconstruction, timeline) = script.reconstruct("v6.0");
    let state = reconstruction.state();
    let task = timeline.tasks().find(200).unwrap();
    assert_eq!(u32::from(state.task[task as usize].cpu), 9);
    assert_eq!((state.rq[4].nr_running, state.rq[9].nr_running), (0, 1));
    assert_eq!(state.rq[4].curr, 4);
}

#[test]
fn a_fork_of_a_pid_that_lives_replaces_it() {
    let mut script = Script::new();
    script.runs(0, 100).runs(4, 200).switch(4, "R", 200).after(10);
    script.fork(0, 200).wakeup_new(0, 200, 6).after(10);
    let seen = script.audit("v6.0");
    assert_eq!((seen.audit.agreement.forks.decisions, seen.decision(200).actual), (1, 6));
    let (reconstruction, timeline) = script.reconstruct("v6.0");
    let child = timeline.tasks().find(200).unwrap();
    let state = reconstruction.state();
    assert_ne!(state.rq[4].curr, child);
    assert_eq!((state.rq[6].nr_running, state.task[child as usize].cpu), (1, 6));
}

#[test]
fn a_task_that_forks_itself_or_forks_the_idle_task_does_no_harm() {
    let mut script = Script::new();
    script.runs(0, 100).fork(0, 100).wakeup_new(0, 100, 1).fork(0, 0).wakeup_new(0, 0, 2);
    script.after(5).sleeps(0);
    let seen = script.audit("v6.18");
    assert!(seen.audit.agreement.forks.decisions <= 2);
}

/// More live tasks than there is room for: the ones mentioned longest ago are forgotten.
#[test]
fn seventy_thousand_tasks_that_live_are_too_many() {
    let born = 70_000;
    let mut script = Script::new();
    script.runs(0, 1).waking(0, 999, 4);
    for pid in 1_000..1_000 + born {
        script.after(1).fork(0, pid).wakeup_new(0, pid, pid % 16);
    }
    for pid in 10_000..1_000 + born {
        script.wakeup(0, pid, pid % 16);
    }
    let seen = script.audit("v6.0");
    let room = NR_TASKS - FIRST_TASK;
    assert_eq!(seen.audit.repairs.forgotten_tasks, u64::from(born + 2 - room));
    assert_eq!(seen.audit.agreement.forks.decisions, u64::from(born));
    // Who has the number of the wakee now does not end its wakeup.
    assert_eq!(seen.no_placement(NoPlacement::NoEnd), 1);
}

#[test]
fn seventy_thousand_tasks_that_die_are_not() {
    let mut script = Script::new();
    script.runs(0, 1);
    for pid in 1_000..71_000 {
        script.after(1).fork(0, pid).wakeup_new(0, pid, 4).switch(4, "R", pid).switch(4, "X", 0);
    }
    let seen = script.audit("v6.0");
    assert_eq!(seen.audit.repairs.forgotten_tasks, 0);
    assert_eq!(seen.audit.agreement.forks.decisions, 70_000);
}

#[test]
fn wakeups_that_never_end_are_given_up() {
    let begun = 70_000;
    let mut script = Script::new();
    script.runs(0, 100);
    for wakeup in 0..begun {
        script.after(1).waking(0, 200 + wakeup % 300, 4);
    }
    let seen = script.audit("v6.0");
    assert_eq!(seen.no_placement(NoPlacement::NoEnd), u64::from(begun));
    assert_eq!(seen.audit.repairs.wakeups_without_end, u64::from(begun));
}

/// A recorded decision about CPUs that the machine does not have.
#[test]
fn a_recorded_decision_about_cpus_that_cannot_be_is_none() {
    let decided = |waking: u32, prev: u32, cpus: &str| {
        let decision = format!(
            "placewise_select_task_rq: pid=200 waker_pid=100 waking_cpu={waking} prev_cpu={prev} \
             jiffies=250 cpus={cpus} idle={cpus} \
             sched_idle= allowed={cpus} hint=0 idle_policy=0 placement=wakeup sync=1 interrupt=0 \
             waking_nr_running=1 waking_h_nr_delayed=0 waking_load=1024 waking_has_idle_cores=0 \
             waking_nr_idle_scan=4 prev_nr_running=0 prev_h_nr_delayed=0 prev_load=0 \
             prev_has_idle_cores=1 prev_nr_idle_scan=4 avg_idle=1000000 wake_avg_idle=500000 \
             wake_stamp=0 avg_scan_cost=0 waker_per_cpu_kthread=0 waker_wakee_flips=0 \
             waker_wakee_flip_decay_ts=0 waker_last_wakee=0 waker_load=1024 waker_sum_exec_runtime=0 \
             waker_nvcsw=0 waker_run_length_avg=0 wakee_wakee_flips=0 wakee_wakee_flip_decay_ts=0 \
             wakee_last_wakee=0 wakee_load=1024 wakee_sum_exec_runtime=0 wakee_nvcsw=0 \
             wakee_run_length_avg=0 wakee_recent_used_cpu=0 wakee_util_est=0 prev_curr_pid=0 \
             prev_curr_wakee_flips=0 prev_curr_wakee_flip_decay_ts=0 prev_curr_last_wakee=0 \
             prev_curr_load=0 prev_curr_sum_exec_runtime=0 prev_curr_nvcsw=0 prev_curr_run_length_avg=0 \
             target_cpu=0 result_cpu=0 affine=sync search=failed"
        );
        let mut script = Script::new();
        script.runs(0, 100).runs(4, 200).sleeps(4).after(1_000).waking(0, 200, 4);
        script.event(0, &decision).wakeup(4, 200, 4);
        script.audit("v6.0").audit
    };
    assert_eq!(decided(0, 4, "0-15").agreement.wakeups.decisions, 1);
    assert!(decided(0, 4, "0-15").plain.is_some(), "it was recorded");
    for (waking, prev) in [(1_023, 4), (0, 1_023), (16, 16)] {
        let audit = decided(waking, prev, "0-1023");
        assert_eq!((audit.repairs.impossible_events, audit.plain), (1, None));
    }
    // CPUs that a mask has too many do not matter.
    assert_eq!(decided(0, 4, "0-1023").agreement.wakeups.decisions, 1);
}
