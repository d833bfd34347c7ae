//! The benchmark models there are: each is one module that ends in one [`Model`].

use crate::error::{quoted, suggestion};
use crate::parameter::{Parameter, Settings};
use crate::program::Workload;
use crate::{
    Case, WorkloadError, context_switch1, dbench, hackbench, lu, mix, netperf, pgbench, schbench,
    schedpipe, stream, tbench,
};

/// A benchmark that can be built for any case.
pub(crate) struct Model {
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// In the order published tables name them.
    pub parameters: &'static [Parameter],
    pub build: fn(&Settings) -> Workload,
    /// The usual ladder of cases for a machine with this many CPUs.
    pub default_cases: fn(nr_cpus: usize) -> Vec<Case>,
}

const MODELS: &[&Model] = &[
    &hackbench::MODEL,
    &schbench::MODEL,
    &schedpipe::MODEL,
    &context_switch1::MODEL,
    &netperf::MODEL,
    &tbench::MODEL,
    &pgbench::MODEL,
    &dbench::MODEL,
    &stream::MODEL,
    &lu::MODEL,
    &mix::MODEL,
];

fn find(name: &str) -> Result<&'static Model, WorkloadError> {
    let found = MODELS.iter().copied().find(|model| model.name == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = names().collect();
        WorkloadError::new(
            format!("workload {}", quoted(name)),
            format!("unknown; {}", suggestion(name, &known)),
        )
    })
}

/// The names [`build`] knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    MODELS.iter().map(|model| model.name)
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
    let settings =
        Settings::check(find(name)?.parameters, case).map_err(|error| error.within(name))?;
    Ok(settings.canonical())
}

/// Builds a benchmark for a case.
pub fn build(name: &str, case: &Case) -> Result<Workload, WorkloadError> {
    let model = find(name)?;
    let settings = Settings::check(model.parameters, case).map_err(|error| error.within(name))?;
    let workload = (model.build)(&settings);
    debug_assert_eq!(workload.check(), Ok(()));
    Ok(workload)
}
