//! Puts what a decision event read into a state, and asks the policy again.

use placewise_machine::CpuSet;
use placewise_policy::*;
use placewise_trace::{
    CpuReadings, Decision, Readings, RunQueueReadings, SlowPathReadings, TaskReadings,
    WakeupReadings,
};

use crate::steps::step::DecisionTasks;

/// The policy's answer to the same question.
pub fn select(decision: &Decision, state: &mut Placement, tasks: DecisionTasks) -> u32 {
    apply(decision, state, tasks);
    let now = decision.jiffies.saturating_mul(state.root.tick_ns.into());
    let (prev, cpu) = (decision.prev_cpu.into(), decision.waking_cpu.into());
    state.select_task_rq(tasks.placed, prev, cpu, wake_flags(decision), now)
}

/// How many CPUs a state takes for idle that were not, or the other way round.
pub fn wrong_idle_cpus(decision: &Decision, state: &Placement) -> u32 {
    let differs = |(word, idle): (usize, &u64)| {
        ((idle ^ decision.idle.words()[word]) & decision.cpus.words()[word]).count_ones()
    };
    state.root.idle.bits.iter().enumerate().map(differs).sum()
}

fn wake_flags(decision: &Decision) -> u32 {
    match &decision.placement {
        Readings::Wakeup(wakeup) => {
            let sync = if wakeup.sync { WF_SYNC } else { 0 };
            let interrupt = if wakeup.interrupt { WF_INTERRUPT } else { 0 };
            WF_TTWU | sync | interrupt
        }
        Readings::Fork(_) => WF_FORK,
        Readings::Exec(_) => WF_EXEC,
    }
}

/// Makes what the decision read the state's own.
pub fn apply(decision: &Decision, state: &mut Placement, tasks: DecisionTasks) {
    state.rq[usize::from(decision.waking_cpu)].curr = tasks.waker;
    apply_masks(decision, state);
    let placed = &mut state.task[tasks.placed as usize];
    placed.cpus_allowed = Cpumask { bits: *decision.allowed.words() };
    placed.nr_cpus_allowed = decision.allowed.len() as u16;
    placed.hint = decision.hint as u8;
    placed.idle_policy = decision.idle_policy.into();
    match &decision.placement {
        Readings::Wakeup(wakeup) => apply_wakeup(decision, wakeup, state, tasks),
        Readings::Fork(fork) => apply_slow_path(decision, fork, state, tasks, false),
        Readings::Exec(exec) => apply_slow_path(decision, exec, state, tasks, true),
    }
}

fn apply_masks(decision: &Decision, state: &mut Placement) {
    let replace = |mask: &mut Cpumask, by: &CpuSet| {
        let (cpus, by) = (decision.cpus.words(), by.words());
        for (word, bits) in mask.bits.iter_mut().enumerate() {
            *bits = *bits & !cpus[word] | by[word] & cpus[word];
        }
    };
    replace(&mut state.root.idle, &decision.idle);
    replace(&mut state.root.sched_idle, &decision.sched_idle);
    let idle_cores = decision.cpus.iter().filter(|&cpu| {
        let core = &state.cpu[cpu];
        let siblings = &core.siblings[..usize::from(core.nr_siblings)];
        siblings.iter().all(|&sibling| is_idle(state, sibling))
    });
    let idle_cores: CpuSet = idle_cores.collect();
    replace(&mut state.root.idle_core, &idle_cores);
}

fn is_idle(state: &Placement, cpu: u16) -> bool {
    state.root.idle.bits[usize::from(cpu) / 64] >> (cpu % 64) & 1 != 0
}

fn apply_wakeup(
    decision: &Decision,
    wakeup: &WakeupReadings,
    state: &mut Placement,
    tasks: DecisionTasks,
) {
    let (waking, prev) = (usize::from(decision.waking_cpu), usize::from(decision.prev_cpu));
    apply_cpu(&wakeup.waking, state, waking);
    apply_cpu(&wakeup.prev, state, prev);
    apply_scan_cost(wakeup, state, waking);
    state.rq[prev].curr = tasks.prev_curr;
    for (task, readings) in [
        (tasks.prev_curr, &wakeup.prev_curr),
        (tasks.waker, &wakeup.waker),
        (tasks.placed, &wakeup.wakee),
    ] {
        let last_wakee = match readings.last_wakee {
            0 => NO_TASK,
            pid if pid == decision.pid => tasks.placed,
            pid if pid == decision.waker_pid => tasks.waker,
            // Some task that this decision does not ask about.
            _ => NO_TASK,
        };
        let affine = state.profile.affine;
        let task = &mut state.task[task as usize];
        apply_task(readings, last_wakee, task);
        match affine {
            AFFINE_QUEUES => task.weight = readings.load as u32,
            _ => task.avg.load_avg = readings.load,
        }
    }
    let waker = &mut state.task[tasks.waker as usize];
    waker.per_cpu_kthread = wakeup.waker_per_cpu_kthread.into();
    waker.exiting = 0;
    let wakee = &mut state.task[tasks.placed as usize];
    wakee.recent_used_cpu = wakeup.wakee_recent_used_cpu;
    set_util_est(wakee, wakeup.wakee_util_est);
}

