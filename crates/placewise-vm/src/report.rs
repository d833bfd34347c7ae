//! Predictions of interventions and their score: tables for people, JSON and CSV for programs, and the
//! page docs/interventions.md.

use std::collections::BTreeSet;
use std::io;

use anyhow::Context;
use comfy_table::{CellAlignment, Table, TableStyle, presets};
use serde::Serialize;

use crate::prediction::{Case, Predictions, Unpredicted};
use crate::score::{self, Effect, Part, Score, Verdict};
use crate::summary::{Load, Spread};

const PAGE: &str = include_str!("page.md");

/// Rows of a list of misses.
const WORST: usize = 20;

pub struct Report<'a> {
    predictions: &'a Predictions,
    cases: Vec<&'a Case>,
    effects: Vec<Effect<'a>>,
    /// Of replicates for each other.
    repeated: Score,
    /// Of the simulator.
    runs: u64,
}

/// The score of some of the cases.
#[derive(Serialize)]
struct Row {
    of: String,
    score: Score,
}

impl<'a> Report<'a> {
    pub fn new(predictions: &'a Predictions, by_replicates: &Predictions, runs: u64) -> Self {
        let cases: Vec<&Case> = predictions.cases.iter().collect();
        let effects = score::effects(&cases);
        let repeated = {
            let cases: Vec<&Case> = by_replicates.cases.iter().collect();
            let effects = score::effects(&cases);
            Score::of(&cases, &effects.iter().collect::<Vec<_>>(), |case| !case.knob.is_empty())
        };
        Self { predictions, cases, effects, repeated, runs }
    }

    pub fn terminal(&self) -> String {
        self.sections(presets::NOTHING, |heading| format!("{heading}\n\n"))
    }

    pub fn page(&self) -> String {
        let runs = self.runs.to_string();
        let sections =
            self.sections(presets::ASCII_MARKDOWN, |heading| format!("## {heading}\n\n"));
        PAGE.replace("RUNS", &runs) + "\n" + &sections
    }

    fn sections(&self, style: TableStyle, heading: impl Fn(&str) -> String) -> String {
        let sections = [
            ("Score", scores([self.all(), self.repeated(), self.baselines()])),
            ("Worst effects", self.worst_effects()),
            ("Worst levels without a knob", self.worst_levels()),
            ("Effects by figure", scores(self.by_figure())),
            ("By load", scores(self.by(|case| told_load(&case.load)))),
            ("By knob", scores(self.by(|case| told_knob(&case.knob)))),
            ("Not predicted", self.unpredicted()),
        ];
        let told = sections.map(|(title, mut table)| {
            table.load_style(style).force_no_tty();
            heading(title) + &table.trim_fmt() + "\n"
        });
        told.join("\n")
    }

    fn score(&self, of: String, holds: impl Fn(&Case) -> bool) -> Row {
        let effects: Vec<&Effect> = self.effects.iter().filter(|it| holds(it.case)).collect();
        let score = Score::of(&self.cases, &effects, |case| !case.knob.is_empty() && holds(case));
        Row { of, score }
    }

    fn all(&self) -> Row {
        self.score("all pairs of a load and a knob".to_owned(), |_| true)
    }

    fn repeated(&self) -> Row {
        Row {
            of: "replicates 1, 3, 5, had 2 and 4 predicted them".to_owned(),
            score: self.repeated,
        }
    }

    fn baselines(&self) -> Row {
        let score = Score::of(&self.cases, &[], |case| case.knob.is_empty());
        Row { of: "loads without a knob".to_owned(), score }
    }

    fn by(&self, key: impl Fn(&Case) -> String) -> Vec<Row> {
        let turned = self.cases.iter().filter(|case| !case.knob.is_empty());
        let keys: BTreeSet<String> = turned.map(|case| key(case)).collect();
        keys.into_iter().map(|of| self.score(of.clone(), |case| key(case) == of)).collect()
    }

    fn by_figure(&self) -> Vec<Row> {
        let figures: BTreeSet<&str> = self.effects.iter().map(|effect| effect.figure).collect();
        let row = |figure: &str| {
            let of = self.effects.iter().filter(|effect| effect.figure == figure);
            let score = Score::of(&[], &of.collect::<Vec<_>>(), |_| false);
            Row { of: figure.to_owned(), score }
        };
        figures.into_iter().map(row).collect()
    }

    /// The largest effects that are not predicted.
    fn worst_effects(&self) -> Table {
        let missed = self.effects.iter().filter(|effect| effect.verdict != Verdict::Right);
        let mut missed: Vec<&Effect> = missed.collect();
        missed.sort_by(|one, other| other.size().total_cmp(&one.size()));
        let mut table = table(&["load", "knob", "figure", "recorded", "predicted"]);
        for effect in missed.into_iter().take(WORST) {
            let Effect { case, figure, before, after, .. } = effect;
            let told = |before: Spread, after: Spread, change: Option<f64>| {
                let change = change.map(told_change).unwrap_or_default();
                format!("{} to {}{change}", number(before.median), number(after.median))
            };
            table.add_row([
                told_load(&case.load),
                told_knob(&case.knob),
                figure.to_string(),
                told(before.recorded, after.recorded, Some(effect.recorded())),
                told(before.predicted, after.predicted, effect.predicted()),
            ]);
        }
        table
    }

