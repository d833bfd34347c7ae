//! How many wakeups of a task took at most so long, on a logarithmic axis.

use std::collections::BTreeMap;

use super::axes::{Axes, Tick};
use super::drawing::{COLOURS, time};
use crate::latency::Distribution;
use crate::recording::Recording;

/// The axis begins at 100 ns.
const FIRST_DECADE: u32 = 2;
const SHARES: [f64; 6] = [0.0, 0.25, 0.5, 0.75, 0.9, 1.0];

/// None without a wakeup. The second recording is dashed.
pub fn latency(recordings: &[Recording]) -> Option<String> {
    let all = || recordings.iter().flat_map(|recording| &recording.latencies);
    let mut names: Vec<&str> = Vec::new();
    for of in all() {
        if !names.contains(&of.name.as_str()) && names.len() < COLOURS.len() {
            names.push(&of.name);
        }
    }
    let longest = all().flat_map(|of| of.by_llc.iter().flatten()).map(|(ns, _)| *ns).max()?;
    let decades = (longest.max(1_000) as f64).log10().ceil() as u32;
    let (span, first) = (f64::from(decades - FIRST_DECADE), f64::from(FIRST_DECADE));
    let tick = |at: u32| (f64::from(at - FIRST_DECADE) / span, time(10_f64.powi(at.cast_signed())));
    let x_ticks: Vec<Tick> = (FIRST_DECADE..=decades).map(tick).collect();
    let y_ticks = SHARES.map(|share| (share, format!("{:.0} %", 100.0 * share)));
    let mut axes = Axes::new(&x_ticks, &y_ticks, "from wakeup to running, at most");
    let along = |ns: u64| (((ns.max(1) as f64).log10() - first) / span).max(0.0);
    for (recording, is_dashed) in recordings.iter().zip([false, true]) {
        for of in &recording.latencies {
            if let Some(at) = names.iter().position(|name| *name == of.name) {
                axes.curve(&steps(of, along), COLOURS[at], is_dashed);
            }
        }
    }
    let mut legend: Vec<(&str, String)> =
        names.iter().zip(COLOURS).map(|(name, colour)| (colour, (*name).to_owned())).collect();
    if let [one, other] = recordings {
        legend.push(("none", format!("solid: {}; dashed: {}", one.name, other.name)));
    }
    Some(axes.finish(&legend, "From wakeup to running"))
}

/// The curve of all LLCs together.
fn steps(of: &Distribution, along: impl Fn(u64) -> f64) -> Vec<[f64; 2]> {
    let mut counts = BTreeMap::new();
    for (ns, count) in of.by_llc.iter().flatten() {
        *counts.entry(*ns).or_insert(0) += count;
    }
    let all: u64 = counts.values().sum();
    let (mut below, mut points) = (0, vec![[0.0, 0.0]]);
    for (ns, count) in counts {
        let x = along(ns);
        points.push([x, below as f64 / all as f64]);
        below += count;
        points.push([x, below as f64 / all as f64]);
    }
    points
}
