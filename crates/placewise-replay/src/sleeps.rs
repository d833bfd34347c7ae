//! What each sleep waited for: a post of another task, a time of day, or a while.
//!
//! A wakeup in a softirq is the current task's where the two wake each other: what it has sent over
//! loopback arrives. Else the packet came from outside, whoever happened to run there.
//!
//! Sleeps that interrupts end are one of two. A task that waits for arrivals is woken at times that do
//! not depend on it: a replay keeps the times. A task that sleeps for a while each time, after whatever
//! it did: a replay keeps the while. What varies less over the task's sleeps, relative to its mean, is
//! taken for what the task does: the time from one wakeup to the next, or that of each sleep. Limit: a
//! task that does now this and now that is taken for one of the two.

use std::collections::HashSet;

use placewise_workload::program::{Nanos, Wake};

use crate::follow::{Cause, Followed, FollowedTask, Seen, Wakeup};
use crate::recording::{Step, TaskIndex};

/// Fewer sleeps do not tell what they are: their times are kept.
const FEWEST: usize = 4;

/// The wakeups that are posts of their wakers.
pub fn posts(followed: &Followed) -> Vec<bool> {
    let counted = followed.wakeups.iter().filter(|wakeup| wakeup.counts);
    let pairs: HashSet<(TaskIndex, TaskIndex)> = counted.map(|it| (it.waker, it.wakee)).collect();
    let is_post = |wakeup: &Wakeup| {
        let mutual = || pairs.contains(&(wakeup.wakee, wakeup.waker));
        wakeup.counts && (wakeup.wake != Wake::Softirq || mutual())
    };
    followed.wakeups.iter().map(is_post).collect()
}

/// The steps of a task.
pub fn steps(task: &FollowedTask, wakeups: &[Wakeup], posts: &[bool]) -> Vec<Step> {
    let is_post = |cause| matches!(cause, Cause::Wakeup(at) if posts[at as usize]);
    let keeps_while = sleeps_for_a_while(task, is_post);
    let step = |seen: &Seen| match *seen {
        Seen::Run(ns) => Some(Step::Run(ns)),
        Seen::Wakeup(at) => {
            let Wakeup { wakee, wake, .. } = wakeups[at as usize];
            posts[at as usize].then_some(Step::Post(wakee, wake))
        }
        Seen::Slept { cause: Cause::Wakeup(at), .. } if posts[at as usize] => {
            Some(Step::Await(wakeups[at as usize].waker))
        }
        Seen::Slept { from, until, .. } if keeps_while => Some(Step::Sleep(until - from)),
        Seen::Slept { until, .. } => Some(Step::Until(until)),
        Seen::Fork(child) => Some(Step::Fork(child)),
    };
    let mut steps: Vec<Step> = Vec::with_capacity(task.seen.len());
    for step in task.seen.iter().filter_map(step) {
        match (steps.last_mut(), step) {
            (Some(Step::Run(before)), Step::Run(ns)) => *before += ns,
            _ => steps.push(step),
        }
    }
    steps
}

fn sleeps_for_a_while(task: &FollowedTask, is_post: impl Fn(Cause) -> bool) -> bool {
    let arrivals: Vec<(Nanos, Nanos)> = task
        .seen
        .iter()
        .filter_map(|seen| match *seen {
            Seen::Slept { from, until, cause } if !is_post(cause) => Some((from, until)),
            _ => None,
        })
        .collect();
    if arrivals.len() < FEWEST {
        return false;
    }
    // When the first one began is not known.
    let sleeps: Vec<Nanos> = arrivals[1..].iter().map(|(from, until)| until - from).collect();
    let between: Vec<Nanos> = arrivals.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    variation(&sleeps) < variation(&between)
}

/// The standard deviation over the mean.
fn variation(values: &[Nanos]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().map(|&value| value as f64).sum::<f64>() / count;
    let squares: f64 = values.iter().map(|&value| (value as f64 - mean).powi(2)).sum();
    if mean > 0.0 { (squares / count).sqrt() / mean } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_less_is_smaller() {
        assert_eq!(variation(&[5, 5, 5]), 0.0);
        assert!(variation(&[10, 10, 11]) < variation(&[1, 10, 20]));
        assert_eq!(variation(&[0, 0]), 0.0);
    }
}
