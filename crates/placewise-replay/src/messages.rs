//! Messages that woke nobody, for who reads them was awake: a reader that computes for several times as
//! long as one message takes has read as many. Without them a replay's readers would sleep less often
//! than recorded where a message comes early, and never more often.
//!
//! Tasks that are woken more often than they wake read messages of whom they are woken by: those who write many sleep
//! for want of room. A message takes as long as the shorter turns of tasks of a name. Those that a task read without a
//! sleep came while it was awake, as often early as late, from those that have woken it and computed just then, from
//! each in turn but those that next to never wake it. Where nobody did there is none: who waits for an answer has sent no more.
//!
//! Limits: what a message takes is one figure for all readers of a name, and hardly told where it is no longer than a
//! trace's unit of time. Who reads one message and wakes several others for it is not taken for a reader. A turn
//! at whose end its task exits, or the trace ends, counts as one message.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use placewise_workload::program::{Nanos, Wake};

use crate::charges::Charges;
use crate::followed::{Cause, Followed, Names, Seen, Span, Wakeup};
use crate::recording::TaskIndex;

/// Fewer turns do not tell what a message takes.
const FEWEST: usize = 100;

/// So many of a hundred turns are no longer than a message takes. Of the busy periods of a queue half or more serve
/// one (M/M/1; more than a third where each takes as long): this is in their middle. Chosen with simulated hackbench in
/// view, of which the messages are known: with 10 they took half as long as they do, in a trace in microseconds.
const SHORTER_PCT: usize = 25;

/// Who begins so many times fewer turns of a reader than another one, or fewer than that, has woken it for something else: a
/// lock that it handed on, a disk that was done while it ran. A figure of ours; recordings of pgbench on one host were in view,
/// where one began a single one of 51,155.
const SELDOM: usize = 100;

/// No more messages are read in a turn, and no more of all are kept in memory.
const MOST_OF_TURN: u64 = 256;
const MOST: usize = 4_000_000;

/// What a reader did from a wakeup until it slept again.
struct Turn {
    reader: TaskIndex,
    waker: TaskIndex,
    wake: Wake,
    woken: Nanos,
    /// From its first computing to its last.
    ran: [Nanos; 2],
    ns: Nanos,
}

/// One that woke nobody.
struct Message {
    writer: TaskIndex,
    reader: TaskIndex,
    wake: Wake,
    sent: Nanos,
    sent_on: u32,
    taken: Nanos,
    taken_on: u32,
}

/// Takes messages down as wakeups that their readers did not need; returns the names of readers.
pub fn add(
    followed: &mut Followed,
    posts: &mut Vec<bool>,
    charges: &Charges<'_>,
) -> BTreeSet<String> {
    let names = followed.names();
    let turns: Vec<_> =
        (0..followed.tasks.len()).map(|task| turns(followed, posts, task as TaskIndex)).collect();
    let takes = takes(&turns, &names);
    let takes = |turn: &Turn| takes.get(&turn.names(&names)).copied();
    let mut writers = Writers { followed, spans: HashMap::new() };
    let mut messages: Vec<Message> = Vec::new();
    let mut readers = BTreeSet::new();
    for (reader, mut turns) in turns.into_iter().enumerate() {
        turns.retain(|turn| takes(turn).is_some());
        let mut wakers = writers_of(&turns);
        let before = messages.len();
        for turn in &turns {
            let each = takes(turn).unwrap_or_default();
            messages.extend(writers.messages(turn, each, &mut wakers));
        }
        let name = &followed.tasks[reader].name;
        readers.extend((messages.len() > before).then(|| name.clone()));
        if messages.len() > MOST {
            break;
        }
    }
    take_down(&messages, followed, posts, charges);
    readers
}

impl Turn {
    fn names(&self, names: &[usize]) -> Names {
        (names[self.waker as usize], names[self.reader as usize])
    }

    fn computes(&mut self, ns: Nanos, span: Span) {
        if self.ns == 0 {
            self.ran[0] = span.from;
        }
        self.ran[1] = span.until;
        self.ns += ns;
    }
}

/// Those of a task that a post began and a sleep ended, if it reads.
fn turns(followed: &Followed, posts: &[bool], reader: TaskIndex) -> Vec<Turn> {
    let post = |at: u32| Some(followed.wakeups[at as usize]).filter(|_| posts[at as usize]);
    let begun = |cause: Cause, woken: Nanos| match cause {
        Cause::Wakeup(at) => post(at).map(|Wakeup { waker, wake, .. }| Turn {
            reader,
            waker,
            wake,
            woken,
            ran: [woken; 2],
            ns: 0,
        }),
        Cause::Arrival { .. } => None,
    };
    let mut turns = Vec::new();
    let mut turn: Option<Turn> = None;
    let mut wakes = 0;
    for seen in &followed.tasks[reader as usize].seen {
        match (*seen, &mut turn) {
            (Seen::Slept { until, cause, .. }, _) => {
                turns.extend(turn.take().filter(|turn| turn.ns > 0));
                turn = begun(cause, until);
            }
            (Seen::Run(ns, span), Some(turn)) => turn.computes(ns, span),
            (Seen::Wakeup(at), _) => wakes += usize::from(posts[at as usize]),
            _ => {}
        }
    }
    if wakes > turns.len() { Vec::new() } else { turns }
}

