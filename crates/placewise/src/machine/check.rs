//! `placewise machine check`: small real loads on this host beside the simulation of the same.

use std::fs;
use std::io::{self, Write};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use placewise_machine::{CpuSet, Machine, load};
use placewise_measure::neighbours;
use placewise_measure::quantity::Sample;
use placewise_measure::real::{FDS, Pair, USER_NS, hackbench, ping_pong};
use placewise_policy::Policy;
use placewise_policy::kernel::kernel_for_release;
use placewise_sim::{Outcome, Scenario, simulate};
use placewise_workload::Case;
use placewise_workload::program::Workload;
use serde::Serialize;

use crate::input::InputError;
use crate::noise::{mean, std_pct};
use crate::report::terminal::empty_bare_table;
use crate::report::{TableOrJson, json};

const EXAMPLE: &str = "\
Example:
  placewise machine measure -o mine.toml
  placewise machine check --machine mine.toml

Times are of a round trip, and CPU times of a message of hackbench, sender and receiver together.";

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

    /// How long each real load runs
    #[arg(long, default_value = "2", value_parser = clap::value_parser!(u16).range(1..=600))]
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

#[derive(Serialize)]
struct Report {
    machine: String,
    kernel: String,
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
    unit: &'static str,
    /// What `perf bench` says of the same, if it is installed; it is not measured in batches.
    perf_bench: Option<f64>,
}

pub fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let check = Check::new(args)?;
    let before = cpu_times();
    let rows = check.rows()?;
    let report = Report {
        machine: check.machine.name.clone(),
        kernel: check.policy_kernel.clone(),
        rows,
        others_pct: before.zip(cpu_times()).and_then(|(before, after)| after.others_since(&before)),
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
        Ok(Self {
            policy: Policy::parse(&kernel, "baseline")?,
            policy_kernel: kernel,
            machine,
            seconds: Duration::from_secs(args.seconds.into()),
            home,
            neighbour,
        })
    }

    fn rows(&self) -> anyhow::Result<Vec<Row>> {
        let mut rows = vec![self.ping_pong("ping-pong on one CPU", Pair::On(self.home))?];
        if let Some(other) = self.neighbour {
            rows.push(self.ping_pong("ping-pong on two CPUs", Pair::Between(self.home, other))?);
        }
        rows.push(self.ping_pong("ping-pong anywhere", Pair::Anywhere)?);
        for groups in [1, 4] {
            rows.push(self.hackbench(groups)?);
        }
        Ok(rows)
    }

    fn ping_pong(&self, name: &str, pair: Pair) -> anyhow::Result<Row> {
        let real = ping_pong(pair, self.seconds).context("cannot run a pair of tasks")?;
        let mut workload = workload("schedpipe", &[("user_ns", USER_NS)])?;
        match pair {
            Pair::On(cpu) => pin(&mut workload, cpu, cpu),
            Pair::Between(here, there) => pin(&mut workload, here, there),
            Pair::Anywhere => {}
        }
        let simulated = self.simulate(&workload, |outcome| 1e9 / outcome.figures[0].value)?;
        let perf = (pair == Pair::Anywhere)
            .then(|| perf_bench(&["pipe", "-T", "-l", &PERF_ROUND_TRIPS.to_string()]));
        let perf = perf.flatten().map(|seconds| seconds * 1e9 / PERF_ROUND_TRIPS as f64);
        Ok(row(name, real, &simulated, perf))
    }

    fn hackbench(&self, groups: u64) -> anyhow::Result<Row> {
        let nr_cpus = self.machine.online().len();
        let real = hackbench(groups as usize, nr_cpus, self.seconds)
            .context("cannot run hackbench's threads")?;
        let settings =
            [("groups", groups), ("loops", LOOPS), ("user_ns", USER_NS), ("window_ms", WINDOW_MS)];
        let workload = workload("hackbench", &settings)?;
        let cpu_ns = |seconds: f64, loops: u64| {
            1e9 * seconds * nr_cpus as f64 / ((groups * loops) as f64 * (FDS * FDS) as f64)
        };
        let simulated = self.simulate(&workload, |outcome| {
            let busy = 1.0 - idle_share(outcome) / 100.0;
            cpu_ns(outcome.figures[0].value, LOOPS) * busy
        })?;
        let (groups_text, loops_text) = (groups.to_string(), PERF_LOOPS.to_string());
        let perf = perf_bench(&["messaging", "-p", "-t", "-g", &groups_text, "-l", &loops_text]);
        let perf = perf.map(|seconds| cpu_ns(seconds, PERF_LOOPS));
        Ok(row(&format!("hackbench, {groups} groups"), real.message, &simulated, perf))
    }

    /// A figure of each run.
    fn simulate(
        &self,
        workload: &Workload,
        figure: impl Fn(&Outcome) -> f64,
    ) -> anyhow::Result<Vec<f64>> {
        let Self { machine, policy, .. } = self;
        let run =
            |seed| Ok(figure(&simulate(&Scenario { machine, policy, workload, seed }, None)?));
        (1..=RUNS).map(run).collect()
    }
}

