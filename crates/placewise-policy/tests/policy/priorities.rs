//! What kernels make of the hardware's preference for a core, on each of its threads.

use placewise_policy::kernel::*;
use placewise_policy::{Profile, topology};

/// The priorities of the two threads of a favoured P core, and of an E core; and the CPU that stands
/// for the P core's group.
fn priorities(profile: &Profile) -> ([i32; 3], u32) {
    let machine = placewise_machine::load("adl-24").expect("a preset");
    let (state, _) = topology::boot(&machine, profile).expect("a state");
    let all_cores = state.domain[0].iter().map(|domain| domain.local_group);
    let group = all_cores.take(usize::from(state.cpu[0].nr_domains)).next_back().expect("a level");
    let prefer = state.group[group as usize].asym_prefer_cpu;
    ([0, 1, 16].map(|cpu: usize| state.cpu[cpu].asym_priority), prefer)
}

#[test]
fn second_threads_count_for_less_and_less_and_then_as_much() {
    assert_eq!(priorities(&V5_10), ([132, 66, 78], 0));
    assert_eq!(priorities(&V6_0), ([132, 33, 78], 0));
    assert_eq!(priorities(&V6_12), ([66, 66, 39], 0));
}

#[test]
fn without_a_preference_the_lower_number_wins() {
    let machine = placewise_machine::load("uma-8").expect("a preset");
    let (state, _) = topology::boot(&machine, &V6_0).expect("a state");
    let found: Vec<i32> = (0..8).map(|cpu: usize| state.cpu[cpu].asym_priority).collect();
    assert_eq!(found, [0, -1, -2, -3, -4, -5, -6, -7]);
}
