//! The scenarios that rows of studies ask for, each once, and their runs.

use std::collections::BTreeMap;
use std::ops::Range;

use placewise_machine::Machine;
use placewise_policy::{Policy, own};
use placewise_sim::{Scenario, SimError, simulate};
use placewise_workload as workload;
use placewise_workload::program::Workload;

use super::kept::Kept;
use super::measured::Figures;
use super::study::Published;
use crate::own_policy;
use crate::parallel;

/// Everything about a scenario but the seed, by name.
type Key = [String; 5];

/// The scenarios there are, each once.
#[derive(Default)]
pub struct Plan {
    /// Or why one cannot be had.
    machines: BTreeMap<String, Result<Machine, String>>,
    places: BTreeMap<Key, usize>,
    /// What gives a policy that was named on the command line, by its name.
    named: BTreeMap<String, String>,
    pub scenarios: Vec<Prepared>,
}

pub struct Prepared {
    machine: String,
    policy: Policy,
    pub workload: Workload,
}

impl Plan {
    pub fn with_policies(specs: &[String]) -> Self {
        let named = specs.iter().map(|spec| (own::name(spec), spec.clone()));
        Self { named: named.collect(), ..Self::default() }
    }

    /// The index of the row's scenario, or why there is none.
    pub fn add(&mut self, row: &Published) -> Result<usize, String> {
        let case = row.ran_as.simulated_case().map_err(text)?;
        let key = [
            &row.ran_as.machine,
            &row.ran_as.kernel,
            &row.ran_as.workload,
            &case.to_string(),
            &row.ran_as.policy,
        ];
        let key = key.map(String::clone);
        if let Some(place) = self.places.get(&key) {
            return Ok(*place);
        }
        // It is taken to have been started from a login session.
        let workload = workload::build(&row.ran_as.workload, &case).map_err(text)?.in_session();
        let policy = self.policy(row)?;
        let load = || placewise_machine::load(&row.ran_as.machine).map_err(text);
        let machine = self.machines.entry(row.ran_as.machine.clone()).or_insert_with(load);
        machine.as_ref().map_err(String::clone)?;
        self.scenarios.push(Prepared { machine: row.ran_as.machine.clone(), policy, workload });
        self.places.insert(key, self.scenarios.len() - 1);
        Ok(self.scenarios.len() - 1)
    }

    /// A study cannot name a directory of code, the command line can.
    fn policy(&self, row: &Published) -> Result<Policy, String> {
        match self.named.get(&row.ran_as.policy) {
            Some(spec) => {
                own_policy::parse(&row.ran_as.kernel, spec).map_err(|error| error.to_string())
            }
            None => Policy::parse(&row.ran_as.kernel, &row.ran_as.policy).map_err(text),
        }
    }

    /// `None` if it cannot be had.
    pub fn machine(&self, name: &str) -> Option<&Machine> {
        self.machines.get(name)?.as_ref().ok()
    }

    /// The figures of each run wanted: a scenario with the range of its runs, run i having seed
    /// `seed + i`. Those that are `kept` are not simulated again.
    pub fn simulate(
        &self,
        wanted: &[(usize, Range<u32>)],
        seed: u64,
        jobs: Option<usize>,
        kept: Option<&Kept>,
    ) -> anyhow::Result<Vec<(usize, Result<Figures, SimError>)>> {
        let cells: Vec<(usize, u64)> = wanted
            .iter()
            .flat_map(|(one, runs)| runs.clone().map(move |run| (*one, seed + u64::from(run))))
            .collect();
        let simulate_cell = |(scenario, seed): &(usize, u64)| {
            let scenario = self.scenario(*scenario, *seed);
            kept.map_or_else(|| Ok(figures(&scenario)), |kept| figures_kept(&scenario, kept))
        };
        let outcomes = parallel::map(&cells, jobs, simulate_cell)?;
        let outcomes = cells.iter().map(|(scenario, _)| *scenario).zip(outcomes);
        outcomes.map(|(scenario, outcome)| Ok((scenario, outcome?))).collect()
    }

    pub fn scenario(&self, at: usize, seed: u64) -> Scenario<'_> {
        let Prepared { machine, policy, workload } = &self.scenarios[at];
        let machine = self.machines[machine].as_ref().expect("it is loaded");
        Scenario { machine, policy, workload, seed }
    }
}

/// All that one run reports.
pub fn figures(scenario: &Scenario) -> Result<Figures, SimError> {
    let outcome = simulate(scenario, None)?;
    Ok([outcome.figures, outcome.statistics.figures].concat())
}

