//! A bound that a scenario sets on what a boot leaves behind, and why a run falls short of it.

use std::path::{Path, PathBuf};

use regex::RegexSet;
use serde::Deserialize;

use crate::figures::Figure;
use crate::instruction_counts::InstructionCounts;
use crate::run::Run;

/// One bound. `figure` is of the guest, or TRACE.PATH of the audit of a trace; `counts` the prefix of
/// figures that are instructions by program, `recorded` a file of such, relative to this crate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, untagged)]
pub enum Check {
    Equals { figure: String, equals: Figure },
    AtLeast { figure: String, at_least: f64 },
    AtMost { figure: String, at_most: f64 },
    Above { figure: String, above_figure: String },
    Below { figure: String, below_figure: String },
    Console { console: String },
    NotOnConsole { not_on_console: String },
    Recorded { counts: String, recorded: PathBuf },
}

impl Check {
    pub fn shortcoming(&self, kernel: &str, run: &Run) -> anyhow::Result<Option<String>> {
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
