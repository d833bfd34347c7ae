//! How far a study is, and how long it takes still: a bar on a terminal, nothing elsewhere.
//!
//! The estimate goes by what the cells of each group took so far, for groups differ by a factor of
//! hundreds. As long as a group has not run at all, it is said to be the least it can take.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::cell::Cell;

pub struct Progress {
    bar: ProgressBar,
    jobs: usize,
    groups: Vec<((usize, usize), Times)>,
}

#[derive(Default)]
struct Times {
    wanted: u32,
    done: u32,
    took: Duration,
}

impl Progress {
    pub fn new(open: &[Cell], jobs: usize) -> Self {
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} cells{msg}");
        let bar = ProgressBar::new(open.len() as u64).with_style(style.expect("it is well formed"));
        let mut progress = Self { bar, jobs, groups: Vec::new() };
        open.iter().for_each(|cell| progress.of(*cell).wanted += 1);
        progress
    }

    pub fn done(&mut self, cell: Cell, took: Duration) {
        let times = self.of(cell);
        times.done += 1;
        times.took += took;
        self.bar.inc(1);
        self.bar.set_message(left(self.groups.iter().map(|(_, times)| times), self.jobs));
    }

    pub fn tick(&self) {
        self.bar.tick();
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn of(&mut self, cell: Cell) -> &mut Times {
        let group = (cell.part, cell.group);
        // Those of a round come group by group: it is near the end.
        let at = self.groups.iter().rposition(|(known, _)| *known == group);
        let at = at.unwrap_or_else(|| {
            self.groups.push((group, Times::default()));
            self.groups.len() - 1
        });
        &mut self.groups[at].1
    }
}

/// `, about 2m 5s left`
fn left<'a>(groups: impl Iterator<Item = &'a Times>, jobs: usize) -> String {
    let (mut left, mut unknown) = (Duration::ZERO, false);
    for times in groups {
        match times.done {
            0 => unknown = true,
            done => left += times.took / done * (times.wanted - done),
        }
    }
    let seconds = (left / jobs as u32).as_secs_f64().ceil() as u64;
    let time = humantime::format_duration(Duration::from_secs(seconds));
    format!(", {} {time} left", if unknown { "at least" } else { "about" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_goes_by_what_its_group_took() {
        let times =
            |wanted, done, seconds| Times { wanted, done, took: Duration::from_secs(seconds) };
        let told = |groups: &[Times]| left(groups.iter(), 2);
        assert_eq!(told(&[times(10, 10, 1), times(10, 5, 500)]), ", about 4m 10s left");
        assert_eq!(told(&[times(10, 5, 10), times(10, 0, 0)]), ", at least 5s left");
    }
}
