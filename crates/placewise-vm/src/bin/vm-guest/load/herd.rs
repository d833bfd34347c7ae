//! One task wakes many at once by futex, and is woken by the last of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::case::Case;
use super::futex;
use super::team::{self, Body, Kind, Outcome};

struct Herd {
    round: AtomicU32,
    arrived: AtomicU32,
    tasks: u32,
    loops: u32,
}

pub fn run(case: &mut Case) -> anyhow::Result<Outcome> {
    let tasks = case.number("tasks", 16)? as u32;
    let loops = case.number("loops", 1000)? as u32;
    case.ends_by_itself()?;
    let herd = Arc::new(Herd { round: 0.into(), arrived: 0.into(), tasks, loops });
    let waker = herd.clone();
    let mut bodies: Vec<Body> = vec![Box::new(move || Ok(waker.drive()))];
    for _ in 0..tasks {
        let herd = herd.clone();
        bodies.push(Box::new(move || Ok(herd.follow())));
    }
    team::run(Kind::Thread, bodies, || {})
}

impl Herd {
    fn drive(&self) -> u64 {
        for round in 1..=self.loops {
            self.round.store(round, Ordering::Release);
            futex::wake(&self.round, self.tasks);
            loop {
                let arrived = self.arrived.load(Ordering::Acquire);
                if arrived == self.tasks {
                    break;
                }
                futex::wait(&self.arrived, arrived);
            }
            self.arrived.store(0, Ordering::Release);
        }
        0
    }

    fn follow(&self) -> u64 {
        for round in 1..=self.loops {
            while self.round.load(Ordering::Acquire) < round {
                futex::wait(&self.round, round - 1);
            }
            if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.tasks {
                futex::wake(&self.arrived, 1);
            }
        }
        self.loops.into()
    }
}
