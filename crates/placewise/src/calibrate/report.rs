//! What a calibration has found, for people and for programs.

use std::collections::BTreeMap;

use placewise_machine::Machine;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::effects::Effect;
use super::figures::{Factors, Figure};
use super::objective::group;
use super::predictor::Predictions;
use super::rows::{self, LeftOut, Table};
use super::told_apart::Told;
use crate::cost_bound;
use crate::machine_readable::{nine_digits, round_to_nine_digits};
use crate::report::foreign::visible;
use crate::report::grouped;
use crate::report::number::three_digits;
use crate::report::terminal::{empty_bare_table, fitting, lines};
use crate::reproduce::baselines::{Factors as Off, factor};
use crate::reproduce::names::Names;
use crate::reproduce::study::Published;

#[derive(Serialize)]
pub struct Report {
    pub machine: String,
    pub costs_of: String,
    pub runs: u32,
    pub seed: u64,
    /// How many costs were simulated.
    pub evaluations: usize,
    /// The tables, and how many rows of each were fitted to.
    pub on: Vec<Table>,
    pub left_out: Vec<Rows>,
    pub figures: Vec<Calibrated>,
    /// Of the figures that were fitted.
    #[serde(skip)]
    pub factors: Factors,
    pub objective: BeforeAfter,
    pub fits: Vec<Fit>,
    pub rows: Vec<Row>,
    /// What `studies/provenance.toml` is to say, for the rows were in view; `None` if nothing was fitted.
    pub provenance: Option<String>,
}

/// Rows that were left out.
#[derive(Serialize)]
pub struct Rows {
    file: String,
    reason: String,
    rows: usize,
}

#[derive(Serialize)]
pub struct Calibrated {
    figure: String,
    source: String,
    told: Fate,
    /// What it cannot be told apart from.
    like: Option<String>,
    effect_pct: f64,
    factor: f64,
    least_factor: f64,
    most_factor: f64,
    before: Value,
    after: Value,
    /// As a machine file has them.
    #[serde(skip)]
    texts: [String; 2],
}

/// What became of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
enum Fate {
    #[serde(rename = "fitted")]
    Fitted,
    #[serde(rename = "without effect")]
    WithoutEffect,
    #[serde(rename = "not told apart")]
    NotToldApart,
}

#[derive(Serialize)]
pub struct BeforeAfter {
    #[serde(serialize_with = "rounded")]
    pub before: f64,
    #[serde(serialize_with = "rounded")]
    pub after: f64,
}

fn rounded<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    round_to_nine_digits(*value).serialize(serializer)
}

/// By how much predictions are off.
#[derive(Serialize)]
pub struct Fit {
    workload: String,
    quantity: &'static str,
    before: Option<Off>,
    after: Option<Off>,
}

#[derive(Serialize)]
pub struct Row {
    file: String,
    line: usize,
    kernel: String,
    workload: String,
    case: String,
    metric: String,
    value: Option<f64>,
    unit: String,
    #[serde(serialize_with = "nine_digits")]
    before: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    after: Option<f64>,
    #[serde(skip)]
    published: Published,
}

pub fn left_out(left_out: &[LeftOut]) -> Vec<Rows> {
    let groups = grouped(left_out, |one| (&one.file, &one.reason));
    let rows = |group: &Vec<&LeftOut>| {
        let LeftOut { file, reason } = group[0];
        Rows { file: file.clone(), reason: reason.clone(), rows: group.len() }
    };
    groups.iter().map(rows).collect()
}

