//! What a figure is of, by names: those of its table, or those that it is simulated by.

use placewise_workload::{self as workload, Case, WorkloadError};
use serde::Serialize;

/// What a figure is of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Names {
    pub machine: String,
    pub kernel: String,
    pub workload: String,
    pub case: String,
    pub metric: String,
    pub policy: String,
}

impl Names {
    /// Some tables give each run of a case a row of its own, under the key `run`; the runs of the
    /// simulator are no more like one of them than like another.
    pub fn simulated_case(&self) -> Result<Case, WorkloadError> {
        workload::canonical(&self.workload, &self.case.parse::<Case>()?.without("run"))
    }

    /// With the keys in the order of `placewise compare`.
    pub fn canonical_case(&self) -> Result<String, WorkloadError> {
        let case = self.simulated_case()?;
        Ok(match self.case.parse::<Case>()?.get("run") {
            Some(run) => case.with("run", run).to_string(),
            None => case.to_string(),
        })
    }
}
