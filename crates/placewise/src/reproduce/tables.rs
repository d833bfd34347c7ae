//! The score as tables for people.

use super::baselines::Factors;
use super::names::Names;
use super::predict::Row;
use super::score::{Experiment, Score, Scored, Series};
use super::verdict::Tally;
use crate::report::{Table, number};

/// Each with its heading.
pub fn of(score: &Score, empty: impl Fn() -> Table) -> [(&'static str, Table); 4] {
    [
        ("score", scores(score, empty())),
        ("series", series(&score.series, empty())),
        ("experiments", experiments(&score.experiments, empty())),
        ("baselines", baselines(score, empty())),
    ]
}

fn scores(score: &Score, mut table: Table) -> Table {
    table.set_header(["", "decisive", "sign right", "no sign", "nulls", "quiet"]);
    let row = |table: &mut Table, what: &str, tally: &Tally| {
        table.add_row([vec![what.to_owned()], counts(tally).to_vec()].concat());
    };
    row(&mut table, "all rows", &score.all);
    row(&mut table, "rows out of sample", &score.out_of_sample);
    row(&mut table, "rows in sample", &score.in_sample);
    let rate = |rate: Option<f64>| rate.map(percent).unwrap_or_default();
    let judged = |holds: fn(&Experiment) -> bool| {
        let decisive = score.experiments.iter().filter(|one| one.tally.decisive > 0);
        decisive.filter(|one| holds(one)).count().to_string()
    };
    for (what, experiments, right) in [
        ("experiments, each once", judged(|_| true), rate(score.experiments_rate)),
        (
            "experiments out of sample, each once",
            judged(|one| one.decisive_in_sample == 0),
            rate(score.experiments_out_of_sample_rate),
        ),
    ] {
        let cells = [what.to_owned(), experiments, right];
        table.add_row(cells.into_iter().chain([const { String::new() }; 3]));
    }
    row(&mut table, "all rows, by: no change", &score.no_change);
    let elsewhere = &score.nearest_case;
    row(&mut table, "rows with a case on another machine, by: its change", &elsewhere.published);
    row(&mut table, "the same rows, by Placewise", &elsewhere.predicted);
    let ceiling = score.ceiling;
    let part = part(ceiling.same_sign, Some(ceiling.same_sign as f64 / ceiling.rows as f64));
    let what = "ceiling: rows published twice, with the same sign".to_owned();
    let cells = [what, ceiling.rows.to_string(), part];
    table.add_row(cells.into_iter().chain([const { String::new() }; 3]));
    table.figures_from(1);
    table
}

/// Decisive rows, how many of them are right and how many without a sign, nulls, how many of them are quiet.
fn counts(tally: &Tally) -> [String; 5] {
    [
        tally.decisive.to_string(),
        part(tally.decisive_right, tally.decisive_rate),
        tally.decisive_unsigned.to_string(),
        tally.null_real.to_string(),
        part(tally.null_real_quiet, tally.null_real_rate),
    ]
}

fn part(part: usize, rate: Option<f64>) -> String {
    rate.map(|rate| format!("{part} ({})", percent(rate))).unwrap_or_default()
}

fn percent(rate: f64) -> String {
    format!("{:.0} %", 100.0 * rate)
}

fn series(series: &[Series], mut table: Table) -> Table {
    table.set_header([
        "series",
        "experiments",
        "right, each once",
        "decisive",
        "sign right",
        "no sign",
        "nulls",
        "quiet",
    ]);
    for one in series {
        let rate = one.experiments_rate.map(percent).unwrap_or_default();
        let names = vec![one.series.clone(), one.experiments.to_string(), rate];
        table.add_row([names, counts(&one.tally).to_vec()].concat());
    }
    table.figures_from(1);
    table
}

fn experiments(experiments: &[Experiment], mut table: Table) -> Table {
    table.set_header([
        "series",
        "machine",
        "workload",
        "policy",
        "decisive",
        "sign right",
        "no sign",
        "nulls",
        "quiet",
        "in sample",
    ]);
    for one in experiments {
        let names = [&one.series, &one.machine, &one.workload, &one.policy].map(String::clone);
        let in_sample = match one.decisive_in_sample {
            0 => String::new(),
            rows => rows.to_string(),
        };
        table.add_row([names.to_vec(), counts(&one.tally).to_vec(), vec![in_sample]].concat());
    }
    table.figures_from(4);
    table
}

fn baselines(score: &Score, mut table: Table) -> Table {
    table.set_header([
        "workload",
        "machine",
        "figure",
        "rows",
        "in sample",
        "within 1.5",
        "median factor",
        "worst",
        "shape: rows",
        "within 1.5",
        "median factor",
        "worst",
    ]);
    let line = |names: [String; 3], in_sample: usize, value: Option<Factors>| {
        let [rows, near, median, worst] = factors(value);
        [names.to_vec(), vec![rows, in_sample.to_string(), near, median, worst]].concat()
    };
    let in_sample = score.baselines.iter().map(|one| one.in_sample).sum();
    let all = ["all".to_owned(), String::new(), String::new()];
    table
        .add_row([line(all, in_sample, score.baselines_together), factors(None).to_vec()].concat());
    for one in &score.baselines {
        let names = [one.workload.clone(), one.machine.clone(), one.quantity.to_owned()];
        let value = line(names, one.in_sample, one.value);
        table.add_row([value, factors(one.shape).to_vec()].concat());
    }
    table.figures_from(3);
    table
}

fn factors(factors: Option<Factors>) -> [String; 4] {
    let Some(Factors { rows, near, median, worst }) = factors else { return Default::default() };
    [
        rows.to_string(),
        part(near, Some(near as f64 / rows as f64)),
        format!("{median:.2}"),
        format!("{worst:.2}"),
    ]
}

/// Rows whose runs settled in different states.
pub fn states(rows: &[Scored]) -> Vec<String> {
    let told = |one: &Scored| {
        let Row { published, states, .. } = &one.row;
        // Of normalised figures the states are in the unit of the simulator.
        let unit = if published.is_normalized() { "" } else { published.unit_written() };
        let figure = |value: f64| format!("{} {unit}", number::figure(value)).trim_end().to_owned();
        let states = (*states)?.told(figure);
        let Names { machine, workload, case, metric, policy, .. } = &published.ran_as;
        Some(format!("{machine}, {workload} {case}, {metric} under {policy}: {states}"))
    };
    rows.iter().filter(|one| !one.is_repeated).filter_map(told).collect()
}

pub fn capitalised(heading: &str) -> String {
    let mut letters = heading.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}
