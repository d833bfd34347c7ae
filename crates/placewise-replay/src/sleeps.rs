//! What each sleep waited for: a post of another task, a time of day, or a while.
//!
//! A wakeup in a softirq is the current task's where the two wake each other: what it has sent over
//! loopback arrives. Else the packet, or what a disk has done, came from outside, whoever happened to run there.
//! Those who happen to run when each other's disks are done seem to wake each other, too: that is so where
//! wakeups come about as often, for the time that they run, as while others do and CPUs idle.
//!
//! An answer that is only likely is one where tasks of these names mostly answer: where wakees that did
//! not preempt their wakers have woken these in turn, at least every other time.
//!
//! How many cache lines come with a post shows in how much longer tasks of a name compute after posts from
//! further away, outside their core: how much siblings that talk to each other slow each other down is
//! not known so well. Where that is not beyond noise it is what a channel takes.
//!
//! From `sched_waking` to `sched_wakeup` a waker does nothing else: what that takes beyond the machine's figure, traced
//! as it is, comes before each wakee of its name is queued. A wakee that preempts its waker does so once the call, or
//! the softirq, that has woken it lets go of the CPU; how long that takes comes after each of its posts. An interrupt,
//! or a softirq, that happens to wake a task is like that on the time of whom it interrupts, and is told by the name of
//! whom it wakes: by the means of the middle halves. What calls take is kept as a hundredth of them each, for the
//! slowest keep wakees waiting most; in a model as in an exact replay they come evenly.
//!
//! A timer interrupts the CPU where its task went to sleep. A device interrupts the one that its interrupts go to: where
//! nine of ten interrupts that wake tasks of a name are on one CPU, and some of these tasks had run elsewhere.
//!
//! Sleeps that interrupts end are one of two. A task that waits for arrivals is woken at times that do
//! not depend on it: a replay keeps the times. A task that sleeps for a while each time, after whatever
//! it did: a replay keeps the while. From one wakeup to the next it computes and sleeps: if how long it sleeps
//! does not depend on how long it computed, what lies between wakeups has the variance of both; if when it is
//! woken does not depend on that, sleeps have. What varies less is taken for what the task does. Limit: a task
//! that does now this and now that is taken for one of the two.

use std::collections::{BTreeMap, HashMap, HashSet};

use placewise_machine::Machine;
use placewise_workload::program::{Call, Nanos, Wake};

use crate::followed::{Cause, Evidence, Followed, FollowedTask, Names, Seen, Wakeup};
use crate::recording::{Calls, MOST_OF_CALL_NS, Step, TaskIndex};

/// Fewer posts over a distance do not tell what it takes.
const FEWEST_OF_DISTANCE: f64 = 30.0;
const MOST_LINES: f64 = 1_000.0;

/// Fewer wakeups do not tell what they take.
const FEWEST_OF_CALL: usize = 30;

/// Fewer interrupts of a CPU where the wakee had not run are no sign of a device. A figure of ours, as are the nine of
/// ten; recordings of one host were in view, where 20,739 of 20,754 for backends came to one CPU.
const FEWEST_ELSEWHERE: usize = 16;

/// Fewer sleeps do not tell what they are. Their times are kept; but the whiles of a task that mostly waits for
/// others: it sleeps after what these made it do.
const FEWEST: usize = 4;

/// So many times as often is no chance. A disk is done soon after a task has asked it: that happens more often to
/// those that run then, most of all to others of its name, which ask it at the same times.
const BEYOND_CHANCE: f64 = 10.0;
const BEYOND_CHANCE_OF_PEERS: f64 = 100.0;

