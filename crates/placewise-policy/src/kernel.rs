//! Kernels as data: each is the one before it with what changed.
//!
//! Where a kernel changed nothing that a placement decision can see, no field
//! changes. Limits: v3.10 and v4.15 are described from the published series
//! and general knowledge, not from their sources. Kernels before v5.10 name the
//! balancer from before the rework, which is not modelled yet: they run the
//! reworked one with their own constants.

use crate::state::*;

/// The names that [`profile`] knows, oldest first.
pub fn kernel_names() -> Vec<&'static str> {
    KERNELS.iter().map(|&(name, _)| name).collect()
}

/// The profile of a kernel by name.
pub fn profile(kernel: &str) -> Option<Profile> {
    KERNELS.iter().find(|(name, _)| *name == kernel).map(|&(_, profile)| profile)
}

const KERNELS: &[(&str, Profile)] = &[
    ("v3.10", V3_10),
    ("v4.15", V4_15),
    ("v5.3", V5_3),
    ("v5.10", V5_10),
    ("v5.19", V5_19),
    ("v6.0", V6_0),
    ("v6.12", V6_12),
    ("v6.18", V6_18),
];

/// Before the smart wake-affine patch: every waker counts as affine.
pub const V3_10: Profile = Profile {
    wake_wide: WAKE_WIDE_NONE,
    affine_prev_idle: false,
    affine_prev_idle_last: false,
    affine_short: AFFINE_SHORT_NONE,
    affine_counts_delayed: true,
    affine_skip_weight_if_short: false,
    affine_move_counts_prev: true,
    scan_limit: SCAN_UNLIMITED,
    scan_order: SCAN_CORE_CPU_SMT_OF_TARGET,
    scan_starts_after_target: false,
    scan_allowed_only: false,
    scan_cluster_first: false,
    scan_short: SCAN_SHORT_NONE,
    smt_scan_skips_prev: false,
    sched_idle_usable: false,
    sched_idle_wakee_usable: true,
    kthread_stacking: KTHREAD_STACKING_NONE,
    recent_used: RECENT_USED_NONE,
    recent_used_tests_prev: false,
    wake_list: WAKE_LIST_CROSS_LLC,
    wake_list_clear_early: true,
    run_length: RUN_LENGTH_NONE,
    short_threshold: SHORT_MIN_GRAN,
    short_needs_no_flips: false,

    fork: FORK_LEGACY,
    fork_numa: FORK_NUMA_ANY_IDLE,
    fork_stats_allowed_only: false,

    balance: BALANCE_LEGACY,
    balance_numa: BALANCE_NUMA_NONE,
    busy_factor: 32,
    balance_smt: false,
    newidle_gate: NEWIDLE_MIGRATION_COST,
    newidle_failure: NEWIDLE_FAILURE_ELAPSED,
    newidle_bails_out: false,
    newidle_skips_pending: false,
    active_balance_any_type: true,
    active_balance_backs_off: true,
    balance_runnable_terms: false,
    balance_fully_busy_later: false,
    balance_local_above_average: false,
    detach_delayed_load_only: false,
    detach_util_shifted: false,
    queue_util_uses_runnable: false,
    h_nr_without_delayed: false,

    run_queue: RUN_QUEUE_CFS,
    delayed_dequeue: false,
    runnable_without_delayed: false,
    util_est: UTIL_EST_NONE,
    slice_floor: false,
    fork_preempts: true,
    base_slice_us: 0,
    exec_start_reset_at_enqueue: false,

    pipe_wakes: PIPE_WAKES_ALL,

    imbalance_pct: 125,
    cluster_level: false,
    imb_numa: IMB_NUMA_NONE,
    package_level_is_pkg: false,
    schedstat_version: 15,

    migration_cost: 500_000,
    min_gran: 750_000,
};

