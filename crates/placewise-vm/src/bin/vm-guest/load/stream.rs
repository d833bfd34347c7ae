//! A team that streams through memory and meets at a barrier after each loop, as STREAM with OpenMP.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::case::Case;
use super::futex;
use super::team::{self, Body, Kind, Outcome};

/// The tool's Copy, Scale, Add and Triad.
const LOOPS: u64 = 4;

struct Barrier {
    round: AtomicU32,
    arrived: AtomicU32,
    members: u32,
    spins: usize,
}

/// A message is a member's arrival at a barrier.
pub fn run(case: &mut Case) -> anyhow::Result<Outcome> {
    let threads = case.number("threads", 16)?;
    let runs = case.number("runs", 10)? as u64;
    let elements = case.number("elements", 100_000_000)? / threads;
    let spins = case.number("spin_count", 300_000)?;
    case.ends_by_itself()?;
    let members = threads as u32;
    let barrier = Arc::new(Barrier { round: 0.into(), arrived: 0.into(), members, spins });
    let body = |_| -> Body {
        let barrier = barrier.clone();
        Box::new(move || {
            let (mut sums, mut terms, factors) =
                (vec![0.0; elements], vec![1.0; elements], vec![2.0; elements]);
            for _ in 0..runs {
                pass(&barrier, || terms.copy_from_slice(hint::black_box(&factors)));
                pass(&barrier, || each(&mut terms, &factors, &factors, |one, _| 3.0 * one));
                pass(&barrier, || each(&mut sums, &terms, &factors, |one, other| one + other));
                pass(&barrier, || {
                    each(&mut sums, &terms, &factors, |one, other| one + 3.0 * other)
                });
            }
            Ok(runs * LOOPS)
        })
    };
    team::run(Kind::Thread, (0..threads).map(body).collect(), || {})
}

fn pass(barrier: &Barrier, mut work: impl FnMut()) {
    work();
    barrier.meet();
}

fn each(to: &mut [f64], one: &[f64], other: &[f64], of: impl Fn(f64, f64) -> f64) {
    for (to, (one, other)) in to.iter_mut().zip(one.iter().zip(other)) {
        *to = of(*one, *other);
    }
    hint::black_box(to);
}

impl Barrier {
    /// The last to arrive lets the others go; they spin for a while before they sleep.
    fn meet(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.members {
            self.arrived.store(0, Ordering::Release);
            self.round.store(round + 1, Ordering::Release);
            futex::wake(&self.round, self.members);
            return;
        }
        for _ in 0..self.spins {
            if self.round.load(Ordering::Acquire) != round {
                return;
            }
            hint::spin_loop();
        }
        while self.round.load(Ordering::Acquire) == round {
            futex::wait(&self.round, round);
        }
    }
}
