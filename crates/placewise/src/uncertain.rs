//! Whether the sign of a change hangs on costs that nobody has measured.
//!
//! Each cost figure is varied by a factor within bounds that the first word of its source sets; the
//! draws are a Latin hypercube on the factors' logarithms, so that each figure takes low and high values
//! equally often whatever the others do. Under each draw the policies run with the same seeds.
//!
//! Limits: a figure by distance is varied as a whole, and figures independently of each other; the
//! rank correlation sees what rises or falls with a figure, not what turns within its bounds.

use std::collections::BTreeMap;

use clap::builder::RangedU64ValueParser;
use placewise_machine::Machine;
use placewise_sim::Figure;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;

use crate::comparison::{self, Comparison, Series};
use crate::cost_bound;
use crate::input::InputError;
use crate::machine_readable::nine_digits;
use crate::parallel;
use crate::report::foreign::visible;
use crate::report::{self, Format, Posted, json};
use crate::subject::{Axis, Subject, label};

#[derive(Default, clap::Args)]
pub struct Uncertain {
    /// Vary the costs that are not measured within their bounds, and say how often the sign of each
    /// change holds [default: 32 draws]
    #[arg(long = "uncertain", value_name = "DRAWS", num_args = 0..=1, require_equals = true,
        default_missing_value = "32", value_parser = RangedU64ValueParser::<u32>::new().range(2..=10_000))]
    draws: Option<u32>,
}

impl Uncertain {
    /// `None` where that was not asked for.
    pub fn draws(&self) -> Option<u32> {
        self.draws
    }

    pub fn check(&self, format: Format, machines: usize) -> Result<(), InputError> {
        let problem = match (self.draws, format, machines) {
            (Some(_), Format::Csv, _) => "CSV has no place for it; use another --format",
            (Some(_), _, 2..) => "the costs of one machine are varied; name one --machine",
            _ => return Ok(()),
        };
        Err(InputError(format!("--uncertain: {problem}")))
    }
}

/// What is compared under each draw.
pub struct Compared<'a> {
    pub machine: &'a Machine,
    /// Names.
    pub cases: Vec<&'a str>,
    pub subjects: Vec<Subject>,
    pub runs: u32,
    pub seed: u64,
    pub jobs: Option<usize>,
}

/// One run of a case of a subject.
#[derive(Clone, Copy)]
pub struct Run {
    pub case: usize,
    pub subject: usize,
    pub run: u32,
}

/// A change, and what becomes of it as the costs vary.
#[derive(Debug, Serialize)]
pub struct Row {
    pub case: String,
    pub metric: String,
    #[serde(flatten)]
    pub subject: Subject,
    /// With the costs as the machine has them.
    #[serde(serialize_with = "nine_digits")]
    pub change_pct: Option<f64>,
    /// Over all draws.
    #[serde(serialize_with = "nine_digits")]
    pub least_pct: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    pub most_pct: Option<f64>,
    pub draws: usize,
    /// Draws whose change has the sign of `change_pct`; where that is 0, is 0 too.
    pub sign_held: usize,
    /// The figure that the change follows most; `None` where chance could have chosen it.
    pub depends_on: Option<String>,
    /// Of that figure and the change, by ranks: positive where the change rises with the figure.
    #[serde(serialize_with = "nine_digits")]
    pub correlation: Option<f64>,
}

