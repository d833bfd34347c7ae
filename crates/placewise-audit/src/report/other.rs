//! How often a policy that is not the kernel's would have gone elsewhere.

use placewise_policy::State;

use super::moves::Moves;
use crate::verdict::Placed;
use placewise_policy::Distance;

/// What a policy that is not the kernel's would have done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Other {
    /// Decisions of the kernel's policy that it was asked to take too.
    pub decisions: u64,
    /// Its answer is another CPU than that of the kernel's policy.
    pub other_cpu: u64,
    /// Its answer is in another LLC.
    pub other_llc: u64,
    /// From the previous CPU to its answer.
    pub moves: Moves,
}

impl Other {
    pub fn record(&mut self, kernel: &Placed, answer: u32, state: &State) {
        let llc = |cpu: u32| state.cpu[cpu as usize].llc;
        self.decisions += 1;
        self.other_cpu += u64::from(answer != kernel.predicted);
        self.other_llc += u64::from(llc(answer) != llc(kernel.predicted));
        self.moves.placed(kernel.kind, Distance::of(state, kernel.prev_cpu, answer));
    }
}
