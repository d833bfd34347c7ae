//! What tasks do: the programs of the workload one behind the other, so that where a task is in them
//! is one number.

use placewise_workload::program::{Op, Workload};

pub struct Programs {
    ops: Vec<Op>,
    /// By program.
    begins: Vec<u32>,
}

impl Programs {
    pub fn new(workload: &Workload) -> Self {
        let mut programs = Programs { ops: Vec::new(), begins: Vec::new() };
        for program in &workload.programs {
            let begin = programs.ops.len() as u32;
            programs.begins.push(begin);
            programs.ops.extend(program.ops.iter().map(|&op| placed(op, begin)));
        }
        programs
    }

    /// Where a program begins.
    pub fn begin(&self, program: u32) -> u32 {
        self.begins[program as usize]
    }

    #[inline]
    pub fn op(&self, pc: u32) -> &Op {
        &self.ops[pc as usize]
    }
}

/// An operation of a program that begins at `begin`.
fn placed(op: Op, begin: u32) -> Op {
    match op {
        Op::Repeat { counter, times, to } => Op::Repeat { counter, times, to: begin + to },
        op => op,
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
        assert_eq!((*programs.op(1), programs.begin(1)), (repeat(0), 3));
        assert_eq!((*programs.op(3), *programs.op(5)), (Op::Start, repeat(4)));
    }
}
