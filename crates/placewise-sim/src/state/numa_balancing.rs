//! NUMA balancing: where the memory is that tasks stream, and what the kernel has learnt of its use.
//!
//! A process's memory is scanned a window at a time; here each window holds the same share of the part
//! of every task that streams. In the kernel it holds all of some tasks' parts; one pass, after which
//! every task has been looked at, is the same.

use std::collections::BTreeMap;

use placewise_policy::TaskId;
use placewise_workload::program::Access;

use crate::state::event_queue::Time;
use crate::state::memory_bandwidth::Stream;

const MILLISECOND: Time = 1_000_000;
/// What one scan goes through, in KiB, as far as it is touched: numa_balancing/scan_size_mb.
const SCAN_SIZE_KIB: u64 = 256 * 1024;
/// numa_balancing/scan_delay_ms.
const SCAN_DELAY: Time = 1000 * MILLISECOND;
/// numa_balancing/scan_period_min_ms and _max_ms, of a process of one window.
const SCAN_PERIOD_MIN: Time = 1000 * MILLISECOND;
const SCAN_PERIOD_MAX: Time = 60_000 * MILLISECOND;
/// No process is scanned faster than 2,560 MB a second: MAX_SCAN_WINDOW.
const SCAN_PERIOD_FLOOR: Time = 100 * MILLISECOND;
/// NUMA_PERIOD_SLOTS and NUMA_PERIOD_THRESHOLD.
const PERIOD_SLOTS: u64 = 10;
const PERIOD_THRESHOLD: u64 = 7;
/// So long pages follow their task at the first fault.
const EARLY_PASSES: u32 = 4;
const PAGE_KIB: u64 = 4;

/// The memory of processes, by the task that each began with.
pub type AddressSpaces = BTreeMap<TaskId, AddressSpace>;

/// The memory of a process: its mm_struct.
pub struct AddressSpace {
    windows: usize,
    /// Tasks that stream, each of which has as much of it as any other.
    pub parts: u64,
    kib: u64,
    /// mm->numa_next_scan.
    next_scan: Time,
    /// The window that is next: mm->numa_scan_offset.
    at: usize,
    /// mm->numa_scan_seq.
    scan_seq: u32,
}

impl AddressSpace {
    /// The process begins `now`.
    pub fn new(kib: u64, now: Time) -> Self {
        let windows = kib.div_ceil(SCAN_SIZE_KIB).max(1) as usize;
        AddressSpace { windows, parts: 0, kib, next_scan: now + SCAN_DELAY, at: 0, scan_seq: 0 }
    }

    /// The window to be scanned now; a pass ends with the last one.
    pub fn scan(&mut self) -> usize {
        let window = self.at;
        self.at += 1;
        if self.at == self.windows {
            self.at = 0;
            self.scan_seq += 1;
        }
        window
    }

    /// Of one task, in one window.
    fn pages(&self) -> u64 {
        self.kib / PAGE_KIB / self.windows as u64 / self.parts.max(1)
    }

    fn scan_period_min(&self) -> Time {
        (SCAN_PERIOD_MIN / self.windows as u64).max(SCAN_PERIOD_FLOOR)
    }

    fn scan_period_max(&self) -> Time {
        (SCAN_PERIOD_MAX / self.windows as u64).max(self.scan_period_min())
    }
}

/// Of the memory of a task what lies in one window.
#[derive(Clone, Copy)]
struct Window {
    node: u16,
    /// It has been scanned, so that its next use is a hint fault.
    hinting: bool,
    /// Where the task was at the last hint fault from another node than this.
    last_remote_fault: Option<u16>,
}

/// A piece of a sweep: what lies on one node, or pages that the kernel copies first; and its bytes.
type Piece = (Stream, u64);

/// The memory of a task that streams, and the kernel's figures for it.
pub struct TaskMemory {
    windows: Vec<Window>,
    /// What is left of the sweep, the last first.
    pieces: Vec<Piece>,
    /// Where it was when it was last looked at.
    node: u16,
    /// Hint faults by node, half of which each pass forgets: numa_faults.
    faults: Vec<u64>,
    /// Those of the pass under way.
    fresh: Vec<u64>,
    /// Those of memory on its node since the scan period was last set: numa_faults_locality[1].
    local_faults: u64,
    preferred: Option<u16>,
    scan_period: Time,
    node_stamp: Time,
    scan_seq: u32,
    migrate_retry: Time,
    goes_to: Option<u16>,
}