fn figures_kept(scenario: &Scenario, kept: &Kept) -> anyhow::Result<Result<Figures, SimError>> {
    let key = kept.key(scenario);
    if let Some(figures) = kept.figures(&key) {
        return Ok(Ok(figures));
    }
    let figures = figures(scenario);
    if let Ok(figures) = &figures {
        kept.add(key, scenario, figures)?;
    }
    Ok(figures)
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::measured::Samples;
    use crate::reproduce::study::row;

    fn published(case: &str, metric: &str, policy: &str) -> Published {
        let mut row = row("s", "uma-8", "hackbench", case, policy);
        row.ran_as.metric = metric.into();
        row
    }

    #[test]
    fn rows_of_one_scenario_share_it() {
        let mut plan = Plan::default();
        let mut place = |case, metric, policy| plan.add(&published(case, metric, policy)).unwrap();
        assert_eq!(place("groups=1;fds=2", "time", "baseline"), 0);
        assert_eq!(place("groups=1;fds=2", "idle_share", "baseline"), 0);
        assert_eq!(
            place("fds=2;groups=1", "time", "baseline"),
            0,
            "the order of keys is no matter"
        );
        assert_eq!(place("groups=1;fds=2", "time", "short-task"), 1);
        assert_eq!(place("groups=2;fds=2", "time", "baseline"), 2);
        assert_eq!(plan.scenarios.len(), 3);
    }

    #[test]
    fn what_cannot_be_simulated_says_why() {
        let reason = |change: fn(&mut Published)| {
            let mut row = published("groups=1", "time", "baseline");
            change(&mut row);
            Plan::default().add(&row).unwrap_err()
        };
        assert!(reason(|row| row.ran_as.machine = "vax".into()).contains("vax"));
        assert!(reason(|row| row.ran_as.kernel = "v9.9".into()).contains("v9.9"));
        assert!(reason(|row| row.ran_as.workload = "kernbench".into()).contains("kernbench"));
        assert!(reason(|row| row.ran_as.case = "groups=none".into()).contains("groups"));
        assert!(reason(|row| row.ran_as.policy = "magic".into()).contains("magic"));
    }

    /// What no row of the studies may be left out for: a machine or a workload that there is not. The
    /// rest is named, and only what is on the list.
    #[test]
    fn the_rows_of_the_studies_are_planned_or_say_why() {
        let mut plan = Plan::default();
        let (mut planned, mut left_out) = (0, BTreeMap::new());
        for row in crate::reproduce::study::all() {
            match plan.add(&row) {
                Ok(_) => planned += 1,
                Err(reason) => *left_out.entry((row.series, reason)).or_insert(0) += 1,
            }
        }
        let expected = ["unknown kernel", "unknown policy", "policy '"];
        for (series, reason) in left_out.keys() {
            let is_expected = expected.iter().any(|why| reason.contains(why));
            assert!(is_expected, "{series}: {reason}");
        }
        assert!(planned > 2_000, "{planned}: {left_out:?}");
    }

    /// As `compare` does by itself. Fails without their command in `studies/commands.toml`, or if that left out baselines.
    #[test]
    fn pairs_are_warmed_up_until_the_rules_of_their_policies_act() {
        let mut plan = Plan::default();
        let mut rows = crate::reproduce::study::all();
        let is_pairs = |row: &Published| ["netperf", "tbench"].contains(&&*row.ran_as.workload);
        rows.retain(|row| row.series == "sis-short" && is_pairs(row));
        let acts_after = Policy::parse("v6.2", "sis-short").unwrap().acts_after_ns();
        assert!(rows.len() > 100 && acts_after > 1_000_000_000, "{}, {acts_after}", rows.len());
        for row in &rows {
            let at = plan.add(row).unwrap();
            assert!(plan.scenarios[at].workload.window.warm_up >= acts_after, "{:?}", row.ran_as);
        }
    }

    #[test]
    fn what_was_published_ran_in_a_session() {
        let mut plan = Plan::default();
        let at = plan.add(&published("groups=1", "time", "baseline")).unwrap();
        let Workload { cgroups, programs, .. } = &plan.scenarios[at].workload;
        assert_eq!((cgroups.len(), programs[0].cgroup), (1, Some(0)));
    }

    /// A row of each machine in the studies, with the window cut short.
    #[test]
    fn the_machines_of_the_studies_can_be_simulated() {
        let mut plan = Plan::default();
        let mut of_machine: BTreeMap<String, Published> = BTreeMap::new();
        for mut row in crate::reproduce::study::all() {
            if ["hackbench", "netperf", "tbench", "schedpipe"]
                .contains(&row.ran_as.workload.as_str())
            {
                row.ran_as.case += ";warmup_ms=0;window_ms=1";
                of_machine.entry(row.ran_as.machine.clone()).or_insert(row);
            }
        }
        let rows: Vec<&Published> =
            of_machine.values().filter(|row| plan.add(row).is_ok()).collect();
        let wanted: Vec<_> = (0..rows.len()).map(|scenario| (scenario, 0..1)).collect();
        let figures = plan.simulate(&wanted, 1, None, None).unwrap();
        assert!(rows.len() > 15, "{}", rows.len());
        for (row, (scenario, figures)) in rows.iter().zip(figures) {
            let workload = &plan.scenarios[scenario].workload;
            Samples::of(row, workload, &[figures]).unwrap();
        }
    }

    #[test]
    fn rows_of_single_runs_share_the_scenario_of_all_runs() {
        let mut plan = Plan::default();
        let mut place = |case| plan.add(&published(case, "time", "baseline")).unwrap();
        assert_eq!(place("groups=1;fds=2"), place("groups=1;fds=2;run=3"));
    }
}
