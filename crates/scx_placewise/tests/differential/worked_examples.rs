//! The policy's own tests.

#[path = "../../../placewise-policy/tests/balance.rs"]
mod balance;
#[path = "../../../placewise-policy/tests/balance_legacy.rs"]
mod balance_legacy;
#[path = "../../../placewise-policy/tests/balance_rework_v2.rs"]
mod balance_rework_v2;
#[path = "../../../placewise-policy/tests/fork.rs"]
mod fork;
#[path = "../../../placewise-policy/tests/fork_legacy.rs"]
mod fork_legacy;
#[path = "../../../placewise-policy/tests/task_groups.rs"]
mod task_groups;
#[path = "../../../placewise-policy/tests/unlike.rs"]
mod unlike;
#[path = "../../../placewise-policy/tests/wakeup/main.rs"]
mod wakeup;
