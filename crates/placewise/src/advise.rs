//! `placewise advise`: what could be done about a recorded load, by how much it would help, and the
//! commands that do it and that undo it; or that nothing helps.
//!
//! What is likely comes from [`candidate`], is replayed by [`search`], and judged by one figure
//! ([`goal`]). Of tasks whose replay is not like the trace nothing is said. One piece of advice can be
//! carried out ([`apply`]).

mod apply;
mod candidate;
mod cgroup;
mod changes;
mod goal;
mod offered;
mod report;
mod search;
mod step;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use placewise_replay::{Group, Recording};
use placewise_report::JsonResult;
use placewise_trace::{Header, TraceReader};

use crate::audit;
use crate::audit::args::AuditArgs;
use crate::audit::origin::{Origin, bad_trace};
use crate::html_file::HtmlFile;
use crate::replay::{self, Built, Mode, TracedArgs};
use crate::report::{TableOrJson, json};
use apply::Order;
use candidate::Situation;
use goal::{Aim, Goal};
use report::Report;
use search::Lab;

const EXAMPLE: &str = "\
Examples:
  placewise record --duration 2 && placewise advise placewise-trace.txt.zst
  placewise advise service.txt --for p99 --task postgres --budget 400

  placewise advise placewise-trace.txt.zst --apply 1
  placewise advise --undo

Without --apply nothing is changed: the commands are printed. They name threads as the trace does.
Exit status: 0 on success, 2 when the input is at fault, 1 when something else went wrong.";

/// Say what to do about a recorded load, and what it would change
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct AdviseArgs {
    #[command(flatten)]
    traced: Option<TracedArgs>,

    /// What shall be better
    #[arg(long = "for", value_name = "GOAL", value_enum, default_value_t = Aim::Throughput)]
    aim: Aim,

    /// Of the tasks of this name [default: of all]
    #[arg(long, value_name = "NAME")]
    task: Option<String>,

    /// How many runs may be simulated; the result depends on it, and on no clock
    #[arg(long, value_name = "RUNS", default_value_t = 300)]
    budget: usize,

    /// Threads to simulate on; the result does not depend on it [default: all CPUs]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    jobs: Option<usize>,

    /// Carry out that piece of the advice on this host, record again for as long, and compare
    #[arg(long, value_name = "N")]
    apply: Option<usize>,

    /// With --apply: do not ask, and keep what is better or worse
    #[arg(long, requires = "apply")]
    yes: bool,

    /// With --apply: where the second recording goes
    #[arg(short, long, value_name = "FILE", default_value = "placewise-trace-after.txt.zst")]
    output: PathBuf,

    /// Take back what the last --apply has changed
    #[arg(long, exclusive = true)]
    undo: bool,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = TableOrJson::Table)]
    format: TableOrJson,

    /// Write a page to look at there, too: one HTML file that needs nothing beside it
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
}

pub fn run(args: &AdviseArgs) -> anyhow::Result<()> {
    let Some(traced) = args.traced.as_ref().filter(|_| !args.undo) else {
        return apply::undo();
    };
    let origin = traced.origin();
    let page = args.html.as_deref().map(HtmlFile::create).transpose()?;
    let reader = TraceReader::open(origin.trace).map_err(|error| bad_trace(&error))?;
    let order = args.apply.map(|number| Order { number, yes: args.yes, output: &args.output });
    order.as_ref().map_or(Ok(()), |order| order.check(reader.header()))?;
    let built = replay::build(origin, &Mode::Exact)?;
    let Built { replay, recorded, validation, machine, kernel } = &built;
    let recording = &replay.recording;
    let goal = Goal::new(args.aim, args.task.as_deref(), recording, recorded, validation)?;
    let groups = named_groups(recording, reader.header(), &goal);
    let candidates = match goal.is_believed() {
        true => {
            let (groups, goal) = (&groups, &goal);
            Situation { recording, machine, kernel, groups, goal }.candidates()
        }
        false => Vec::new(),
    };
    let lab = Lab { recording, machine, kernel: &kernel.policy, goal: &goal, jobs: args.jobs };
    let advice = match candidates.is_empty() {
        true => Vec::new(),
        false => lab.advice(&candidates, args.budget)?,
    };
    let trace = origin.trace.display().to_string();
    let mut report = Report::new(trace, &built, &goal, &groups, candidates.len(), &advice);
    let print = |text: String| io::stdout().write_all(text.as_bytes());
    if args.format == TableOrJson::Table {
        print(report.text())?;
    }
    if let Some(order) = order {
        report.applied = Some(order.carry_out(&advice, &built, &goal)?);
    }
    if args.format == TableOrJson::Json {
        print(json::render(&report)?)?;
    }
    page.map_or(Ok(()), |page| draw(page, &report, origin))
}

/// The advice, and below it the trace that it is of.
fn draw(page: HtmlFile, report: &Report, origin: Origin<'_>) -> anyhow::Result<()> {
    let json = json::render(report)?;
    let advice = JsonResult::parse("advise", json.as_bytes(), Some(report.text()))?;
    let audited = audit::for_page(&AuditArgs::from_origin(origin), &(0..=u64::MAX))?;
    page.write(&[advice, audited.result], &audited.recordings)
}

/// Those of tasks that can be believed, named by comm, and by cgroup where all are of one.
fn named_groups(recording: &Recording, header: &Header, goal: &Goal) -> Vec<(String, Group)> {
    let is_like = |group: &Group| {
        let mut tasks = group.tasks.iter().map(|task| &recording.tasks[*task as usize]);
        !tasks.any(|task| goal.is_unlike(&task.name))
    };
    let groups = recording.groups().into_iter().filter(is_like);
    groups.map(|group| (name(&group, recording, header), group)).collect()
}

fn name(group: &Group, recording: &Recording, header: &Header) -> String {
    let tasks: Vec<_> = group.tasks.iter().map(|task| &recording.tasks[*task as usize]).collect();
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for task in &tasks {
        match counts.iter_mut().find(|(name, _)| *name == task.name) {
            Some((_, count)) => *count += 1,
            None => counts.push((&task.name, 1)),
        }
    }
    let of_name = |(name, count): &(&str, usize)| match count {
        1 => (*name).to_owned(),
        _ => format!("{count} {name}"),
    };
    let mut names = counts.iter().map(of_name).collect::<Vec<_>>().join(" and ");
    let is_of = |pids: &BTreeSet<u32>| {
        tasks.iter().all(|task| task.is_forked || pids.contains(&task.pid))
            && tasks.iter().any(|task| !task.is_forked)
    };
    let cgroup = header.cgroups.iter().find(|(_, pids)| is_of(pids));
    if let Some((path, _)) = cgroup {
        names += &format!(" of {path}");
    }
    names
}
