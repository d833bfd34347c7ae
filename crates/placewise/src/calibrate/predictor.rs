//! What the simulator predicts of the rows under other costs: the same cases with the same seeds each
//! time. Costs that were asked for before, whole numbers that they are, are not simulated again.

use indicatif::{ProgressBar, ProgressStyle};
use placewise_machine::{Costs, Machine};
use placewise_sim::{Scenario, SimError};

use super::figures::Factors;
use super::rows::LeftOut;
use crate::noise::std_pct;
use crate::parallel;
use crate::reproduce::measured::{self, Figures, Samples};
use crate::reproduce::names::Names;
use crate::reproduce::plan::{self, Plan};
use crate::reproduce::study::Published;

/// Which runs to simulate, and on how many threads.
pub struct Runs {
    pub runs: u32,
    pub seed: u64,
    pub jobs: Option<usize>,
}

/// Of a row, in its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    pub value: f64,
    /// The standard error of the mean over the runs, relative to it.
    pub error: f64,
}

/// Of all rows under some costs; `None` where the runs have no figure.
pub type Predictions = Vec<Option<Prediction>>;

pub struct Predictor<'a> {
    machine: &'a Machine,
    runs: Runs,
    rows: Vec<Planned>,
    plan: Plan,
    known: Vec<(Costs, Predictions)>,
    bar: ProgressBar,
}

struct Planned {
    published: Published,
    scenario: usize,
}

impl<'a> Predictor<'a> {
    /// `spec` is what the machine was read from, and `most` how many costs will be asked for. Rows
    /// that no scenario can be made of are left out.
    pub fn new(
        spec: &str,
        machine: &'a Machine,
        published: Vec<Published>,
        runs: Runs,
        most: usize,
    ) -> anyhow::Result<(Self, Vec<LeftOut>)> {
        let (mut plan, mut rows, mut left_out) = (Plan::default(), Vec::new(), Vec::new());
        for published in published {
            // A file of one's own is known by its path alone.
            let ran_as = Names { machine: spec.to_owned(), ..published.ran_as.clone() };
            match plan.add(&Published { ran_as, ..published.clone() }) {
                Ok(scenario) => {
                    measured::check(&published, &plan.scenarios[scenario].workload)?;
                    rows.push(Planned { published, scenario });
                }
                Err(reason) => left_out.push(LeftOut { file: published.file, reason }),
            }
        }
        let style = ProgressStyle::with_template("{bar:40} {percent} %, at most {eta} left");
        let runs_of_all = plan.scenarios.len() * runs.runs as usize * most;
        let bar = ProgressBar::new(runs_of_all as u64)
            .with_style(style.expect("the template is well formed"));
        Ok((Self { machine, runs, rows, plan, known: Vec::new(), bar }, left_out))
    }

    pub fn published(&self) -> impl Iterator<Item = &Published> {
        self.rows.iter().map(|row| &row.published)
    }

    /// How many costs have been simulated.
    pub fn evaluations(&self) -> usize {
        self.known.len()
    }

    /// Leaves out the rows without a figure under the machine's own costs.
    pub fn keep_predicted(&mut self) -> Vec<LeftOut> {
        let samples = self.samples(self.machine);
        let rows = std::mem::take(&mut self.rows);
        let mut left_out = Vec::new();
        let mut known = Vec::new();
        for (row, samples) in rows.into_iter().zip(samples) {
            match samples.map(|samples| prediction(&samples)) {
                Ok(Some(prediction)) => {
                    known.push(Some(prediction));
                    self.rows.push(row);
                }
                Ok(None) => left_out.push(LeftOut {
                    file: row.published.file,
                    reason: "predicted as 0, which no factor leads to".to_owned(),
                }),
                Err(reason) => left_out.push(LeftOut { file: row.published.file, reason }),
            }
        }
        self.known = vec![(self.machine.costs.clone(), known)];
        left_out
    }

    pub fn predict(&mut self, factors: &Factors) -> Predictions {
        let costs = self.machine.costs.scaled(factors);
        if let Some((_, predictions)) = self.known.iter().find(|(known, _)| *known == costs) {
            return predictions.clone();
        }
        let machine = Machine { costs: costs.clone(), ..self.machine.clone() };
        let samples = self.samples(&machine);
        let predictions: Predictions =
            samples.iter().map(|samples| prediction(samples.as_ref().ok()?)).collect();
        self.known.push((costs, predictions.clone()));
        predictions
    }

    fn samples(&self, machine: &Machine) -> Vec<Result<Samples, String>> {
        let of_scenarios = self.simulate(machine);
        let samples = |row: &Planned| {
            let workload = &self.plan.scenarios[row.scenario].workload;
            Samples::of(&row.published, workload, &of_scenarios[row.scenario])
        };
        self.rows.iter().map(samples).collect()
    }

    /// The runs of each scenario.
    fn simulate(&self, machine: &Machine) -> Vec<Vec<Result<Figures, SimError>>> {
        let seeds = self.runs.seed..self.runs.seed + u64::from(self.runs.runs);
        let cells: Vec<(usize, u64)> = (0..self.plan.scenarios.len())
            .flat_map(|scenario| seeds.clone().map(move |seed| (scenario, seed)))
            .collect();
        let run = |(scenario, seed): &(usize, u64)| {
            plan::figures(&Scenario { machine, ..self.plan.scenario(*scenario, *seed) })
        };
        let mut figures: Vec<Option<_>> = cells.iter().map(|_| None).collect();
        parallel::each(&cells, parallel::threads(self.runs.jobs), run, |heard| {
            if let Some((at, of_run)) = heard {
                figures[at] = Some(of_run);
                self.bar.inc(1);
            }
        });
        let mut of_scenarios: Vec<Vec<_>> = Vec::new();
        of_scenarios.resize_with(self.plan.scenarios.len(), Vec::new);
        for ((scenario, _), figures) in cells.iter().zip(figures) {
            of_scenarios[*scenario].push(figures.expect("each cell has been run"));
        }
        of_scenarios
    }
}

impl Drop for Predictor<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn prediction(samples: &Samples) -> Option<Prediction> {
    let value = samples.factor? * samples.value();
    let std = std_pct(&samples.values).unwrap_or(0.0) / 100.0;
    let error = std / (samples.values.len() as f64).sqrt();
    (value > 0.0).then_some(Prediction { value, error })
}
