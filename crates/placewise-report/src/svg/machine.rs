//! The machine, as warm as its CPUs were busy: LLCs by node, cores in them, and the threads of each.

use std::collections::BTreeMap;

use super::drawing::{Anchor, Area, Drawing, HOT, INK, LINE, QUIET};
use crate::recording::Recording;

const CELL: f64 = 15.0;
const CORES_IN_A_ROW: usize = 8;
const GAP: f64 = 8.0;
const LABEL: f64 = 18.0;
/// At most.
const WIDTH: f64 = 1100.0;
/// What the colours mean takes so much.
const RAMP: f64 = 270.0;

pub fn machine(recording: &Recording) -> String {
    let mut drawing = Drawing::new(WIDTH);
    let busy = busy(recording);
    let (mut top, mut right) = (GAP, RAMP);
    for (node, cpus) in recording.shape.by(|cpu| cpu.node) {
        let heading = format!("node {node}");
        drawing.text(GAP, top + 12.0, Anchor::Start, INK, &heading);
        top += LABEL;
        let mut llcs: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for cpu in cpus {
            llcs.entry(recording.shape.place(cpu).llc).or_default().push(cpu);
        }
        let (mut left, mut tallest) = (GAP, 0.0_f64);
        for (llc, cpus) in llcs {
            let [width, height] = size(recording, &cpus);
            if left + width > WIDTH && left > GAP {
                (left, top, tallest) = (GAP, top + tallest + GAP, 0.0);
            }
            draw_llc(&mut drawing, recording, llc, &cpus, &busy, [left, top]);
            (left, tallest) = (left + width + GAP, tallest.max(height));
            right = right.max(left);
        }
        top += tallest + GAP;
    }
    ramp(&mut drawing, top);
    drawing.narrow(right);
    drawing.finish(top + LABEL + GAP, "How busy each CPU was")
}

/// The cores of an LLC, each with its threads.
fn cores(recording: &Recording, cpus: &[usize]) -> Vec<Vec<usize>> {
    let mut cores: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    cpus.iter()
        .for_each(|cpu| cores.entry(recording.shape.place(*cpu).core).or_default().push(*cpu));
    cores.into_values().collect()
}

fn core_width(cores: &[Vec<usize>]) -> f64 {
    cores.iter().map(Vec::len).max().unwrap_or(1) as f64 * CELL + 3.0
}

fn size(recording: &Recording, cpus: &[usize]) -> [f64; 2] {
    let cores = cores(recording, cpus);
    let rows = cores.len().div_ceil(CORES_IN_A_ROW) as f64;
    let columns = cores.len().min(CORES_IN_A_ROW) as f64;
    [(columns * core_width(&cores)).max(48.0) + GAP, rows * (CELL + 3.0) + LABEL + 4.0]
}

fn draw_llc(
    drawing: &mut Drawing,
    recording: &Recording,
    llc: u16,
    cpus: &[usize],
    busy: &[f64],
    [x, y]: [f64; 2],
) {
    let [width, height] = size(recording, cpus);
    drawing.frame(Area { x, y, width, height });
    drawing.text(x + 5.0, y + 13.0, Anchor::Start, QUIET, &format!("LLC {llc}"));
    let cores = cores(recording, cpus);
    for (at, core) in cores.iter().enumerate() {
        let left = x + 5.0 + (at % CORES_IN_A_ROW) as f64 * core_width(&cores);
        let top = y + LABEL + (at / CORES_IN_A_ROW) as f64 * (CELL + 3.0);
        for (cpu, x) in core.iter().zip((0..).map(|thread| left + CELL * f64::from(thread))) {
            let cell = Area { x, y: top, width: CELL - 1.0, height: CELL };
            drawing.fill(cell, LINE, 0.5);
            drawing.fill(cell, HOT, busy[*cpu]);
        }
    }
}

fn ramp(drawing: &mut Drawing, y: f64) {
    drawing.text(GAP, y + 11.0, Anchor::Start, INK, "idle");
    for (step, share) in (0..10).map(|step| (f64::from(step), f64::from(step) / 9.0)) {
        let cell = Area { x: 40.0 + 10.0 * step, y, width: 10.0, height: 12.0 };
        drawing.fill(cell, LINE, 0.5);
        drawing.fill(cell, HOT, share);
    }
    drawing.text(146.0, y + 11.0, Anchor::Start, INK, "busy all the time");
}

/// Share of the time that each CPU was busy.
fn busy(recording: &Recording) -> Vec<f64> {
    let level = recording.levels.last().expect("there is one");
    let bins = recording.duration_ns as f64 / level.width_ns as f64;
    let busy = |cpu: usize| {
        let cells = cpu * level.bins..(cpu + 1) * level.bins;
        let sum: f64 = cells.map(|at| level.busy(&recording.columns, at)).sum();
        (sum / bins).min(1.0)
    };
    (0..recording.shape.nr_cpus()).map(busy).collect()
}
