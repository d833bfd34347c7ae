//! Which posts are answers, and the answers that woke nobody.
//!
//! Where a task is woken by several that it wakes in turn (clients of a server, servers of a client), whom it posts
//! to follows from who has posted to it, not from the order in which they did so in the trace: in a replay such a
//! post goes to whose post it has taken and not answered yet.
//!
//! **A round** of two tasks goes from one's call of the other until its next. In a round the callee has answered,
//! or it has woken nobody: its caller may have been awake as it computed, and found the answer there. If its caller
//! slept all that while, there was no answer. Where that is so in next to none of the rounds of tasks of two names,
//! these always answer before they are called again, and the others have had an answer before they call again. A
//! round in which the trace has lost that the callee ran tells nothing.
//!
//! An answer that woke nobody is put before the sleep in which its task waited for the next call, and is taken
//! before what its caller computes for that call. Then each of two tasks posts to the other in turn. Of more than two
//! the one in the middle answers what it has taken before it takes more: its partners wait for that.
//!
//! **Calls under way.** Two have several at a time where they have several connections. More than one shows once
//! [messages](crate::messages) that woke nobody are taken down: at a call so many of those before it are not answered
//! yet; as many as that, but for one call in a hundred, are under way at any time. Callees begin with answers to all but
//! one of them. Where tasks of both names have several partners (client threads, and servers) that is likely, and nothing
//! is taken for an answer as long as messages are not known.
//!
//! Limits: tasks of two names have as many calls under way as others of these names. What is answered twice, or called
//! twice, is once; and what is not answered before the trace ends is left out where somebody else could be answered for it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use placewise_workload::program::{Nanos, Wake};

use crate::charges::Charges;
use crate::followed::{Cause, Followed, Names, Seen, Wakeup};
use crate::recording::TaskIndex;

/// Fewer answers tell nothing.
const FEWEST: usize = 16;

/// So many rounds end in an answer for each that does not, or more.
const ANSWERED: usize = 100;

/// Of so many answers one has woken its caller, or more do. Whom readers of pipes wake waits for room, not for an answer:
/// that were 1 in 70 to 140 of simulated hackbench, and 1 in 4 to 26 of nginx and wrk; both were in view.
const SEEN: usize = 40;

/// More calls are under way in one of so many, or fewer.
const SELDOM: usize = 100;

/// No more of two tasks are kept in memory.
const MOST: usize = 64;

/// Names of tasks that call, and of those that answer before they are called again.
#[derive(Default)]
pub struct InTurn {
    names: Vec<Names>,
    /// Some of them have several partners on both sides.
    pub has_open: bool,
}

/// As if two had one call under way: takes down answers that woke nobody, and marks the posts that go to whom is answered.
/// Of those that have several partners on both sides it takes down nothing.
pub fn add(followed: &mut Followed, posts: &mut Vec<bool>, charges: &Charges<'_>) -> InTurn {
    let names = followed.names();
    let mut in_turn = InTurn::default();
    for callers in callers(followed, posts, &names) {
        let known = Known::of(followed);
        let rounds = Rounds::of((followed, &known), posts, &names, callers);
        if !rounds.end_in_answers() {
            continue;
        }
        if rounds.are_of_stars() {
            rounds.take_down((followed, &known), posts, charges);
        } else if rounds.have_answers_often() {
            in_turn.has_open = true;
        } else {
            continue;
        }
        in_turn.names.push(callers);
    }
    in_turn
}

impl InTurn {
    /// Takes down the answers of them all in a trace whose messages are known, with as many calls under way as these tell.
    pub fn add_under_way(
        &self,
        followed: &mut Followed,
        posts: &mut Vec<bool>,
        charges: &Charges<'_>,
    ) {
        let names = followed.names();
        for &callers in &self.names {
            let known = Known::of(followed);
            let rounds = Rounds::of((followed, &known), posts, &names, callers);
            let under_way = rounds.under_way((followed, &known));
            rounds.take_down((followed, &known), posts, charges);
            rounds.begin_with(under_way, followed, posts);
        }
    }
}

