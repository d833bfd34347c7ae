//! What the simulator relies on in a [`Workload`]: every jump, program and object is in range.
//!
//! Builders keep this by construction; the check is for tests and debug builds. It bounds each
//! program's bases by following forks from program 0, so forks must not form a cycle.

use crate::error::WorkloadError;
use crate::program::{COUNTERS, Object, Op, Program, SECTIONS, SchedPolicy, Workload};

impl Workload {
    /// Says what is out of range, if anything is.
    pub fn check(&self) -> Result<(), WorkloadError> {
        for (id, program) in self.programs.iter().enumerate() {
            self.check_program(program).map_err(|problem| {
                WorkloadError::new(format!("program {id} ({})", program.name), problem)
            })?;
        }
        if self.barriers.contains(&0) {
            return Err(WorkloadError::new("barriers", "a barrier without parties"));
        }
        let highest_bases = self.highest_bases()?;
        for (program, (id, base)) in self.programs.iter().zip(highest_bases.iter().enumerate()) {
            let Some(base) = *base else { continue };
            // A reply may go to any task of the part.
            let bases = self.programs.iter().zip(&highest_bases);
            let of_part = bases.filter(|(other, _)| other.part == program.part);
            let anyone = of_part.filter_map(|(_, base)| *base).max().unwrap_or(base);
            for op in &program.ops {
                let base = if matches!(op, Op::Reply { .. }) { anyone } else { base };
                self.check_objects(op, base).map_err(|problem| {
                    WorkloadError::new(format!("program {id}, {op:?}"), problem)
                })?;
            }
        }
        Ok(())
    }

    fn check_program(&self, program: &Program) -> Result<(), String> {
        if program.ops.last() != Some(&Op::Exit) {
            return Err("does not end with Exit".to_string());
        }
        if !(-20..=19).contains(&program.nice) {
            return Err(format!("nice {} is not in -20 to 19", program.nice));
        }
        match program.policy {
            SchedPolicy::Fifo(priority) | SchedPolicy::RoundRobin(priority)
                if !(1..=99).contains(&priority) =>
            {
                return Err(format!("real-time priority {priority} is not in 1 to 99"));
            }
            _ => {}
        }
        if program.cpus.is_some_and(|cpus| cpus.is_empty()) {
            return Err("may run on no CPU".to_string());
        }
        for (index, op) in program.ops.iter().enumerate() {
            let fits = match *op {
                Op::Repeat { counter, times, to } => {
                    (counter as usize) < COUNTERS && times > 0 && (to as usize) < index
                }
                Op::Fork { program, count, .. } => {
                    (program as usize) < self.programs.len() && count > 0
                }
                Op::Timer { period, .. } => period > 0,
                Op::Stream { bytes, .. } => bytes > 0,
                Op::BeginSection { section } | Op::EndSection { section } => {
                    (section as usize) < SECTIONS
                }
                _ => true,
            };
            if !fits {
                return Err(format!("op {index}, {op:?}, is out of range"));
            }
        }
        Ok(())
    }

    /// The highest base any task of each program has; `None` for programs nobody runs.
    fn highest_bases(&self) -> Result<Vec<Option<u64>>, WorkloadError> {
        let mut bases = vec![None; self.programs.len()];
        if let Some(main) = bases.first_mut() {
            *main = Some(0);
        }
        for id in self.forkers_first()? {
            let Some(parent) = bases[id] else { continue };
            for (child, offset) in forks(&self.programs[id]) {
                bases[child] = bases[child].max(Some(parent + offset));
            }
        }
        Ok(bases)
    }

    /// The programs ordered so that each comes after all that fork it.
    fn forkers_first(&self) -> Result<Vec<usize>, WorkloadError> {
        let mut forkers = vec![0_usize; self.programs.len()];
        for (child, _) in self.programs.iter().flat_map(forks) {
            forkers[child] += 1;
        }
        let mut order: Vec<usize> = (0..forkers.len()).filter(|id| forkers[*id] == 0).collect();
        let mut next = 0;
        while next < order.len() {
            for (child, _) in forks(&self.programs[order[next]]) {
                forkers[child] -= 1;
                if forkers[child] == 0 {
                    order.push(child);
                }
            }
            next += 1;
        }
        match order.len() == self.programs.len() {
            true => Ok(order),
            false => Err(WorkloadError::new("programs", "forks form a cycle")),
        }
    }

    fn check_objects(&self, op: &Op, base: u64) -> Result<(), String> {
        let in_range = |object: Object, count: usize, what: &str| match object.highest_index(base) {
            index if index < count as u64 => Ok(()),
            index => Err(format!("uses {what} {index} of {count}")),
        };
        match *op {
            Op::Send { channel, .. } | Op::Receive { channel, .. } | Op::Reply { channel, .. } => {
                in_range(channel, self.channels.len(), "channel")
            }
            Op::GateWait { gate } | Op::GateOpen { gate } => {
                in_range(gate, self.gates as usize, "gate")
            }
            Op::RaiseFlag { flag } | Op::LowerFlag { flag } => {
                in_range(flag, self.flags as usize, "flag")
            }
            Op::Enlist { list } | Op::WakeListed { list } => {
                in_range(list, self.lists as usize, "list")
            }
            Op::Await { semaphore, .. } | Op::Close { semaphore } => {
                in_range(semaphore, self.semaphores.len(), "semaphore")
            }
            Op::Post { semaphore: one, answered_at: other, .. } => {
                in_range(one, self.semaphores.len(), "semaphore")?;
                other.map_or(Ok(()), |it| in_range(it, self.semaphores.len(), "semaphore"))
            }
            Op::Answer { inbox, otherwise, .. } => {
                in_range(inbox, self.semaphores.len(), "semaphore")?;
                in_range(otherwise, self.semaphores.len(), "semaphore")
            }
            Op::Timer { timer, .. } => in_range(timer, self.timers as usize, "timer"),
            Op::Barrier { barrier, .. } | Op::Arrive { barrier } => {
                in_range(barrier, self.barriers.len(), "barrier")
            }
            Op::Lock { mutex } | Op::Unlock { mutex } => {
                in_range(mutex, self.mutexes as usize, "mutex")
            }
            Op::CondWait { condition, mutex } => {
                in_range(condition, self.conditions as usize, "condition")?;
                mutex.map_or(Ok(()), |mutex| in_range(mutex, self.mutexes as usize, "mutex"))
            }
            Op::Signal { condition } | Op::Broadcast { condition } => {
                in_range(condition, self.conditions as usize, "condition")
            }
            _ => Ok(()),
        }
    }
}

/// The programs that a program forks, each with the highest base it gives them.
fn forks(program: &Program) -> impl Iterator<Item = (usize, u64)> {
    program.ops.iter().filter_map(|op| match *op {
        Op::Fork { program, count, base, step } => {
            let offset = u64::from(base) + u64::from(count.saturating_sub(1)) * u64::from(step);
            Some((program as usize, offset))
        }
        _ => None,
    })
}
