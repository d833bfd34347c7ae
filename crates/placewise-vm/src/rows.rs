//! What interventions are recorded as: a CSV file with a row per run. What was run is in the columns up
//! to `place`, in words that `placewise` takes; the counts after them are of the whole run.
//!
//! The file only grows, a boot at a time; what it has is not run again.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::boot::Run as Left;
use crate::figures::Figure;
use crate::intervention::{Boot, Run};

/// What a run was: `kernel` as `placewise compare --kernel` has it, `release` as `uname -rv` says it,
/// `place` in the order of the boot.
const WHAT: &[&str] =
    &["machine", "kernel", "release", "workload", "case", "knob", "replicate", "place"];

/// As `vm-guest load` prints them.
const FIGURES: &[&str] = &[
    "messages",
    "ns",
    "tasks",
    "sleeps",
    "preemptions",
    "migrations",
    "receiver_sleeps",
    "receiver_preemptions",
    "wakeups",
    "wakeups_same_cpu",
    "wakeups_smt",
    "wakeups_llc",
    "wakeups_node",
    "wakeups_other_node",
    "affine_moves",
    "schedules",
    "idle_entries",
    "newidle_passes",
    "newidle_pulls",
    "idle_passes",
    "idle_pulls",
    "busy_passes",
    "busy_pulls",
    "active_pushes",
    "run_ns",
    "run_delay_ns",
    "latencies",
    "latency_p50_ns",
    "latency_p99_ns",
];

/// What tells rows apart: machine, series, workload, case, knob and replicate.
#[derive(Default)]
pub struct Recorded(BTreeSet<[String; 6]>);

impl Recorded {
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let named = || path.display().to_string();
        let mut reader = csv::Reader::from_path(path).with_context(named)?;
        let heading = reader.headers().with_context(named)?;
        ensure!(heading.iter().eq(columns()), "{}: other columns than now recorded", named());
        let mut recorded = Self::default();
        for row in reader.records() {
            let row = row.with_context(named)?;
            recorded.0.insert([0, 1, 3, 4, 5, 6].map(|column| row[column].to_owned()));
        }
        Ok(recorded)
    }

    pub fn has(&self, boot: &Boot, run: &Run) -> bool {
        let same = |row: &[String; 6]| {
            let [machine, kernel, workload, case, knob, replicate] = row;
            let kernel = kernel.trim_start_matches('v');
            let of_series =
                kernel == boot.kernel || kernel.starts_with(&format!("{}.", boot.kernel));
            of_series
                && *machine == boot.machine_name
                && (workload, case, knob) == (&run.workload, &run.case, &run.knob)
                && *replicate == boot.replicate.to_string()
        };
        self.0.iter().any(same)
    }
}

fn columns() -> impl Iterator<Item = &'static str> {
    WHAT.iter().chain(FIGURES).copied()
}

/// Appends a row for each run of a boot that is not there yet; returns how many. Where a kernel has not
/// the knob, the row has no figures.
pub fn append(path: &Path, boot: &Boot, recorded: &Recorded, left: &Left) -> anyhow::Result<usize> {
    let release = left.figures.get("release").context("the guest did not say its release")?;
    let missing = boot.runs.iter().enumerate().filter(|(_, run)| !recorded.has(boot, run));
    let rows = missing.map(|(number, run)| row(boot, run, number, &release.to_string(), left));
    let rows = rows.collect::<anyhow::Result<Vec<_>>>()?;
    let is_new = !path.exists();
    let file = OpenOptions::new().create(true).append(true).open(path);
    let mut writer = csv::Writer::from_writer(file.with_context(|| path.display().to_string())?);
    if is_new {
        writer.write_record(columns())?;
    }
    for row in &rows {
        writer.write_record(row)?;
    }
    writer.flush().with_context(|| path.display().to_string())?;
    Ok(rows.len())
}

fn row(
    boot: &Boot,
    run: &Run,
    number: usize,
    release: &str,
    left: &Left,
) -> anyhow::Result<Vec<String>> {
    let figure = |name: &str| match left.figures.get(&format!("{number}.{name}")) {
        Some(Figure::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let unknown = left.figures.get(&format!("{number}.unknown")).is_some();
    ensure!(unknown || !figure("messages").is_empty(), "run {number}, {run:?}, has no figures");
    let what = [
        boot.machine_name.clone(),
        version(release),
        release.to_owned(),
        run.workload.clone(),
        run.case.clone(),
        run.knob.clone(),
        boot.replicate.to_string(),
        number.to_string(),
    ];
    Ok(what.into_iter().chain(FIGURES.iter().map(|name| figure(name))).collect())
}

/// `v6.18` of `6.18.15+deb13-cloud-amd64`.
fn version(release: &str) -> String {
    let numbers: Vec<&str> = release.split(['.', '+', '-']).take(2).collect();
    format!("v{}", numbers.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_of_a_version() {
        assert_eq!(version("6.18.15+deb13-cloud-amd64"), "v6.18");
        assert_eq!(version("7.3+deb14-amd64"), "v7.3");
    }
}