/// Names of tasks that wake each other. Who wakes more often calls: none but answers may have woken nobody.
fn callers(followed: &Followed, posts: &[bool], names: &[usize]) -> Vec<Names> {
    let mut calls: BTreeMap<Names, usize> = BTreeMap::new();
    for (wakeup, _) in followed.wakeups.iter().zip(posts).filter(|(_, is_post)| **is_post) {
        *calls.entry(wakeup.names(names)).or_default() += 1;
    }
    let mut mutual: Vec<Names> = calls.keys().copied().collect();
    mutual.retain(|&(one, other)| {
        let back = calls.get(&(other, one)).copied().unwrap_or_default();
        back >= FEWEST && (calls[&(one, other)], one) > (back, other)
    });
    mutual.sort_by_key(|names| Reverse(calls[names]));
    mutual
}

/// Of two tasks, from a call until the next.
struct Round {
    caller: TaskIndex,
    callee: TaskIndex,
    /// When the caller had made the call, unless that is not in the trace.
    called: Option<Nanos>,
    end: End,
    next: u32,
    /// The place of the sleep in which the callee waited for calls, among what it did.
    sleep: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// By a post, which has woken the caller.
    Answered(u32),
    /// The caller was awake as the callee computed.
    Silent,
    /// It slept all the while.
    Unanswered,
    /// The callee has not run, for all that the trace has of it.
    Unseen,
}

/// Of a callee and one of its callers, since a call.
#[derive(Default)]
struct Since {
    call: Option<u32>,
    answers: Vec<u32>,
    ran: Option<[Nanos; 2]>,
    sleep: Option<usize>,
}

/// What tasks of two names did in turn.
#[derive(Default)]
struct Rounds {
    all: Vec<Round>,
    /// Posts that are no part of it.
    extra: HashSet<u32>,
}

impl Rounds {
    fn of(
        (followed, known): (&Followed, &Known),
        posts: &[bool],
        names: &[usize],
        callers: Names,
    ) -> Self {
        let is_of = |at: u32| followed.wakeups[at as usize].names(names) == callers;
        let is_call = |at: u32| posts[at as usize] && is_of(at);
        let mut callers: BTreeMap<TaskIndex, BTreeSet<TaskIndex>> = BTreeMap::new();
        for at in (0..followed.wakeups.len() as u32).filter(|at| is_call(*at)) {
            let call = &followed.wakeups[at as usize];
            callers.entry(call.wakee).or_default().insert(call.waker);
        }
        let mut rounds = Rounds::default();
        for (callee, callers) in callers {
            let is_middle = callers.len() > 1;
            let since = callers.into_iter().map(|caller| (caller, Since::default())).collect();
            let is_post = |at: u32| posts[at as usize];
            for left in rounds.follow((followed, known), callee, since, (&is_call, &is_post)) {
                // Nobody knows of the next call.
                rounds.extra.extend(left.answers);
                rounds.extra.extend(left.call.filter(|_| is_middle));
            }
        }
        rounds
    }

    /// All that a callee did; returns what it did since the last call of each.
    fn follow(
        &mut self,
        (followed, known): (&Followed, &Known),
        callee: TaskIndex,
        mut since: BTreeMap<TaskIndex, Since>,
        (is_call, is_post): (&dyn Fn(u32) -> bool, &dyn Fn(u32) -> bool),
    ) -> impl Iterator<Item = Since> + use<> {
        for (seen, place) in followed.tasks[callee as usize].seen.iter().zip(0..) {
            match *seen {
                Seen::Run(_, span) => since.values_mut().for_each(|it| {
                    it.ran.get_or_insert([span.from, span.until])[1] = span.until;
                }),
                Seen::Wakeup(at) if is_post(at) => {
                    let to = followed.wakeups[at as usize].wakee;
                    since.entry(to).and_modify(|it| it.answers.push(at));
                }
                Seen::Slept { cause: Cause::Wakeup(next), .. } if is_call(next) => {
                    since.values_mut().for_each(|it| _ = it.sleep.get_or_insert(place));
                    let caller = followed.wakeups[next as usize].waker;
                    let of_next = Since { call: Some(next), ..Since::default() };
                    let ended = since.insert(caller, of_next).unwrap_or_default();
                    self.end((caller, callee), ended, next, (followed, known));
                }
                _ => {}
            }
        }
        since.into_values()
    }

