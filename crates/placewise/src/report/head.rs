//! What stands above the tables of every text for people: what was simulated, on what, how often, and
//! how to read the changes.

use super::change::{FORM, MARKS};
use super::foreign::visible;
use crate::comparison::Comparison;
use crate::subject::{Axis, DescribedMachine};

const SIGN: &str = "positive = better than the first row of the case, whatever the metric";

/// Names and values, in order.
pub fn head(comparison: &Comparison) -> Vec<(&'static str, String)> {
    let mut head = Vec::new();
    for machine in &comparison.machines {
        head.push(("Machine", format!("{} ({})", machine.machine, machine.shape)));
        head.push(("Costs", costs(machine)));
    }
    let values = |axis: Axis| axis.values(&comparison.subjects).join(", ");
    let stands_for = comparison.release.iter().map(|it| format!(", for the running {it}"));
    head.push(("Kernel", values(Axis::Kernel) + &stands_for.collect::<String>()));
    head.push(("Workload", comparison.workload.clone()));
    for (name, axis, plain) in
        [("Cgroups", Axis::Environment, "none"), ("Policy", Axis::Policy, "baseline")]
    {
        // What differs is in the tables.
        if !comparison.axes().contains(&axis) && values(axis) != plain {
            head.push((name, values(axis)));
        }
    }
    let quick = if comparison.quick { ", --quick: a fifth of warm-up and window" } else { "" };
    head.push(("Runs", runs(comparison) + quick));
    if !comparison.missing.is_empty() {
        head.push(("Missing", format!("{} (interrupted)", comparison.missing.join("; "))));
    }
    head
}

/// How to read the changes; nothing where there are none.
pub fn legend(comparison: &Comparison) -> Vec<(&'static str, String)> {
    match comparison.subjects.len() {
        1 => Vec::new(),
        _ => vec![("Change", format!("{SIGN}; {FORM}")), ("Marks", MARKS.to_owned())],
    }
}

/// The lines of them, no wider than `width`.
pub fn lines(fields: &[(&str, String)], width: usize) -> String {
    let field = |(name, value): &(&str, String)| {
        let options = textwrap::Options::new(width)
            .subsequent_indent("          ")
            .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit);
        let name = format!("{name}:");
        textwrap::fill(&format!("{name:<9} {}", visible(value)), options) + "\n"
    };
    fields.iter().map(field).collect()
}

fn costs(DescribedMachine { costs_of, unlike_preset, .. }: &DescribedMachine) -> String {
    let borrowed = if costs_of == "its own" { "" } else { ", not measured here" };
    let shaped = unlike_preset.iter().map(|unlike| format!("; shaped as {unlike}"));
    format!("{costs_of}{borrowed}{}", shaped.collect::<String>())
}

/// How many runs there were, and with which seeds.
fn runs(comparison: &Comparison) -> String {
    let first = comparison.seed;
    let last = first + u64::from(comparison.runs) - 1;
    let of = match comparison.axes()[..] {
        [Axis::Policy] => "case and policy",
        _ => "row",
    };
    match (comparison.least_runs, comparison.runs) {
        (_, 1) => format!("1 per {of}, seed {first}"),
        (least, most) => {
            let number =
                if least == most { most.to_string() } else { format!("{least} to {most}") };
            format!("{number} per {of}, seeds {first} to {last} for each")
        }
    }
}
