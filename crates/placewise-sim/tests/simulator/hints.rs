//! Whom a hint is for: the tasks of programs that name it, and what these fork.

use std::collections::BTreeMap;

use placewise_hint::Hint;
use placewise_sim::{Scenario, simulate};
use placewise_trace::{Event, Record, Sink};
use placewise_workload::program::{Op, Program};

use crate::common::{Setup, programs};

/// The hints that placed tasks had, by their names.
#[derive(Default)]
struct Hints {
    by_pid: BTreeMap<u32, u32>,
    by_name: BTreeMap<String, u32>,
}

impl Sink for Hints {
    fn record(&mut self, record: &Record<'_>) {
        match &record.event {
            Event::Decision(decision) => _ = self.by_pid.insert(decision.pid, decision.hint),
            Event::WakeupNew { comm, pid, .. } => {
                if let Some(hint) = self.by_pid.get(pid) {
                    self.by_name.insert(comm.to_string(), *hint);
                }
            }
            _ => {}
        }
    }

    fn takes_decisions(&self) -> bool {
        true
    }
}

/// Fails if a hint of one program were of all tasks, if children did not inherit it, or if one that
/// is named did not take its place.
#[test]
fn a_hint_is_of_its_programs_tasks_and_their_children() {
    let hint = |name: &str| Some(name.parse::<Hint>().unwrap());
    let fork = |program| Op::Fork { program, count: 1, base: 0, step: 0 };
    let of = |name: &str, ops: Vec<Op>| Program::new(name, ops);
    let workload = programs(
        vec![
            of("main", vec![fork(1), fork(3), fork(4), Op::Join, Op::Exit]),
            Program { hint: hint("wake_hold"), ..of("hinted", vec![fork(2), Op::Join, Op::Exit]) },
            of("child", vec![Op::Exit]),
            of("other", vec![Op::Exit]),
            Program { hint: Some(Hint::NONE), ..of("cleared", vec![Op::Exit]) },
        ],
        10,
    );
    for (all, other) in [("baseline", "none"), ("hint:fork_spread", "fork_spread")] {
        let setup = Setup::new("uma-8", "v6.0", all, workload.clone());
        let Setup { machine, policy, workload, seed } = &setup;
        let mut hints = Hints::default();
        simulate(&Scenario { machine, policy, workload, seed: *seed }, Some(&mut hints)).unwrap();
        let seen = |name: &str| Hint::from_mask(hints.by_name[name]).unwrap().to_string();
        let seen = ["hinted", "child", "other", "cleared"].map(seen);
        assert_eq!(seen, ["wake_hold", "wake_hold", other, "none"], "{all}");
    }
}
