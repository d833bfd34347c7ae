//! Tasks that run or wait, by LLC over time; by node, where there are many LLCs.

use super::axes::Axes;
use super::drawing::{COLOURS, figure, time};
use crate::recording::Recording;

/// Places along the time axis.
const SAMPLES: usize = 240;
const QUARTERS: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

pub fn tasks(recording: &Recording) -> String {
    let llcs = recording.shape.by(|cpu| cpu.llc);
    let (word, groups) = match llcs.len() > COLOURS.len() {
        true => ("node", recording.shape.by(|cpu| cpu.node)),
        false => ("LLC", llcs),
    };
    let curves: Vec<Vec<[f64; 2]>> =
        groups.iter().take(COLOURS.len()).map(|(_, cpus)| curve(recording, cpus)).collect();
    let most = curves.iter().flatten().fold(1.0, |most: f64, [_, tasks]| most.max(*tasks));
    let x_ticks = QUARTERS.map(|share| (share, time(share * recording.duration_ns as f64)));
    let y_ticks = QUARTERS.map(|share| (share, figure(share * most)));
    let mut axes = Axes::new(&x_ticks, &y_ticks, "time");
    for (curve, colour) in curves.iter().zip(COLOURS) {
        let points: Vec<[f64; 2]> = curve.iter().map(|[x, tasks]| [*x, tasks / most]).collect();
        axes.curve(&points, colour, false);
    }
    let legend: Vec<(&str, String)> = groups
        .iter()
        .zip(COLOURS)
        .map(|((id, _), colour)| (colour, format!("{word} {id}")))
        .collect();
    axes.finish(&legend, "Tasks that run or wait")
}

/// Where on the axis, and how many tasks of these CPUs.
fn curve(recording: &Recording, cpus: &[usize]) -> Vec<[f64; 2]> {
    let level = recording.levels.last().expect("there is one");
    let step = level.bins.div_ceil(SAMPLES).max(1);
    let columns = &recording.columns;
    let tasks = |at: usize| level.busy(columns, at) + level.waiting(columns, at);
    let point = |first: usize| {
        let bins = step.min(level.bins - first);
        let of_cpu = |cpu: &usize| {
            let cells = first + cpu * level.bins..first + bins + cpu * level.bins;
            cells.map(tasks).sum::<f64>()
        };
        let sum: f64 = cpus.iter().map(of_cpu).sum();
        let middle = (first as f64 + bins as f64 / 2.0) * level.width_ns as f64;
        [(middle / recording.duration_ns as f64).min(1.0), sum / bins as f64]
    };
    (0..level.bins).step_by(step).map(point).collect()
}