    fn end(
        &mut self,
        (caller, callee): (TaskIndex, TaskIndex),
        since: Since,
        next: u32,
        (followed, known): (&Followed, &Known),
    ) {
        let Since { call, answers, ran, sleep } = since;
        // One that came as its caller went to sleep was there before.
        let is_before = |at: &&u32| known.taken[**at as usize] < known.made[next as usize];
        let end = match (answers.first().filter(is_before), ran) {
            (Some(&at), _) => End::Answered(at),
            (None, Some(ran)) if !known.slept(caller, ran) => End::Silent,
            (None, None) => End::Unseen,
            _ => End::Unanswered,
        };
        self.extra.extend(answers.into_iter().filter(|at| end != End::Answered(*at)));
        if matches!(end, End::Unanswered | End::Unseen) && call.is_some() {
            self.extra.insert(next);
        }
        let sleep = sleep.unwrap_or_default();
        let called = call.map(|at| known.made_at(at, followed));
        self.all.push(Round { caller, callee, called, end, next, sleep });
    }

    fn end_in_answers(&self) -> bool {
        let ends = || self.all.iter().filter(|round| round.called.is_some()).map(|round| round.end);
        let answered = ends().filter(|end| matches!(end, End::Answered(_))).count();
        let not = ends().filter(|end| *end == End::Unanswered).count();
        answered >= FEWEST.max(not * ANSWERED)
    }

    fn have_answers_often(&self) -> bool {
        let answered = self.all.iter().filter(|round| matches!(round.end, End::Answered(_)));
        answered.count() * SEEN >= self.all.len()
    }

    /// Of two that wake each other one wakes nobody else of that name.
    fn are_of_stars(&self) -> bool {
        let pairs = self.pairs();
        let mut partners: BTreeMap<TaskIndex, usize> = BTreeMap::new();
        pairs.iter().flatten().for_each(|task| *partners.entry(*task).or_default() += 1);
        pairs.iter().all(|pair| pair.iter().any(|task| partners[task] == 1))
    }

    fn take_down(
        &self,
        (followed, known): (&mut Followed, &Known),
        posts: &mut Vec<bool>,
        charges: &Charges<'_>,
    ) {
        let wake = self.way(followed);
        let mut added: Vec<Added> = vec![Vec::new(); followed.tasks.len()];
        let mut turns: BTreeMap<TaskIndex, Turns> = BTreeMap::new();
        for round in &self.all {
            let Round { caller, callee, called, next, .. } = *round;
            let answer = match round.end {
                End::Answered(at) => Some(at),
                End::Silent => {
                    posts.push(true);
                    Some(silent(round, wake, (followed, known), charges, &mut added))
                }
                End::Unanswered | End::Unseen => None,
            };
            let of_callee = turns.entry(callee).or_default();
            of_callee.partners.insert(caller);
            of_callee.taken.insert(next);
            of_callee.posts.extend(answer.filter(|_| called.is_some()));
            let of_caller = turns.entry(caller).or_default();
            of_caller.partners.insert(callee);
            of_caller.taken.extend(answer);
            of_caller.posts.extend(answer.map(|_| next));
        }
        for (&task, turns) in &turns {
            let added = std::mem::take(&mut added[task as usize]);
            let all = &mut followed.tasks[task as usize].seen;
            let seen = with(all, added, &self.extra);
            *all = match turns.partners.len() {
                1 => seen,
                _ => turns.in_turn(seen, &mut followed.wakeups),
            };
        }
    }

