//! The advice as text and as JSON: what the replay is worth first, then at most five lines.

use placewise_replay::Group;
use serde::Serialize;

use super::apply::Applied;
use super::goal::{Aim, Goal};
use super::search::Advice;
use crate::change::Change;
use crate::machine_readable::nine_digits;
use crate::replay::Built;
use crate::report::{foreign::visible, number, terminal};

/// Names of tasks that the text has.
const NAMES_SHOWN: usize = 6;

/// Everything that is said.
#[derive(Serialize)]
pub struct Report {
    trace: String,
    machine: String,
    costs_of: String,
    kernel: String,
    policy: String,
    goal: Aim,
    /// Whose figure it is.
    tasks: Vec<String>,
    is_trusted: bool,
    /// Names of tasks of which nothing is said.
    left_out: Vec<String>,
    groups: Vec<GroupRow>,
    candidates: usize,
    advice: Vec<Line>,
    /// What came of that which was carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<Applied>,
}

#[derive(Serialize)]
struct GroupRow {
    name: String,
    tasks: usize,
    /// CPUs that it kept busy.
    load: f64,
}

#[derive(Serialize)]
struct Line {
    what: String,
    #[serde(flatten)]
    change: Predicted,
    /// Whom it makes worse.
    costs: Vec<Cost>,
    commands: Vec<String>,
    undo: Vec<String>,
}

#[derive(Serialize)]
struct Cost {
    task: String,
    #[serde(flatten)]
    change: Predicted,
}

/// Positive is better.
#[derive(Serialize)]
struct Predicted {
    #[serde(serialize_with = "nine_digits")]
    change_pct: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    change_low_pct: Option<f64>,
    #[serde(serialize_with = "nine_digits")]
    change_high_pct: Option<f64>,
}

impl Predicted {
    fn of(change: &Change) -> Self {
        Predicted {
            change_pct: Some(change.pct),
            change_low_pct: change.interval.map(|interval| interval.low),
            change_high_pct: change.interval.map(|interval| interval.high),
        }
    }

    fn text(&self) -> String {
        let told = |value: Option<f64>| value.map_or_else(String::new, number::change);
        let [pct, low, high] =
            [self.change_pct, self.change_low_pct, self.change_high_pct].map(told);
        format!("{pct} % ({low} to {high})")
    }
}

impl Report {
    pub fn new(
        trace: String,
        built: &Built,
        goal: &Goal,
        groups: &[(String, Group)],
        candidates: usize,
        advice: &[Advice<'_>],
    ) -> Self {
        let Built { replay, validation, machine, kernel, .. } = built;
        let length_ns = replay.recording.length_ns.max(1) as f64;
        let of_group = |(name, group): &(String, Group)| GroupRow {
            name: name.clone(),
            tasks: group.tasks.len(),
            load: group.computing as f64 / length_ns,
        };
        Report {
            trace,
            machine: machine.name.clone(),
            costs_of: machine.costs_of.clone(),
            kernel: kernel.name.clone(),
            policy: kernel.policy.name.clone(),
            goal: goal.aim,
            tasks: goal.names.clone(),
            is_trusted: validation.is_trusted && goal.is_believed(),
            left_out: goal.unlike.clone(),
            groups: groups.iter().map(of_group).collect(),
            candidates,
            advice: advice.iter().map(Line::of).collect(),
            applied: None,
        }
    }

    pub fn text(&self) -> String {
        let Report { trace, machine, costs_of, kernel, policy, .. } = self;
        let head = format!("{trace}: on {machine}, costs {costs_of}, {kernel} {policy}");
        let mut text = wrapped(&head);
        if let Some(doubt) = doubt(self.is_trusted, &self.left_out) {
            text += &("\n".to_owned() + &wrapped(&doubt));
        }
        let names = self.names();
        let tried = format!(
            "For {} of {names}: {} candidates. Positive is better.",
            self.goal.name(),
            self.candidates
        );
        if self.candidates > 0 {
            text += &("\n".to_owned() + &wrapped(&tried));
        }
        if self.advice.is_empty() {
            return text + "\n" + &wrapped(self.nothing());
        }
        let lines = self.advice.iter().zip(1..).map(|(line, number)| line.text(number, self.goal));
        text + "\n" + &lines.collect::<Vec<_>>().join("\n")
    }

    /// Of whom the figure is.
    fn names(&self) -> String {
        let shown = self.tasks.len().min(NAMES_SHOWN);
        let names = self.tasks[..shown].join(", ");
        match self.tasks.len() - shown {
            0 => names,
            more => format!("{names} and {more} more"),
        }
    }

    fn nothing(&self) -> &'static str {
        match self.candidates {
            0 => "No advice: there is nothing that could be tried, or believed.",
            _ => "Leave it as it is: nothing that was tried is better beyond noise.",
        }
    }
}

impl Line {
    fn of(advice: &Advice<'_>) -> Self {
        let cost = |(task, change): &(String, Change)| Cost {
            task: task.clone(),
            change: Predicted::of(change),
        };
        Line {
            what: advice.candidate.what.clone(),
            change: Predicted::of(&advice.change),
            costs: advice.costs.iter().map(cost).collect(),
            commands: advice.candidate.commands(),
            undo: advice.candidate.undo(),
        }
    }

    fn text(&self, number: usize, goal: Aim) -> String {
        let what = format!("{number}. {}: {} {}", self.what, goal.name(), self.change.text());
        let cost = |cost: &Cost| format!("{} {}", cost.task, cost.change.text());
        let costs = match self.costs.is_empty() {
            true => "nobody, beyond noise".to_owned(),
            false => self.costs.iter().map(cost).collect::<Vec<_>>().join(", "),
        };
        // Commands are copied: they are not broken into lines.
        let commands = |label: &str, commands: &[String]| {
            // After `&` no shell takes a semicolon.
            format!("   {label}{}\n", visible(&commands.join("; ").replace("&;", "&")))
        };
        wrapped(&what)
            + &wrapped(&format!("   costs {costs}"))
            + &commands("do:   ", &self.commands)
            + &commands("undo: ", &self.undo)
    }
}

fn wrapped(text: &str) -> String {
    textwrap::fill(&visible(text), terminal::lines()) + "\n"
}

/// Whether the replay is to be believed, and of whom nothing is said.
fn doubt(is_trusted: bool, left_out: &[String]) -> Option<String> {
    let distrust = (!is_trusted).then(|| {
        "The replay is not like the trace: do not trust what follows; `placewise replay` says more."
            .to_owned()
    });
    let nothing_of = (!left_out.is_empty()).then(|| {
        format!("Left out, for their replay is not like the trace: {}.", left_out.join(", "))
    });
    let doubts: Vec<String> = distrust.into_iter().chain(nothing_of).collect();
    (!doubts.is_empty()).then(|| doubts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_names_those_left_out_only_where_there_are_some() {
        assert_eq!(doubt(true, &[]), None);
        assert!(doubt(false, &[]).unwrap().ends_with("says more."));
        let web = ["web".to_owned()];
        assert!(doubt(true, &web).unwrap().starts_with("Left out, "));
        assert!(
            doubt(false, &web)
                .unwrap()
                .ends_with("says more. Left out, for their replay is not like the trace: web.")
        );
    }
}