/// `None` where that was not asked for.
pub fn answer(
    asked: &Uncertain,
    compared: &Compared,
    simulate: impl Fn(&Machine, Run) -> anyhow::Result<Vec<Figure>> + Sync + Send,
) -> anyhow::Result<Option<Vec<Row>>> {
    let Some(draws) = asked.draws else { return Ok(None) };
    let drawn = draws_of(compared.machine, draws, compared.seed);
    let none = BTreeMap::new();
    let machine = |factors: &BTreeMap<String, f64>| Machine {
        costs: compared.machine.costs.scaled(factors),
        ..compared.machine.clone()
    };
    // The first as it is.
    let machines: Vec<Machine> = std::iter::once(&none).chain(&drawn).map(machine).collect();
    let runs = compared.runs_of_each();
    let all: Vec<(&Machine, Run)> =
        machines.iter().flat_map(|machine| runs.iter().map(move |run| (machine, *run))).collect();
    let figures = parallel::map(&all, compared.jobs, |(machine, run)| simulate(machine, *run))?;
    let figures = figures.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let changes: Vec<Vec<comparison::Row>> =
        figures.chunks(runs.len()).map(|of_draw| compared.changes(of_draw)).collect();
    Ok(Some(changes[0].iter().map(|stated| row(stated, &changes[1..], &drawn)).collect()))
}

impl Compared<'_> {
    fn runs_of_each(&self) -> Vec<Run> {
        let mut all = Vec::new();
        for case in 0..self.cases.len() {
            for subject in 0..self.subjects.len() {
                all.extend((0..self.runs).map(|run| Run { case, subject, run }));
            }
        }
        all
    }

    /// Of all subjects but the first, under one draw: `figures` in the order of the runs.
    fn changes(&self, figures: &[Vec<Figure>]) -> Vec<comparison::Row> {
        let of_case = self.subjects.len() * self.runs as usize;
        let of_cases = self.cases.iter().zip(figures.chunks(of_case));
        let rows =
            of_cases.flat_map(|(case, figures)| comparison::rows(case, &self.series(figures)));
        rows.filter(|row| row.subject != self.subjects[0]).collect()
    }

    /// Of one case.
    fn series<'f>(&'f self, figures: &'f [Vec<Figure>]) -> Vec<Series<'f>> {
        let of_subjects = self.subjects.iter().zip(figures.chunks(self.runs as usize));
        of_subjects
            .map(|(subject, runs)| Series {
                subject,
                runs: runs.iter().map(Vec::as_slice).collect(),
            })
            .collect()
    }
}

/// A factor for each figure that is varied, in each draw.
fn draws_of(machine: &Machine, draws: u32, seed: u64) -> Vec<BTreeMap<String, f64>> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut drawn = vec![BTreeMap::new(); draws as usize];
    for figure in machine.cost_sources.keys() {
        let Some(bound) = cost_bound::of(machine, figure) else { continue };
        let mut strata: Vec<u32> = (0..draws).collect();
        strata.shuffle(&mut rng);
        for (factors, stratum) in drawn.iter_mut().zip(strata) {
            let at = (f64::from(stratum) + rng.random::<f64>()) / f64::from(draws);
            factors.insert(figure.clone(), bound.powf(2.0 * at - 1.0));
        }
    }
    drawn
}

fn row(
    stated: &comparison::Row,
    changes: &[Vec<comparison::Row>],
    drawn: &[BTreeMap<String, f64>],
) -> Row {
    let is_it = |row: &&comparison::Row| {
        (&row.case, &row.metric, &row.subject) == (&stated.case, &stated.metric, &stated.subject)
    };
    let change = |of_draw: &Vec<comparison::Row>| of_draw.iter().find(is_it)?.change_pct;
    let (mut pct, mut factors) = (Vec::new(), Vec::new());
    for (of_draw, drawn) in changes.iter().zip(drawn) {
        if let Some(change) = change(of_draw) {
            pct.push(change);
            factors.push(drawn);
        }
    }
    let sign = |pct: f64| pct.partial_cmp(&0.0);
    let held = |pct: &&f64| stated.change_pct.map(sign) == Some(sign(**pct));
    let followed = followed(&pct, &factors);
    Row {
        case: stated.case.clone(),
        metric: stated.metric.clone(),
        subject: stated.subject.clone(),
        change_pct: stated.change_pct,
        least_pct: pct.iter().copied().reduce(f64::min),
        most_pct: pct.iter().copied().reduce(f64::max),
        draws: pct.len(),
        sign_held: pct.iter().filter(held).count(),
        correlation: followed.as_ref().map(|(_, correlation)| *correlation),
        depends_on: followed.map(|(figure, _)| figure),
    }
}

