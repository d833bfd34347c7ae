//! NUMA balancing: memory that follows tasks, and tasks that go to their memory.

use placewise_machine::CpuSet;
use placewise_sim::Outcome;
use placewise_workload::program::{
    Access, Change, FOREVER, Metric, Op, Program, Setting, Workload,
};

use crate::common::{MS, Setup, counter, figure, main_of, programs};
use crate::trace::{Line, parse};

/// Some milliseconds of streaming.
const BYTES: u64 = 28_000_000;

/// A process of 300 MB.
fn streamer(ops: Vec<Op>, cpus: &str) -> Program {
    let program = Program::new("streamer", ops).with_memory(300 << 10);
    Program { process: true, cpus: Some(list(cpus)), ..program }
}

fn list(cpus: &str) -> CpuSet {
    CpuSet::parse_list(cpus).expect("a list of CPUs")
}

fn bound_to(at: u64, cpus: &str) -> Change {
    Change { at: at * MS, to: Setting::Affinity { task: "streamer".to_owned(), cpus: list(cpus) } }
}

/// MB/s of a process before it goes to another node, half a second after it began; in the second after; and
/// after 8 s.
fn moved(policy: &str) -> [f64; 3] {
    let sweep = Op::Stream { access: Access::Copy, bytes: BYTES };
    let mut ops = Vec::new();
    for (section, more) in [(0, 700), (1, 8_000), (2, 1)] {
        ops.extend([Op::BeginSection { section }, sweep, Op::EndSection { section }]);
        let to = ops.len() as u32;
        ops.extend([sweep, Op::Repeat { counter: 0, times: more, to }]);
    }
    ops.push(Op::Exit);
    let rate = |(section, name)| Metric::BestRate { name, section, bytes: BYTES };
    let workload = Workload {
        metrics: [(0, "before"), (1, "soon"), (2, "later")].map(rate).to_vec(),
        changes: vec![bound_to(500, "33")],
        ..programs(vec![main_of(1), streamer(ops, "1")], 60_000)
    };
    let outcome = Setup::new("icx-2s", "v6.0", policy, workload).run();
    ["before", "soon", "later"].map(|name| figure(&outcome, name))
}

/// Fails if pages never followed, followed before they were scanned, or followed without numa_balancing.
#[test]
fn memory_follows_a_task_to_another_node() {
    let remote = placewise_machine::load("icx-2s").expect("a preset").costs.remote_bandwidth_pct;
    let remote = f64::from(remote.remote) / 100.0;
    let assert_near = |value: f64, expected: f64, what: &str| {
        assert!((value / expected - 1.0).abs() < 0.01, "{what}: {value}, expected {expected}");
    };
    let [before, soon, later] = moved("baseline");
    assert_near(soon / before, remote, "not scanned yet");
    assert_near(later / before, 1.0, "it is local again");
    let [before, _, later] = moved("set:numa_balancing=0");
    assert_near(later / before, remote, "nothing follows");
}

/// Four nodes of four CPUs.
const FOUR_NODES: &str = "numa:4 l3:1 core:4 pu:1";

/// A process learns on node 0 that its memory is there, is bound to node 1 for a moment, and free from
/// then on, while `others` compute on node 0: the node where it is in the end.
fn freed(kernel: &str, others: u32) -> (Outcome, u32) {
    let sweep = Op::Stream { access: Access::Copy, bytes: BYTES };
    let ops = vec![sweep, Op::Repeat { counter: 0, times: FOREVER, to: 0 }, Op::Exit];
    let mut all = vec![main_of(1 + others), streamer(ops, "0-3")];
    for cpu in 0..others as usize {
        let ops =
            vec![Op::Run { ns: MS }, Op::Repeat { counter: 0, times: FOREVER, to: 0 }, Op::Exit];
        all.push(Program { cpus: Some(CpuSet::single(cpu)), ..Program::new("other", ops) });
    }
    let changes = vec![bound_to(4_000, "4-7"), bound_to(4_010, "0-15")];
    let workload = Workload { changes, ..programs(all, 9_000) };
    let (outcome, trace) = Setup::new(FOUR_NODES, kernel, "baseline", workload).traced();
    let runs = |line: &Line| line.event == "sched_switch" && line.text("next_comm") == "streamer";
    let last = parse(&trace).into_iter().rfind(runs).expect("it runs");
    (outcome, last.cpu / 4)
}

/// As on a real v6.18. Fails if tasks stayed away from their memory, or went back under kernels that compare loads, or
/// that have one more task be no imbalance only where it is one of less than a quarter of the CPUs.
#[test]
fn a_task_goes_back_to_its_memory_where_that_has_room() {
    for kernel in ["v5.10", "v5.18", "v6.0", "v6.18"] {
        let (outcome, node) = freed(kernel, 0);
        assert_eq!((counter(&outcome, "migrations_numa"), node), (1.0, 0), "{kernel}");
    }
    for kernel in ["v5.3", "v5.17"] {
        let (outcome, node) = freed(kernel, 0);
        assert_eq!((counter(&outcome, "migrations_numa"), node), (0.0, 1), "{kernel}");
    }
}

/// As on a real v6.18. Fails if it went where the balancer would not have it, or waited where it was.
#[test]
fn a_task_whose_node_is_taken_goes_to_another_with_room() {
    let (outcome, node) = freed("v6.18", 2);
    assert!(counter(&outcome, "migrations_numa") >= 1.0);
    assert!(node >= 2, "node {node}");
}