/// Smart wake-affine is in; SIS_PROP limits the search.
pub const V4_15: Profile =
    Profile { wake_wide: WAKE_WIDE_LLC, scan_limit: SIS_PROP_AVG_IDLE, ..V3_10 };

/// prev-idle and recent_used_cpu are in.
pub const V5_3: Profile = Profile {
    affine_prev_idle: true,
    recent_used: RECENT_USED_ON_HIT,
    util_est: UTIL_EST_EWMA,
    ..V4_15
};

/// The reworked balancer and fork placement.
pub const V5_10: Profile = Profile {
    scan_allowed_only: true,
    sched_idle_usable: true,
    kthread_stacking: KTHREAD_STACKING_ANY_CONTEXT,
    wake_list: WAKE_LIST_CROSS_LLC_OR_ON_CPU,
    fork: FORK_REWORK,
    balance: BALANCE_REWORK,
    balance_numa: BALANCE_NUMA_BUSIEST_TWO,
    busy_factor: 16,
    balance_runnable_terms: true,
    util_est: UTIL_EST_FAST_UP,
    pipe_wakes: PIPE_WAKES_ON_FULL_READ,
    imbalance_pct: 117,
    ..V5_3
};

/// A busy LLC is searched in one walk; NUMA levels tolerate imb_numa_nr tasks.
pub const V5_19: Profile = Profile {
    affine_prev_idle_last: true,
    scan_limit: SIS_PROP_WAKE_AVG_IDLE,
    scan_order: SCAN_SMT_OF_PREV_THEN_MERGED,
    scan_starts_after_target: true,
    kthread_stacking: KTHREAD_STACKING_TASK_CONTEXT,
    recent_used: RECENT_USED_ALWAYS,
    recent_used_tests_prev: true,
    fork_numa: FORK_NUMA_RUNNING,
    balance_numa: BALANCE_NUMA_LIMIT_HALVED,
    cluster_level: true,
    slice_floor: true,
    imb_numa: IMB_NUMA_QUARTER,
    newidle_gate: NEWIDLE_DOMAIN_COST,
    newidle_skips_pending: true,
    active_balance_any_type: false,
    active_balance_backs_off: false,
    ..V5_10
};

/// SIS_UTIL limits the search; the NUMA allowance is applied consistently.
pub const V6_0: Profile = Profile {
    scan_limit: SIS_UTIL,
    wake_list: WAKE_LIST_CROSS_LLC_OR_IDLE,
    fork_numa: FORK_NUMA_ADJUST,
    balance_numa: BALANCE_NUMA_LIMIT,
    newidle_bails_out: true,
    imb_numa: IMB_NUMA_EIGHTH,
    ..V5_19
};

/// EEVDF with delayed dequeue, cluster-aware search, SMT-aware balance.
pub const V6_12: Profile = Profile {
    affine_move_counts_prev: false,
    scan_cluster_first: true,
    smt_scan_skips_prev: true,
    recent_used_tests_prev: false,
    wake_list_clear_early: false,
    balance_smt: true,
    balance_fully_busy_later: true,
    balance_local_above_average: true,
    detach_util_shifted: true,
    queue_util_uses_runnable: true,
    run_queue: RUN_QUEUE_EEVDF,
    delayed_dequeue: true,
    util_est: UTIL_EST_SINGLE,
    base_slice_us: 750,
    package_level_is_pkg: true,
    schedstat_version: 16,
    exec_start_reset_at_enqueue: true,
    ..V6_0
};

/// Delayed tasks are told apart from runnable ones.
pub const V6_18: Profile = Profile {
    affine_counts_delayed: false,
    newidle_failure: NEWIDLE_FAILURE_GROWS,
    detach_delayed_load_only: true,
    h_nr_without_delayed: true,
    runnable_without_delayed: true,
    base_slice_us: 700,
    pipe_wakes: PIPE_WAKES_ON_FREED_SLOT,
    schedstat_version: 17,
    ..V6_12
};