/// In standard deviations of a rank correlation of nothing: chance exceeds it for one figure of a
/// thousand.
const BEYOND_CHANCE: f64 = 3.3;

/// The figure whose ranks go most with those of the changes, or against them.
fn followed(pct: &[f64], factors: &[&BTreeMap<String, f64>]) -> Option<(String, f64)> {
    let of_changes = ranks(pct);
    let correlation = |figure: &String| {
        let values: Vec<f64> = factors.iter().map(|of_draw| of_draw[figure]).collect();
        correlation(&of_changes, &ranks(&values))
    };
    let figures = factors.first()?.keys();
    let all = figures.filter_map(|figure| Some((figure.clone(), correlation(figure)?)));
    let most = all.max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()));
    let least = BEYOND_CHANCE / (pct.len() as f64 - 1.0).sqrt();
    most.filter(|(_, correlation)| correlation.abs() >= least)
}

/// From 0; equal values share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// `None` where one side is all the same.
fn correlation(one: &[f64], other: &[f64]) -> Option<f64> {
    let centre = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_one, mean_other) = (centre(one), centre(other));
    let (mut both, mut squares_one, mut squares_other) = (0.0, 0.0, 0.0);
    for (a, b) in one.iter().zip(other) {
        both += (a - mean_one) * (b - mean_other);
        squares_one += (a - mean_one).powi(2);
        squares_other += (b - mean_other).powi(2);
    }
    let correlation = both / (squares_one * squares_other).sqrt();
    correlation.is_finite().then_some(correlation)
}

/// The comparison, and what was found of its changes, if that was asked for.
pub fn render(
    comparison: &Comparison,
    format: Format,
    rows: Option<&[Row]>,
) -> anyhow::Result<String> {
    let Some(rows) = rows else { return report::render(comparison, format) };
    if format == Format::Json {
        return json::render(&WithUncertain {
            comparison: Posted::new(comparison),
            uncertain: rows,
        });
    }
    let mut text = report::render(comparison, format)?;
    text += "\nAs the costs vary that are not measured, within the bounds of their sources:\n\n";
    let axes = comparison.axes();
    for row in rows {
        let options = textwrap::Options::new(78).subsequent_indent("  ");
        text += &(textwrap::fill(&visible(&sentence(row, &axes)), options) + "\n");
    }
    Ok(text)
}

#[derive(Serialize)]
struct WithUncertain<'a> {
    #[serde(flatten)]
    comparison: Posted<'a>,
    uncertain: &'a [Row],
}