/// Who writes to the reader of these turns: all that have begun some but those that next to never do.
fn writers_of(turns: &[Turn]) -> VecDeque<TaskIndex> {
    let mut begun: BTreeMap<TaskIndex, usize> = BTreeMap::new();
    turns.iter().for_each(|turn| *begun.entry(turn.waker).or_default() += 1);
    let most = begun.values().copied().max().unwrap_or_default();
    begun.into_iter().filter(|(_, turns)| turns * SELDOM > most).map(|(waker, _)| waker).collect()
}

/// How long a message takes, where tasks of one name read those of another.
fn takes(turns: &[Vec<Turn>], names: &[usize]) -> HashMap<Names, Nanos> {
    let mut by_names: HashMap<Names, Vec<Nanos>> = HashMap::new();
    for turn in turns.iter().flatten() {
        by_names.entry(turn.names(names)).or_default().push(turn.ns);
    }
    by_names.retain(|_, lengths| lengths.len() >= FEWEST);
    let shorter = |mut lengths: Vec<Nanos>| {
        let at = lengths.len() * SHORTER_PCT / 100;
        *lengths.select_nth_unstable(at).1
    };
    by_names.into_iter().map(|(names, lengths)| (names, shorter(lengths))).collect()
}

/// Who may have written, and when each of them computed.
struct Writers<'a> {
    followed: &'a Followed,
    spans: HashMap<TaskIndex, Vec<Span>>,
}

impl Writers<'_> {
    /// Those that a turn found there. `wakers`: of its reader, who has written longest ago first.
    fn messages(
        &mut self,
        turn: &Turn,
        each: Nanos,
        wakers: &mut VecDeque<TaskIndex>,
    ) -> Vec<Message> {
        let Turn { reader, wake, woken, ran, ns, .. } = *turn;
        let count = ((ns + each / 2) / each.max(1)).min(MOST_OF_TURN);
        let part = |[from, until]: [Nanos; 2], read: u64| from + (until - from) * read / count;
        let message = |read| {
            let (sent, taken) = (part([woken, ran[1]], read), part(ran, read));
            let found = wakers.iter().position(|&waker| self.cpu_at(waker, sent).is_some())?;
            let writer = wakers.remove(found)?;
            wakers.push_back(writer);
            let sent_on = self.cpu_at(writer, sent)?;
            let taken_on = self.cpu_at(reader, taken).unwrap_or(sent_on);
            Some(Message { writer, reader, wake, sent, sent_on, taken, taken_on })
        };
        (1..count).filter_map(message).collect()
    }

    /// Where the task computed at that time, if it did.
    fn cpu_at(&mut self, task: TaskIndex, at: Nanos) -> Option<u32> {
        let seen = &self.followed.tasks[task as usize].seen;
        let span = |seen: &Seen| match *seen {
            Seen::Run(_, span) => Some(span),
            _ => None,
        };
        let all = || seen.iter().filter_map(span).collect();
        let spans = self.spans.entry(task).or_insert_with(all);
        let span = spans.get(spans.partition_point(|span| span.until < at))?;
        (span.from <= at).then_some(span.cpu)
    }
}

fn take_down(
    messages: &[Message],
    followed: &mut Followed,
    posts: &mut Vec<bool>,
    charges: &Charges<'_>,
) {
    let mut added: Vec<Vec<(Nanos, Seen)>> = vec![Vec::new(); followed.tasks.len()];
    for message in messages {
        let Message { writer, reader, wake, sent, sent_on, taken, taken_on } = *message;
        let at = followed.wakeups.len() as u32;
        let line_ns = charges.line(sent_on, taken_on);
        let found = Seen::Slept { from: taken, until: taken, cause: Cause::Wakeup(at), line_ns };
        added[writer as usize].push((sent, Seen::Wakeup(at)));
        added[reader as usize].push((taken, found));
        followed.wakeups.push(Wakeup::silent((writer, reader), wake, sent_on));
        posts.push(true);
    }
    for (task, mut added) in followed.tasks.iter_mut().zip(added) {
        if !added.is_empty() {
            added.sort_by_key(|(at, _)| *at);
            task.seen = divided(&task.seen, added);
        }
    }
}

/// With what came while the task computed.
fn divided(all: &[Seen], added: Vec<(Nanos, Seen)>) -> Vec<Seen> {
    let mut divided = Vec::with_capacity(all.len() + 2 * added.len());
    let mut added = added.into_iter().peekable();
    for seen in all {
        let Seen::Run(mut ns, mut span) = *seen else {
            divided.push(*seen);
            continue;
        };
        while let Some((at, what)) = added.next_if(|(at, _)| *at <= span.until) {
            let (passed, whole) = (at.saturating_sub(span.from), span.until - span.from);
            let before = (u128::from(ns) * u128::from(passed) / u128::from(whole.max(1))) as Nanos;
            let until = span.from + passed;
            divided.extend([Seen::Run(before, Span { until, ..span }), what]);
            (ns, span.from) = (ns - before, until);
        }
        divided.push(Seen::Run(ns, span));
    }
    divided
}