/// The wakeups that are posts of their wakers.
pub fn posts(followed: &Followed) -> Vec<bool> {
    let recorded = || {
        let is_recorded = |it: &&Wakeup| it.counts && it.seen != Evidence::Likely;
        followed.wakeups.iter().filter(is_recorded)
    };
    let pairs: HashSet<(TaskIndex, TaskIndex)> =
        recorded().map(|it| (it.waker, it.wakee)).collect();
    let name = |task: TaskIndex| followed.tasks[task as usize].name.as_str();
    let names = followed.names();
    // Of tasks of one name nothing tells who calls but who they are.
    let who = |one: TaskIndex, other: TaskIndex| match names[one as usize] == names[other as usize]
    {
        true => (one as usize, other as usize),
        false => (followed.tasks.len() + names[one as usize], names[other as usize]),
    };
    let mut calls: HashMap<Names, u32> = HashMap::new();
    for wakeup in recorded().filter(|it| it.seen == Evidence::Recorded) {
        *calls.entry(who(wakeup.waker, wakeup.wakee)).or_default() += 1;
    }
    let chance = by_chance(followed, &pairs);
    let called = |from, to| calls.get(&who(from, to)).copied().unwrap_or_default();
    let is_post = |wakeup: &Wakeup| {
        let Wakeup { waker, wakee, .. } = *wakeup;
        let is_mutual = || pairs.contains(&(wakee, waker));
        let answers = called(waker, wakee);
        wakeup.counts
            && match wakeup.seen {
                Evidence::Likely => answers > 0 && 2 * answers >= called(wakee, waker),
                _ if wakeup.wake != Wake::Softirq => true,
                _ => is_mutual() && !chance.contains(&(name(waker), name(wakee))),
            }
    };
    followed.wakeups.iter().map(is_post).collect()
}

/// Names of tasks whose softirqs wake those of another by chance: not many times as often, for the time that they
/// run, as while those run whom these do not wake, and CPUs idle.
fn by_chance<'a>(
    followed: &'a Followed,
    pairs: &HashSet<(TaskIndex, TaskIndex)>,
) -> HashSet<(&'a str, &'a str)> {
    let name = |task: TaskIndex| followed.tasks[task as usize].name.as_str();
    let mut ran: HashMap<&str, f64> = HashMap::new();
    // Of wakees of each name: who woke them how often, and how often nobody seems to have.
    let mut woken: HashMap<&str, (HashMap<&str, f64>, f64)> = HashMap::new();
    for task in &followed.tasks {
        *ran.entry(&task.name).or_default() += task.ran_ns as f64;
        woken.entry(&task.name).or_default().1 += f64::from(task.softirqs_of_idle);
    }
    let softirqs = followed.wakeups.iter().filter(|it| it.counts && it.wake == Wake::Softirq);
    for Wakeup { waker, wakee, .. } in softirqs {
        let (by_partners, by_others) = woken.entry(name(*wakee)).or_default();
        match pairs.contains(&(*wakee, *waker)) {
            true => *by_partners.entry(name(*waker)).or_default() += 1.0,
            false => *by_others += 1.0,
        }
    }
    let all = followed.length_ns as f64 * followed.nr_cpus as f64;
    let mut chance = HashSet::new();
    for (wakee, (by_partners, by_others)) in woken {
        let of_partners: f64 = by_partners.keys().map(|waker| ran[waker]).sum();
        let rate = by_others / (all - of_partners).max(1.0);
        let happens = |(waker, count): &(&str, f64)| {
            let beyond = if *waker == wakee { BEYOND_CHANCE_OF_PEERS } else { BEYOND_CHANCE };
            *count <= beyond * rate * ran[waker]
        };
        let happen = by_partners.into_iter().filter(happens);
        chance.extend(happen.map(|(waker, _)| (waker, wakee)));
    }
    chance
}

