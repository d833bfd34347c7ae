//! Traces of simulated runs, and what is replayed of them.

use std::fs;
use std::path::{Path, PathBuf};

use placewise_machine::{Machine, TraceTopology, load};
use placewise_policy::Policy;
use placewise_replay::{Compared, Measured, Recording, Source, Validation, read, replayed};
use placewise_sim::{Scenario, simulate};
use placewise_trace::{FtraceWriter, Header};
use placewise_workload::build;
use placewise_workload::program::Workload;

/// What replays and models reproduce.
pub const CASES: [(&str, &str); 4] = [
    ("schbench", "workers=4;window_ms=1000;warmup_ms=100"),
    ("tbench", "clients=6;window_ms=50;warmup_ms=10"),
    ("pgbench", "clients=6;window_ms=100;warmup_ms=20"),
    ("mix", MIX),
];

const MIX: &str = "parts=schbench:workers=3@web+tbench:clients=4@batch;window_ms=50;warmup_ms=10";

pub struct Lab {
    pub machine: Machine,
    pub kernel: Policy,
    pub workload: Workload,
    pub seed: u64,
}

impl Lab {
    /// `case` is written as on the command line.
    pub fn new(machine: &str, kernel: &str, name: &str, case: &str) -> Self {
        let case = case.parse().expect("key=value");
        Lab {
            machine: load(machine).expect("the machine is known"),
            kernel: Policy::parse(kernel, "baseline").expect("the kernel is known"),
            workload: build(name, &case).expect("the case is valid"),
            seed: 7,
        }
    }

    /// A trace of a run of it, in a file of this name.
    pub fn trace(&self, name: &str) -> PathBuf {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("replay-{name}.txt"));
        let Lab { machine, kernel: policy, workload, seed } = self;
        let scenario = Scenario { machine, policy, workload, seed: *seed };
        let header = Header { topology: TraceTopology::of(machine), ..Header::default() };
        let mut writer = FtraceWriter::new(Vec::new(), machine.cpus.len()).with_header(&header);
        simulate(&scenario, Some(&mut writer)).expect("the run ends well");
        fs::write(&path, writer.finish().expect("a Vec can be written to")).expect("it has room");
        path
    }

    pub fn read(&self, name: &str) -> (Recording, Measured) {
        let trace = self.trace(name);
        read(&self.source(&trace)).expect("what was written can be read")
    }

    pub fn validated(&self, name: &str) -> (Recording, Validation) {
        let trace = self.trace(name);
        let replayed = replayed(&self.source(&trace));
        let (recording, _, validation) = replayed.expect("the replay ends well");
        (recording, validation)
    }

    fn source<'a>(&'a self, trace: &'a Path) -> Source<'a> {
        Source { trace, machine: &self.machine, kernel: &self.kernel }
    }
}

pub fn row<'a>(rows: &'a [Compared], figure: &str) -> &'a Compared {
    rows.iter().find(|row| row.figure == figure).unwrap_or_else(|| panic!("no {figure}"))
}

/// Nearer than what is said to be trusted.
pub fn is_like_the_recording(name: &str, validation: &Validation) {
    are_like_the_recordings(name, std::slice::from_ref(validation));
}

/// In the mean of them, nearer than what is said to be trusted.
pub fn are_like_the_recordings(name: &str, validations: &[Validation]) {
    validations.iter().for_each(print);
    for (at, row) in validations[0].all.iter().enumerate() {
        let errors: Vec<f64> = validations.iter().filter_map(|it| it.all[at].error).collect();
        let error = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        let most = match row.figure {
            "throughput" => 5.0,
            "latency_p99" => 15.0,
            distance if distance.starts_with("on_") => 5.0,
            _ => continue,
        };
        assert!(error.abs() <= most, "{name}: {} is {error:.1} off", row.figure);
    }
    let is_trusted = |it: &Validation| it.is_trusted && it.blamed.is_none();
    assert!(validations.iter().all(is_trusted), "{name}");
}

/// For people.
pub fn print(validation: &Validation) {
    let line = |row: &Compared| {
        let error = row.error.map_or("-".into(), |error| format!("{error:+.1}"));
        println!("    {:16} {:12.1} {:12.1} {error:>8}", row.figure, row.recorded, row.replayed);
    };
    validation.all.iter().for_each(line);
    for (name, rows) in &validation.by_name {
        println!("  {name}");
        rows.iter().for_each(line);
    }
}