    /// How many calls two tasks have under way at a time: one where nothing tells.
    fn under_way(&self, (followed, known): (&Followed, &Known)) -> usize {
        let mut times: BTreeMap<[TaskIndex; 2], [Vec<Nanos>; 2]> = BTreeMap::new();
        for round in &self.all {
            let Round { caller, callee, called, sleep, .. } = *round;
            let answered = match round.end {
                End::Answered(at) => known.made_at(at, followed),
                End::Silent => time_at(&followed.tasks[callee as usize].seen[..sleep]),
                End::Unanswered | End::Unseen => continue,
            };
            let [calls, answers] = times.entry([caller, callee]).or_default();
            calls.extend(called);
            answers.extend(called.map(|_| answered));
        }
        let open_at_calls = times.values().flat_map(|[calls, answers]| {
            let answered = |call: Nanos| answers.partition_point(|answer| *answer <= call);
            calls
                .iter()
                .zip(0..)
                .map(move |(&call, before)| before + 1 - answered(call).min(before))
        });
        let mut open: Vec<usize> = open_at_calls.collect();
        let at = open.len().checked_sub(1 + open.len() / SELDOM);
        at.map_or(1, |at| *open.select_nth_unstable(at).1).min(MOST)
    }

    /// Callees begin with answers to all calls but one that each two have under way.
    fn begin_with(&self, under_way: usize, followed: &mut Followed, posts: &mut Vec<bool>) {
        let wake = self.way(followed);
        let Followed { tasks, wakeups, .. } = followed;
        for [caller, callee] in self.pairs() {
            let seen = &mut tasks[callee as usize].seen;
            let answer = Wakeup::silent((callee, caller), wake, last_cpu(seen));
            seen.splice(..0, (wakeups.len() as u32..).take(under_way - 1).map(Seen::Wakeup));
            wakeups.resize(wakeups.len() + under_way - 1, answer);
        }
        posts.resize(wakeups.len(), true);
    }

    fn pairs(&self) -> BTreeSet<[TaskIndex; 2]> {
        self.all.iter().map(|round| [round.caller, round.callee]).collect()
    }

    /// How they answer.
    fn way(&self, followed: &Followed) -> Wake {
        let way = self.all.iter().find_map(|round| match round.end {
            End::Answered(at) => Some(followed.wakeups[at as usize].wake),
            _ => None,
        });
        way.unwrap_or_default()
    }
}

/// What is to be put before these places among what a task did.
type Added = Vec<(usize, Seen)>;

/// The answer of a round that woke nobody.
fn silent(
    round: &Round,
    wake: Wake,
    (followed, known): (&mut Followed, &Known),
    charges: &Charges<'_>,
    added: &mut [Added],
) -> u32 {
    let Round { caller, callee, next, sleep, .. } = *round;
    let at = followed.wakeups.len() as u32;
    let sent_on = last_cpu(&followed.tasks[callee as usize].seen[..sleep]);
    added[callee as usize].push((sleep, Seen::Wakeup(at)));
    let call = known.made[next as usize];
    let seen = &followed.tasks[caller as usize].seen[..call];
    let before = if let [before @ .., Seen::Run(..)] = seen { before } else { seen };
    let (from, until) = (time_at(before), time_at(before));
    let line_ns = charges.line(sent_on, last_cpu(seen));
    let taken = Seen::Slept { from, until, cause: Cause::Wakeup(at), line_ns };
    added[caller as usize].push((before.len(), taken));
    followed.wakeups.push(Wakeup::silent((callee, caller), wake, sent_on));
    at
}

/// What a task takes of its partners, and what it posts to them then.
#[derive(Default)]
struct Turns {
    partners: BTreeSet<TaskIndex>,
    taken: HashSet<u32>,
    posts: HashSet<u32>,
}

