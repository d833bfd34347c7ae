//! `placewise machine check`: small real loads on this host beside the simulation of the same.
//!
//! A kernel that can preempt lazily is simulated as it was built or told to here: a load says which.
//!
//! A real load that differs from its simulation says something of the model only where the host was
//! quiet while it ran: else the two are no more told to disagree than to agree.

use std::io::{self, Write};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use placewise_machine::{CpuSet, Machine, load};
use placewise_measure::neighbours;
use placewise_measure::others::CpuTimes;
use placewise_measure::quantity::Sample;
use placewise_measure::real::{self, FDS, Load, Pair, Told, USER_NS};
use placewise_policy::{PREEMPT_NONE, Policy, kernel_for_release, running_release, with_knobs};
use placewise_sim::{Outcome, Scenario, simulate};
use placewise_workload::Case;
use placewise_workload::program::Workload;
use serde::Serialize;

use crate::input::InputError;
use crate::noise::{mean, std_pct};
use crate::report::terminal::{empty_bare_table, lines};
use crate::report::{TableOrJson, json};

const EXAMPLE: &str = "\
Example:
  placewise machine measure -o mine.toml
  placewise machine check --machine mine.toml

Times are of a round trip, and CPU times of a message of hackbench, sender and receiver together.
Where others took CPU time even during the quietest parts, a load that does not agree is told to be
disturbed, not to disagree.";

/// Run small real loads, and simulate the same
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct CheckArgs {
    /// What is simulated: a machine file of this host, or `host` with borrowed costs
    #[arg(long, value_name = "MACHINE", default_value = "host")]
    machine: String,

    /// Kernel that is simulated [default: the running one, or the newest known before it]
    #[arg(long, value_name = "KERNEL")]
    kernel: Option<String>,

    /// The longest that each real load runs; a quiet host takes less
    #[arg(long, default_value = "8", value_parser = clap::value_parser!(u16).range(1..=600))]
    seconds: u16,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = TableOrJson::Table)]
    format: TableOrJson,
}

/// Simulated runs of each load.
const RUNS: u64 = 5;
/// Of hackbench's model: the time of so many loops follows from that of a window.
const LOOPS: u64 = 100_000;
const WINDOW_MS: u64 = 500;
/// Of `perf bench`.
const PERF_LOOPS: u64 = 500;
const PERF_ROUND_TRIPS: u64 = 20_000;

/// Steps of the progress bar.
const STEPS: u64 = 1_000;
/// By how much simulation and host may differ, either way, to agree.
const AGREES: f64 = 1.25;

#[derive(Serialize)]
struct Report {
    machine: String,
    kernel: String,
    /// As a load says: `full` or `lazy`; None for kernels that know one way, and on a single CPU.
    preempt: Option<&'static str>,
    rows: Vec<Row>,
    /// What others took of the CPU time of all CPUs meanwhile; None if the kernel does not say.
    others_pct: Option<f64>,
}

#[derive(Serialize)]
struct Row {
    load: String,
    real: Sample,
    simulated: f64,
    simulated_std_pct: f64,
    /// Simulated by real.
    ratio: f64,
    verdict: Verdict,
    unit: &'static str,
    /// How often a pair that may run anywhere was on one CPU.
    real_on_one_cpu_pct: Option<f64>,
    simulated_on_one_cpu_pct: Option<f64>,
    /// What `perf bench` says of the same, if it is installed; it is not measured in slices.
    perf_bench: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Agrees,
    Disagrees,
    /// It does not agree, and the host was busy.
    Disturbed,
}

impl Verdict {
    fn of(ratio: f64, disturbed: bool) -> Self {
        match (ratio.max(1.0 / ratio) <= AGREES, disturbed) {
            (true, _) => Self::Agrees,
            (false, true) => Self::Disturbed,
            (false, false) => Self::Disagrees,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Disagrees => "disagrees",
            Self::Disturbed => "disturbed",
        }
    }
}

