//! `placewise machine measure`: what things cost on this host, and a machine file that says so.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use placewise_machine::{Machine, load, to_toml};
use placewise_measure::costs::with_measured_costs;
use placewise_measure::quantity::{Measurements, Sample};
use serde::Serialize;

use super::costs::costs_with_sources;
use crate::output_file::{self, OutputFile};
use crate::report::terminal::empty_bare_table;
use crate::report::{TableOrJson, json};

const EXAMPLE: &str = "\
Example:
  placewise machine measure -o mine.toml
  placewise machine show mine.toml --costs
  placewise compare --machine mine.toml --workload schedpipe --policy short-task

It needs no rights. What is not measured is borrowed from the nearest preset, and marked so.";

const COMMENT: &str = "\
Measured by `placewise machine measure`. Figures begin with `measured` where they were, and with
`assumed` where they are borrowed.";

/// Steps of the progress bar.
const STEPS: u64 = 1_000;

/// Measure what things cost on this host, in less than a minute
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct MeasureArgs {
    /// Machine file to write, for --machine
    #[arg(short, long, value_name = "FILE.toml")]
    output: Option<PathBuf>,

    /// The longest to measure; a quiet host takes less
    #[arg(long, default_value = "40", value_parser = clap::value_parser!(u16).range(1..=3600))]
    seconds: u16,

    /// How to print what was measured
    #[arg(long, value_enum, default_value_t = TableOrJson::Table)]
    format: TableOrJson,
}

pub fn run(args: &MeasureArgs) -> anyhow::Result<()> {
    let create = |path| OutputFile::create(path, output_file::FOR_ALL);
    let output = args.output.as_deref().map(create).transpose()?;
    let host = load("host")?;
    let measurements = measure(&host, args.seconds)?;
    let machine = with_measured_costs(host, &measurements, placewise_measure::hz());
    let text = match args.format {
        TableOrJson::Table => table(&measurements),
        TableOrJson::Json => in_json(&measurements, &machine)?,
    };
    if let Some(mut output) = output {
        output.write_all(to_toml(&machine, COMMENT).as_bytes())?;
        output.finish()?;
    }
    Ok(io::stdout().write_all(text.as_bytes())?)
}

fn measure(host: &Machine, seconds: u16) -> anyhow::Result<Measurements> {
    let style = ProgressStyle::with_template("{bar:40} {percent} %");
    let bar = ProgressBar::new(STEPS);
    bar.set_style(style.expect("the template is well formed"));
    let tell = |done: f64| bar.set_position((done * STEPS as f64) as u64);
    let limit = Duration::from_secs(seconds.into());
    let measured = placewise_measure::measure(host, limit, tell);
    bar.finish_and_clear();
    measured.context("cannot measure")
}

fn table(measurements: &Measurements) -> String {
    let mut table = empty_bare_table();
    table.set_header(["", "median", "quartiles", "", "batches"]);
    table.align_right([1, 2, 4]);
    for (quantity, sample) in measurements {
        let Sample { median, lower, upper, counted, batches, .. } = sample;
        table.add_row([
            quantity.to_string(),
            figure(*median),
            format!("{} to {}", figure(*lower), figure(*upper)),
            quantity.unit().to_owned(),
            format!("{counted} of {batches}"),
        ]);
    }
    let disturbed = measurements.values().filter(|sample| sample.disturbed).count();
    let busy = match disturbed {
        0 => String::new(),
        _ => format!(
            "\nThe host was busy: other tasks ran beside the quietest batches of {disturbed} of {}.\n",
            measurements.len()
        ),
    };
    table.trimmed() + "\n" + &busy
}

fn figure(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

#[derive(Serialize)]
struct Report {
    measurements: Vec<Row>,
    costs: serde_json::Map<String, serde_json::Value>,
}

#[derive(Serialize)]
struct Row {
    quantity: String,
    unit: &'static str,
    #[serde(flatten)]
    sample: Sample,
}

fn in_json(measurements: &Measurements, machine: &Machine) -> anyhow::Result<String> {
    let row = |(quantity, sample): (&placewise_measure::quantity::Quantity, &Sample)| Row {
        quantity: quantity.to_string(),
        unit: quantity.unit(),
        sample: *sample,
    };
    let measurements = measurements.iter().map(row).collect();
    json::render(&Report { measurements, costs: costs_with_sources(machine)? })
}
