//! What a bare heap does on this host: the yardstick of a simulation's speed, for it cancels most of what the
//! host is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// How often a second the standard library's heap takes the first of 1,000 entries, as many as the simulator's
/// queue may have, and puts it back a little later.
pub fn rounds_per_s() -> f64 {
    const ENTRIES: u64 = 1_000;
    const LONG_ENOUGH: Duration = Duration::from_millis(500);
    const ROUNDS_BETWEEN_LOOKS: u64 = 100_000;

    let mut heap: BinaryHeap<Reverse<(u64, u64)>> =
        (0..ENTRIES).map(|id| Reverse((id, id))).collect();
    let start = Instant::now();
    let mut rounds = 0;
    while rounds % ROUNDS_BETWEEN_LOOKS != 0 || start.elapsed() < LONG_ENOUGH {
        if let Some(Reverse((time, id))) = heap.pop() {
            // A multiplicative hash spreads the delays as the simulator's are spread.
            let delay = 1 + (rounds.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52);
            heap.push(Reverse((time + delay, id)));
        }
        rounds += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    std::hint::black_box(heap);
    rounds as f64 / seconds
}
