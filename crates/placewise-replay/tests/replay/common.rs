//! Traces of simulated runs, and what is replayed of them.

use std::fs;
use std::path::PathBuf;

use placewise_machine::{Machine, TraceTopology, load};
use placewise_policy::Policy;
use placewise_replay::{Compared, Reading, Recording, Source, Validation, read};
use placewise_sim::{Scenario, simulate};
use placewise_trace::{FtraceWriter, Header};
use placewise_workload::build;
use placewise_workload::program::Workload;

pub struct Lab {
    pub machine: Machine,
    pub kernel: Policy,
    pub workload: Workload,
}

impl Lab {
    /// `case` is written as on the command line.
    pub fn new(machine: &str, kernel: &str, name: &str, case: &str) -> Self {
        let case = case.parse().expect("key=value");
        Lab {
            machine: load(machine).expect("the machine is known"),
            kernel: Policy::parse(kernel, "baseline").expect("the kernel is known"),
            workload: build(name, &case).expect("the case is valid"),
        }
    }

    /// A trace of a run of it, in a file of this name.
    pub fn trace(&self, name: &str) -> PathBuf {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("replay-{name}.txt"));
        let Lab { machine, kernel: policy, workload } = self;
        let scenario = Scenario { machine, policy, workload, seed: 7 };
        let header = Header { topology: TraceTopology::of(machine), ..Header::default() };
        let mut writer = FtraceWriter::new(Vec::new(), machine.cpus.len()).with_header(&header);
        simulate(&scenario, Some(&mut writer)).expect("the run ends well");
        fs::write(&path, writer.finish().expect("a Vec can be written to")).expect("it has room");
        path
    }

    pub fn read(&self, name: &str) -> Reading {
        let trace = self.trace(name);
        let source = Source { trace: &trace, machine: &self.machine, kernel: &self.kernel };
        read(&source).expect("what was written can be read")
    }

    pub fn validated(&self, name: &str) -> (Recording, Validation) {
        let validated = self.read(name).validated(&self.machine, &self.kernel);
        let (recording, _, validation) = validated.expect("the replay ends well");
        (recording, validation)
    }
}

pub fn row<'a>(rows: &'a [Compared], figure: &str) -> &'a Compared {
    rows.iter().find(|row| row.figure == figure).unwrap_or_else(|| panic!("no {figure}"))
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