impl TaskMemory {
    /// Touched for the first time on `node`. Threads begin to scan later than whom the process began with.
    pub fn new(space: &AddressSpace, node: u16, nr_nodes: usize, thread: Option<Time>) -> Self {
        let window = Window { node, hinting: false, last_remote_fault: None };
        TaskMemory {
            windows: vec![window; space.windows],
            pieces: Vec::new(),
            node,
            faults: vec![0; nr_nodes],
            fresh: vec![0; nr_nodes],
            local_faults: 0,
            preferred: None,
            scan_period: SCAN_DELAY,
            node_stamp: thread.map_or(0, |tick| 2 * tick),
            scan_seq: space.scan_seq,
            migrate_retry: 0,
            goes_to: None,
        }
    }

    /// task_tick_numa: is it its turn to scan, once it has run for `ran`?
    pub fn is_to_scan(&mut self, ran: Time, space: &AddressSpace) -> bool {
        let period = self.scan_period;
        if ran <= self.node_stamp + period {
            return false;
        }
        if self.node_stamp == 0 {
            self.scan_period = space.scan_period_min();
        }
        self.node_stamp += period;
        true
    }

    /// task_numa_work: the next window is scanned unless one of the process was not long ago.
    pub fn scan(&mut self, space: &mut AddressSpace, now: Time, tick: Time) -> Option<usize> {
        if now < space.next_scan || space.kib == 0 {
            return None;
        }
        space.next_scan = now + self.scan_period;
        // Another of the process's tasks is likely to come first next time.
        self.node_stamp += 2 * tick;
        Some(space.scan())
    }

    /// change_prot_numa: the next use of what lies in the window is a hint fault.
    pub fn hint(&mut self, window: usize) {
        self.windows[window].hinting = true;
    }

    /// The task is on `node`: if it has been moved there it is looked at more often (update_scan_period).
    pub fn follow(&mut self, node: u16, space: &AddressSpace) {
        let from = std::mem::replace(&mut self.node, node);
        if from == node || self.has_no_faults() {
            return;
        }
        let leaves_preferred = self.preferred.is_none_or(|preferred| preferred == from);
        if self.scan_seq == 0 || (leaves_preferred && self.preferred != Some(node)) {
            self.scan_period = space.scan_period_min();
        }
    }

    fn has_no_faults(&self) -> bool {
        self.faults.iter().chain(&self.fresh).all(|faults| *faults == 0)
    }

    /// A sweep over all of it begins: hint faults come first, and pages that follow the task are copied.
    pub fn begin_sweep(
        &mut self,
        access: Access,
        bytes: u64,
        now: Time,
        space: &mut AddressSpace,
    ) -> Piece {
        let windows = self.windows.len() as u64;
        let part = space.kib * 1024 / space.parts.max(1) / windows;
        let mut pieces = std::mem::take(&mut self.pieces);
        for at in 0..self.windows.len() {
            if self.windows[at].hinting
                && let Some(from) = self.hint_fault(at, now, space)
            {
                pieces.push((Stream { access: Access::Copy, node: from }, 2 * part));
            }
            let stream = Stream { access, node: self.windows[at].node };
            let bytes = bytes * (at as u64 + 1) / windows - bytes * at as u64 / windows;
            match pieces.last_mut() {
                Some(last) if last.0 == stream => last.1 += bytes,
                _ => pieces.push((stream, bytes)),
            }
        }
        pieces.reverse();
        self.pieces = pieces;
        self.pieces[self.pieces.len() - 1]
    }

    /// do_numa_page: the node that the window's pages leave to follow the task.
    fn hint_fault(&mut self, at: usize, now: Time, space: &mut AddressSpace) -> Option<u16> {
        let here = self.node;
        let from = self.windows[at].node;
        let follows = from != here && self.pages_follow(at);
        self.windows[at].hinting = false;
        if from != here {
            self.windows[at].last_remote_fault = Some(here);
        }
        if follows {
            self.windows[at].node = here;
        }
        self.count_fault(at, from == here, now, space);
        follows.then_some(from)
    }

