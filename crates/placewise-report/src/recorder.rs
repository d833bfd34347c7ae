//! Looks on while a trace is audited, and notes what a page draws of it.
//!
//! Times are those of the audit's steps, from the first one on: where no CPU had an event for long,
//! that time is left out. Of a part of a trace only that part is kept. What is before it and behind
//! it has no length, so it tells no more than who runs and waits when the part begins.
//!
//! The audit takes most of the time, and needs nothing of what becomes of the notes: they go to
//! another thread, in the order of the steps.

use std::ops::RangeInclusive;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use placewise_audit::cost::places::{ByNearest, Nearest};
use placewise_audit::{
    Action, Decided, Distance, Explanation, Observer, PrevState, Step, Stepped, TaskNumber, Tasks,
};
use placewise_machine::Machine;
use placewise_policy::FIRST_TASK;

use crate::cells::BesideIdle;
use crate::draft::Draft;
use crate::note::{Event, Note, Start, Who};
use crate::recording::{Recording, Shape};
use crate::runs::Class;

/// Notes go to the other thread so many at a time, and wait there in so many parcels at most.
const PARCEL: usize = 4096;
const PARCELS: usize = 8;
/// Explanations take longer than the audit itself: no more than these are made.
const MOST_EXPLAINED: u32 = 1 << 15;

/// From when to when, as the trace has it.
pub type Part = RangeInclusive<u64>;

/// An [`Observer`] of one trace.
pub struct Recorder {
    shape: Shape,
    clock: Clock,
    /// Where each task ran last.
    last_cpu: Vec<Option<u32>>,
    is_named: Vec<bool>,
    beside_idle: BesideIdle,
    explained: u32,
    notes: Vec<Note>,
    parcels: SyncSender<Vec<Note>>,
    draft: JoinHandle<Draft>,
}

impl Recorder {
    pub fn new(machine: &Machine, part: Part) -> Self {
        let shape = Shape::of(machine);
        let (parcels, arrived) = sync_channel::<Vec<Note>>(PARCELS);
        let mut draft = Draft::new(shape.clone(), machine.nr_llcs());
        let draft = thread::spawn(move || {
            arrived.iter().flatten().for_each(|note| draft.take(note));
            draft
        });
        Recorder {
            shape,
            clock: Clock::new(part),
            last_cpu: Vec::new(),
            is_named: Vec::new(),
            beside_idle: BesideIdle::default(),
            explained: 0,
            notes: Vec::new(),
            parcels,
            draft,
        }
    }

    /// The trace is over.
    pub fn finish(mut self, name: &str) -> Recording {
        self.send();
        drop(self.parcels);
        let draft = self.draft.join().expect("the draft takes all notes");
        draft.finish(name, self.clock.start_ns, self.clock.now)
    }

    fn note(&mut self, cpu: u32, event: Event) {
        let Clock { now, is_inside, .. } = self.clock;
        self.notes.push(Note { now, is_inside, cpu, event });
        if self.notes.len() == PARCEL {
            self.send();
        }
    }

    fn send(&mut self) {
        let parcel = std::mem::replace(&mut self.notes, Vec::with_capacity(PARCEL));
        // Should the other thread have panicked, joining it says so.
        let _ = self.parcels.send(parcel);
    }

    fn follow(&mut self, stepped: &Stepped<'_>) {
        let Stepped { step: Step { cpu, .. }, tasks, .. } = *stepped;
        match stepped.step.action {
            Action::Silence { ns } => {
                self.note(*cpu, Event::Silence { ns });
                self.clock.silent_ns += ns;
            }
            Action::Running { task } => {
                let start = self.start(*cpu, task, stepped);
                self.note(*cpu, Event::Running(start));
            }
            Action::Waking { task, prev_cpu, ref outcome } => {
                let target = outcome.as_ref().map_or(prev_cpu, |outcome| outcome.cpu);
                self.woken(*cpu, target, task, tasks);
            }
            Action::WakeupNew { task, target_cpu } => self.woken(*cpu, target_cpu, task, tasks),
            Action::Migrate { task, to, placement: false, .. } => {
                self.note(*cpu, Event::Moved { task, to });
            }
            Action::Switch { prev, prev_state, next } => {
                let next = self.start(*cpu, next, stepped);
                let is_runnable = prev_state == PrevState::Runnable;
                self.note(*cpu, Event::Switch { prev, is_runnable, next });
                if prev_state == PrevState::Dead {
                    self.forget(*cpu, prev);
                }
            }
            Action::Forgotten { task } => self.forget(*cpu, task),
            _ => {}
        }
    }