impl Turns {
    /// Who has taken a post answers it before it takes another.
    fn in_turn(&self, seen: Vec<Seen>, wakeups: &mut [Wakeup]) -> Vec<Seen> {
        let mut all = Vec::with_capacity(seen.len());
        let mut later = VecDeque::new();
        let mut owes = false;
        for what in seen {
            match what {
                Seen::Slept { cause: Cause::Wakeup(at), .. } if self.taken.contains(&at) => {
                    if owes {
                        later.push_back(what);
                        continue;
                    }
                    owes = true;
                }
                Seen::Wakeup(at) if self.posts.contains(&at) => {
                    if !owes && let Some(taken) = later.pop_front() {
                        let computing = all.pop_if(|last| matches!(last, Seen::Run(..)));
                        all.push(taken);
                        all.extend(computing);
                        owes = true;
                    }
                    wakeups[at as usize].answers = std::mem::take(&mut owes);
                }
                _ => {}
            }
            all.push(what);
        }
        all
    }
}

/// Of each wakeup its place among what its waker did, and among what its wakee did; and when each task slept.
struct Known {
    made: Vec<usize>,
    taken: Vec<usize>,
    sleeps: Vec<Vec<[Nanos; 2]>>,
}

impl Known {
    fn of(followed: &Followed) -> Self {
        let nowhere = || vec![0; followed.wakeups.len()];
        let sleeps = vec![Vec::new(); followed.tasks.len()];
        let mut known = Known { made: nowhere(), taken: nowhere(), sleeps };
        for (task, sleeps) in followed.tasks.iter().zip(&mut known.sleeps) {
            for (seen, place) in task.seen.iter().zip(0..) {
                match *seen {
                    Seen::Wakeup(at) => known.made[at as usize] = place,
                    Seen::Slept { from, until, cause, .. } => {
                        sleeps.extend((from < until).then_some([from, until]));
                        if let Cause::Wakeup(at) = cause {
                            known.taken[at as usize] = place;
                        }
                    }
                    _ => {}
                }
            }
        }
        known
    }

    /// When the post was made.
    fn made_at(&self, at: u32, followed: &Followed) -> Nanos {
        let waker = followed.wakeups[at as usize].waker;
        time_at(&followed.tasks[waker as usize].seen[..self.made[at as usize]])
    }

    /// Did the task sleep all the while?
    fn slept(&self, task: TaskIndex, [since, until]: [Nanos; 2]) -> bool {
        let sleeps = &self.sleeps[task as usize];
        let last = sleeps.partition_point(|[from, _]| *from <= since).checked_sub(1);
        last.is_some_and(|last| until <= sleeps[last][1])
    }
}

fn last_cpu(seen: &[Seen]) -> u32 {
    let cpu = |seen: &Seen| match *seen {
        Seen::Run(_, span) => Some(span.cpu),
        _ => None,
    };
    seen.iter().rev().find_map(cpu).unwrap_or_default()
}

fn time_at(seen: &[Seen]) -> Nanos {
    let time = |seen: &Seen| match *seen {
        Seen::Run(_, span) => Some(span.until),
        Seen::Slept { until, .. } => Some(until),
        _ => None,
    };
    seen.iter().rev().find_map(time).unwrap_or_default()
}

/// What a task did, with what was `added`, and without `extra` posts.
fn with(seen: &[Seen], mut added: Added, extra: &HashSet<u32>) -> Vec<Seen> {
    added.sort_by_key(|(place, _)| *place);
    let mut all = Vec::with_capacity(seen.len() + added.len());
    let mut added = added.into_iter().peekable();
    for (place, what) in seen.iter().enumerate() {
        while let Some((_, more)) = added.next_if(|(before, _)| *before == place) {
            all.push(more);
        }
        let is_extra = match *what {
            Seen::Wakeup(at) | Seen::Slept { cause: Cause::Wakeup(at), .. } => extra.contains(&at),
            _ => false,
        };
        all.extend((!is_extra).then_some(*what));
    }
    all
}