pub fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let check = Check::new(args)?;
    let before = CpuTimes::so_far();
    let rows = check.rows()?;
    let after = CpuTimes::so_far();
    let report = Report {
        machine: check.machine.name.clone(),
        kernel: check.policy_kernel.clone(),
        preempt: check.preempt,
        rows,
        others_pct: before.zip(after).and_then(|(before, after)| after.others_pct_since(&before)),
    };
    let text = match args.format {
        TableOrJson::Table => table(&report),
        TableOrJson::Json => json::render(&report)?,
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

struct Check {
    machine: Machine,
    policy: Policy,
    policy_kernel: String,
    preempt: Option<&'static str>,
    seconds: Duration,
    home: usize,
    neighbour: Option<usize>,
}

impl Check {
    fn new(args: &CheckArgs) -> anyhow::Result<Self> {
        let machine = load(&args.machine)?;
        let host = load("host")?;
        if machine.online() != host.online() {
            let (theirs, ours) = (machine.online(), host.online());
            let problem = format!(
                "--machine {}: has CPUs {theirs}, this host has {ours}; name a machine file of this host",
                args.machine
            );
            return Err(InputError(problem).into());
        }
        let kernel = match &args.kernel {
            Some(kernel) => kernel.clone(),
            None => running_kernel()?,
        };
        let (home, neighbour) = neighbours(&machine)?;
        let preempt = preempt_mode(&kernel, neighbour)?;
        let knobs: Vec<String> =
            preempt.map(|mode| format!("preempt={mode}")).into_iter().collect();
        Ok(Self {
            policy: Policy::parse(&kernel, &with_knobs("baseline", &knobs))?,
            policy_kernel: kernel,
            preempt,
            machine,
            seconds: Duration::from_secs(args.seconds.into()),
            home,
            neighbour,
        })
    }

    fn rows(&self) -> anyhow::Result<Vec<Row>> {
        let pairs =
            [Some(Pair::On(self.home)), self.neighbour.map(|it| Pair::Between(self.home, it))];
        let pairs = pairs.into_iter().flatten().chain([Pair::Anywhere]).map(Load::PingPong);
        let loads: Vec<Load> = pairs.chain([1, 4].map(Load::Hackbench)).collect();
        let told = self.run(&loads)?;
        let rows = loads.iter().zip(&told).map(|(load, told)| match *load {
            Load::PingPong(pair) => self.ping_pong(pair, told),
            Load::Hackbench(groups) => self.hackbench(groups as u64, told),
        });
        rows.collect()
    }

    fn run(&self, loads: &[Load]) -> anyhow::Result<Vec<Told>> {
        let style = ProgressStyle::with_template("{bar:40} {percent} %");
        let bar = ProgressBar::new(STEPS);
        bar.set_style(style.expect("the template is well formed"));
        let tell = |done: f64| bar.set_position((done * STEPS as f64) as u64);
        let told = real::run(loads, self.seconds, tell);
        bar.finish_and_clear();
        told.context("cannot run the real loads")
    }

    fn ping_pong(&self, pair: Pair, told: &Told) -> anyhow::Result<Row> {
        let mut workload = workload("schedpipe", &[("user_ns", USER_NS)])?;
        let name = match pair {
            Pair::On(cpu) => {
                pin(&mut workload, cpu, cpu);
                "ping-pong on one CPU"
            }
            Pair::Between(here, there) => {
                pin(&mut workload, here, there);
                "ping-pong on two CPUs"
            }
            Pair::Anywhere => "ping-pong anywhere",
        };
        let outcomes = self.simulate(&workload)?;
        let times = figures(&outcomes, |outcome| 1e9 / outcome.figures[0].value);
        let mut row = row(name, told, &times);
        if pair == Pair::Anywhere {
            row.simulated_on_one_cpu_pct = Some(mean(&figures(&outcomes, local_wakeups_pct)));
            let seconds = perf_bench(&["pipe", "-T", "-l", &PERF_ROUND_TRIPS.to_string()]);
            row.perf_bench = seconds.map(|seconds| seconds * 1e9 / PERF_ROUND_TRIPS as f64);
        }
        Ok(row)
    }

    fn hackbench(&self, groups: u64, told: &Told) -> anyhow::Result<Row> {
        let nr_cpus = self.machine.online().len();
        let settings =
            [("groups", groups), ("loops", LOOPS), ("user_ns", USER_NS), ("window_ms", WINDOW_MS)];
        let workload = workload("hackbench", &settings)?;
        let cpu_ns = |seconds: f64, loops: u64| {
            1e9 * seconds * nr_cpus as f64 / ((groups * loops) as f64 * (FDS * FDS) as f64)
        };
        let times = figures(&self.simulate(&workload)?, |outcome| {
            let busy = 1.0 - counter(outcome, "idle_share") / 100.0;
            cpu_ns(outcome.figures[0].value, LOOPS) * busy
        });
        let (groups_text, loops_text) = (groups.to_string(), PERF_LOOPS.to_string());
        let perf = perf_bench(&["messaging", "-p", "-t", "-g", &groups_text, "-l", &loops_text]);
        let perf_bench = perf.map(|seconds| cpu_ns(seconds, PERF_LOOPS));
        Ok(Row { perf_bench, ..row(&format!("hackbench, {groups} groups"), told, &times) })
    }

    fn simulate(&self, workload: &Workload) -> anyhow::Result<Vec<Outcome>> {
        let Self { machine, policy, .. } = self;
        let run = |seed| Ok(simulate(&Scenario { machine, policy, workload, seed }, None)?);
        (1..=RUNS).map(run).collect()
    }
}

/// One of each run.
fn figures(outcomes: &[Outcome], figure: impl Fn(&Outcome) -> f64) -> Vec<f64> {
    outcomes.iter().map(figure).collect()
}

fn row(load: &str, told: &Told, simulated: &[f64]) -> Row {
    let Told { time, on_one_cpu_pct } = *told;
    let ratio = mean(simulated) / time.median;
    Row {
        load: load.to_owned(),
        real: time,
        simulated: mean(simulated),
        simulated_std_pct: std_pct(simulated).unwrap_or(0.0),
        ratio,
        verdict: Verdict::of(ratio, time.disturbed),
        unit: "ns",
        real_on_one_cpu_pct: on_one_cpu_pct,
        simulated_on_one_cpu_pct: None,
        perf_bench: None,
    }
}

/// The knob's value, of a kernel that has it, as a load finds it; it takes a second CPU.
fn preempt_mode(kernel: &str, neighbour: Option<usize>) -> anyhow::Result<Option<&'static str>> {
    let is_fixed = Policy::parse(kernel, "baseline")?.profile.preempt == PREEMPT_NONE;
    let Some(cpu) = neighbour.filter(|_| !is_fixed) else { return Ok(None) };
    let at_once = real::preempts_at_once(cpu).context("cannot run the real loads")?;
    Ok(Some(if at_once { "full" } else { "lazy" }))
}

