//! Does a real kernel that is cache-aware bring the threads of a process together as the simulator
//! says? The load is `vm-guest load partners`, of which `traces/` has a run with `llc_enabled` and one
//! without, by [`stock-cache-aware.toml`](../scenarios/stock-cache-aware.toml).

use std::path::{Path, PathBuf};

use placewise_machine::{Machine, from_trace};
use placewise_policy::{Policy, kernel_for_release};
use placewise_sim::{Scenario, simulate};
use placewise_trace::{Event, Header, Record, Sink, TraceReader};
use placewise_workload::program::{Op, Program, Window, Workload};

/// What the threads of the load are called, in both.
const COMM: &str = "vm-guest";
const THREADS: u32 = 3;
const TURNS: u32 = 300;

/// How far a share may be from what is predicted, in points.
const WITHIN: f64 = 10.0;

/// How long tasks of that name have run on each LLC.
struct RunTime {
    llc_of_cpu: Vec<usize>,
    since: Vec<Option<u64>>,
    on_llc: Vec<u64>,
}

impl RunTime {
    fn on(machine: &Machine) -> Self {
        let llc_of_cpu: Vec<usize> = machine.cpus.iter().map(|cpu| cpu.llc.into()).collect();
        let (cpus, llcs) = (llc_of_cpu.len(), machine.nr_llcs());
        Self { llc_of_cpu, since: vec![None; cpus], on_llc: vec![0; llcs] }
    }

    /// What of it was on the LLC that has most.
    fn share_pct(&self) -> f64 {
        let most = self.on_llc.iter().max().expect("a machine has an LLC");
        100.0 * *most as f64 / self.on_llc.iter().sum::<u64>() as f64
    }
}

impl Sink for RunTime {
    fn record(&mut self, record: &Record<'_>) {
        let Event::Switch { next_comm, .. } = record.event else { return };
        let cpu = record.cpu as usize;
        let starts = (next_comm == COMM).then_some(record.time_ns);
        if let Some(since) = std::mem::replace(&mut self.since[cpu], starts) {
            self.on_llc[self.llc_of_cpu[cpu]] += record.time_ns - since;
        }
    }
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

struct Recorded {
    header: Header,
    machine: Machine,
    share_pct: f64,
}

fn recorded(name: &str) -> Recorded {
    let path = repository(&format!("traces/vm8-k73-partners-{name}.txt.zst"));
    let mut reader = TraceReader::open(&path).unwrap();
    let machine = from_trace("trace", &reader.header().topology).unwrap();
    let mut ran = RunTime::on(&machine);
    while let Some(record) = reader.next_record().unwrap() {
        ran.record(&record);
    }
    Recorded { header: reader.header().clone(), machine, share_pct: ran.share_pct() }
}

/// The load as `vm-guest` has it: main waits for its threads.
fn partners() -> Workload {
    let turns = vec![
        Op::Run { ns: 500_000 },
        Op::Sleep { ns: 1_000_000, random_pct: 0 },
        Op::Repeat { counter: 0, times: TURNS, to: 0 },
        Op::Exit,
    ];
    let main = vec![Op::Fork { program: 1, count: THREADS, base: 0, step: 0 }, Op::Join, Op::Exit];
    let programs = vec![Program::new(COMM, main), Program::new(COMM, turns)];
    Workload::new("partners", programs, Window { measure: 60_000_000_000, ..Window::default() })
}

/// On the machine of the trace, under the emulator's costs and the kernel's own profile.
fn predicted(recorded: &Recorded, policy: &str) -> f64 {
    let emulated = repository("studies/interventions/machines/two-nodes-16.toml");
    let emulated = placewise_machine::load(emulated.to_str().unwrap()).unwrap();
    let machine = recorded.machine.clone().with_costs_of(&emulated);
    let kernel = kernel_for_release(recorded.header.kernel.as_deref().unwrap()).unwrap();
    let policy = Policy::parse(kernel, policy).unwrap();
    let mut ran = RunTime::on(&machine);
    let workload = partners();
    let scenario = Scenario { machine: &machine, policy: &policy, workload: &workload, seed: 1 };
    simulate(&scenario, Some(&mut ran)).unwrap();
    ran.share_pct()
}

#[test]
fn the_share_of_run_time_in_the_preferred_llc_moves_as_predicted() {
    let shares = [("on", "baseline"), ("off", "set:llc_enabled=0")].map(|(name, policy)| {
        let recorded = recorded(name);
        let predicted = predicted(&recorded, policy);
        println!("{name}: recorded {:.1} %, predicted {predicted:.1} %", recorded.share_pct);
        assert!((recorded.share_pct - predicted).abs() < WITHIN, "{name}");
        recorded.share_pct
    });
    assert!(shares[0] > shares[1] + 2.0 * WITHIN, "{shares:?}");
}
