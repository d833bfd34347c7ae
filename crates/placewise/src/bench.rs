//! `placewise bench`: how many events the simulator handles per second.
//!
//! An event is one entry taken from the event queue. Each bench runs in a process of its own, on
//! one thread, so that its peak memory is its own. Beside it a bare `BinaryHeap` is pushed and
//! popped for a while in the same process: the ratio of the two rates compares builds and hosts
//! better than a rate does, and says how near the simulator is to doing nothing but queueing. What
//! an event takes of instructions, cycles and cache misses says more still, where it can be counted.

mod counters;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use placewise_measure::heap;
use placewise_policy::Policy;
use placewise_workload::Case;
use serde::{Deserialize, Serialize};

use self::counters::Counters;
use crate::input::InputError;
use crate::report::terminal::empty_table;
use crate::report::{TableOrJson, json};
use placewise_sim::{Scenario, simulate};

const EXAMPLE: &str = "\
Example:
  placewise bench --format json

Each bench is simulated once, on one thread, in a process of its own.
Exit status: 0 on success, 2 when the input is at fault, 1 when something else went wrong.";

/// Measure how fast the simulator is on this host
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct BenchArgs {
    /// Bench to run [default: all]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = TableOrJson::Table)]
    format: TableOrJson,
}

/// What is simulated.
struct Bench {
    name: &'static str,
    machine: &'static str,
    workload: &'static str,
    case: &'static str,
}

const BENCHES: [Bench; 2] = [
    Bench {
        name: "epyc-9654-2s-768-tasks",
        machine: "epyc-9654-2s",
        workload: "context_switch1",
        // Pairs that wake each other all the time: 768 tasks.
        case: "instances=384;warmup_ms=100",
    },
    Bench {
        name: "hackbench-16-zen3",
        machine: "zen3-2s-nps1",
        workload: "hackbench",
        case: "groups=16;warmup_ms=100;window_ms=100",
    },
];

#[derive(Serialize, Deserialize)]
struct Report {
    benches: Vec<Measurement>,
}

#[derive(Serialize, Deserialize)]
struct Measurement {
    name: String,
    events: u64,
    wakeups: u64,
    switches: u64,
    seconds: f64,
    events_per_s: f64,
    rss_mb: f64,
    /// Pushes and pops per second of a bare heap, measured right after.
    heap_per_s: f64,
    /// `events_per_s` / `heap_per_s`
    heap_ratio: f64,
    /// None where the hardware's counters cannot be had.
    per_event: Option<PerEvent>,
}

/// What an event takes in user space, on average.
#[derive(Serialize, Deserialize)]
struct PerEvent {
    instructions: f64,
    cycles: f64,
    cache_misses: f64,
}

pub fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let benches = selected(&args.names)?;
    let measure = |bench: &&Bench| match benches.len() {
        1 => bench.measure(),
        _ => bench.measure_in_own_process(),
    };
    let report = Report { benches: benches.iter().map(measure).collect::<anyhow::Result<_>>()? };
    let text = match args.format {
        TableOrJson::Table => table(&report),
        TableOrJson::Json => json::render(&report)?,
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn selected(names: &[String]) -> Result<Vec<&'static Bench>, InputError> {
    if names.is_empty() {
        return Ok(BENCHES.iter().collect());
    }
    let find = |name: &String| {
        let known = BENCHES.map(|bench| bench.name).join(", ");
        let unknown = || InputError(format!("bench `{name}`: unknown; expected one of {known}"));
        BENCHES.iter().find(|bench| bench.name == name).ok_or_else(unknown)
    };
    let mut known = BTreeSet::new();
    match names.iter().find(|name| !known.insert(*name)) {
        Some(name) => Err(InputError(format!("bench `{name}`: is given twice; name it once"))),
        None => names.iter().map(find).collect(),
    }
}

impl Bench {
    fn measure(&self) -> anyhow::Result<Measurement> {
        let machine = placewise_machine::load(self.machine)?;
        let policy = Policy::parse("v6.0", "baseline")?;
        let workload = placewise_workload::build(self.workload, &self.case.parse::<Case>()?)?;
        let scenario =
            Scenario { machine: &machine, policy: &policy, workload: &workload, seed: 1 };

        let counters = Counters::start();
        let start = Instant::now();
        let statistics = simulate(&scenario, None)?.statistics;
        let seconds = start.elapsed().as_secs_f64();
        let counts = counters.and_then(Counters::stop);

        let of_each = |count: u64| count as f64 / statistics.events as f64;
        let per_event = counts.ok().map(|counts| PerEvent {
            instructions: of_each(counts.instructions),
            cycles: of_each(counts.cycles),
            cache_misses: of_each(counts.cache_misses),
        });
        let rss_mb = peak_rss_mb()?;
        let events_per_s = statistics.events as f64 / seconds;
        let heap_per_s = heap::rounds_per_s();
        Ok(Measurement {
            name: self.name.to_owned(),
            events: statistics.events,
            wakeups: statistics.wakeups,
            switches: statistics.switches,
            seconds,
            events_per_s,
            rss_mb,
            heap_per_s,
            heap_ratio: events_per_s / heap_per_s,
            per_event,
        })
    }

    fn measure_in_own_process(&self) -> anyhow::Result<Measurement> {
        let program = std::env::current_exe().context("cannot find the running program")?;
        let output = Command::new(program)
            .args(["bench", self.name, "--format", "json"])
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start the bench")?;
        ensure!(output.status.success(), "bench {}: {}", self.name, output.status);
        let mut report: Report = serde_json::from_slice(&output.stdout)?;
        report.benches.pop().context("the bench printed no measurement")
    }
}

/// `VmHWM`: the most memory this process has had at once.
fn peak_rss_mb() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kib: f64 = kib.context("/proc/self/status has no VmHWM")?.trim().parse()?;
    Ok(kib / 1024.0)
}

fn table(report: &Report) -> String {
    let mut table = empty_table();
    table.set_header([
        "bench",
        "events",
        "wakeups",
        "switches",
        "seconds",
        "events/s",
        "of a heap",
        "RSS MB",
    ]);
    table.align_right_from(1);
    for bench in &report.benches {
        table.add_row([
            bench.name.clone(),
            bench.events.to_string(),
            bench.wakeups.to_string(),
            bench.switches.to_string(),
            format!("{:.2}", bench.seconds),
            format!("{:.2} M", bench.events_per_s / 1e6),
            format!("{:.0} %", 100.0 * bench.heap_ratio),
            format!("{:.0}", bench.rss_mb),
        ]);
    }
    format!("{table}\n{}", counted(report))
}

/// What was counted of an event, a line for each bench, or one line that nothing was.
fn counted(report: &Report) -> String {
    if let Err(error) = Counters::start() {
        return format!("Instructions are not counted: the kernel offers no counters ({error}).\n");
    }
    let line = |bench: &Measurement| {
        let PerEvent { instructions, cycles, cache_misses } = bench.per_event.as_ref()?;
        let name = &bench.name;
        Some(format!(
            "An event of {name}: {instructions:.0} instructions, {cycles:.0} cycles, \
             {cache_misses:.2} cache misses.\n"
        ))
    };
    report.benches.iter().filter_map(line).collect()
}
