//! `placewise machine measure`: what things cost on this host, and a machine file that says so.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use placewise_machine::{Machine, load, to_toml};
use placewise_measure::costs::with_measured_costs;
use placewise_measure::quantity::{Measurements, Sample};
use placewise_policy::instructions::Instructions;
use placewise_policy::kernel::profile;
use placewise_policy::{MEASURED_6_18, MeasuredKernel, kernel_for_release, running_release};
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
    let measured = with_measured_costs(host, &measurements, placewise_measure::hz());
    let machine = told_of_6_18(measured, running_kernel());
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

/// Which kernel's instructions the running one executes.
fn running_kernel() -> MeasuredKernel {
    let kernel = kernel_for_release(&running_release()).and_then(profile);
    kernel.map_or(MEASURED_6_18, |kernel| kernel.measured)
}

/// Machine files have what messages and the scheduler's work take under Linux 6.18.
fn told_of_6_18(mut machine: Machine, kernel: MeasuredKernel) -> Machine {
    let kernels = [kernel, MEASURED_6_18].map(Instructions::of);
    let mut factors = BTreeMap::new();
    let sources = machine.cost_sources.iter_mut();
    for (name, source) in sources.filter(|(_, source)| source.starts_with("measured")) {
        if let [Some(here), Some(there)] = kernels.map(|it| it.of_figure(name))
            && here != there
        {
            let by = format!(", by the {there} instructions of Linux 6.18 for the {here} here");
            source.push_str(&by);
            factors.insert(name.clone(), there as f64 / here as f64);
        }
    }
    machine.costs = machine.costs.scaled(&factors);
    machine
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

#[cfg(test)]
mod tests {
    use placewise_policy::MEASURED_5_10;

    use super::*;

    /// By hand: 1,670 instructions of a pipe's calls under 6.1 for 1,348 under 6.18, 4,618 of a socket's for 3,930, 1,275
    /// of a wakeup for 1,524, and 4,427 of switches for 5,554.
    #[test]
    fn what_was_measured_under_another_kernel_is_told_of_linux_6_18() {
        let mut machine = load("uma-8").unwrap();
        (machine.costs.pipe_message_ns, machine.costs.socket_message_ns) = (1_670, 4_618);
        (machine.costs.wakeup_ns, machine.costs.sleep_ns) = (1_275, 670);
        let source = |source: &str| source.to_owned();
        machine.cost_sources.insert("pipe_message_ns".to_owned(), source("measured: a pipe"));
        machine.cost_sources.insert("socket_message_ns".to_owned(), source("assumed: a socket"));
        for name in ["wakeup_ns", "sleep_ns"] {
            machine.cost_sources.insert(name.to_owned(), source("measured: many tasks"));
        }
        let told = told_of_6_18(machine.clone(), MEASURED_5_10);
        assert_eq!((told.costs.pipe_message_ns, told.costs.socket_message_ns), (1_348, 4_618));
        assert_eq!((told.costs.wakeup_ns, told.costs.sleep_ns), (1_524, 480));
        assert!(told.cost_sources["pipe_message_ns"].contains("1348 instructions"));
        let as_it_was = told_of_6_18(machine, MEASURED_6_18);
        assert_eq!(as_it_was.costs.pipe_message_ns, 1_670);
        assert_eq!(as_it_was.cost_sources["pipe_message_ns"], "measured: a pipe");
    }
}
