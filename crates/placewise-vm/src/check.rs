//! Why a run falls short of what its scenario demands.
//!
//! Demanded of every run, so that no scenario says it: the script ends well, the guest has the
//! shape that was asked for, and neither kernel nor sched_ext complains on the console.

use std::path::Path;

use regex::RegexSet;

use crate::boot::Run;
use crate::figures::Figure;
use crate::instruction_counts::InstructionCounts;
use crate::scenario::{Case, Check};

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

impl Check {
    fn shortcoming(&self, kernel: &str, run: &Run) -> anyhow::Result<Option<String>> {
        let (figure, holds, demand) = match self {
            Self::Recorded { counts, recorded } => {
                let figures = run.figures.numbers_of(counts);
                return of_counts(kernel, figures, recorded);
            }
            Self::Console { console } => {
                let missing = !RegexSet::new([console])?.is_match(&run.console);
                return Ok(missing.then(|| format!("the console does not say `{console}`")));
            }
            Self::NotOnConsole { not_on_console } => {
                let pattern = RegexSet::new([not_on_console])?;
                let line = run.console.lines().find(|line| pattern.is_match(line));
                return Ok(line.map(|line| format!("the console says: {line}")));
            }
            Self::Equals { figure, equals } => {
                (figure, run.figures.get(figure) == Some(equals), format!("{equals}"))
            }
            Self::AtLeast { figure, at_least } => {
                let holds = number(run, figure).is_some_and(|number| number >= *at_least);
                (figure, holds, format!("at least {at_least}"))
            }
            Self::AtMost { figure, at_most } => {
                let holds = number(run, figure).is_some_and(|number| number <= *at_most);
                (figure, holds, format!("at most {at_most}"))
            }
            Self::Above { figure, above_figure } => {
                let holds = both(run, figure, above_figure).is_some_and(|(a, b)| a > b);
                (figure, holds, format!("more than {}", described(run, above_figure)))
            }
            Self::Below { figure, below_figure } => {
                let holds = both(run, figure, below_figure).is_some_and(|(a, b)| a < b);
                (figure, holds, format!("less than {}", described(run, below_figure)))
            }
        };
        Ok((!holds).then(|| format!("{}, expected {demand}", described(run, figure))))
    }
}

fn of_counts<'a>(
    kernel: &str,
    figures: impl Iterator<Item = (&'a str, f64)>,
    recorded: &Path,
) -> anyhow::Result<Option<String>> {
    let counts = InstructionCounts {
        kernel: kernel.to_owned(),
        counts: figures.map(|(program, count)| (program.to_owned(), count as u64)).collect(),
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(recorded);
    let recorded = counts.recorded(&path)?;
    if recorded.kernel != kernel {
        return Ok(Some(format!("{} is of Linux {}", path.display(), recorded.kernel)));
    }
    let shortcomings = counts.shortcomings(&recorded);
    Ok((!shortcomings.is_empty()).then(|| shortcomings.join("\n  ")))
}

fn number(run: &Run, name: &str) -> Option<f64> {
    match run.figures.get(name)? {
        Figure::Number(number) => Some(*number),
        Figure::Word(_) => None,
    }
}

fn both(run: &Run, one: &str, other: &str) -> Option<(f64, f64)> {
    Some((number(run, one)?, number(run, other)?))
}

fn described(run: &Run, name: &str) -> String {
    match run.figures.get(name) {
        Some(figure) => format!("{name} = {figure}"),
        None => format!("{name} was not reported"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    fn shortcoming(check: &str) -> Option<String> {
        let run = Run {
            console: "all is well\nsched_ext: enabled\n".into(),
            figures: Figures::parse("on.llcs 4\noff.llcs 1\nerrno EPERM").unwrap(),
        };
        toml::from_str::<Check>(check).unwrap().shortcoming("6.18", &run).unwrap()
    }

    #[test]
    fn bounds_hold_or_are_told() {
        for holds in [
            "figure = 'on.llcs'\nequals = 4",
            "figure = 'errno'\nequals = 'EPERM'",
            "figure = 'on.llcs'\nat_least = 4",
            "figure = 'on.llcs'\nat_most = 4",
            "figure = 'on.llcs'\nabove_figure = 'off.llcs'",
            "figure = 'off.llcs'\nbelow_figure = 'on.llcs'",
            "console = 'sched_ext: .*abled'",
            "not_on_console = 'disabled'",
        ] {
            assert_eq!(shortcoming(holds), None, "{holds}");
        }
        for (check, told) in [
            ("figure = 'on.llcs'\nequals = 3", "on.llcs = 4, expected 3"),
            ("figure = 'errno'\nat_least = 1", "errno = EPERM, expected at least 1"),
            ("figure = 'no'\nat_most = 3", "no was not reported, expected at most 3"),
            (
                "figure = 'off.llcs'\nabove_figure = 'on.llcs'",
                "off.llcs = 1, expected more than on.llcs = 4",
            ),
            ("console = 'disabled'", "the console does not say `disabled`"),
            ("not_on_console = 'well'", "the console says: all is well"),
        ] {
            assert_eq!(shortcoming(check).as_deref(), Some(told));
        }
    }

    #[test]
    fn an_unknown_bound_is_refused() {
        assert!(toml::from_str::<Check>("figure = 'llcs'\nat_lest = 3").is_err());
    }
}
