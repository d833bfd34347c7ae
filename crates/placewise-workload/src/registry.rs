//! The workloads there are, by name: the benchmarks, and the mix of them.

use crate::benchmark::BENCHMARKS;
use crate::case::Case;
use crate::error::WorkloadError;
use crate::mix;
use crate::model::{self, Model};
use crate::parameter::Parameter;
use crate::program::Workload;

fn models() -> impl Iterator<Item = &'static Model> + Clone {
    BENCHMARKS.iter().copied().chain([&mix::MODEL])
}

fn find(name: &str) -> Result<&'static Model, WorkloadError> {
    model::find(models(), name)
}

/// The names [`build`] knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    models().map(|model| model.name)
}

/// One line about a workload.
pub fn summary(name: &str) -> Result<&'static str, WorkloadError> {
    Ok(find(name)?.summary)
}

/// The parameters of a workload, in the order published tables name them.
pub fn parameters(name: &str) -> Result<&'static [Parameter], WorkloadError> {
    Ok(find(name)?.parameters)
}

/// The usual ladder of cases of a workload on a machine with `nr_cpus` CPUs.
pub fn default_cases(name: &str, nr_cpus: usize) -> Result<Vec<Case>, WorkloadError> {
    Ok((find(name)?.default_cases)(nr_cpus))
}

/// The case with its keys in the order published tables use, so that equal cases read the same.
pub fn canonical(name: &str, case: &Case) -> Result<Case, WorkloadError> {
    find(name)?.canonical(case)
}

/// Builds a workload for a case.
pub fn build(name: &str, case: &Case) -> Result<Workload, WorkloadError> {
    find(name)?.build(case)
}
