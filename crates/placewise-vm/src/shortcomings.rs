//! In what a run falls short of what its scenario demands.
//!
//! Demanded of every run, so that no scenario says it: the script ends well, the guest has the
//! shape that was asked for, and neither kernel nor sched_ext complains on the console.

use regex::RegexSet;

use crate::check::Check;
use crate::figures::Figure;
use crate::run::Run;
use crate::scenario::Case;

/// What a kernel in trouble prints.
const COMPLAINTS: &[&str] = &[
    "BUG:",
    "WARNING:",
    "Oops:",
    "Kernel panic",
    "general protection fault",
    "detected stalls|self-detected stall",
    "blocked for more than",
    r"sched_ext: .* disabled \((runtime error|scx_bpf_error|runnable task stall)",
];

/// Everything in which `run` falls short, a line each.
pub fn shortcomings(case: &Case, run: &Run) -> anyhow::Result<Vec<String>> {
    let mut lines = complaints(case, &run.console)?;
    for check in usual(case).iter().chain(&case.scenario.checks) {
        lines.extend(check.shortcoming(&case.kernel, run)?);
    }
    Ok(lines)
}

fn usual(case: &Case) -> Vec<Check> {
    let machine = &case.machine;
    let equals = |figure: &str, number: u32| Check::Equals {
        figure: figure.to_owned(),
        equals: Figure::Number(number.into()),
    };
    vec![
        equals("script.status", 0),
        equals("machine.cpus", machine.cpus()),
        equals("machine.threads_per_core", machine.threads),
        equals("machine.llcs", machine.llcs()),
        equals("machine.nodes", machine.nodes()),
    ]
}

fn complaints(case: &Case, console: &str) -> anyhow::Result<Vec<String>> {
    let complaints = RegexSet::new(COMPLAINTS)?;
    let tolerated = RegexSet::new(case.scenario.tolerates.iter().chain(&case.machine.tolerates))?;
    let bad = |line: &&str| complaints.is_match(line) && !tolerated.is_match(line);
    Ok(console.lines().filter(bad).map(|line| format!("the kernel says: {line}")).collect())
}