    /// The figures that are furthest from what was recorded.
    fn worst_levels(&self) -> Table {
        let baselines = self.cases.iter().filter(|case| case.knob.is_empty());
        let figures = ["sleeps", "preemptions", "migrations", "wakeups", "pulls"];
        let figures = figures.map(|figure| format!("{figure}_per_message"));
        let levels = baselines.flat_map(|case| {
            let of = |figure: &String| {
                let (name, compared) = case.figures.get_key_value(figure.as_str())?;
                Some((score::factor(case, figure)?, *name, *case, *compared))
            };
            figures.iter().filter_map(of).collect::<Vec<_>>()
        });
        let mut levels: Vec<_> = levels.filter(|(factor, ..)| *factor > 1.0).collect();
        levels.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut table = table(&["load", "figure", "recorded", "range", "predicted", "factor"]);
        for (factor, figure, case, compared) in levels.into_iter().take(WORST) {
            let Spread { median, min, max } = compared.recorded;
            table.add_row([
                told_load(&case.load),
                figure.to_owned(),
                number(median),
                format!("{} to {}", number(min), number(max)),
                number(compared.predicted.median),
                if factor.is_finite() { number(factor) } else { String::new() },
            ]);
        }
        table
    }

    fn unpredicted(&self) -> Table {
        let mut table = table(&["load", "knobs", "why"]);
        let unpredicted = &self.predictions.unpredicted;
        let loads: BTreeSet<(&Load, &str)> =
            unpredicted.iter().map(|it| (&it.load, it.why.as_str())).collect();
        for (load, why) in loads {
            let of = unpredicted.iter().filter(|it| (&it.load, it.why.as_str()) == (load, why));
            table.add_row([told_load(load), of.count().to_string(), why.to_owned()]);
        }
        table
    }

    pub fn json(&self) -> anyhow::Result<String> {
        #[derive(Serialize)]
        struct Json<'a> {
            runs: u64,
            score: Score,
            repeated: Score,
            without_knobs: Score,
            by_figure: Vec<Row>,
            by_load: Vec<Row>,
            by_knob: Vec<Row>,
            cases: &'a [Case],
            unpredicted: &'a [Unpredicted],
        }
        let json = Json {
            runs: self.runs,
            score: self.all().score,
            repeated: self.repeated,
            without_knobs: self.baselines().score,
            by_figure: self.by_figure(),
            by_load: self.by(|case| told_load(&case.load)),
            by_knob: self.by(|case| told_knob(&case.knob)),
            cases: &self.predictions.cases,
            unpredicted: &self.predictions.unpredicted,
        };
        Ok(serde_json::to_string_pretty(&json)? + "\n")
    }

    /// A line for each figure of each load with each knob.
    pub fn csv(&self) -> anyhow::Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let heading = ["batch", "machine", "kernel", "workload", "case", "knob", "figure"];
        let numbers = ["median", "min", "max"];
        let of = |whose| numbers.map(|number| format!("{whose}_{number}"));
        let heading = heading.map(str::to_owned).into_iter();
        writer.write_record(heading.chain(of("recorded")).chain(of("predicted")))?;
        for case in &self.cases {
            for (figure, compared) in &case.figures {
                let [machine, kernel, workload, name] = &case.load;
                let words = [&case.batch, machine, kernel, workload, name, &case.knob];
                let words = words.into_iter().cloned().chain([figure.to_string()]);
                let numbers = [compared.recorded, compared.predicted].into_iter();
                let numbers = numbers.flat_map(|it| [it.median, it.min, it.max].map(number));
                writer.write_record(words.chain(numbers))?;
            }
        }
        let bytes = writer.into_inner().map_err(io::Error::other)?;
        String::from_utf8(bytes).context("the rows are text")
    }
}

fn table(heading: &[&str]) -> Table {
    let mut table = Table::new();
    table.set_header(heading);
    table
}

fn scores(rows: impl IntoIterator<Item = Row>) -> Table {
    let mut table = table(&[
        "",
        "effects",
        "right sign",
        "no sign",
        "pairs",
        "distances",
        "sleeps",
        "preemptions",
        "migrations",
        "all levels",
    ]);
    table.column_iter_mut().skip(1).for_each(|it| it.set_cell_alignment(CellAlignment::Right));
    for Row { of, score } in rows {
        let part = |part: Part| {
            part.percent().map_or(String::new(), |pct| format!("{} ({pct:.0} %)", part.hold))
        };
        let count =
            |count: usize, of: usize| if of > 0 { count.to_string() } else { String::new() };
        table.add_row([
            of,
            count(score.signs.of, score.signs.of),
            part(score.signs),
            count(score.no_sign, score.signs.of),
            count(score.levels.of, score.levels.of),
            part(score.distances),
            part(score.sleeps),
            part(score.preemptions),
            part(score.migrations),
            part(score.levels),
        ]);
    }
    table
}

/// Without what says how long it is measured.
fn told_load([machine, kernel, workload, case]: &Load) -> String {
    let settings = case.split(';').filter(|it| {
        !it.starts_with("warmup_ms") && !it.starts_with("window_ms") && !it.is_empty()
    });
    let settings: Vec<&str> = settings.collect();
    format!("{workload} {}, {machine}, {kernel}", settings.join(" "))
}

fn told_knob(knob: &str) -> String {
    knob.replace(';', " ")
}

fn told_change(change: f64) -> String {
    if change.is_finite() { format!(" ({:+.0} %)", 100.0 * change) } else { String::new() }
}

/// Three digits.
fn number(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let digits = (2 - number.abs().log10().floor() as i32).clamp(0, 9);
    format!("{number:.*}", digits as usize)
}
