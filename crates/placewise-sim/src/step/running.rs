//! The current task of a CPU together with what it works with: most events end one segment of a program
//! and begin the next, and here nothing is looked up twice for that.

use placewise_policy::{CpuId, PREEMPT_FULL, Profile, TaskId};
use placewise_workload::program::{Call, Op};

use super::messages::{self, Begin};
use crate::engine::Engine;
use crate::state::channel::{Channel, Side};
use crate::state::costs::CostModel;
use crate::state::cpu::{Activity, Cpu};
use crate::state::effect::{Then, WaitQueue};
use crate::state::event_queue::Time;
use crate::state::measure::Measurement;
use crate::state::programs::{Programs, Step, Transfer};
use crate::state::task::Task;

/// Computing ends a segment once it is this long: a task may do nothing else for ever.
const LONG_SEGMENT: Time = 1_000_000;

pub(super) struct Running<'e, 'a> {
    pub state: &'e mut Task,
    pub here: &'e mut Cpu,
    task: TaskId,
    cpu: CpuId,
    now: Time,
    programs: &'e Programs,
    channels: &'e mut Vec<Channel>,
    costs: &'e mut CostModel<'a>,
    measurement: &'e mut Measurement,
    profile: &'e Profile,
}

/// What the current task's segment comes to.
pub(super) enum Segment {
    /// It ends then.
    Ends(Time),
    /// What this operation costs is for the engine to say.
    Costs(Op),
    /// It ends with a stream.
    Streams,
}

impl<'a> Engine<'a> {
    #[inline(always)]
    pub(super) fn running(&mut self, cpu: CpuId, task: TaskId) -> Running<'_, 'a> {
        Running {
            state: &mut self.tasks[task],
            here: &mut self.cpus[cpu],
            task,
            cpu,
            now: self.now,
            programs: &self.programs,
            channels: &mut self.objects.channels,
            costs: &mut self.costs,
            measurement: &mut self.measurement,
            profile: &self.scheduler.policy.profile,
        }
    }
}