    /// should_numa_migrate_memory, of pages that no other task uses: early, the first time, or at the second
    /// fault in turn from the same node.
    fn pages_follow(&self, at: usize) -> bool {
        let early = self.preferred.is_none() || self.scan_seq <= EARLY_PASSES;
        early || self.windows[at].last_remote_fault.is_none_or(|last| last == self.node)
    }

    /// task_numa_fault.
    fn count_fault(&mut self, at: usize, local: bool, now: Time, space: &mut AddressSpace) {
        if now > self.migrate_retry {
            self.place(now, space);
            self.prefer(now);
        }
        let pages = space.pages();
        self.fresh[usize::from(self.windows[at].node)] += pages;
        if local {
            self.local_faults += pages;
        }
    }

    /// task_numa_placement: once a pass it is found out where most of its memory is.
    fn place(&mut self, now: Time, space: &mut AddressSpace) {
        if self.scan_seq == space.scan_seq {
            return;
        }
        self.scan_seq = space.scan_seq;
        for (faults, fresh) in self.faults.iter_mut().zip(&mut self.fresh) {
            *faults = *faults - *faults / 2 + std::mem::take(fresh);
        }
        let most = self.faults.iter().max().copied().unwrap_or(0);
        if most > 0 {
            let node = self.faults.iter().position(|faults| *faults == most);
            self.preferred = node.map(|node| node as u16);
        }
        self.update_scan_period(now, space);
    }

    /// Memory that no other task uses is looked at less and less often, wherever it is.
    fn update_scan_period(&mut self, now: Time, space: &mut AddressSpace) {
        if self.local_faults == 0 {
            self.scan_period = (2 * self.scan_period).min(space.scan_period_max());
            space.next_scan = now + self.scan_period;
            return;
        }
        let slot = self.scan_period.div_ceil(PERIOD_SLOTS);
        let slower = self.scan_period + (PERIOD_SLOTS - PERIOD_THRESHOLD) * slot;
        self.scan_period = slower.clamp(space.scan_period_min(), space.scan_period_max());
        self.local_faults = 0;
    }

    /// numa_migrate_preferred: the task tries to go to the node that it prefers, now and later again.
    fn prefer(&mut self, now: Time) {
        if let Some(preferred) = self.preferred {
            self.migrate_retry = now + (1000 * MILLISECOND).min(self.scan_period / 16);
            self.goes_to = Some(preferred).filter(|preferred| *preferred != self.node);
        }
    }

    /// The node that it is to go to now.
    pub fn take_destination(&mut self) -> Option<u16> {
        self.goes_to.take()
    }

    /// What is streamed now; none: the sweep is over.
    pub fn piece(&self) -> Option<Piece> {
        self.pieces.last().copied()
    }