/// The figures with what they were and what they are `with` the factors found.
pub fn figures(
    machine: &Machine,
    figures: &[Figure],
    effects: &[Effect],
    with: &Factors,
) -> anyhow::Result<Vec<Calibrated>> {
    let after = Machine { costs: machine.costs.scaled(with), ..machine.clone() };
    let values = [machine, &after].map(|machine| serde_json::to_value(&machine.costs));
    let [before_values, after_values] = values;
    let (before_values, after_values) = (before_values?, after_values?);
    let texts = [machine, &after].map(|machine| {
        let figures = machine.cost_figures().into_iter();
        figures.map(|figure| (figure.name, figure.value)).collect::<BTreeMap<_, _>>()
    });
    let calibrated = |(figure, effect): (&Figure, &Effect)| {
        let Figure { name, bound } = figure;
        let like = |other: usize| figures[other].name.clone();
        Calibrated {
            figure: name.clone(),
            source: machine.cost_sources[name].clone(),
            told: match effect.told {
                Told::Apart => Fate::Fitted,
                Told::WithoutEffect => Fate::WithoutEffect,
                Told::Like(_) => Fate::NotToldApart,
            },
            like: if let Told::Like(other) = effect.told { Some(like(other)) } else { None },
            effect_pct: round_to_nine_digits(effect.pct),
            factor: round_to_nine_digits(with.get(name).copied().unwrap_or(1.0)),
            least_factor: round_to_nine_digits(1.0 / bound),
            most_factor: *bound,
            before: before_values[name].clone(),
            after: after_values[name].clone(),
            texts: [&texts[0], &texts[1]].map(|of| of[name].clone()),
        }
    };
    Ok(figures.iter().zip(effects).map(calibrated).collect())
}

pub fn rows<'a>(
    published: impl Iterator<Item = &'a Published>,
    before: &Predictions,
    after: &Predictions,
) -> Vec<Row> {
    let row = |((published, before), after): ((&Published, &Option<_>), &Option<_>)| {
        let value =
            |prediction: &Option<super::predictor::Prediction>| prediction.map(|it| it.value);
        Row {
            file: published.file.clone(),
            line: published.line,
            kernel: published.ran_as.kernel.clone(),
            workload: published.ran_as.workload.clone(),
            case: published.ran_as.case.clone(),
            metric: published.ran_as.metric.clone(),
            value: published.value,
            unit: published.unit_written().to_owned(),
            before: value(before),
            after: value(after),
            published: published.clone(),
        }
    };
    published.zip(before).zip(after).map(row).collect()
}

pub fn fits(rows: &[Row]) -> Vec<Fit> {
    let groups = grouped(rows, |row| group(&row.published));
    groups.iter().map(|rows| fit(rows)).collect()
}

fn fit(rows: &[&Row]) -> Fit {
    let (workload, quantity) = group(&rows[0].published);
    let off = |predicted: fn(&Row) -> Option<f64>| {
        let of_row = |row: &&Row| Some(factor([row.value?, predicted(row)?]));
        Off::of(&rows.iter().filter_map(of_row).collect::<Vec<_>>())
    };
    let (before, after) = (off(|row| row.before), off(|row| row.after));
    Fit { workload: workload.to_owned(), quantity, before, after }
}

/// The entry of `studies/provenance.toml`; `place` is where the figures stand.
pub fn provenance(figures: &[Calibrated], rows: &[Row], place: &str) -> Option<String> {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let fitted = figures.iter().filter(|figure| figure.is_fitted());
    let names: Vec<&str> = fitted.map(|figure| figure.figure.as_str()).collect();
    let in_view = grouped(rows, |Row { published, .. }| {
        let Names { machine, workload, metric, .. } = &published.ran_as;
        [&published.series, machine, workload, metric]
    });
    let in_view = in_view.iter().map(|rows| {
        let Published { series, ran_as, .. } = &rows[0].published;
        let Names { machine, workload, metric, .. } = ran_as;
        let series = match series.as_str() {
            "" => String::new(),
            series => format!("series = {}, ", quoted(series)),
        };
        format!(
            "    {{ {series}machine = {}, workload = {}, policy = \"baseline\", metric = {} }},\n",
            quoted(machine),
            quoted(workload),
            quoted(metric)
        )
    });
    (!names.is_empty()).then(|| format!(
        "[[choice]]\nwhat = {}\nplace = {}\nwhy = \"calibrated: fitted by `placewise calibrate`\"\n\
         in_view = [\n{}]\n",
        quoted(&names.join(", ")),
        quoted(place),
        in_view.collect::<String>()
    ))
}