fn sentence(row: &Row, axes: &[Axis]) -> String {
    let Row { case, metric, draws, sign_held, .. } = row;
    let subject = label(axes, &row.subject);
    let pct = |pct: Option<f64>| pct.map_or("none".to_owned(), |pct| format!("{pct:+.1} %"));
    let (stated, least, most) = (pct(row.change_pct), pct(row.least_pct), pct(row.most_pct));
    let what: Vec<&str> = [case, metric, &subject]
        .into_iter()
        .map(String::as_str)
        .filter(|it| !it.is_empty())
        .collect();
    let follows = match (&row.depends_on, row.correlation) {
        (Some(figure), Some(correlation)) => {
            format!("follows {figure} most (rank correlation {correlation:+.2})")
        }
        _ => "follows no single cost".to_owned(),
    };
    let held = if row.change_pct == Some(0.0) { "unchanged" } else { "sign held" };
    format!(
        "- {}: {stated}; {least} to {most}; {held} in {sign_held} of {draws} draws; {follows}",
        what.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use placewise_sim::Better;

    use super::*;

    fn asked(draws: u32) -> Uncertain {
        Uncertain { draws: Some(draws) }
    }

    fn subject(policy: &str) -> Subject {
        let of = str::to_owned;
        Subject {
            policy: of(policy),
            machine: of("uma-8"),
            kernel: of("v6.0"),
            environment: of("none"),
        }
    }

    fn compared(machine: &Machine) -> Compared<'_> {
        Compared {
            machine,
            cases: vec!["groups=1"],
            subjects: ["baseline", "patched"].map(subject).to_vec(),
            runs: 2,
            seed: 1,
            jobs: Some(1),
        }
    }

    /// The patch pays where IPIs cost more than 90 % of what the machine file says, which two more
    /// figures disturb.
    fn decided_by_ipis(stated: &Machine, machine: &Machine, run: Run) -> Vec<Figure> {
        let (stated, costs) = (&stated.costs, &machine.costs);
        let patched =
            0.9 * stated.ipi_send_ns as f64 + (costs.timer_ns + costs.tick_ns) as f64 / 200.0;
        let time = if run.subject == 0 { costs.ipi_send_ns as f64 } else { patched };
        let noise = f64::from(run.run);
        vec![Figure {
            metric: "time".into(),
            value: 10_000.0 + time + noise,
            unit: "s",
            better: Some(Better::Lower),
        }]
    }

    #[test]
    fn the_cost_that_decides_the_sign_is_found() {
        let machine = placewise_machine::load("uma-8").unwrap();
        let simulate = |drawn: &Machine, run| Ok(decided_by_ipis(&machine, drawn, run));
        let rows = answer(&asked(64), &compared(&machine), simulate).unwrap().unwrap();
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!(row.depends_on.as_deref(), Some("ipi_send_ns"));
        assert!(row.correlation.unwrap() > 0.95, "{row:?}");
        // The factor is above 0.9 in somewhat more than half of a range of logarithms from 0.5 to 2.
        assert!((30..45).contains(&row.sign_held) && row.draws == 64, "{row:?}");
        assert!(row.least_pct < Some(0.0) && row.most_pct > row.change_pct, "{row:?}");
    }

    #[test]
    fn measured_costs_are_not_varied_and_nothing_follows_them() {
        let mut machine = placewise_machine::load("uma-8").unwrap();
        let source = "measured: by hand".to_owned();
        machine.cost_sources.insert("ipi_send_ns".to_owned(), source);
        let simulate = |drawn: &Machine, run: Run| {
            assert_eq!(drawn.costs.ipi_send_ns, machine.costs.ipi_send_ns);
            Ok(decided_by_ipis(&machine, drawn, run))
        };
        let rows = answer(&asked(32), &compared(&machine), simulate).unwrap().unwrap();
        assert_eq!(rows[0].sign_held, 32);
        assert_ne!(rows[0].depends_on.as_deref(), Some("ipi_send_ns"));
    }

    #[test]
    fn each_figure_takes_a_value_of_each_stratum_once() {
        let machine = placewise_machine::load("uma-8").unwrap();
        let drawn = draws_of(&machine, 16, 7);
        let mut strata: Vec<u32> = drawn
            .iter()
            .map(|factors| ((factors["wakeup_ns"].log2() + 1.0) / 2.0 * 16.0) as u32)
            .collect();
        strata.sort_unstable();
        assert_eq!(strata, (0..16).collect::<Vec<_>>());
        assert_eq!(drawn, draws_of(&machine, 16, 7), "the same bytes come out again");
    }

    #[test]
    fn a_rank_correlation_is_one_where_the_order_is_the_same() {
        let rising = ranks(&[1.0, 10.0, 100.0, 100.0]);
        assert_eq!(rising, [0.0, 1.0, 2.5, 2.5]);
        assert!((correlation(&rising, &rising).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(correlation(&rising, &[1.0; 4]), None);
    }
}
