//! The policy's own tests.

#[path = "../../../placewise-policy/tests/balance.rs"]
mod balance;
#[path = "../../../placewise-policy/tests/fork.rs"]
mod fork;
#[path = "../../../placewise-policy/tests/task_groups.rs"]
mod task_groups;
#[path = "../../../placewise-policy/tests/wakeup/main.rs"]
mod wakeup;
