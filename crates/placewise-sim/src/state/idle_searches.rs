//! What searches for an idle CPU took and found, as a kernel with statistics of
//! select_idle_sibling() counts them.
//!
//! Target, prev, a per-CPU kthread's CPU and the recent one are one look together; a search of the
//! LLC counts the CPUs it looks at besides.
//!
//! Limits: searches among CPUs of unequal capacity are not counted.

use placewise_policy::*;

#[derive(Clone, Copy, Debug, Default)]
pub struct IdleSearches {
    pub all: u64,
    /// Those that none of the candidates ended.
    pub of_llc: u64,
    pub scanned: u64,
    pub failed: u64,
}

impl IdleSearches {
    /// A wakeup's decision, which may have searched for nothing.
    #[inline]
    pub fn count(&mut self, decision: &Decision) {
        let reason = u32::from(decision.search);
        if matches!(reason, SEARCH_NONE | SEARCH_ASYM_CAPACITY) {
            return;
        }
        let is_candidate =
            matches!(reason, SEARCH_TARGET | SEARCH_PREV | SEARCH_KTHREAD | SEARCH_RECENT_USED);
        self.all += 1;
        self.of_llc += u64::from(!is_candidate);
        self.scanned += 1 + u64::from(decision.llc_scanned);
        self.failed += u64::from(reason == SEARCH_FAILED);
    }
}
