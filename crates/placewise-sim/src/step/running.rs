//! The current task of a CPU together with what it works with: most events end one segment of a program
//! and begin the next, and here nothing is looked up twice for that.

use placewise_policy::{CpuId, PREEMPT_FULL, PipeWakeRule, TaskId};
use placewise_workload::program::{Call, Op};

use super::messages::{self, Begin};
use crate::engine::Engine;
use crate::state::channel::Channel;
use crate::state::costs::CostModel;
use crate::state::cpu::{Activity, Cpu};
use crate::state::effect::Then;
use crate::state::event_queue::Time;
use crate::state::measure::Measurement;
use crate::state::programs::{Programs, Step};
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
    channels: &'e mut [Channel],
    costs: &'e mut CostModel<'a>,
    measurement: &'e mut Measurement,
    pipe_wakes: PipeWakeRule,
    /// A wakee need not wait until a call of the kernel is over.
    preempts_itself: bool,
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
        let profile = &self.scheduler.policy.profile;
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
            pipe_wakes: profile.pipe_wakes,
            preempts_itself: profile.preempt == PREEMPT_FULL,
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
        let (work, step) = self.compute();
        self.state.in_segment = true;
        self.state.work_left += work;
        match step? {
            Step::Op(op) => Some(*op),
            Step::Transfer(transfer) => {
                let begin = Begin {
                    cpu: self.cpu,
                    pace: self.here.pace,
                    now: self.now,
                    before: self.state.work_left,
                };
                let channel = transfer.channel(self.channels, self.state);
                let cost = messages::step_cost(transfer, self.state, channel, self.costs, begin);
                self.state.work_left += cost;
                None
            }
        }
    }

    /// How long the program computes before the next operation, and that one if it has a cost.
    #[inline(always)]
    fn compute(&mut self) -> (Time, Option<&'e Step>) {
        let Running { state, programs, costs, measurement, now, .. } = self;
        let (mut work, part) = (0, state.part);
        let mut ahead = programs.from(state.pc);
        let step = loop {
            let (step, after) = ahead.split_first().expect("a program ends with its task");
            let Step::Op(op) = step else { break Some(step) };
            match *op {
                Op::Run { ns } => {
                    work += costs.draw(ns);
                    if work >= LONG_SEGMENT {
                        break None;
                    }
                }
                Op::RunAbout { ns, spread_pct } => {
                    let spread = ns * Time::from(spread_pct) / 100;
                    work += ns - spread + costs.random_below(2 * spread + 1);
                }
                Op::Count => measurement.count(part),
                Op::Start => measurement.start(part, *now),
                Op::BeginSection { section } => {
                    measurement.begin_section(part, section, *now + work);
                }
                Op::EndSection { section } => measurement.end_section(part, section, *now + work),
                Op::BeginRequest => state.request_began = *now + work,
                Op::EndRequest => {
                    measurement.sample_request(part, *now + work, state.request_began);
                }
                Op::Repeat { counter, times, to } => {
                    if state.repeats(counter, times) {
                        ahead = programs.from(to);
                        continue;
                    }
                }
                Op::Spin { ns } => {
                    state.spin_until = Some(*now + work + ns);
                    break None;
                }
                _ => break Some(step),
            }
            ahead = after;
        };
        state.pc = programs.begin_of(ahead);
        (work, step)
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
    pub fn end_transfer(&mut self) -> Option<Then> {
        let Step::Transfer(transfer) = self.programs.step(self.state.pc) else { return None };
        let channel = transfer.channel(self.channels, self.state);
        let Running { task, state, pipe_wakes, costs, .. } = self;
        let effect = &mut self.here.effect;
        let then = messages::end_step(transfer, *task, state, channel, *pipe_wakes, effect);
        if then == Then::Next {
            let rest = messages::rest(transfer, channel, costs);
            if effect.wakees.is_empty() || self.preempts_itself {
                state.work_left = rest;
            } else {
                effect.call = Call { queue_ns: 0, rest_ns: rest as u32 };
            }
        }
        Some(then)
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
