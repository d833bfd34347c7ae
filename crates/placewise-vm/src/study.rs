//! Recorded rows as a study, which `placewise reproduce` predicts: the loads without any knob, by the
//! names that the simulator has for figures. Each figure is the median of the replicates.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use anyhow::Context;
use placewise_sim::COLUMNS;

use crate::machine::Machine;
use crate::summary::{Load, Spread};

struct Metric {
    name: &'static str,
    unit: &'static str,
    /// Of which workload, or of all.
    workload: Option<&'static str>,
    figure: &'static str,
    per: Per,
}

/// What the recorded count is divided by.
#[derive(Clone, Copy)]
enum Per {
    Billion,
    Thousand,
    Cpu,
    /// It is a rate: a count by the time that the run took.
    Second,
}

const fn of(
    workload: &'static str,
    name: &'static str,
    unit: &'static str,
    figure: &'static str,
    per: Per,
) -> Metric {
    Metric { name, unit, workload: Some(workload), figure, per }
}

/// The simulator has these as means of all CPUs.
const fn counter(name: &'static str, figure: &'static str) -> Metric {
    Metric { name, unit: "count", workload: None, figure, per: Per::Cpu }
}

const METRICS: [Metric; 9] = [
    of("hackbench", "time", "s", "ns", Per::Billion),
    of("context_switch1", "throughput", "iterations/s", "messages", Per::Second),
    of("netperf", "throughput", "transactions/s", "messages", Per::Second),
    of("schbench", "p50_wakeup_latency", "us", "latency_p50_ns", Per::Thousand),
    of("schbench", "p99_wakeup_latency", "us", "latency_p99_ns", Per::Thousand),
    counter("schedstat_schedule_called", "schedules"),
    counter("schedstat_schedule_left_the_processor_idle", "idle_entries"),
    counter("schedstat_try_to_wake_up_was_called", "wakeups"),
    counter("schedstat_try_to_wake_up_was_called_to_wake_up_the_local_cpu", "wakeups_same_cpu"),
];

/// Writes the study of the rows in `path`; machines are named by their files in `directory`.
pub fn write(
    path: &Path,
    directory: &Path,
    machines: &BTreeMap<String, Machine>,
    to: impl io::Write,
) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record(COLUMNS)?;
    for ((load, metric), values) in read(path, machines)? {
        let metric = &METRICS[metric];
        let Some(spread) = Spread::of(&values) else { continue };
        let [machine, kernel, workload, case] = &load;
        let machine = directory.join(format!("{machine}.toml")).display().to_string();
        let value = spread.median.to_string();
        writer.write_record([
            "interventions",
            &machine,
            kernel,
            workload,
            case,
            metric.name,
            "baseline",
            &value,
            metric.unit,
            "",
            "",
            "",
        ])?;
    }
    writer.flush().context("standard output")
}

/// Of each load and metric, by its place, the values of all replicates.
fn read(
    path: &Path,
    machines: &BTreeMap<String, Machine>,
) -> anyhow::Result<BTreeMap<(Load, usize), Vec<f64>>> {
    let mut all = BTreeMap::<_, Vec<f64>>::new();
    let named = || path.display().to_string();
    for row in csv::Reader::from_path(path).with_context(named)?.deserialize() {
        let row: BTreeMap<String, String> = row.with_context(named)?;
        let column = |name: &str| row.get(name).cloned().with_context(|| format!("no {name}"));
        if !column("knob")?.is_empty() {
            continue;
        }
        let load: Load =
            [column("machine")?, column("kernel")?, column("workload")?, column("case")?];
        let cpus =
            machines.get(&load[0]).with_context(|| format!("no machine {}", load[0]))?.cpus();
        for (place, metric) in METRICS.iter().enumerate() {
            if metric.workload.is_some_and(|workload| workload != load[2]) {
                continue;
            }
            let Ok(count) = column(metric.figure)?.parse::<f64>() else { continue };
            let value = match metric.per {
                Per::Billion => count / 1e9,
                Per::Thousand => count / 1e3,
                Per::Cpu => count / f64::from(cpus),
                Per::Second => count / column("ns")?.parse::<f64>()? * 1e9,
            };
            all.entry((load.clone(), place)).or_default().push(value);
        }
    }
    Ok(all)
}
