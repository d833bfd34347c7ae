//! What a task's nice level weighs.

/// sched_prio_to_weight: each nice level is about 10 % of CPU time.
const NICE_TO_WEIGHT: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// Weight of a SCHED_IDLE task.
const IDLE_POLICY_WEIGHT: u32 = 3;

/// The weight of a task of nice level -20 to 19; 1024 at nice 0.
pub fn weight_of(nice: i8, idle_policy: bool) -> u32 {
    if idle_policy { IDLE_POLICY_WEIGHT } else { NICE_TO_WEIGHT[(i32::from(nice) + 20) as usize] }
}
