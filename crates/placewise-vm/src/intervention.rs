//! Interventions: the same load on the same machine and kernel, with a knob of the scheduler turned or
//! not, again and again.
//!
//! A batch is a file of machines, kernels, loads and knobs. One boot runs all its loads with all its
//! knobs, and each load without any, in an order and after pauses that its replicate draws, so that what
//! one run leaves behind is not always the same for another one. Each run makes a row.

use std::path::Path;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::Deserialize;

use crate::guest::{Clock, Guest};
use crate::machine::Machine;
use crate::scenario;

/// Idle time before a run: for averages to decay, and for ticks to fall elsewhere.
pub const SETTLE_MS: std::ops::Range<u32> = 150..250;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The question, in a line.
    pub asks: String,
    /// Names of machines.toml.
    pub machines: Vec<String>,
    /// Series, such as 6.18.
    pub kernels: Vec<String>,
    pub loads: Vec<Load>,
    /// `NAME=VALUE` joined by `;`. Without any knob each load is run anyway.
    pub knobs: Vec<String>,
    pub replicates: u32,
    /// Of the host's time, for a boot.
    pub limit_seconds: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    pub workload: String,
    /// As `placewise compare --case` takes it.
    pub case: String,
}

/// One boot of a batch.
pub struct Boot {
    pub machine_name: String,
    pub machine: Machine,
    pub kernel: String,
    pub replicate: u32,
    pub runs: Vec<Run>,
    limit_seconds: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub workload: String,
    pub case: String,
    /// Empty for the baseline.
    pub knob: String,
    settle_ms: u32,
}

impl Batch {
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        scenario::read(path)
    }

    /// The runs of one replicate, in their order.
    pub fn runs(&self, replicate: u32) -> Vec<Run> {
        let mut random = Pcg64::seed_from_u64(replicate.into());
        let knobs = || [""].into_iter().chain(self.knobs.iter().map(String::as_str));
        let mut runs = Vec::new();
        for Load { workload, case } in &self.loads {
            for knob in knobs() {
                let (workload, case) = (workload.clone(), case.clone());
                let settle_ms = random.random_range(SETTLE_MS);
                runs.push(Run { workload, case, knob: knob.to_owned(), settle_ms });
            }
        }
        runs.shuffle(&mut random);
        runs
    }

    pub fn boot(&self, machine: (&str, &Machine), kernel: &str, replicate: u32) -> Boot {
        Boot {
            machine_name: machine.0.to_owned(),
            machine: machine.1.clone(),
            kernel: kernel.to_owned(),
            replicate,
            runs: self.runs(replicate),
            limit_seconds: self.limit_seconds,
        }
    }
}

impl Boot {
    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.machine_name, self.kernel, self.replicate)
    }

    pub fn guest(&self) -> Guest {
        Guest {
            kernel: self.kernel.clone(),
            machine: self.machine.clone(),
            clock: Clock::Parallel { seed: self.replicate },
            programs: Vec::new(),
            script: self.script(),
            limit_seconds: self.limit_seconds,
        }
    }

    /// Figures of run n have the prefix n.
    fn script(&self) -> String {
        let mut script = "ulimit -n 8192\nfigure release \"$(uname -rv)\"\n".to_owned();
        for (number, run) in self.runs.iter().enumerate() {
            let Run { workload, case, knob, settle_ms } = run;
            script.push_str(&format!(
                "intervene {number} '{knob}' 0.{settle_ms:03} {workload} '{case}'\n"
            ));
        }
        script
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Batch {
        toml::from_str(
            "asks = 'what?'\nmachines = []\nkernels = []\nreplicates = 2\nlimit_seconds = 1\n\
             knobs = ['WA_IDLE=0', 'SIS_UTIL=0']\n\
             loads = [{ workload = 'ring', case = 'tasks=4' }, { workload = 'herd', case = '' }]",
        )
        .unwrap()
    }

    #[test]
    fn a_replicate_has_every_load_with_every_knob_and_with_none() {
        for replicate in [1, 2] {
            let runs = batch().runs(replicate);
            for workload in ["ring", "herd"] {
                for knob in ["", "WA_IDLE=0", "SIS_UTIL=0"] {
                    let same = |run: &&Run| run.workload == workload && run.knob == knob;
                    assert_eq!(runs.iter().filter(same).count(), 1, "{workload} {knob}");
                }
            }
            assert_eq!(runs.len(), 6);
        }
    }

    #[test]
    fn replicates_differ_in_order_and_each_is_always_the_same() {
        let batch = batch();
        assert_eq!(batch.runs(1), batch.runs(1));
        assert_ne!(batch.runs(1), batch.runs(2));
    }
}
