//! Which CPUs share a list of tasks that wait (`policy/shared_runq.h`).
//!
//! An LLC of n CPUs has a list for every six of them, at least one, and CPU c has the (c / 2)nd in
//! turn, so that siblings with neighbouring numbers have the same.

use crate::state::State;

/// CPUs to a list, where the LLC has that many.
const SHARD_SIZE: usize = 6;

/// Gives the CPUs of an LLC, in increasing order, their lists.
pub fn share_lists(state: &mut State, llc: &[usize]) {
    let lists = (llc.len() / SHARD_SIZE).max(1);
    let list_of = |cpu: usize| cpu / 2 % lists;
    let first_of = |list: usize| llc.iter().copied().find(|&cpu| list_of(cpu) == list % lists);
    for &cpu in llc {
        let list = list_of(cpu);
        let next = (list + 1..=list + lists).find_map(first_of);
        state.cpu[cpu].shared_first = first_of(list).unwrap_or(cpu) as u16;
        state.cpu[cpu].shared_next = next.unwrap_or(cpu) as u16;
    }
}

/// The lists are to be others: what waits stands in none until it is enqueued again.
pub fn drain_lists(state: &mut State) {
    if state.rq.iter().all(|rq| rq.shared_head == 0) {
        return;
    }
    state.rq.iter_mut().for_each(|rq| rq.shared_head = 0);
    state.task.iter_mut().for_each(|task| task.shared_next = 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Placement;
    use crate::kernel::V6_5;

    #[test]
    fn an_llc_has_a_list_for_six_cpus_and_they_follow_each_other_in_a_ring() {
        let mut state = Placement::new(V6_5);
        // 16 CPUs as on Zen 3: two lists of 8.
        let llc: Vec<usize> = (8..16).chain(136..144).collect();
        share_lists(&mut state, &llc);
        let list = |cpu: usize| (state.cpu[cpu].shared_first, state.cpu[cpu].shared_next);
        for cpu in [8, 9, 12, 136, 141] {
            assert_eq!(list(cpu), (8, 10), "{cpu}");
        }
        for cpu in [10, 11, 14, 139] {
            assert_eq!(list(cpu), (10, 8), "{cpu}");
        }
    }

    #[test]
    fn a_small_llc_has_one_list() {
        let mut state = Placement::new(V6_5);
        share_lists(&mut state, &[4, 5, 6, 7]);
        let cpu = state.cpu[6];
        assert_eq!((cpu.shared_first, cpu.shared_next), (4, 4));
    }
}
