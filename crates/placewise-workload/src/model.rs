//! What a workload that has a name is: its parameters, and how it is built for a case of them.

use crate::case::Case;
use crate::error::{WorkloadError, quoted, suggestion};
use crate::parameter::{Parameter, Settings};
use crate::program::Workload;

/// A workload that can be built for any case.
pub(crate) struct Model {
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// In the order published tables name them.
    pub parameters: &'static [Parameter],
    pub build: fn(&Settings) -> Result<Workload, WorkloadError>,
    /// The usual ladder of cases for a machine with this many CPUs.
    pub default_cases: fn(nr_cpus: usize) -> Vec<Case>,
}

impl Model {
    pub(crate) fn canonical(&self, case: &Case) -> Result<Case, WorkloadError> {
        Ok(self.settings(case)?.canonical())
    }

    pub(crate) fn build(&self, case: &Case) -> Result<Workload, WorkloadError> {
        let settings = self.settings(case)?;
        let mut workload = (self.build)(&settings).map_err(|error| error.within(self.name))?;
        settings.bind(&mut workload.programs);
        debug_assert_eq!(workload.check(), Ok(()));
        Ok(workload)
    }

    fn settings<'a>(&self, case: &'a Case) -> Result<Settings<'a>, WorkloadError> {
        Settings::check(self.parameters, case).map_err(|error| error.within(self.name))
    }
}

/// The one of `models` that is called `name`.
pub(crate) fn find(
    mut models: impl Iterator<Item = &'static Model> + Clone,
    name: &str,
) -> Result<&'static Model, WorkloadError> {
    let known = models.clone();
    models.find(|model| model.name == name).ok_or_else(|| {
        let known: Vec<&str> = known.map(|model| model.name).collect();
        WorkloadError::new(
            format!("workload {}", quoted(name)),
            format!("unknown; {}", suggestion(name, &known)),
        )
    })
}