fn running_kernel() -> anyhow::Result<String> {
    let release = running_release();
    let known = kernel_for_release(&release);
    let problem = || {
        InputError(format!(
            "the running kernel, {release}, is none that is known; name one by --kernel"
        ))
    };
    Ok(known.ok_or_else(problem)?.to_owned())
}

fn workload(name: &str, settings: &[(&str, u64)]) -> anyhow::Result<Workload> {
    let case = settings.iter().fold(Case::default(), |case, (key, value)| case.with(key, value));
    Ok(placewise_workload::build(name, &case)?)
}

fn pin(workload: &mut Workload, first: usize, second: usize) {
    for (program, cpu) in workload.programs.iter_mut().zip([first, second]) {
        program.cpus = Some(CpuSet::single(cpu));
    }
}

fn counter(outcome: &Outcome, metric: &str) -> f64 {
    let figures = outcome.statistics.figures.iter();
    figures.filter(|figure| figure.metric == metric).map(|figure| figure.value).sum()
}

/// Wakeups on the waker's CPU.
fn local_wakeups_pct(outcome: &Outcome) -> f64 {
    const WAKEUPS: &str = "schedstat_try_to_wake_up_was_called";
    let local = counter(outcome, &format!("{WAKEUPS}_to_wake_up_the_local_cpu"));
    100.0 * local / counter(outcome, WAKEUPS)
}

/// The seconds it says; None if it is not installed.
fn perf_bench(arguments: &[&str]) -> Option<f64> {
    let mut command = Command::new("perf");
    let output = command.args(["bench", "-f", "simple", "sched"]).args(arguments).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

fn table(report: &Report) -> String {
    let mut table = empty_bare_table();
    table.set_header(["", "real", "quartiles", "simulated", "ratio", "", "perf bench"]);
    table.align_right([1, 2, 3, 4, 6]);
    for row in &report.rows {
        let Sample { median, lower, upper, .. } = row.real;
        table.add_row([
            row.load.clone(),
            format!("{median:.0} ns"),
            format!("{lower:.0} to {upper:.0}"),
            format!("{:.0} ns ± {:.1} %", row.simulated, row.simulated_std_pct),
            format!("{:.2}", row.ratio),
            row.verdict.name().to_owned(),
            row.perf_bench.map_or_else(String::new, |ns| format!("{ns:.0} ns")),
        ]);
    }
    let preempt = report.preempt.map_or_else(String::new, |mode| format!(", preempt={mode}"));
    let mut text =
        format!("{} under {}{preempt}\n\n{}\n", report.machine, report.kernel, table.trimmed());
    for row in &report.rows {
        if let (Some(real), Some(simulated)) =
            (row.real_on_one_cpu_pct, row.simulated_on_one_cpu_pct)
        {
            text += &format!(
                "\n{}: both on one CPU {real:.0} % of the time, simulated {simulated:.0} %\n",
                row.load
            );
        }
    }
    text + &caution(report)
}

/// What a busy host makes of it.
fn caution(report: &Report) -> String {
    let disturbed = report.rows.iter().filter(|row| row.real.disturbed).count();
    if disturbed == 0 {
        return String::new();
    }
    let others = report.others_pct.map_or_else(String::new, |pct| format!("{pct:.0} % of the "));
    let text = format!(
        "The host was busy: others took {others}CPU time, and some even while the quietest slices of \
         {disturbed} of {} loads ran. A pair that may run anywhere finds no idle CPU then. Loads that do \
         not agree are called disturbed: check a quiet host.",
        report.rows.len()
    );
    format!("\n{}\n", textwrap::fill(&text, lines()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_busy_host_nothing_disagrees() {
        assert_eq!(Verdict::of(1.25, false), Verdict::Agrees);
        assert_eq!(Verdict::of(0.79, false), Verdict::Disagrees);
        assert_eq!(Verdict::of(0.79, true), Verdict::Disturbed);
        assert_eq!(Verdict::of(0.8, true), Verdict::Agrees);
    }

    #[test]
    fn only_a_kernel_that_may_preempt_lazily_is_asked_how_it_does() {
        let asked = |kernel, neighbour| preempt_mode(kernel, neighbour).unwrap();
        assert_eq!(asked("v6.12", Some(0)), None);
        assert_eq!(asked("v6.18.15", None), None);
        let here = load("host").unwrap().online().iter().next();
        assert!(matches!(asked("v6.18.15", here), Some("full" | "lazy")));
    }
}
