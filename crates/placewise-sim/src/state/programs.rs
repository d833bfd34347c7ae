//! What tasks do: the programs of the workload one behind the other, so that where a task is in them
//! is one number, and what a transfer needs to know of its operation worked out.

use placewise_workload::program::{Object, Op, Workload};

use crate::state::channel::{Channel, Side};
use crate::state::task::Task;

/// Bytes of a cache line.
const LINE: u32 = 64;

pub struct Programs {
    steps: Vec<Step>,
    /// By program.
    begins: Vec<u32>,
}

/// What a task does at a place in its program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    Transfer(Transfer),
    /// Anything else.
    Op(Op),
}

/// A message that a task transfers by a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    channel: Object,
    /// The channel is what it means for the task whose message was read last.
    for_peer: bool,
    pub side: Side,
    pub bytes: u32,
    /// Cache lines of the message.
    pub lines: u32,
}

impl Programs {
    pub fn new(workload: &Workload) -> Self {
        let mut programs = Programs { steps: Vec::new(), begins: Vec::new() };
        for program in &workload.programs {
            let begin = programs.steps.len() as u32;
            programs.begins.push(begin);
            programs.steps.extend(program.ops.iter().map(|&op| Step::of(op, begin)));
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
        let transfer = |channel, for_peer, side, bytes: u32| {
            let lines = bytes.div_ceil(LINE);
            Step::Transfer(Transfer { channel, for_peer, side, bytes, lines })
        };
        match op {
            Op::Send { channel, bytes } => transfer(channel, false, Side::Writer, bytes),
            Op::Reply { channel, bytes } => transfer(channel, true, Side::Writer, bytes),
            Op::Receive { channel, bytes } => transfer(channel, false, Side::Reader, bytes),
            Op::Repeat { counter, times, to } => {
                Step::Op(Op::Repeat { counter, times, to: begin + to })
            }
            op => Step::Op(op),
        }
    }
}

impl Transfer {
    /// The channel that it means for a task.
    #[inline]
    pub fn channel<'c>(&self, channels: &'c mut [Channel], task: &Task) -> &'c mut Channel {
        let base = if self.for_peer { task.peer } else { task.base };
        &mut channels[self.channel.index(base)]
    }

    #[inline]
    pub fn is_possible(&self, channel: &Channel, slept: bool) -> bool {
        match self.side {
            Side::Writer => channel.has_room(self.bytes, slept),
            Side::Reader => !channel.lacks(self.bytes),
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
        assert_eq!((*programs.step(1), programs.begin(1)), (Step::Op(repeat(0)), 3));
        assert_eq!([3, 5].map(|pc| *programs.step(pc)), [Op::Start, repeat(4)].map(Step::Op));
    }
}
