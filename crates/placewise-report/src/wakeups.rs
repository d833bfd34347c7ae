//! Wakeups that sent their wakee to another LLC than the waker's, as arcs of the timeline.
//!
//! Limit: of very many only every second, fourth and so on is kept, all over the trace.

use crate::columns::{Columns, Place};
use serde::Serialize;

/// More than this are thinned out.
const MOST: usize = 1 << 15;

#[derive(Clone, Copy)]
struct Wakeup {
    at: u64,
    from: u32,
    to: u32,
    thread: u16,
}

/// Those that are kept.
pub struct Wakeups {
    kept: Vec<Wakeup>,
    /// Each of how many is kept.
    one_of: usize,
    count: usize,
}

impl Wakeups {
    pub fn new() -> Self {
        Wakeups { kept: Vec::new(), one_of: 1, count: 0 }
    }

    /// In the order of time.
    pub fn push(&mut self, at: u64, from: u32, to: u32, thread: u16) {
        let number = self.count;
        self.count += 1;
        if number.is_multiple_of(self.one_of) && self.kept.len() == MOST {
            self.thin_out();
        }
        if number.is_multiple_of(self.one_of) {
            self.kept.push(Wakeup { at, from, to, thread });
        }
    }

    fn thin_out(&mut self) {
        self.one_of *= 2;
        let mut stays = false;
        self.kept.retain(|_| {
            stays = !stays;
            stays
        });
    }

    pub fn columns(&self, columns: &mut Columns) -> WakeupColumns {
        let mut last = 0;
        let gaps = self.kept.iter().map(|one| one.at - std::mem::replace(&mut last, one.at));
        WakeupColumns {
            one_of: self.one_of,
            gaps: columns.varints(gaps),
            from: columns.u16s(self.kept.iter().map(|one| one.from as u16)),
            to: columns.u16s(self.kept.iter().map(|one| one.to as u16)),
            thread: columns.u16s(self.kept.iter().map(|one| one.thread)),
        }
    }
}

/// In the order of time.
#[derive(Serialize)]
pub struct WakeupColumns {
    /// Each of how many is there.
    one_of: usize,
    gaps: Place,
    /// The waking CPU.
    from: Place,
    to: Place,
    thread: Place,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_wakeups_are_thinned_out_evenly() {
        let mut wakeups = Wakeups::new();
        for at in 0..5 * MOST as u64 {
            wakeups.push(at, 0, 1, 0);
        }
        assert_eq!(wakeups.one_of, 8);
        assert_eq!(wakeups.kept.len(), 5 * MOST / 8);
        assert!(wakeups.kept.iter().zip((0..).step_by(8)).all(|(one, at)| one.at == at));
    }
}