    fn woken(&mut self, cpu: u32, target: u32, task: TaskNumber, tasks: &Tasks) {
        let who = self.who(task, tasks);
        self.note(cpu, Event::Woken { who, cpu: target });
    }

    fn start(&mut self, cpu: u32, task: TaskNumber, stepped: &Stepped<'_>) -> Start {
        let who = self.who(task, stepped.tasks);
        let last_cpu = match task < FIRST_TASK {
            true => None,
            false => at(&mut self.last_cpu, task).replace(cpu),
        };
        let far = |last_cpu| Distance::of(stepped.state, last_cpu, cpu) as u8 + 1;
        Start { who, last_cpu, distance: last_cpu.map_or(0, far) }
    }

    fn who(&mut self, task: TaskNumber, tasks: &Tasks) -> Who {
        let who = Who::of(task, tasks.get(task));
        if !std::mem::replace(at(&mut self.is_named, who.name), true) {
            let name = tasks.name(who.name).to_owned();
            self.note(0, Event::Name { id: who.name, name });
        }
        who
    }

    fn forget(&mut self, cpu: u32, task: TaskNumber) {
        *at(&mut self.last_cpu, task) = None;
        self.note(cpu, Event::Forgotten { task });
    }
}

impl Observer for Recorder {
    fn stepped(&mut self, stepped: &Stepped<'_>) {
        self.clock.advance(stepped.step.time_ns);
        self.follow(stepped);
        let ByNearest { same_llc, same_node, other_node } = stepped.beside_idle();
        let beside_idle = [same_llc, same_node, other_node];
        if beside_idle != self.beside_idle {
            self.beside_idle = beside_idle;
            self.note(stepped.step.cpu, Event::BesideIdle(beside_idle));
        }
    }

    fn decided(&mut self, decided: &Decided<'_>) {
        let placed = decided.placed;
        let same_llc = self.shape.llc(placed.predicted) == self.shape.llc(placed.actual);
        let verdict = match (placed.predicted == placed.actual, same_llc) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 3,
        };
        let missed = match decided.missed {
            None => 0,
            Some(Nearest::SameLlc) => 1,
            Some(Nearest::SameNode) => 2,
            Some(Nearest::OtherNode) => 3,
        };
        let wanted = missed > 0 && self.clock.is_inside && self.explained < MOST_EXPLAINED;
        self.explained += u32::from(wanted);
        let explanation = wanted.then(|| Box::new(Explanation::of(decided)));
        let class = Class { distance: 0, verdict, missed };
        self.note(placed.waking_cpu, Event::Placed { task: placed.task, class, explanation });
    }
}

/// Where on the timeline the audit is.
struct Clock {
    part: Part,
    is_inside: bool,
    start: Option<u64>,
    /// Of the timeline, as the trace has it.
    start_ns: u64,
    now: u64,
    silent_ns: u64,
}

impl Clock {
    fn new(part: Part) -> Self {
        Clock { part, is_inside: false, start: None, start_ns: 0, now: 0, silent_ns: 0 }
    }

    /// `time_ns`: of a step.
    fn advance(&mut self, time_ns: u64) {
        self.is_inside = self.part.contains(&(time_ns + self.silent_ns));
        let of_step = |time: u64| time.saturating_sub(self.silent_ns);
        let time_ns = time_ns.clamp(of_step(*self.part.start()), of_step(*self.part.end()));
        let start = *self.start.get_or_insert(time_ns);
        self.now = time_ns.saturating_sub(start).max(self.now);
        if self.now == 0 {
            self.start_ns = start + self.silent_ns;
        }
    }
}

/// The place of a number, which is made if it is not there.
fn at<T: Default + Clone>(values: &mut Vec<T>, number: u32) -> &mut T {
    let number = number as usize;
    if values.len() <= number {
        values.resize(number + 1, T::default());
    }
    &mut values[number]
}
