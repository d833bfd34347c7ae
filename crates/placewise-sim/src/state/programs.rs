//! What tasks do: the programs of the workload one behind the other, so that where a task is in them
//! is one number, and the operations that nearly every segment goes through by themselves, with what they
//! need to know worked out.

use std::num::NonZeroU64;

use placewise_workload::program::{Object, Op, Workload};

use crate::state::event_queue::Time;

/// Bytes of a cache line.
const LINE: u32 = 64;

pub struct Programs {
    steps: Vec<Step>,
    /// By program.
    begins: Vec<u32>,
}

/// What a task does at a place in its program.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)] // else what it is would have to be made out from what the operation is
pub enum Step {
    Send(Transfer),
    Receive(Transfer),
    /// To the one whose message was read last: the channel is what it means for that task.
    Reply(Transfer),
    Run {
        ns: Time,
    },
    Count,
    Repeat {
        counter: u8,
        times: u32,
        to: u32,
    },
    /// Anything else.
    Op(Op),
}

/// A message that a task transfers by a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    channel: u32,
    /// All bits if channels are counted from a task's base, else none.
    counts_from_base: u32,
    pub bytes: u32,
    /// Cache lines of the message.
    pub lines: u32,
    /// What is computed before, as an operation of its own: the transfer itself stands behind this then.
    pub run: Option<NonZeroU64>,
}

impl Transfer {
    fn new(channel: Object, bytes: u32) -> Self {
        let (channel, with_base) = (channel.index(0) as u32, channel.index(1) as u32);
        Transfer {
            channel,
            counts_from_base: if with_base == channel { 0 } else { u32::MAX },
            bytes,
            lines: bytes.div_ceil(LINE),
            run: None,
        }
    }

    /// Which channel it means for a task with this base.
    #[inline]
    pub fn channel(&self, base: u32) -> usize {
        (self.channel + (base & self.counts_from_base)) as usize
    }

    /// From where on it stands itself, if it is first of these.
    #[inline]
    pub fn itself<'s>(&self, ahead: &'s [Step]) -> &'s [Step] {
        match self.run {
            Some(_) => &ahead[1..],
            None => ahead,
        }
    }
}

impl Programs {
    pub fn new(workload: &Workload) -> Self {
        let mut programs = Programs { steps: Vec::new(), begins: Vec::new() };
        for program in &workload.programs {
            let begin = programs.steps.len() as u32;
            programs.begins.push(begin);
            programs.steps.extend(program.ops.iter().map(|&op| Step::of(op, begin)));
        }
        for place in 1..programs.steps.len() {
            if let Step::Run { ns } = programs.steps[place - 1] {
                programs.steps[place - 1] = programs.steps[place].after_run(ns);
            }
        }
        programs
    }

    /// Where a program begins.
    pub fn begin(&self, program: u32) -> u32 {
        self.begins[program as usize]
    }

    /// What stands from a place on.
    #[inline]
    pub fn from(&self, pc: u32) -> &[Step] {
        &self.steps[pc as usize..]
    }

    /// The place from which this stands on.
    #[inline]
    pub fn begin_of(&self, ahead: &[Step]) -> u32 {
        (self.steps.len() - ahead.len()) as u32
    }

    #[inline]
    pub fn step(&self, pc: u32) -> &Step {
        &self.steps[pc as usize]
    }
}

impl Step {
    /// That of an operation of a program that begins at `begin`.
    fn of(op: Op, begin: u32) -> Self {
        match op {
            Op::Send { channel, bytes } => Step::Send(Transfer::new(channel, bytes)),
            Op::Receive { channel, bytes } => Step::Receive(Transfer::new(channel, bytes)),
            Op::Reply { channel, bytes } => Step::Reply(Transfer::new(channel, bytes)),
            Op::Run { ns } => Step::Run { ns },
            Op::Count => Step::Count,
            Op::Repeat { counter, times, to } => Step::Repeat { counter, times, to: begin + to },
            op => Step::Op(op),
        }
    }

    /// Some computing, with this right after it if it is a transfer.
    fn after_run(mut self, ns: Time) -> Self {
        match &mut self {
            Step::Send(transfer) | Step::Receive(transfer) | Step::Reply(transfer) if ns > 0 => {
                transfer.run = NonZeroU64::new(ns);
                self
            }
            _ => Step::Run { ns },
        }
    }
}

#[cfg(test)]
mod tests {
    use placewise_workload::program::{FOREVER, Program, Window};

    use super::*;

    #[test]
    fn a_program_repeats_from_where_it_stands_behind_others() {
        let repeat = |to| Op::Repeat { counter: 0, times: FOREVER, to };
        let programs = vec![
            Program::new("first", vec![Op::Count, repeat(0), Op::Exit]),
            Program::new("second", vec![Op::Start, Op::Yield, repeat(1), Op::Exit]),
        ];
        let programs = Programs::new(&Workload::new("test", programs, Window::default()));
        let repeats = |to| Step::Repeat { counter: 0, times: FOREVER, to };
        assert_eq!((*programs.step(1), programs.begin(1)), (repeats(0), 3));
        assert_eq!([3, 5].map(|pc| *programs.step(pc)), [Step::Op(Op::Start), repeats(4)]);
    }

    /// Fails if who goes back to the transfer, or comes to it from elsewhere, computed once more.
    #[test]
    fn computing_right_before_a_transfer_is_one_step_with_it() {
        let (run, send) = (Op::Run { ns: 7 }, Op::Send { channel: Object::own(3), bytes: 100 });
        let programs = vec![Program::new("test", vec![run, send, run, Op::Exit])];
        let programs = Programs::new(&Workload::new("test", programs, Window::default()));
        let Step::Send(both) = programs.step(0) else { panic!("it stands for both") };
        assert_eq!((both.run.map(NonZeroU64::get), both.channel(40), both.lines), (Some(7), 43, 2));
        assert_eq!(both.itself(programs.from(0)), programs.from(1));
        assert_eq!(*programs.step(1), Step::Send(Transfer { run: None, ..*both }));
        assert_eq!(*programs.step(2), Step::Run { ns: 7 });
    }
}
