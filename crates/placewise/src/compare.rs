//! `placewise compare`: the same workload and seeds under several policies, kernels, environments and
//! on several machines, as a table.
//!
//! What is compared is checked and laid out by [`plan`], simulated by [`simulation`], and printed by
//! [`report`]; the report is the same for any number of jobs.

pub mod args;
mod command;
pub mod plan;
mod progress;
mod simulation;
mod traces;

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use signal_hook::consts::SIGINT;

use crate::audit;
use crate::audit::args::AuditArgs;
use crate::comparison::{self, Comparison, Reference, Series};
use crate::exit_status;
use crate::html_file::HtmlFile;
use crate::load_balance::{self, Runs};
use crate::report::foreign::visible;
use crate::report::{self, Format};
use crate::subject::Subject;
use crate::uncertain;
use placewise_report::JsonResult;
use placewise_sim::{Figure, Outcome};

pub use args::CompareArgs;
use args::Stats;
use plan::{Plan, PlannedCase};
use simulation::{OfCase, Simulation, of_combinations, series};
use traces::Traces;

pub fn run(args: &CompareArgs) -> anyhow::Result<()> {
    let stop = stop_at_interrupt().context("cannot handle signals")?;
    let plan = Plan::new(args)?;
    let traces = Traces::create(&plan, args)?;
    let page = args.html.as_deref().map(HtmlFile::create).transpose()?;
    let simulation = Simulation::new(&plan, args, &traces);
    let outcomes = simulation.run(&stop, |so_far| end_early(&plan, args, &so_far))?;
    let uncertain = plan.uncertain(args)?;
    let comparison = comparison_of(&plan, args, &outcomes);
    let render = |format| uncertain::render(&comparison, format, uncertain.as_deref());
    let text = render(args.format)?;
    // Without one of them, the other is as good as ever.
    let traced = traces.finish();
    let drawn = page.map_or(Ok(()), |page| {
        draw(page, &render(Format::Json)?, traced.as_deref().unwrap_or_default())
    });
    let printed = io::stdout().write_all(text.as_bytes());
    traced?;
    drawn?;
    Ok(printed?)
}

/// The comparison, and the traces of its first two combinations, where there are any.
fn draw(page: HtmlFile, json: &str, traces: &[PathBuf]) -> anyhow::Result<()> {
    let mut results = vec![JsonResult::parse("compare", json.as_bytes(), None)?];
    let [trace, others @ ..] = traces else { return page.write(&results, &[]) };
    let of_traces = AuditArgs::of(trace.clone(), others.first().cloned());
    let audited = audit::for_page(&of_traces, &(0..=u64::MAX))?;
    results.push(audited.result);
    page.write(&results, &audited.recordings)
}

/// Ctrl-C ends the comparison with what is done; a second one ends it at once.
fn stop_at_interrupt() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let status = i32::from(exit_status::INTERRUPTED);
    signal_hook::flag::register_conditional_shutdown(SIGINT, status, Arc::clone(&stop))?;
    signal_hook::flag::register(SIGINT, Arc::clone(&stop))?;
    Ok(stop)
}

/// Prints what is complete, says what is missing, and ends the process: no trace appears.
fn end_early(plan: &Plan, args: &CompareArgs, so_far: &[OfCase]) -> Infallible {
    let comparison = comparison_of(plan, args, so_far);
    let text = match comparison.rows[..] {
        [] => Ok(String::new()),
        _ => report::render(&comparison, args.format),
    };
    let missing = visible(&comparison.missing.join("; "));
    let _ = writeln!(io::stderr(), "placewise: interrupted; missing: {missing}");
    let print = |text: String| io::stdout().write_all(text.as_bytes());
    let _ = text.map(print).map(|_| io::stdout().flush());
    process::exit(exit_status::INTERRUPTED.into())
}

/// The cases that lack runs, with how many.
fn missing(plan: &Plan, args: &CompareArgs, outcomes: &[OfCase]) -> Vec<String> {
    let lacks = |(case, of_case): (&PlannedCase, &OfCase)| {
        let (done, wanted) = (of_case[0].len(), args.runs() as usize);
        let lacks = wanted.saturating_sub(done);
        let name = if case.name.is_empty() { &args.workload } else { &case.name };
        (lacks > 0).then(|| format!("{lacks} of {wanted} runs of {name}"))
    };
    plan.cases.iter().zip(outcomes).filter_map(lacks).collect()
}

fn comparison_of(plan: &Plan, args: &CompareArgs, outcomes: &[OfCase]) -> Comparison {
    let (mut rows, mut stats) = (Vec::new(), Vec::new());
    let (mut load_balance, mut why) = (Vec::new(), Vec::new());
    let begun = || plan.cases.iter().zip(outcomes).filter(|(_, runs)| !runs[0].is_empty());
    for (case, of_case) in begun() {
        let runs = of_combinations(plan, of_case);
        rows.extend(comparison::rows(&case.name, &series(&runs, |o| &o.figures)));
        if args.stats.is_some() {
            stats.extend(comparison::rows(&case.name, &series(&runs, |o| &o.statistics.figures)));
            load_balance.extend(load_balance::rows(&case.name, &runs));
            why.extend(rows_of_counters(&case.name, &runs));
        }
    }
    let runs = || begun().map(|(_, of_case)| of_case[0].len() as u32);
    let machines = plan.described_machines();
    let Subject { machine, kernel, .. } = plan.combinations[0].subject.clone();
    Comparison {
        reference: Reference { machine, costs_of: machines[0].costs_of.clone(), kernel },
        machines,
        subjects: plan.subjects(),
        release: plan.release.clone(),
        workload: args.workload.clone(),
        runs: runs().max().unwrap_or(args.runs()),
        least_runs: runs().min().unwrap_or(args.runs()),
        seed: args.seed,
        quick: args.quick,
        missing: missing(plan, args, outcomes),
        rows,
        stats,
        why,
        tell_all: args.stats == Some(Stats::All),
        load_balance,
        command: command::command(args, plan),
    }
}

/// The rows of one case for its counters and what load balancing did.
fn rows_of_counters(case: &str, subjects: &[Runs]) -> Vec<comparison::Row> {
    let of_run =
        |run: &Outcome| [run.statistics.figures.clone(), load_balance::figures(run)].concat();
    let of_subject = |of: &Runs| of.outcomes.iter().map(of_run).collect();
    let figures: Vec<Vec<Vec<Figure>>> = subjects.iter().map(of_subject).collect();
    let series: Vec<Series> = subjects
        .iter()
        .zip(&figures)
        .map(|(of, runs)| Series {
            subject: of.subject,
            runs: runs.iter().map(Vec::as_slice).collect(),
        })
        .collect();
    comparison::rows(case, &series)
}
