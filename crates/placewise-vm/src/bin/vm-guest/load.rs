//! Loads by the names, parameters and meanings of the workload models, so that one case string runs
//! here and in the simulator; and loads that no model has (`ring`, `forks`, `partners`).
//!
//! Figures are counts of the whole run, from the moment all tasks are let go until the last is done;
//! the tasks' own come from the kernel's account of each, the others from the whole machine. Limits:
//! `user_ns` and costs of start-up are the program's own, not parameters.

mod case;
mod forks;
mod futex;
mod herd;
mod messages;
mod netperf;
mod partners;
mod schbench;
mod schedstat;
mod stream;
mod team;

use rustix::thread::sched_setaffinity;

use anyhow::{Context, bail};

use self::case::Case;
use self::team::Outcome;
use crate::topology::cpu_list;

/// One load: its figures, `messages` and `ns` among them
#[derive(clap::Args)]
pub struct LoadArgs {
    workload: String,
    /// Settings, `key=value` joined by `;`
    #[arg(long, default_value = "")]
    case: String,
    /// Where it may run, such as 0-3,8 [default: everywhere]
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
}

pub fn run(args: &LoadArgs) -> anyhow::Result<()> {
    if let Some(list) = &args.cpus {
        sched_setaffinity(None, &cpu_list(list)?).context("sched_setaffinity")?;
    }
    let mut case = Case::parse(&args.case)?;
    let outcome = match args.workload.as_str() {
        "hackbench" => messages::hackbench(&mut case),
        "schedpipe" => messages::schedpipe(&mut case),
        "context_switch1" => messages::context_switch1(&mut case),
        "ring" => messages::ring(&mut case),
        "netperf" => netperf::run(&mut case),
        "schbench" => schbench::run(&mut case),
        "stream" => stream::run(&mut case),
        "herd" => herd::run(&mut case),
        "partners" => partners::run(&mut case),
        "forks" => forks::run(&mut case),
        unknown => bail!("no load is called {unknown}"),
    }?;
    print(&outcome);
    Ok(())
}

fn print(outcome: &Outcome) {
    println!("messages {}", outcome.messages);
    println!("ns {}", outcome.duration.as_nanos());
    for (name, count) in outcome.tasks.figures() {
        println!("{name} {count}");
    }
    for (name, count) in outcome.machine.figures() {
        println!("{name} {count}");
    }
    let mut latencies = outcome.latencies.clone();
    latencies.sort_unstable();
    let quantile = |pct: usize| latencies[(latencies.len() - 1) * pct / 100];
    if !latencies.is_empty() {
        println!("latencies {}", latencies.len());
        println!("latency_p50_ns {}", quantile(50));
        println!("latency_p99_ns {}", quantile(99));
    }
}