fn row(load: &str, real: Sample, simulated: &[f64], perf_bench: Option<f64>) -> Row {
    Row {
        load: load.to_owned(),
        real,
        simulated: mean(simulated),
        simulated_std_pct: std_pct(simulated).unwrap_or(0.0),
        ratio: mean(simulated) / real.median,
        unit: "ns",
        perf_bench,
    }
}

fn running_kernel() -> anyhow::Result<String> {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
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

fn idle_share(outcome: &Outcome) -> f64 {
    let figures = outcome.statistics.figures.iter();
    figures.filter(|figure| figure.metric == "idle_share").map(|figure| figure.value).sum()
}

/// The seconds it says; None if it is not installed.
fn perf_bench(arguments: &[&str]) -> Option<f64> {
    let mut command = Command::new("perf");
    let output = command.args(["bench", "-f", "simple", "sched"]).args(arguments).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// CPU time since boot, in clock ticks: of all CPUs, what was not idle, and what this process used.
struct CpuTimes {
    all: f64,
    busy: f64,
    own: f64,
}

fn cpu_times() -> Option<CpuTimes> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let times = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let times: Vec<f64> = times.filter_map(|time| time.parse().ok()).collect();
    let own = fs::read_to_string("/proc/self/stat").ok()?;
    // The fields after the name: utime to cstime are the 12th to the 15th.
    let fields = own.rsplit(')').next()?.split_whitespace().skip(11).take(4);
    let all = times.iter().take(8).sum();
    Some(CpuTimes {
        all,
        busy: all - times.get(3)? - times.get(4)?,
        own: fields.filter_map(|field| field.parse::<f64>().ok()).sum(),
    })
}

impl CpuTimes {
    fn others_since(&self, before: &Self) -> Option<f64> {
        let others = (self.busy - before.busy) - (self.own - before.own);
        let pct = 100.0 * others.max(0.0) / (self.all - before.all);
        pct.is_finite().then_some(pct)
    }
}

fn table(report: &Report) -> String {
    let mut table = empty_bare_table();
    table.set_header(["", "real", "quartiles", "simulated", "ratio", "perf bench"]);
    table.align_right([1, 2, 3, 4, 5]);
    for row in &report.rows {
        let Sample { median, lower, upper, .. } = row.real;
        table.add_row([
            row.load.clone(),
            format!("{median:.0} ns"),
            format!("{lower:.0} to {upper:.0}"),
            format!("{:.0} ns ± {:.1} %", row.simulated, row.simulated_std_pct),
            format!("{:.2}", row.ratio),
            row.perf_bench.map_or_else(String::new, |ns| format!("{ns:.0} ns")),
        ]);
    }
    let busy = match report.others_pct {
        Some(pct) if pct >= 5.0 => format!(
            "\nThe host was busy: others took {pct:.0} % of its CPU time. What idles on a quiet host did \
             not.\n"
        ),
        _ => String::new(),
    };
    format!("{} under {}\n\n{}\n{busy}", report.machine, report.kernel, table.trimmed())
}
