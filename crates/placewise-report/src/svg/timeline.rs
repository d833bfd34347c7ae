//! CPUs over time, rows by LLC, coloured by task: every run where there are few, else what ran
//! longest in each bin. Two traces stand above each other on one axis.

use super::drawing::{Anchor, Area, COLOURS, Drawing, INK, LINE, OTHER, QUIET, time};
use crate::cells::Level;
use crate::recording::Recording;
use crate::runs::RunColumns;

const WIDTH: f64 = 1100.0;
/// Of the names of rows.
const LEFT: f64 = 100.0;
const LABEL: f64 = 16.0;
const AXIS: f64 = 26.0;
/// More runs than this are drawn as bins.
const MOST_RUNS: usize = 30_000;
const TICKS: u32 = 5;
/// How busy a bin was is told in so many steps: neighbours that are alike become one.
const SHADES: f64 = 4.0;

pub fn timeline(recordings: &[Recording]) -> String {
    let longest = recordings.iter().map(|one| one.duration_ns).max().unwrap_or(1).max(1) as f64;
    let names = names(recordings);
    let mut drawing = Drawing::new(WIDTH);
    let mut top = AXIS;
    for tick in 0..=TICKS {
        let share = f64::from(tick) / f64::from(TICKS);
        let anchor = if tick == TICKS { Anchor::End } else { Anchor::Start };
        drawing.text(x(share), AXIS - 8.0, anchor, QUIET, &time(share * longest));
    }
    for recording in recordings {
        if recordings.len() > 1 {
            drawing.text(4.0, top + 12.0, Anchor::Start, INK, &recording.name);
            top += LABEL + 4.0;
        }
        top = Rows { recording, names: &names, longest }.draw(&mut drawing, top);
    }
    let others = [(OTHER, "others".to_owned())];
    let colours = COLOURS.into_iter().zip(&names).map(|(colour, name)| (colour, name.clone()));
    let legend: Vec<(&str, String)> = colours.chain(others).collect();
    let end = drawing.legend(&legend, 8.0, top + 18.0);
    drawing.finish(end, "CPUs over time")
}

/// From 0 to 1.
fn x(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - 8.0)
}

/// Those that ran longest, of all traces, in the order of their colours.
fn names(recordings: &[Recording]) -> Vec<String> {
    let mut ran: Vec<(&str, u64)> = Vec::new();
    for recording in recordings {
        for one in &recording.residency {
            let name = recording.threads[one.thread].name.as_str();
            let ns: u64 = one.ns_by_llc.iter().sum();
            match ran.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += ns,
                None => ran.push((name, ns)),
            }
        }
    }
    ran.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    ran.into_iter().take(COLOURS.len()).map(|(name, _)| name.to_owned()).collect()
}

/// Those of one trace.
struct Rows<'a> {
    recording: &'a Recording,
    names: &'a [String],
    /// The length of the axis.
    longest: f64,
}

impl Rows<'_> {
    /// Returns where it ends.
    fn draw(&self, drawing: &mut Drawing, top: f64) -> f64 {
        let mut y = top;
        let height = match self.recording.shape.nr_cpus() {
            0..=32 => 11.0,
            33..=96 => 7.0,
            _ => 3.0,
        };
        let runs = self.recording.runs.as_ref().filter(|runs| runs.lengths.len() <= MOST_RUNS);
        let of_cpu = runs.map(|runs| self.runs(runs));
        for (llc, cpus) in self.recording.shape.by(|cpu| cpu.llc) {
            let end_of_label = y + LABEL;
            drawing.line([0.0, y], [WIDTH, y]);
            drawing.text(4.0, y + 11.0, Anchor::Start, INK, &format!("LLC {llc}"));
            for cpu in cpus {
                if height > 8.0 {
                    drawing.text(LEFT - 6.0, y + 9.0, Anchor::End, QUIET, &format!("CPU {cpu}"));
                }
                let row = (y, height - 1.0);
                match &of_cpu {
                    Some(of_cpu) => self.draw_runs(drawing, &of_cpu[cpu], row),
                    None => self.draw_cells(drawing, cpu, row),
                }
                y += height;
            }
            y = y.max(end_of_label) + 3.0;
        }
        y
    }

    /// Begin, end and thread of the runs of each CPU.
    fn runs(&self, runs: &RunColumns) -> Vec<Vec<(u64, u64, u16)>> {
        let columns = &self.recording.columns;
        let mut times = runs.gaps.varints(columns).zip(runs.lengths.varints(columns)).zip(0..);
        let of_cpu = |count: &usize| {
            let mut now = 0;
            let one = |((gap, length), at)| {
                let from = now + gap;
                now = from + length;
                (from, now, runs.thread.u16(columns, at))
            };
            times.by_ref().take(*count).map(one).collect()
        };
        runs.of_cpu.iter().map(of_cpu).collect()
    }

    fn colour(&self, thread: u16) -> &'static str {
        let name = &self.recording.threads[usize::from(thread)].name;
        let at = self.names.iter().position(|known| known == name);
        at.map_or(OTHER, |at| COLOURS[at])
    }

    fn draw_runs(&self, drawing: &mut Drawing, runs: &[(u64, u64, u16)], (y, height): (f64, f64)) {
        for (from, to, thread) in runs {
            let [left, right] = [from, to].map(|at| x(*at as f64 / self.longest));
            let area = Area { x: left, y, width: (right - left).max(0.5), height };
            drawing.fill(area, self.colour(*thread), 1.0);
        }
    }

    fn draw_cells(&self, drawing: &mut Drawing, cpu: usize, (y, height): (f64, f64)) {
        let level = self.recording.levels.last().expect("there is one");
        let cell = |bin: usize| self.cell(level, cpu * level.bins + bin);
        let mut begin = 0;
        for end in 1..=level.bins {
            if end < level.bins && cell(end) == cell(begin) {
                continue;
            }
            let (colour, shade) = cell(begin);
            if shade > 0 {
                let [left, right] = [begin, end]
                    .map(|bin| x(((bin as u64 * level.width_ns) as f64 / self.longest).min(1.0)));
                let area = Area { x: left, y, width: right - left, height };
                drawing.fill(area, colour, f64::from(shade) / SHADES);
            }
            begin = end;
        }
    }

    /// Its colour, and how busy it was.
    fn cell(&self, level: &Level, at: usize) -> (&'static str, u8) {
        let columns = &self.recording.columns;
        let shade = (level.busy(columns, at) * SHADES).ceil() as u8;
        match shade {
            0 => (LINE, 0),
            _ => (self.colour(level.thread.u16(columns, at)), shade),
        }
    }
}
