//! The placements whose tasks waited longest of those that missed an idle CPU, rule by rule.
//!
//! A placement can only be explained when it is made, and what it costs is known later: so each one
//! that missed an idle CPU is explained, and forgotten if its task did not wait long.

use placewise_audit::Explanation;
use serde::Serialize;

/// How many are kept.
const KEPT: usize = 64;

/// One decision, and where on the timeline it is.
#[derive(Serialize)]
pub struct Explained {
    #[serde(flatten)]
    pub explanation: Box<Explanation>,
    pub at_ns: u64,
}

/// Those that cost most, most expensive first, equal ones as they came.
#[derive(Default)]
pub struct MostExpensive {
    kept: Vec<(u64, Explained)>,
}

impl MostExpensive {
    /// Its task runs.
    pub fn waited(&mut self, explained: Explained, ns: u64) {
        let at = self.kept.partition_point(|&(other, _)| other >= ns);
        if at < KEPT {
            self.kept.truncate(KEPT - 1);
            self.kept.insert(at, (ns, explained));
        }
    }

    pub fn list(self) -> Vec<Explained> {
        self.kept.into_iter().map(|(_, explained)| explained).collect()
    }
}