fn apply_cpu(readings: &CpuReadings, state: &mut Placement, cpu: usize) {
    let affine = state.profile.affine;
    let rq = &mut state.rq[cpu];
    rq.nr_running = readings.nr_running;
    rq.cfs.h_nr_delayed = readings.h_nr_delayed;
    match affine {
        AFFINE_QUEUES => rq.cfs.load_weight = readings.load,
        _ => rq.cfs.avg.load_avg = readings.load,
    }
    let llc = usize::from(state.cpu[cpu].llc);
    state.llc[llc].has_idle_cores = readings.has_idle_cores.into();
    state.llc[llc].nr_idle_scan = readings.nr_idle_scan;
}

/// What SIS_PROP reads of the waking CPU.
fn apply_scan_cost(wakeup: &WakeupReadings, state: &mut Placement, waking: usize) {
    let rq = &mut state.rq[waking];
    rq.avg_idle = wakeup.avg_idle;
    rq.wake_avg_idle = wakeup.wake_avg_idle;
    rq.wake_stamp = wakeup.wake_stamp;
    let level = state.llc[usize::from(state.cpu[waking].llc)].domain_level as usize;
    if let Some(domain) = state.domain[waking].get_mut(level) {
        // SIS_PROP divides by one more.
        domain.avg_scan_cost = wakeup.avg_scan_cost.min(u64::MAX - 1);
    }
}

fn apply_task(readings: &TaskReadings, last_wakee: u32, task: &mut Task) {
    task.wakee_flips = readings.wakee_flips;
    task.wakee_flip_decay_ts = readings.wakee_flip_decay_ts;
    task.last_wakee = last_wakee;
    task.sum_exec_runtime = readings.sum_exec_runtime;
    task.nvcsw = readings.nvcsw;
    task.run_length_avg = readings.run_length_avg;
}

/// Makes `estimate` the largest of the task's utilisation and its estimates.
fn set_util_est(task: &mut Task, estimate: u64) {
    task.avg.util_avg = task.avg.util_avg.min(estimate);
    task.util_est_enqueued = estimate as u32;
    task.util_est_ewma = 0;
}

fn apply_slow_path(
    decision: &Decision,
    readings: &SlowPathReadings,
    state: &mut Placement,
    tasks: DecisionTasks,
    execs: bool,
) {
    let task = &mut state.task[tasks.placed as usize];
    // A task that execs is queued, and counted, where it runs; a new one nowhere yet.
    task.cpu = decision.prev_cpu;
    task.on_rq = execs.into();
    task.avg.last_update_time = execs.into();
    task.avg.load_avg = readings.load;
    task.avg.runnable_avg = readings.runnable;
    task.avg.util_avg = readings.util;
    set_util_est(task, readings.util_est);
    for group in 0..state.root.nr_groups {
        let imbalanced = readings.imbalanced_groups.contains(&group);
        state.group[group as usize].imbalance = imbalanced.into();
    }
    for rq in &readings.rq {
        apply_run_queue(rq, &mut state.rq[usize::from(rq.cpu)]);
    }
}

fn apply_run_queue(readings: &RunQueueReadings, rq: &mut Rq) {
    rq.nr_running = readings.nr_running;
    rq.cfs.h_nr_queued = readings.h_nr_queued;
    rq.cfs.h_nr_delayed = readings.h_nr_delayed;
    rq.cfs.avg.load_avg = readings.load;
    rq.cfs.avg.runnable_avg = readings.runnable;
    rq.cfs.avg.util_avg = readings.util;
    rq.cfs.util_est = readings.util_est;
    rq.idle_stamp = readings.idle_stamp;
    rq.idle_exit_latency = readings.idle_exit_latency.unwrap_or(LATENCY_UNKNOWN);
}