    /// A piece is over: are there more?
    pub fn end_piece(&mut self) -> bool {
        self.pieces.pop();
        !self.pieces.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Time = 1000 * MILLISECOND;

    /// A process of one task and so many windows.
    fn process(windows: u64) -> (AddressSpace, TaskMemory) {
        let mut space = AddressSpace::new(windows * SCAN_SIZE_KIB, 0);
        space.parts = 1;
        let memory = TaskMemory::new(&space, 0, 2, None);
        (space, memory)
    }

    /// Scans all of it, once, and sweeps over it: the node of its first window, and what was streamed.
    fn pass(space: &mut AddressSpace, memory: &mut TaskMemory, now: Time) -> (u16, Vec<Piece>) {
        for _ in 0..space.windows {
            memory.hint(space.scan());
        }
        memory.begin_sweep(Access::Add, 1200, now, space);
        let pieces = memory.pieces.iter().rev().copied().collect();
        (memory.windows[0].node, pieces)
    }

    /// Fails if the second fault were waited for early, or the first were enough later.
    #[test]
    fn pages_follow_at_the_first_fault_early_and_at_the_second_later() {
        let (mut space, mut memory) = process(1);
        memory.follow(1, &space);
        assert_eq!(pass(&mut space, &mut memory, SECOND).0, 1, "no node is preferred yet");
        let passes = (2..8).map(|nth| pass(&mut space, &mut memory, nth * SECOND).0);
        assert!(passes.collect::<Vec<_>>().iter().all(|node| *node == 1));
        memory.follow(0, &space);
        assert_eq!(pass(&mut space, &mut memory, 8 * SECOND).0, 1, "it may be there by chance");
        assert_eq!(pass(&mut space, &mut memory, 9 * SECOND).0, 0);
    }

    /// Fails if a copy were free, came after its use, or were of more than the window.
    #[test]
    fn pages_that_follow_are_copied_before_they_are_used() {
        let (mut space, mut memory) = process(3);
        memory.hint(1);
        memory.follow(1, &space);
        memory.begin_sweep(Access::Add, 1200, SECOND, &mut space);
        let stream = |access, node| Stream { access, node };
        let copied = 2 * SCAN_SIZE_KIB * 1024;
        let pieces = [
            (stream(Access::Add, 0), 400),
            (stream(Access::Copy, 0), copied),
            (stream(Access::Add, 1), 400),
            (stream(Access::Add, 0), 400),
        ];
        assert!(memory.pieces.iter().rev().eq(&pieces));
    }

    /// Fails if the most of the pass did not count, or what was long ago never faded.
    #[test]
    fn the_preferred_node_is_where_most_of_it_has_been_lately() {
        let (mut space, mut memory) = process(2);
        for nth in 1..4 {
            pass(&mut space, &mut memory, nth * SECOND);
        }
        assert_eq!(memory.preferred, Some(0));
        memory.follow(1, &space);
        let preferred = (4..9).map(|nth| {
            pass(&mut space, &mut memory, nth * SECOND);
            memory.preferred.unwrap()
        });
        let preferred: Vec<u16> = preferred.collect();
        assert!(preferred.is_sorted() && preferred[0] == 0 && preferred[4] == 1, "{preferred:?}");
    }

    /// Fails if private memory were scanned at one pace, or a task that moves not sooner again.
    #[test]
    fn scans_grow_rare_until_a_task_moves() {
        let (mut space, mut memory) = process(6);
        assert_eq!(memory.scan_period, SCAN_DELAY);
        for nth in 1..20 {
            pass(&mut space, &mut memory, nth * SECOND);
        }
        assert_eq!(memory.scan_period, 10 * SECOND, "a minute for all six windows");
        memory.follow(1, &space);
        assert_eq!(memory.scan_period, SECOND / 6);
        assert_eq!(AddressSpace::new(100 * SCAN_SIZE_KIB, 0).scan_period_min(), SCAN_PERIOD_FLOOR);
    }

    /// Fails if remote faults counted as local ones, or those of an earlier period still did.
    #[test]
    fn scans_grow_rare_sooner_without_faults_on_the_own_node() {
        let (mut space, mut memory) = process(1);
        memory.scan_period = 2 * SECOND;
        memory.count_fault(0, true, 0, &mut space);
        memory.update_scan_period(SECOND, &mut space);
        assert_eq!(memory.scan_period, 2_600 * MILLISECOND);
        memory.count_fault(0, false, 0, &mut space);
        memory.update_scan_period(SECOND, &mut space);
        assert_eq!(
            (memory.scan_period, space.next_scan),
            (5_200 * MILLISECOND, 6_200 * MILLISECOND)
        );
    }

    /// Fails if every task of a process scanned at its own pace, or one before the delay.
    #[test]
    fn one_task_scans_for_its_process_at_a_time() {
        let (mut space, mut main) = process(2);
        let mut thread = TaskMemory::new(&space, 0, 2, Some(4 * MILLISECOND));
        assert!(!main.is_to_scan(SCAN_DELAY, &space));
        assert!(main.is_to_scan(SCAN_DELAY + 1, &space));
        assert!(!thread.is_to_scan(SCAN_DELAY + 1, &space), "threads come later");
        assert_eq!(main.scan(&mut space, SECOND - 1, 0), None, "the process is young");
        assert_eq!(main.scan(&mut space, SECOND, 0), Some(0));
        assert_eq!(thread.scan(&mut space, SECOND, 0), None, "somebody has just done so");
        assert_eq!(thread.scan(&mut space, 2 * SECOND, 0), Some(1));
    }
}
