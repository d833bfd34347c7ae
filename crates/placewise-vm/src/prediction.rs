//! Recorded runs beside simulated ones: for each load with each knob and with none, the spread of each
//! figure over the replicates, and over as many seeds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use crate::predict::{Counts, Simulation};
use crate::summary::{self, Load, Row, Spread};

/// A load with a knob, or with none.
#[derive(Debug, Serialize)]
pub struct Case {
    /// The file of rows, without its directory and extension.
    pub batch: String,
    pub load: Load,
    /// Empty for none.
    pub knob: String,
    pub replicates: usize,
    pub figures: BTreeMap<&'static str, Compared>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Compared {
    pub recorded: Spread,
    pub predicted: Spread,
}

/// What was recorded and cannot be simulated.
#[derive(Debug, Serialize)]
pub struct Unpredicted {
    pub batch: String,
    pub load: Load,
    pub knob: String,
    pub why: String,
}

#[derive(Debug, Default, Serialize)]
pub struct Predictions {
    pub cases: Vec<Case>,
    pub unpredicted: Vec<Unpredicted>,
}

/// Runs of one load with one knob.
struct Recorded {
    batch: String,
    rows: Vec<Row>,
}

type Values = BTreeMap<&'static str, Vec<f64>>;

impl Predictions {
    /// Of the rows in `files`, by `runs` seeds each; machines' files are in `machines`.
    pub fn of(files: &[PathBuf], machines: &Path, runs: u64) -> anyhow::Result<Self> {
        let mut predictions = Self::default();
        let mut simulations = Vec::new();
        for recorded in read(files)? {
            let Row { load, release, knob, .. } = &recorded.rows[0];
            match Simulation::of(load, release, knob, machines) {
                Ok(simulation) => simulations.push((recorded, simulation)),
                Err(why) => predictions.unpredicted.push(recorded.unpredicted(why)),
            }
        }
        let seeds = 1..=runs;
        let all: Vec<_> = simulations
            .iter()
            .flat_map(|(_, simulation)| seeds.clone().map(move |seed| (simulation, seed)))
            .collect();
        let run = |(simulation, seed): &(&Simulation, u64)| simulation.run(*seed);
        let simulated: Vec<anyhow::Result<Counts>> =
            all.par_iter().with_max_len(1).map(run).collect();
        let mut simulated = simulated.into_iter();
        for (recorded, _) in simulations {
            let runs: anyhow::Result<Vec<Counts>> =
                simulated.by_ref().take(runs as usize).collect::<Vec<_>>().into_iter().collect();
            match runs {
                Ok(runs) => predictions.cases.push(recorded.beside(&runs)),
                Err(error) => {
                    predictions.unpredicted.push(recorded.unpredicted(format!("{error:#}")))
                }
            }
        }
        Ok(predictions)
    }

    /// As if the second, fourth ... replicate had predicted the others: what one recording says of another.
    pub fn by_replicates(files: &[PathBuf]) -> anyhow::Result<Self> {
        let repeated = read(files)?.into_iter().filter(|recorded| recorded.rows.len() > 1);
        Ok(Self {
            cases: repeated.map(|recorded| recorded.repeated()).collect(),
            ..Self::default()
        })
    }
}

/// In the order of files, loads and knobs; without what a kernel has not.
fn read(files: &[PathBuf]) -> anyhow::Result<Vec<Recorded>> {
    let mut all = Vec::new();
    for file in files {
        let batch = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut of_batch = BTreeMap::<(Load, String), Vec<Row>>::new();
        for row in summary::rows(file)? {
            if row.figure("messages").is_some() {
                of_batch.entry((row.load.clone(), row.knob.clone())).or_default().push(row);
            }
        }
        let recorded = |rows| Recorded { batch: batch.clone(), rows };
        all.extend(of_batch.into_values().map(recorded));
    }
    Ok(all)
}

impl Recorded {
    fn unpredicted(&self, why: String) -> Unpredicted {
        let Row { load, knob, .. } = &self.rows[0];
        Unpredicted { batch: self.batch.clone(), load: load.clone(), knob: knob.clone(), why }
    }

    fn beside(&self, simulated: &[Counts]) -> Case {
        self.compared(
            values(&self.rows, Row::figure),
            values(simulated, |counts, name| counts.get(name).copied()),
        )
    }

    fn repeated(&self) -> Case {
        let every_second = |from| values(self.rows.iter().skip(from).step_by(2), Row::figure);
        self.compared(every_second(0), every_second(1))
    }

    fn compared(&self, recorded: Values, predicted: Values) -> Case {
        let Row { load, knob, .. } = &self.rows[0];
        let compared = |(name, values): (&'static str, Vec<f64>)| {
            let predicted = Spread::of(predicted.get(name)?)?;
            Some((name, Compared { recorded: Spread::of(&values)?, predicted }))
        };
        Case {
            batch: self.batch.clone(),
            load: load.clone(),
            knob: knob.clone(),
            replicates: self.rows.len(),
            figures: recorded.into_iter().filter_map(compared).collect(),
        }
    }
}

/// Of each figure, those of all runs.
fn values<'a, Run: 'a>(
    runs: impl IntoIterator<Item = &'a Run>,
    count: impl Fn(&Run, &str) -> Option<f64>,
) -> Values {
    let mut values = Values::new();
    for run in runs {
        for (figure, value) in summary::figures(|name| count(run, name)) {
            values.entry(figure).or_default().push(value);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicates_are_held_to_every_second_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("knobs.csv");
        let row = |(replicate, sleeps)| format!("m,v6.18,6.18.15,w,c,,{replicate},100,{sleeps}\n");
        let heading = "machine,kernel,release,workload,case,knob,replicate,messages,sleeps\n";
        let rows = [(1, 10), (2, 20), (3, 40), (4, 30), (5, 60)].map(row);
        std::fs::write(&file, heading.to_owned() + &rows.concat()).unwrap();
        let predictions = Predictions::by_replicates(&[file]).unwrap();
        let compared = predictions.cases[0].figures["sleeps_per_message"];
        assert_eq!((compared.recorded.median, compared.predicted.median), (0.4, 0.25));
    }
}