/// What the source of a fitted figure says.
pub fn source(figure: &Calibrated, on: &[Table]) -> String {
    let table = |Table { file, rows }: &Table| format!("{file} ({})", count(*rows, "row"));
    let tables: Vec<String> = on.iter().map(table).collect();
    let Calibrated { most_factor, texts: [before, _], .. } = figure;
    format!("calibrated: on {}, within a factor of {most_factor} of {before}", tables.join(", "))
}

impl Calibrated {
    pub fn name(&self) -> &str {
        &self.figure
    }

    pub fn is_fitted(&self) -> bool {
        self.told == Fate::Fitted
    }
}

pub fn terminal(report: &Report) -> String {
    let Report { machine, costs_of, runs, seed, evaluations, .. } = report;
    let rows = count(report.rows.len(), "baseline row");
    let last = seed + u64::from(*runs) - 1;
    let head = format!(
        "{machine}, costs {costs_of}: fitted to {rows}, {runs} runs of each with seeds {seed} to \
         {last}; {evaluations} sets of costs simulated"
    );
    let mut text = wrapped(&head);
    text += &format!("\nfigures\n{}\n", figure_table(&report.figures));
    text += &format!("\nfactor between predicted and published\n{}\n", fit_table(&report.fits));
    let untold: String = report.figures.iter().filter_map(untold).map(|it| wrapped(&it)).collect();
    if !untold.is_empty() {
        text += &format!("\nwhat the rows cannot tell\n{untold}");
    }
    let reasons = grouped(&report.left_out, |one| &one.reason);
    if !reasons.is_empty() {
        text += "\nrows left out\n";
    }
    for of_reason in reasons {
        let rows = of_reason.iter().map(|one| one.rows).sum::<usize>();
        text += &wrapped(&format!("- {rows} {}", of_reason[0].reason));
    }
    if let Some(entry) = &report.provenance {
        text += "\nto add to studies/provenance.toml where the figures are taken over\n";
        text += entry;
    }
    text
}

fn wrapped(line: &str) -> String {
    textwrap::fill(&visible(line), lines().subsequent_indent("  ")) + "\n"
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn figure_table(figures: &[Calibrated]) -> String {
    let mut table = empty_bare_table();
    table.set_header(["figure", "source", "effect", "within", "factor", "before", "after"]);
    table.align_right([2, 3, 4, 5, 6]);
    for figure in figures {
        let [before, after] = figure.texts.clone();
        table.add_row([
            figure.figure.clone(),
            cost_bound::word(&figure.source).to_owned(),
            format!("{} %", three_digits(figure.effect_pct)),
            format!("{:.2} to {:.2}", figure.least_factor, figure.most_factor),
            if figure.is_fitted() { format!("{:.2}", figure.factor) } else { "left".to_owned() },
            before,
            if figure.is_fitted() { after } else { String::new() },
        ]);
    }
    fitting(table).trimmed()
}

fn fit_table(fits: &[Fit]) -> String {
    let mut table = empty_bare_table();
    table.set_header(["", "rows", "median before", "after", "worst before", "after"]);
    table.align_right([1, 2, 3, 4, 5]);
    let text = |off: Option<Off>, of: fn(Off) -> f64| {
        off.map_or_else(String::new, |off| format!("{:.2}", of(off)))
    };
    for Fit { workload, quantity, before, after } in fits {
        table.add_row([
            format!("{workload}, {quantity}"),
            before.map_or(0, |off| off.rows).to_string(),
            text(*before, |off| off.median),
            text(*after, |off| off.median),
            text(*before, |off| off.worst),
            text(*after, |off| off.worst),
        ]);
    }
    table.trimmed()
}

/// Of a figure that is left as it is.
fn untold(figure: &Calibrated) -> Option<String> {
    let Calibrated { figure: name, texts: [value, _], least_factor, most_factor, .. } = figure;
    match (&figure.like, figure.is_fitted()) {
        (_, true) => None,
        (Some(like), _) => Some(format!(
            "- {name}: what it does, {like} does as well, alone or with others; left at {value}"
        )),
        (None, _) => Some(format!(
            "- {name}: from {least_factor:.2} to {most_factor:.2} times it moves the predictions by no \
             more than noise; left at {value}"
        )),
    }
}

/// The tables of the rows.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    rows::tables(rows.iter().map(|row| &row.published))
}
