//! Tables whose cells are as warm as their share of the largest: thread by LLC, LLC by LLC.

use super::drawing::{Anchor, Area, Drawing, HOT, INK, text_width};
use crate::recording::Recording;

const ROW: f64 = 20.0;
const CELL: f64 = 58.0;
/// Threads that are drawn.
const THREADS: usize = 24;

/// Where the threads that ran longest ran: share of the run time of each.
pub fn residency(recording: &Recording) -> String {
    let row = |one: &crate::threads::Residency| {
        let total: u64 = one.ns_by_llc.iter().sum();
        let thread = &recording.threads[one.thread];
        let name = match thread.pid {
            0 => thread.name.clone(),
            pid => format!("{}-{pid}", thread.name),
        };
        (name, one.ns_by_llc.iter().map(|ns| 100.0 * *ns as f64 / total as f64).collect())
    };
    let rows: Vec<(String, Vec<f64>)> = recording.residency.iter().take(THREADS).map(row).collect();
    let header = (0..recording.moves.len()).map(|llc| format!("LLC {llc}"));
    matrix(&header.collect::<Vec<_>>(), &rows, "%", "Where threads ran, by LLC")
}

/// How often tasks ran on another CPU than before, from LLC to LLC.
pub fn moves(recording: &Recording) -> String {
    let row = |(llc, moves): (usize, &Vec<u64>)| {
        (format!("from LLC {llc}"), moves.iter().map(|count| *count as f64).collect())
    };
    let rows: Vec<(String, Vec<f64>)> = recording.moves.iter().enumerate().map(row).collect();
    let header = (0..recording.moves.len()).map(|llc| format!("to {llc}"));
    matrix(&header.collect::<Vec<_>>(), &rows, "", "Moves between LLCs")
}

fn matrix(header: &[String], rows: &[(String, Vec<f64>)], unit: &str, label: &str) -> String {
    let left = rows.iter().map(|(name, _)| text_width(name)).fold(60.0, f64::max) + 16.0;
    let mut drawing = Drawing::new(left + CELL * header.len() as f64 + 12.0);
    for (text, at) in header.iter().zip(0..) {
        drawing.text(left + CELL * (f64::from(at) + 0.9), ROW - 6.0, Anchor::End, INK, text);
    }
    let largest = rows.iter().flat_map(|(_, values)| values).fold(1.0, |a: f64, b| a.max(*b));
    for ((name, values), line) in rows.iter().zip(1..) {
        let y = ROW * f64::from(line);
        drawing.text(8.0, y + 14.0, Anchor::Start, INK, name);
        for (value, at) in values.iter().zip(0..).filter(|(value, _)| **value > 0.0) {
            let x = left + CELL * f64::from(at);
            let cell = Area { x, y, width: CELL - 1.0, height: ROW - 1.0 };
            drawing.fill(cell, HOT, 0.06 + 0.44 * value / largest);
            let text = match (unit, *value < 0.5) {
                ("", _) => format!("{value:.0}"),
                (unit, true) => format!("<1 {unit}"),
                (unit, false) => format!("{value:.0} {unit}"),
            };
            drawing.text(x + CELL * 0.9, y + 14.0, Anchor::End, INK, &text);
        }
    }
    drawing.finish(ROW * (rows.len() as f64 + 1.0) + 8.0, label)
}