/// The steps of a task; what an interrupt that wakes each one takes was on the time of whom it interrupted.
pub fn steps(
    task: &FollowedTask,
    wakeups: &[Wakeup],
    posts: &[bool],
    (lines, calls, arrivals): (u32, &Calls, &[Call]),
) -> Vec<Step> {
    let is_post = |cause| matches!(cause, Cause::Wakeup(at) if posts[at as usize]);
    let [queueing, resting] =
        [&calls.queue_ns, &calls.rest_ns].map(|figures| PartOfCall::of(figures));
    let keeps_while = sleeps_for_a_while(&task.seen, is_post)
        .unwrap_or_else(|| mostly_waits_for_posts(&task.seen, is_post));
    // What is still to be taken off for the lines of the last post that it read, and the rest of its own.
    let mut charged = 0;
    let step = |seen: &Seen| match *seen {
        Seen::Run(ns, _) => {
            let left = ns.saturating_sub(charged);
            charged -= ns - left;
            Some(Step::Run(left)).filter(|_| left > 0)
        }
        Seen::Wakeup(at) => {
            let Wakeup { wakee, wake, answers, excess, rest, .. } = wakeups[at as usize];
            let is_post = posts[at as usize];
            charged += match is_post {
                true => {
                    let excess = excess.map(|ns| ns.max(0) as Nanos);
                    queueing.charge(excess) + resting.charge(rest)
                }
                false => {
                    let Call { queue_ns, rest_ns } = arrivals[wakee as usize];
                    Nanos::from(queue_ns) + Nanos::from(rest_ns)
                }
            };
            is_post.then_some(match answers {
                true => Step::Answer(wakee, wake),
                false => Step::Post(wakee, wake),
            })
        }
        Seen::Slept { cause: Cause::Wakeup(at), line_ns, .. } if posts[at as usize] => {
            charged = u64::from(lines) * line_ns;
            Some(Step::Await(wakeups[at as usize].waker))
        }
        // A likely answer that was none.
        Seen::Slept { cause: Cause::Wakeup(at), .. }
            if wakeups[at as usize].seen == Evidence::Likely =>
        {
            None
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

/// `None` where that cannot be told.
fn sleeps_for_a_while(seen: &[Seen], is_post: impl Fn(Cause) -> bool) -> Option<bool> {
    let arrivals: Vec<(Nanos, Nanos)> = seen
        .iter()
        .filter_map(|seen| match *seen {
            // A likely answer took no time.
            Seen::Slept { from, until, cause, .. } if !is_post(cause) && from < until => {
                Some((from, until))
            }
            _ => None,
        })
        .collect();
    if arrivals.len() < FEWEST {
        return None;
    }
    // When the first one began is not known.
    let sleeps: Vec<Nanos> = arrivals[1..].iter().map(|(from, until)| until - from).collect();
    let between: Vec<Nanos> = arrivals.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    Some(variance(&sleeps) < variance(&between))
}

/// What tasks computed after posts over one distance.
#[derive(Clone, Copy, Default)]
struct Computed {
    count: f64,
    sum: f64,
    squares: f64,
}

/// Cache lines that come with posts to tasks of each name, where the trace tells.
pub fn lines(followed: &Followed, posts: &[bool], machine: &Machine) -> HashMap<String, u32> {
    let mut by_name: HashMap<&str, BTreeMap<Nanos, Computed>> = HashMap::new();
    for task in &followed.tasks {
        let by_line = by_name.entry(&task.name).or_default();
        let mut after: Option<Nanos> = None;
        let mut ns = 0.0;
        for seen in &task.seen {
            match *seen {
                Seen::Run(computed, _) => ns += computed as f64,
                Seen::Slept { cause, line_ns, .. } => {
                    if let Some(line_ns) = after {
                        let computed = by_line.entry(line_ns).or_default();
                        computed.count += 1.0;
                        computed.sum += ns;
                        computed.squares += ns * ns;
                    }
                    let is_post = matches!(cause, Cause::Wakeup(at) if posts[at as usize]);
                    after = is_post.then_some(line_ns);
                    ns = 0.0;
                }
                _ => {}
            }
        }
    }
    let within_core = machine.costs.cache_line_ns.smt;
    let told = |(name, mut by_line): (&str, BTreeMap<Nanos, Computed>)| {
        by_line.retain(|&line, _| line > within_core);
        Some((name.to_owned(), slope(&by_line)?))
    };
    by_name.into_iter().filter_map(told).collect()
}

/// What wakeups by tasks of each name take beyond the machine's figures.
pub fn calls(followed: &Followed, posts: &[bool]) -> HashMap<String, Calls> {
    let mut taken = Taken::default();
    for (wakeup, _) in followed.wakeups.iter().zip(posts).filter(|(_, is_post)| **is_post) {
        taken.add(&followed.tasks[wakeup.waker as usize].name, wakeup.excess, wakeup.rest);
    }
    taken.told(|excesses, rests| Calls {
        queue_ns: hundredths(excesses),
        rest_ns: hundredths(rests),
    })
}

/// What interrupts that wake tasks of each name take beyond them, softirqs with them.
pub fn arrivals(followed: &Followed, posts: &[bool]) -> HashMap<String, Call> {
    let mut taken = Taken::default();
    for task in &followed.tasks {
        taken.add(&task.name, task.excesses.iter().copied(), task.rests.iter().copied());
    }
    for (wakeup, is_post) in followed.wakeups.iter().zip(posts) {
        if wakeup.counts && wakeup.wake == Wake::Softirq && !is_post {
            taken.add(&followed.tasks[wakeup.wakee as usize].name, wakeup.excess, wakeup.rest);
        }
    }
    let takes = |all| middle_mean(all).clamp(0, u32::MAX.into()) as u32;
    taken.told(|excesses, rests| Call { queue_ns: takes(excesses), rest_ns: takes(rests) })
}

/// How much longer than by the machine's figures CPUs that idled took to run tasks of each name, once tasks of other CPUs
/// had woken them: beside what `calls` of these take.
pub fn idle_exits(
    followed: &Followed,
    posts: &[bool],
    calls: &HashMap<String, Calls>,
) -> HashMap<String, i32> {
    let name = |task: TaskIndex| followed.tasks[task as usize].name.as_str();
    let mean = |calls: &Calls| PartOfCall::of(&calls.queue_ns).mean as i64;
    let means: HashMap<&str, i64> =
        calls.iter().map(|(name, calls)| (name.as_str(), mean(calls))).collect();
    let mut beyond: HashMap<&str, Vec<i64>> = HashMap::new();
    for (wakeup, _) in followed.wakeups.iter().zip(posts).filter(|(_, is_post)| **is_post) {
        let Some(exit) = wakeup.idle_exit else { continue };
        let call = means.get(name(wakeup.waker)).copied().unwrap_or(0);
        beyond.entry(name(wakeup.wakee)).or_default().push(exit - call);
    }
    let most = i64::from(MOST_OF_CALL_NS);
    let told = |(name, all): (&str, Vec<i64>)| {
        (name.to_owned(), middle_mean(all).clamp(-most, most) as i32)
    };
    beyond.into_iter().map(told).collect()
}

/// How long after it was put on a run queue a task of each name preempts one of another CPU at the earliest: nine of ten
/// take longer. The interrupt is sent by then, and whoever has sent it holds the lock of that queue no longer. The tenth is
/// a figure of ours; recordings of a web server on one host were in view, whose first hundredth to first quarter take
/// 3.5 to 4.1 us.
pub fn preemptions(followed: &Followed, posts: &[bool]) -> HashMap<String, u32> {
    let mut by_name: HashMap<&str, Vec<Nanos>> = HashMap::new();
    for (wakeup, _) in followed.wakeups.iter().zip(posts).filter(|(_, is_post)| **is_post) {
        let name = followed.tasks[wakeup.wakee as usize].name.as_str();
        by_name.entry(name).or_default().extend(wakeup.preempted);
    }
    by_name.retain(|_, all| all.len() >= FEWEST_OF_CALL);
    let earliest = |mut all: Vec<Nanos>| {
        let at = all.len() / 10;
        (*all.select_nth_unstable(at).1).min(MOST_OF_CALL_NS.into()) as u32
    };
    by_name.into_iter().map(|(name, all)| (name.to_owned(), earliest(all))).collect()
}

/// Where the device interrupts that wake tasks of each name, if nearly all do that on one CPU, wherever the tasks are.
pub fn interrupted_on(followed: &Followed, posts: &[bool]) -> HashMap<String, u32> {
    let mut by_name: HashMap<&str, HashMap<u32, Interrupted>> = HashMap::new();
    for task in &followed.tasks {
        let by_cpu = by_name.entry(&task.name).or_default();
        let mut last = None;
        for seen in &task.seen {
            match *seen {
                Seen::Run(_, span) => last = Some(span.cpu),
                Seen::Slept { cause, .. } => {
                    let on = match cause {
                        Cause::Arrival { on } => on,
                        Cause::Wakeup(at) if posts[at as usize] => None,
                        Cause::Wakeup(at) => Some(followed.wakeups[at as usize].cpu),
                    };
                    let (Some(on), Some(last)) = (on, last) else { continue };
                    let interrupted = by_cpu.entry(on).or_default();
                    interrupted.times += 1;
                    interrupted.elsewhere += usize::from(on != last);
                }
                Seen::Wakeup(_) | Seen::Fork(_) => {}
            }
        }
    }
    let told = |(name, by_cpu): (&str, HashMap<u32, Interrupted>)| {
        let all: usize = by_cpu.values().map(|it| it.times).sum();
        let (cpu, most) = by_cpu.into_iter().max_by_key(|(cpu, it)| (it.times, *cpu))?;
        let is_device = most.elsewhere >= FEWEST_ELSEWHERE && all - most.times <= all / 10;
        is_device.then(|| (name.to_owned(), cpu))
    };
    by_name.into_iter().filter_map(told).collect()
}

/// How often one CPU was interrupted to wake tasks of a name, and how often of these that had run elsewhere.
#[derive(Clone, Copy, Default)]
struct Interrupted {
    times: usize,
    elsewhere: usize,
}

/// By name: how much longer wakeups took than the machine's figures say, and what came after them.
#[derive(Default)]
struct Taken<'a>(HashMap<&'a str, (Vec<i64>, Vec<i64>)>);

impl<'a> Taken<'a> {
    fn add(
        &mut self,
        name: &'a str,
        excesses: impl IntoIterator<Item = i64>,
        rests: impl IntoIterator<Item = Nanos>,
    ) {
        let (of_name, after) = self.0.entry(name).or_default();
        of_name.extend(excesses);
        after.extend(rests.into_iter().map(|ns| ns as i64));
    }

    fn told<T>(self, call: impl Fn(Vec<i64>, Vec<i64>) -> T) -> HashMap<String, T> {
        let by_name = self.0.into_iter();
        by_name.map(|(name, (excesses, rests))| (name.to_owned(), call(excesses, rests))).collect()
    }
}

/// The mean of the middle half: a trace tells microseconds, and interrupts take many.
fn middle_mean(mut all: Vec<i64>) -> i64 {
    if all.len() < FEWEST_OF_CALL {
        return 0;
    }
    all.sort_unstable();
    let middle = &all[all.len() / 4..all.len() - all.len() / 4];
    middle.iter().sum::<i64>() / middle.len() as i64
}

/// What takes the middle time of each hundredth of them, from the shortest on. So many because replays are held to a
/// p99; six traces of a host of two CPUs were in view, of which those of two clients lacked slow calls.
fn hundredths(mut all: Vec<i64>) -> Vec<u32> {
    if all.len() < FEWEST_OF_CALL {
        return Vec::new();
    }
    all.sort_unstable();
    let middle = |part: usize| all[all.len() * (2 * part + 1) / 200];
    (0..100).map(|part| middle(part).clamp(0, MOST_OF_CALL_NS.into()) as u32).collect()
}

/// What is taken off for it, of what those of a name took.
struct PartOfCall {
    are_told: bool,
    mean: Nanos,
}

impl PartOfCall {
    fn of(figures: &[u32]) -> Self {
        let sum: Nanos = figures.iter().map(|ns| Nanos::from(*ns)).sum();
        Self { are_told: !figures.is_empty(), mean: sum / figures.len().max(1) as Nanos }
    }

    /// What it took, or where that is not known the mean.
    fn charge(&self, took: Option<Nanos>) -> Nanos {
        match self.are_told {
            true => took.map_or(self.mean, |ns| ns.min(MOST_OF_CALL_NS.into())),
            false => 0,
        }
    }
}

/// By how many lines computing grows with what a line takes: the least squares, if that is two standard
/// errors from nothing.
fn slope(by_line: &BTreeMap<Nanos, Computed>) -> Option<u32> {
    let often = || by_line.iter().filter(|(_, of)| of.count >= FEWEST_OF_DISTANCE);
    let count: f64 = often().map(|(_, of)| of.count).sum();
    let mean_line = often().map(|(line, of)| *line as f64 * of.count).sum::<f64>() / count;
    let mean = often().map(|(_, of)| of.sum).sum::<f64>() / count;
    let (mut spread, mut common, mut within) = (0.0, 0.0, 0.0);
    for (line, of) in often() {
        let beyond = *line as f64 - mean_line;
        spread += of.count * beyond * beyond;
        common += beyond * (of.sum - of.count * mean);
        within += of.squares - of.sum * of.sum / of.count;
    }
    if often().count() < 2 || spread <= 0.0 {
        return None;
    }
    let (slope, error) = (common / spread, (within / count / spread).sqrt());
    (slope > 2.0 * error).then_some(slope.min(MOST_LINES).round() as u32)
}

fn mostly_waits_for_posts(seen: &[Seen], is_post: impl Fn(Cause) -> bool) -> bool {
    let causes = seen.iter().filter_map(|seen| match *seen {
        Seen::Slept { cause, .. } => Some(cause),
        _ => None,
    });
    let (posts, arrivals): (Vec<Cause>, Vec<Cause>) = causes.partition(|cause| is_post(*cause));
    posts.len() > arrivals.len()
}

fn variance(values: &[Nanos]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().map(|&value| value as f64).sum::<f64>() / count;
    values.iter().map(|&value| (value as f64 - mean).powi(2)).sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_by_how_computing_grows_with_distance() {
        let of = |ns: f64, noise: f64| {
            let squares = 100.0 * (ns * ns + noise * noise);
            Computed { count: 100.0, sum: 100.0 * ns, squares }
        };
        let by_line = |noise| BTreeMap::from([(20, of(1_100.0, noise)), (120, of(1_600.0, noise))]);
        assert_eq!(slope(&by_line(100.0)), Some(5));
        assert_eq!(slope(&by_line(5_000.0)), None, "that may be noise");
        let shorter = BTreeMap::from([(20, of(1_600.0, 100.0)), (120, of(1_100.0, 100.0))]);
        assert_eq!(slope(&shorter), None, "no line makes it shorter");
        assert_eq!(slope(&BTreeMap::from([(20, of(1_100.0, 1.0))])), None, "one distance");
    }

    /// A hundredth of them is slow, and a few are no more than chance.
    #[test]
    fn slow_calls_are_kept_and_few_tell_nothing() {
        let all = |count: i64| (0..count).map(|at| if at % 100 == 0 { 30_000 } else { 3_000 });
        let kept = hundredths(all(1_000).collect());
        assert_eq!((kept.len(), kept[98], kept[99]), (100, 3_000, 30_000));
        assert!(hundredths(all(29).collect()).is_empty());
        assert_eq!(hundredths(vec![-5; 30])[0], 0, "less than the machine's figure");
        let figures = PartOfCall::of(&kept);
        assert_eq!([figures.charge(Some(7)), figures.charge(None)], [7, 3_270]);
        assert_eq!(PartOfCall::of(&[]).charge(Some(7)), 0, "what is not told is not put in again");
    }

    /// A task that computes for so long at a time, with a sleep between that an interrupt ends.
    fn sleeps(computing: &[Nanos], asleep: impl Fn(usize, Nanos) -> Nanos) -> Option<bool> {
        let mut now = 0;
        let seen = computing.iter().enumerate().map(|(at, ns)| {
            let from = now + ns;
            now = from + asleep(at, *ns);
            Seen::Slept { from, until: now, cause: Cause::Arrival { on: None }, line_ns: 0 }
        });
        sleeps_for_a_while(&seen.collect::<Vec<_>>(), |_| false)
    }

    /// Fails if either were compared with its mean: a short while after long computing varies more by that.
    #[test]
    fn what_does_not_depend_on_how_long_a_task_computes_is_what_it_does() {
        let computing = [14_100, 14_600, 14_200, 14_800, 14_300, 14_500];
        let jitter = [0, 12, 3, 9, 1, 6];
        assert_eq!(sleeps(&computing, |at, _| 180 + jitter[at]), Some(true));
        assert_eq!(sleeps(&computing, |at, ns| 15_000 + jitter[at] - ns), Some(false));
        assert_eq!(sleeps(&computing[..3], |_, _| 180), None);
    }
}
