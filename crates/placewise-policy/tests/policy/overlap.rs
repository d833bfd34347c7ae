//! Sched groups that overlap: four nodes of two CPUs in a ring.
//!
//! At the top each node sees two groups of three nodes: its own with both neighbours, and that of the
//! node on the other side. So a group stands in two rings, and a CPU in up to two groups of one.

use placewise_machine::Machine;
use placewise_policy::kernel::*;
use placewise_policy::*;

const NOW: u64 = 1_000_000_000_000;
const TOP: u32 = 2;

fn ring() -> Machine {
    let mut machine = placewise_machine::load("node:4 core:2 pu:1").expect("a machine");
    machine.node_distances =
        [[10, 20, 30, 20], [20, 10, 20, 30], [30, 20, 10, 20], [20, 30, 20, 10]]
            .map(Vec::from)
            .to_vec();
    machine
}

fn cpus(mask: &Cpumask) -> Vec<usize> {
    (0..8).filter(|cpu| mask.bits[0] >> cpu & 1 != 0).collect()
}

#[test]
fn copies_of_a_group_share_capacity_and_imbalance() {
    let (state, _) = topology::boot(&ring(), &V6_0).expect("a state");
    let group_of = |cpu: usize| state.domain[cpu][TOP as usize].local_group as usize;
    let (own, across) = (group_of(0), group_of(4));
    assert_eq!(cpus(&state.group[own].cpus), [0, 1, 2, 3, 6, 7]);
    assert_eq!(cpus(&state.group[own].balance_mask), [0, 1]);
    assert_eq!(cpus(&state.group[across].cpus), [2, 3, 4, 5, 6, 7]);
    // Nodes 0 and 2 see the same two groups, so their CPUs share the domain and its groups.
    let span = |cpu: usize| state.domain[cpu][TOP as usize].span;
    assert_eq!(span(0), span(4));
    assert_ne!(span(0), span(2));
    // Below, the group of each node stands in the rings of three nodes, each time as another copy.
    let copies: Vec<usize> = (0..state.root.nr_groups as usize)
        .filter(|group| cpus(&state.group[*group].cpus) == [0, 1])
        .collect();
    let firsts = copies.iter().map(|group| group - state.group[*group].first_copy as usize);
    assert_eq!(copies.len(), 3);
    assert_eq!(firsts.collect::<Vec<_>>(), [copies[0]; 3]);
}

/// Its own node is busy, but a neighbour in the group is idle: that one has other groups to care for.
#[test]
fn a_cpu_balances_for_the_group_that_is_its_own() {
    let (mut state, _) = topology::boot(&ring(), &V6_0).expect("a state");
    state.root.idle.bits[0] = 0b1111_1100;
    state.load_balance(0, TOP, CPU_NOT_IDLE, NOW);
    assert_eq!(state.balance.continue_balancing, 1);
    state.load_balance(1, TOP, CPU_NOT_IDLE, NOW);
    assert_eq!(state.balance.continue_balancing, 0);
}
