//! Scenarios in one line, and what comes out of them by name.

use placewise_machine::{ByChannel, BySide, Machine};
use placewise_policy::Policy;
use placewise_sim::{
    Audit, NewidleMemory, Outcome, Scenario, simulate, simulate_after, simulate_checked,
};
use placewise_trace::FtraceWriter;
use placewise_workload::build;
use placewise_workload::program::{Op, Program, Window, Workload};

pub const MS: u64 = 1_000_000;

/// A scenario with its own machine, policy and workload.
#[derive(Clone)]
pub struct Setup {
    pub machine: Machine,
    pub policy: Policy,
    pub workload: Workload,
    pub seed: u64,
}

impl Setup {
    pub fn new(machine: &str, kernel: &str, policy: &str, workload: Workload) -> Self {
        workload.check().expect("the workload is sound");
        Setup {
            machine: machine_named(machine),
            policy: Policy::parse(kernel, policy).expect("the policy is known"),
            workload,
            seed: 1,
        }
    }

    fn scenario(&self) -> Scenario<'_> {
        Scenario {
            machine: &self.machine,
            policy: &self.policy,
            workload: &self.workload,
            seed: self.seed,
        }
    }

    /// Every cost is its average.
    pub fn without_spread(mut self) -> Self {
        let none = BySide { write: 0, read: 0 };
        let costs = &mut self.machine.costs;
        costs.message_spread_pct = ByChannel { pipe: none, socket: none, tcp: none, udp: none };
        costs.jitter_pct = 0;
        self
    }

    /// All cores are that fast, of 1,024.
    pub fn at_speed(mut self, speed: u32) -> Self {
        self.machine.cpus.iter_mut().for_each(|cpu| cpu.speed = speed);
        self
    }

    pub fn run(&self) -> Outcome {
        simulate(&self.scenario(), None).expect("the run ends well")
    }

    /// After what left this memory.
    pub fn run_after(&self, memory: &mut NewidleMemory) -> Outcome {
        simulate_after(&self.scenario(), memory).expect("the run ends well")
    }

    pub fn checked(&self, every: u64) -> (Outcome, Audit) {
        simulate_checked(&self.scenario(), None, every).expect("the run ends well")
    }

    /// The outcome, and the run as ftrace text.
    pub fn traced(&self) -> (Outcome, String) {
        self.written_by(FtraceWriter::new(Vec::new(), self.machine.cpus.len()))
    }

    /// The run as ftrace text that tells its placement decisions too.
    pub fn traced_with_decisions(&self) -> String {
        self.written_by(FtraceWriter::new(Vec::new(), self.machine.cpus.len()).with_decisions()).1
    }

    fn written_by(&self, mut writer: FtraceWriter<Vec<u8>>) -> (Outcome, String) {
        let outcome = simulate(&self.scenario(), Some(&mut writer)).expect("the run ends well");
        let text = writer.finish().expect("a Vec can be written to");
        (outcome, String::from_utf8(text).expect("a trace is text"))
    }
}

/// A preset, or a shape with the costs of a desktop: what these tests say of a shape was seen with
/// those, whatever costs such a machine would borrow.
fn machine_named(name: &str) -> Machine {
    let machine = placewise_machine::load(name).expect("the machine is known");
    match name.contains(':') {
        true => {
            let desktop = placewise_machine::load("uma-8").expect("a preset");
            Machine { costs: desktop.costs, ..machine }
        }
        false => machine,
    }
}

/// A benchmark model; `case` reads `key=value,key=value`.
pub fn benchmark(name: &str, case: &str) -> Workload {
    benchmark_of(name, &case.replace(',', ";"))
}

/// A benchmark model; `case` is written as on the command line.
pub fn benchmark_of(name: &str, case: &str) -> Workload {
    build(name, &case.parse().expect("key=value")).expect("the case is valid")
}

/// A workload of programs, measured from the start on for `ms`.
pub fn programs(programs: Vec<Program>, ms: u64) -> Workload {
    Workload::new("test", programs, Window { measure: ms * MS, ..Window::default() })
}

/// Main that forks one task of each of the `count` programs that follow it, and waits for them.
pub fn main_of(count: u32) -> Program {
    let fork = |program| Op::Fork { program, count: 1, base: 0, step: 0 };
    let ops = (1..=count).map(fork).chain([Op::Join, Op::Exit]).collect();
    Program::new("main", ops)
}

/// A figure of the workload.
pub fn figure(outcome: &Outcome, metric: &str) -> f64 {
    let found = outcome.figures.iter().find(|figure| figure.metric == metric);
    found.unwrap_or_else(|| panic!("no figure {metric}")).value
}

/// A counter of the run.
pub fn counter(outcome: &Outcome, metric: &str) -> f64 {
    let found = outcome.statistics.figures.iter().find(|figure| figure.metric == metric);
    found.unwrap_or_else(|| panic!("no counter {metric}")).value
}

/// A field of the first task's /proc/PID/sched of a program, by the program's name.
pub fn proc_sched(outcome: &Outcome, comm: &str, field: &str) -> f64 {
    let texts = &outcome.statistics.proc_sched;
    let text = texts.iter().find(|text| text.starts_with(&format!("{comm} (")));
    let mut lines = text.unwrap_or_else(|| panic!("no task {comm}")).lines();
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == field).then(|| value.trim().parse().expect("a number"))
    };
    lines.find_map(value).unwrap_or_else(|| panic!("no field {field}"))
}