impl<'e> Running<'e, '_> {
    /// The task goes on where it is in its program. What the kernel did on its time is added to its next segment.
    #[inline(always)]
    pub fn go_on(&mut self) -> Segment {
        self.state.work_left += std::mem::take(&mut self.here.debt);
        if !self.state.in_segment
            && let Some(op) = self.begin_operation()
        {
            return Segment::Costs(op);
        }
        match self.state.stream_left {
            0 => Segment::Ends(self.time_work()),
            _ => Segment::Streams,
        }
    }

    /// Goes through the program up to the next operation that takes time, or to a long segment; that one, if it
    /// is no transfer.
    #[inline(always)]
    fn begin_operation(&mut self) -> Option<Op> {
        let mut work = 0;
        let mut ahead = self.programs.from(self.state.pc);
        let op = loop {
            let (step, after) = ahead.split_first().expect("a program ends with its task");
            match *step {
                Step::Send(ref transfer) => {
                    ahead = transfer.itself(ahead);
                    work += self.begin_transfer(transfer, Side::Writer, self.state.base, work);
                    break None;
                }
                Step::Receive(ref transfer) => {
                    ahead = transfer.itself(ahead);
                    work += self.begin_transfer(transfer, Side::Reader, self.state.base, work);
                    break None;
                }
                Step::Reply(ref transfer) => {
                    ahead = transfer.itself(ahead);
                    work += self.begin_transfer(transfer, Side::Writer, self.state.peer, work);
                    break None;
                }
                Step::Run { ns } => {
                    work += self.costs.draw(ns);
                    if work >= LONG_SEGMENT {
                        break None;
                    }
                }
                Step::Count => self.measurement.count(self.state.part),
                Step::Repeat { counter, times, to } => {
                    if self.state.repeats(counter, times) {
                        ahead = self.programs.from(to);
                        continue;
                    }
                }
                Step::Op(Op::Start) => self.measurement.start(self.state.part, self.now),
                Step::Op(Op::Spin { ns }) => {
                    self.state.spin_until = Some(self.now + work + ns);
                    break None;
                }
                Step::Op(op) => {
                    match pass(op, self.now + work, self.state, self.costs, self.measurement) {
                        Some(more) => work += more,
                        None => break Some(op),
                    }
                }
            }
            ahead = after;
        };
        self.state.pc = self.programs.begin_of(ahead);
        self.state.in_segment = true;
        self.state.work_left += work;
        op
    }

    /// What a transfer takes, with what is computed right before, that the task comes to once it has worked for
    /// some time; by a channel of those that count from a base.
    #[inline(always)]
    fn begin_transfer(&mut self, transfer: &Transfer, side: Side, base: u32, work: Time) -> Time {
        let run = transfer.run.map_or(0, |ns| self.costs.draw(ns.get()));
        let before = self.state.work_left + work + run;
        let begin = Begin { cpu: self.cpu, pace: &self.here.pace, now: self.now, before };
        let channel = &mut self.channels[transfer.channel(base)];
        run + messages::step_cost(transfer, side, self.state, channel, self.costs, begin)
    }

    /// The rest of a segment without a stream ends then, at the speed of this moment.
    #[inline(always)]
    pub fn time_work(&mut self) -> Time {
        self.here.speed = self.here.pace;
        self.here.activity = Activity::Segment;
        match self.state.spin_until {
            Some(until) => until.max(self.now),
            None => self.now + self.here.pace.time_for(self.state.work_left),
        }
    }

    #[inline(always)]
    pub fn end_segment(&mut self) {
        self.state.in_segment = false;
        self.state.work_left = 0;
        self.state.spin_until = None;
        self.state.woken_early = false;
    }

    /// What comes of the operation whose segment is over, if it is a transfer.
    #[inline(always)]
    pub fn end_operation(&mut self) -> Option<Then> {
        Some(match self.programs.step(self.state.pc) {
            Step::Send(transfer) => self.end_transfer(transfer, Side::Writer, self.state.base),
            Step::Receive(transfer) => self.end_transfer(transfer, Side::Reader, self.state.base),
            Step::Reply(transfer) => self.end_transfer(transfer, Side::Writer, self.state.peer),
            _ => return None,
        })
    }

    #[inline(always)]
    fn end_transfer(&mut self, transfer: &Transfer, side: Side, base: u32) -> Then {
        let Running { task, state, profile, now, .. } = self;
        let at = transfer.channel(base);
        let channel = &mut self.channels[at];
        let effect = &mut self.here.effect;
        let then = messages::end_step(transfer, side, *task, state, channel, (*now, effect));
        if then == Then::Next {
            let rest = messages::rest(side, channel, self.costs);
            // Where the kernel preempts itself, a wakee need not wait until a call is over.
            if effect.wakees.is_empty() || profile.preempt == PREEMPT_FULL {
                state.work_left = rest;
            } else {
                effect.call = Call { queue_ns: 0, rest_ns: rest as u32 };
            }
            if !effect.wakees.is_empty() && channel.locks_queue(side) {
                effect.wait_queue = Some(WaitQueue::Channel(at as u32));
            }
        }
        then
    }

    /// The task goes on with its program at once, and is where it does so.
    #[inline(always)]
    pub fn goes_on(&mut self, then: Then) -> bool {
        let at_once = matches!(then, Then::Next | Then::Again)
            && self.here.effect.wakees.is_empty()
            && self.here.is_undisturbed();
        if at_once && then == Then::Next {
            self.state.next_op();
        }
        at_once
    }
}

/// A program comes to an operation at a time: what that computes, unless it takes a segment of its own.
fn pass(
    op: Op,
    at: Time,
    state: &mut Task,
    costs: &mut CostModel,
    measurement: &mut Measurement,
) -> Option<Time> {
    match op {
        Op::RunAbout { ns, spread_pct } => {
            let spread = ns * Time::from(spread_pct) / 100;
            return Some(ns - spread + costs.random_below(2 * spread + 1));
        }
        Op::BeginSection { section } => measurement.begin_section(state.part, section, at),
        Op::EndSection { section } => measurement.end_section(state.part, section, at),
        Op::BeginRequest => state.request_began = at,
        Op::EndRequest => measurement.sample_request(state.part, at, state.request_began),
        _ => return None,
    }
    Some(0)
}
