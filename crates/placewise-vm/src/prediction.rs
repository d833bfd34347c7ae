//! Recorded runs beside simulated ones: for each load with each knob and with none, the spread of each
//! figure over the replicates, and over as many seeds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use placewise_sim::NewidleMemory;
use rayon::prelude::*;
use serde::Serialize;

use crate::intervention::SETTLE_MS;
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

/// What ran on one machine from its boot on, as indices of pairs.
struct Boot(Vec<usize>);

impl Predictions {
    /// Of the rows in `files`, by `runs` seeds each; machines' files are in `machines`. What a boot ran is simulated
    /// in its order, since kernels remember what ran before; there are as many seeds as that, whatever was recorded.
    pub fn of(files: &[PathBuf], machines: &Path, runs: u64) -> anyhow::Result<Self> {
        let mut predictions = Self::default();
        let (mut pairs, mut simulations) = (Vec::new(), Vec::new());
        for recorded in read(files)? {
            let Row { load, release, knob, .. } = &recorded.rows[0];
            match Simulation::of(load, release, knob, machines) {
                Ok(simulation) => {
                    pairs.push(recorded);
                    simulations.push(simulation);
                }
                Err(why) => predictions.unpredicted.push(recorded.unpredicted(why)),
            }
        }
        let all: Vec<(u64, Boot)> = (1..=runs).flat_map(|seed| boots(&pairs, seed)).collect();
        let simulated: Vec<Vec<anyhow::Result<Counts>>> = all
            .par_iter()
            .with_max_len(1)
            .map(|(seed, boot)| boot.run(&simulations, *seed))
            .collect();
        let mut of_pair: Vec<Vec<anyhow::Result<Counts>>> =
            pairs.iter().map(|_| Vec::new()).collect();
        for ((_, Boot(ran)), counts) in all.into_iter().zip(simulated) {
            for (pair, counts) in ran.into_iter().zip(counts) {
                of_pair[pair].push(counts);
            }
        }
        for (recorded, runs) in pairs.iter().zip(of_pair) {
            match runs.into_iter().collect::<anyhow::Result<Vec<Counts>>>() {
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

/// For a seed one boot of each batch, machine and kernel: there are as many as replicates, in turns.
fn boots(pairs: &[Recorded], seed: u64) -> impl Iterator<Item = (u64, Boot)> {
    let mut ran = BTreeMap::<_, BTreeMap<u64, BTreeMap<u64, usize>>>::new();
    for (pair, Recorded { batch, rows }) in pairs.iter().enumerate() {
        for Row { load: [machine, kernel, ..], replicate, place, .. } in rows {
            let replicates = ran.entry((batch, machine, kernel)).or_default();
            replicates.entry(*replicate).or_default().insert(*place, pair);
        }
    }
    ran.into_values().map(move |replicates| {
        let turn = (seed - 1) as usize % replicates.len();
        let boot = replicates.into_values().nth(turn).expect("it is one of them");
        (seed, Boot(boot.into_values().collect()))
    })
}

impl Boot {
    fn run(&self, simulations: &[Simulation], seed: u64) -> Vec<anyhow::Result<Counts>> {
        let mut memory = NewidleMemory::default();
        let rest_ns = u64::from(SETTLE_MS.start + SETTLE_MS.end) / 2 * 1_000_000;
        let run = |pair: &usize| {
            memory.rest(rest_ns);
            simulations[*pair].run(seed, &mut memory)
        };
        self.0.iter().map(run).collect()
    }
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

    const HEADING: &str =
        "machine,kernel,release,workload,case,knob,replicate,place,messages,sleeps\n";

    /// Fails if loads were simulated in the order of the file.
    #[test]
    fn seeds_take_turns_with_the_orders_of_boots() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("knobs.csv");
        let row = |(case, replicate, place)| {
            format!("m,v6.18,6.18.15,w,{case},,{replicate},{place},100,10\n")
        };
        let rows = [("a", 1, 1), ("b", 1, 0), ("b", 2, 2), ("a", 2, 1)].map(row);
        std::fs::write(&file, HEADING.to_owned() + &rows.concat()).unwrap();
        let pairs = read(&[file]).unwrap();
        let order = |seed| boots(&pairs, seed).map(|(_, Boot(ran))| ran).collect::<Vec<_>>();
        assert_eq!([1, 2, 3].map(order), [[[1, 0]], [[0, 1]], [[1, 0]]]);
    }

    /// Fails if each load was simulated as if the machine had just been booted.
    #[test]
    fn a_boot_remembers_what_it_ran() {
        let machines =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/interventions/machines");
        let case = "groups=2;fds=8;loops=800;warmup_ms=0;window_ms=900";
        let load = ["two-nodes-16", "v6.18", "hackbench", case].map(str::to_owned);
        let simulation = Simulation::of(&load, "6.18.15", "", &machines).unwrap();
        let counts: Vec<Counts> =
            Boot(vec![0; 20]).run(&[simulation], 1).into_iter().map(Result::unwrap).collect();
        let looks = |run: &Counts| run["newidle_passes"] / run["idle_entries"];
        let (first, last) = (looks(&counts[0]), looks(&counts[19]));
        assert!(last < 0.8 * first, "looks for each idle entry: {first}, then {last}");
    }

    #[test]
    fn replicates_are_held_to_every_second_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("knobs.csv");
        let row =
            |(replicate, sleeps)| format!("m,v6.18,6.18.15,w,c,,{replicate},0,100,{sleeps}\n");
        let rows = [(1, 10), (2, 20), (3, 40), (4, 30), (5, 60)].map(row);
        std::fs::write(&file, HEADING.to_owned() + &rows.concat()).unwrap();
        let predictions = Predictions::by_replicates(&[file]).unwrap();
        let compared = predictions.cases[0].figures["sleeps_per_message"];
        assert_eq!((compared.recorded.median, compared.predicted.median), (0.4, 0.25));
    }
}
