//! Whether a replay is to be trusted: it is run on the recorded machine under the recorded kernel, and
//! measured as the trace was.
//!
//! **Fitted**: the time that the tasks of each name ran. What the cost figures do not say of it (refilled
//! caches; balancing before a CPU idles) is taken out of the computing of that name, by a factor. Nothing
//! else is.
//! **Given**: where tasks begin, those that are forked too. Where they are then is the scheduler's.
//! **Held against the trace**: throughput, latencies, waiting, distances, migrations.
//! **To blame**: the name without whose error most of what is off would not be: its figures are put in as
//! they were recorded. A name whose own figures are right is none.

use std::collections::BTreeMap;

use placewise_audit::Timeline;
use placewise_machine::Machine;
use placewise_policy::Policy;
use placewise_sim::{Scenario, SimError, simulate};
use placewise_trace::{Record, Sink};
use placewise_workload::program::{Nanos, Workload};
use serde::Serialize;

use crate::error::ReplayError;
use crate::measure::{Figures, Measured, Meter};
use crate::programs::{Begins, STARTER};
use crate::read::{Both, Source, read_both, timeline};
use crate::recording::{Recording, Step};

/// How often the computing is fitted.
const FITS: usize = 2;

/// More than that is not for want of a figure.
const LEAST_FACTOR: f64 = 0.1;
const LARGEST_FACTOR: f64 = 2.0;

/// Runs that the trace is held against, by their seeds: where tasks come to sit differs between them.
const SEEDS: [u64; 3] = [1, 2, 3];

/// Who explains no more of what is off is not to blame for it.
const MOST: f64 = 0.5;

const WAKEUPS: &str = "wakeups";

/// Less than this is no reason to fit again.
const FITTED_PCT: f64 = 1.0;

/// A replay that has as many wakeups as its trace but for this part, as a logarithm, lacks no messages; and with messages
/// another one is no better that has them more nearly by less than this: so it is since pgbench on one host was replayed with
/// messages that were none for being a hundredth nearer.
const NEAR: f64 = 0.01;

/// The pid of the first simulated task.
const FIRST_PID: u32 = 1000;

/// Fewer wakeups have no 99th percentile.
const WAKEUPS_OF_P99: u64 = 100;

/// Errors above these are too large to trust what a replay says of a change.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limits {
    pub throughput_pct: f64,
    pub p50_pct: f64,
    pub p99_pct: f64,
    pub distance_points: f64,
}

impl Limits {
    pub const STATED: Limits =
        Limits { throughput_pct: 20.0, p50_pct: 20.0, p99_pct: 40.0, distance_points: 10.0 };
}

/// A figure of the trace and of its replay.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    pub figure: &'static str,
    pub unit: &'static str,
    pub recorded: f64,
    pub replayed: f64,
    /// In percent of what was recorded, for shares in points; `None` where nothing was recorded.
    pub error: Option<f64>,
    /// The largest error with which the replay is trusted.
    pub limit: Option<f64>,
}

impl Compared {
    pub fn is_off(&self) -> bool {
        // Most traces tell microseconds.
        let is_told = self.unit != "us" || (self.replayed - self.recorded).abs() > 1.01;
        let is_beyond =
            matches!((self.error, self.limit), (Some(error), Some(limit)) if error.abs() > limit);
        is_told && is_beyond
    }
}

/// A replay beside its recording.
#[derive(Clone, Debug, Serialize)]
pub struct Validation {
    pub limits: Limits,
    pub all: Vec<Compared>,
    /// Of the tasks of each name, those that ran most first.
    pub by_name: Vec<(String, Vec<Compared>)>,
    /// What is wrong says why no change is to be believed.
    pub is_trusted: bool,
    /// Whose errors explain most of what is off, if those of one name do.
    pub blamed: Option<String>,
    #[serde(skip)]
    pub fitted: Fitted,
}

/// By what the computing of each name was multiplied.
#[derive(Clone, Debug, Default)]
pub struct Fitted(BTreeMap<String, f64>);

impl Fitted {
    /// To another recording of the same load.
    pub fn apply(&self, recording: &mut Recording) {
        for (name, factor) in &self.0 {
            recording.scale_computing(name, *factor);
        }
    }
}

/// The recording of a trace whose tasks are woken as often as those of the trace, or nearly so: as if each
/// wakeup were for one message, or with those that are inferred if that is not near. It is validated.
pub fn replayed(source: &Source<'_>) -> Result<(Recording, Measured, Validation), ReplayError> {
    let Source { machine, kernel, .. } = *source;
    let Both { plain: mut recording, with_messages, measured } = read_both(source)?;
    let mut validation = validate(&mut recording, &measured, machine, kernel)?;
    if let Some(mut other) = with_messages.filter(|_| validation.lacks_messages()) {
        let of_other = unless_deadlocked(validate(&mut other, &measured, machine, kernel))?;
        if let Some(of_other) = of_other.filter(|it| it.is_nearer_than(&validation)) {
            (recording, validation) = (other, of_other);
        }
    }
    Ok((recording, measured, validation))
}

/// `None` where tasks wait for each other for ever: it is wrong, what was inferred of them.
fn unless_deadlocked(
    validated: Result<Validation, ReplayError>,
) -> Result<Option<Validation>, ReplayError> {
    match validated {
        Err(ReplayError::Sim(SimError::Deadlock { .. })) => Ok(None),
        validated => validated.map(Some),
    }
}

impl Validation {
    /// Tasks are not woken as often as recorded.
    fn lacks_messages(&self) -> bool {
        self.off_in_wakeups() > NEAR
    }

    /// Its wakeups are nearer to those recorded, by enough to believe in messages that no trace shows.
    fn is_nearer_than(&self, plain: &Validation) -> bool {
        self.off_in_wakeups() + NEAR < plain.off_in_wakeups()
    }

    /// By what factor there are more wakeups than recorded, or fewer, as its logarithm.
    fn off_in_wakeups(&self) -> f64 {
        let row = self.all.iter().find(|row| row.figure == WAKEUPS);
        row.map_or(0.0, |row| (row.replayed.max(1.0) / row.recorded.max(1.0)).ln().abs())
    }
}

/// Fits the recording's computing, and compares its replay with what was recorded.
pub fn validate(
    recording: &mut Recording,
    recorded: &Measured,
    machine: &Machine,
    kernel: &Policy,
) -> Result<Validation, ReplayError> {
    let mut runs = replays(recording, recorded, machine, kernel)?;
    let mut fitted = Fitted::default();
    for _ in 0..FITS {
        if !fit(recording, recorded, &runs, &mut fitted) {
            break;
        }
        runs = replays(recording, recorded, machine, kernel)?;
    }
    Ok(Validation { fitted, ..compare(recording, recorded, runs) })
}

fn replays(
    recording: &Recording,
    recorded: &Measured,
    machine: &Machine,
    kernel: &Policy,
) -> Result<Vec<Measured>, ReplayError> {
    let workload = recording.workload("replay", machine, Begins::AsRecorded);
    let tells_nanos = recorded.tells_nanos;
    SEEDS.iter().map(|seed| rerun(&workload, machine, kernel, *seed, tells_nanos)).collect()
}

/// One run of a recording's workload, measured as finely as its trace tells the time.
pub fn rerun(
    workload: &Workload,
    machine: &Machine,
    policy: &Policy,
    seed: u64,
    tells_nanos: bool,
) -> Result<Measured, ReplayError> {
    let scenario = Scenario { machine, policy, workload, seed };
    let meter = Meter::new(machine, policy, Some(FIRST_PID))?;
    let mut run = Run { timeline: timeline(machine), meter, tells_nanos };
    simulate(&scenario, Some(&mut run))?;
    run.timeline.end();
    run.drain();
    Ok(run.meter.end(run.timeline.tasks()))
}

struct Run {
    timeline: Timeline,
    meter: Meter,
    tells_nanos: bool,
}

impl Run {
    fn drain(&mut self) {
        while let Some(step) = self.timeline.pop() {
            self.meter.step(&step, self.timeline.tasks());
        }
    }
}

impl Sink for Run {
    fn record(&mut self, record: &Record<'_>) {
        let time_ns = match self.tells_nanos {
            true => record.time_ns,
            false => record.time_ns / 1_000 * 1_000,
        };
        self.timeline.push(&Record { time_ns, ..record.clone() });
        self.drain();
    }
}

/// Brings the time that the tasks of each name ran nearer to what was recorded; false where it is near.
fn fit(
    recording: &mut Recording,
    recorded: &Measured,
    runs: &[Measured],
    fitted: &mut Fitted,
) -> bool {
    let mut is_far = false;
    for (name, computed) in recording.names() {
        let Some(was) = recorded.by_name.get(&name).map(|was| was.run_ns as f64) else { continue };
        let ran =
            mean(runs.iter().filter_map(|run| run.by_name.get(&name)).map(|is| is.run_ns as f64));
        let (computed, excess) = (computed as f64, ran - was);
        if computed > 0.0 && excess.abs() * 100.0 > FITTED_PCT * was {
            let factor = ((computed - excess) / computed).clamp(LEAST_FACTOR, LARGEST_FACTOR);
            recording.scale_computing(&name, factor);
            *fitted.0.entry(name).or_insert(1.0) *= factor;
            is_far = true;
        }
    }
    is_far
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    if count > 0.0 { sum / count } else { 0.0 }
}

impl Recording {
    /// What the tasks of a name computed.
    fn scale_computing(&mut self, name: &str, factor: f64) {
        let tasks = self.tasks.iter_mut().filter(|task| task.name == name);
        for step in tasks.flat_map(|task| &mut task.steps) {
            if let Step::Run(ns) = step {
                *ns = (*ns as f64 * factor) as Nanos;
            }
        }
    }
}

/// Each figure is the median of the runs.
fn compare(recording: &Recording, recorded: &Measured, runs: Vec<Measured>) -> Validation {
    let all = median_of_all(recorded, &runs);
    let nothing = Figures::default();
    let of_name = |name: &str| {
        let was = recorded.by_name.get(name)?;
        let rows =
            runs.iter().map(|run| rows_of_name(was, run.by_name.get(name).unwrap_or(&nothing)));
        Some(medians(rows.collect()))
    };
    let names = recording.names().into_iter().filter(|(name, _)| name != STARTER);
    let by_name = names.filter_map(|(name, _)| of_name(&name).map(|rows| (name, rows))).collect();
    let is_trusted = !all.iter().any(Compared::is_off);
    let blamed = (!is_trusted).then(|| blamed(recorded, runs, &all)).flatten();
    Validation {
        limits: Limits::STATED,
        all,
        by_name,
        is_trusted,
        blamed,
        fitted: Fitted::default(),
    }
}

/// The runs have the same rows.
fn medians(runs: Vec<Vec<Compared>>) -> Vec<Compared> {
    let median = |row: usize| {
        let mut of_runs: Vec<&Compared> = runs.iter().map(|rows| &rows[row]).collect();
        of_runs.sort_by(|a, b| a.replayed.total_cmp(&b.replayed));
        of_runs[of_runs.len() / 2].clone()
    };
    (0..runs[0].len()).map(median).collect()
}

fn median_of_all(recorded: &Measured, runs: &[Measured]) -> Vec<Compared> {
    medians(runs.iter().map(|run| rows_of_all(recorded, run)).collect())
}

fn rows_of_all(recorded: &Measured, replayed: &Measured) -> Vec<Compared> {
    let mut rows = vec![throughput(recorded, replayed)];
    rows.extend(compared(&recorded.all, &replayed.all));
    rows.extend(distances(&recorded.all, &replayed.all));
    rows
}

fn rows_of_name(was: &Figures, is: &Figures) -> Vec<Compared> {
    let throughput = Compared::throughput([was, is].map(|it| rate(was, it)));
    std::iter::once(throughput).chain(compared(was, is)).collect()
}

/// The name whose own error explains most of what is off in `all`.
fn blamed(recorded: &Measured, mut runs: Vec<Measured>, all: &[Compared]) -> Option<String> {
    let off: Vec<&Compared> = all.iter().filter(|row| row.is_off()).collect();
    let names = recorded.by_name.keys();
    let shares = names.map(|name| (name, explained(name, recorded, &mut runs, &off)));
    let worst = shares.max_by(|a, b| a.1.total_cmp(&b.1));
    worst.filter(|(_, share)| *share > MOST).map(|(name, _)| name.clone())
}

/// What part of what is `off` would not be if the tasks of this name had done as recorded, where their
/// own figures are off.
fn explained(name: &str, recorded: &Measured, runs: &mut [Measured], off: &[&Compared]) -> f64 {
    let was = &recorded.by_name[name];
    let own = medians(runs.iter().map(|run| rows_of_one(was, run.by_name.get(name))).collect());
    let is_own = |row: &Compared| own.iter().any(|it| it.figure == row.figure && it.is_off());
    if !off.iter().any(|row| is_own(row)) {
        return 0.0;
    }
    let replayed: Vec<Figures> =
        runs.iter_mut().map(|run| run.replace(name, was.clone())).collect();
    let without = median_of_all(recorded, runs);
    for (run, figures) in runs.iter_mut().zip(replayed) {
        run.replace(name, figures);
    }
    let left = |row: &Compared| without.iter().find(|it| it.figure == row.figure)?.error;
    mean(off.iter().map(|row| match (row.error, left(row)) {
        (Some(error), Some(left)) if is_own(row) => 1.0 - left.abs() / error.abs(),
        _ => 0.0,
    }))
}

/// Of the tasks of a name, all that those of all names are held to.
fn rows_of_one(was: &Figures, is: Option<&Figures>) -> Vec<Compared> {
    let nothing = Figures::default();
    let is = is.unwrap_or(&nothing);
    rows_of_name(was, is).into_iter().chain(distances(was, is)).collect()
}

/// Recorded stretches of computing per second, in as long as it took `figures` to come to their last.
fn rate(recorded: &Figures, figures: &Figures) -> f64 {
    if figures.until_ns == 0 {
        0.0
    } else {
        recorded.segments as f64 * 1e9 / figures.until_ns as f64
    }
}

/// Of all names, each until its own end: one that sleeps now and then would hide the others'. Those
/// that were soon done have no rate to speak of.
fn throughput(recorded: &Measured, replayed: &Measured) -> Compared {
    let nothing = Figures::default();
    let goes_on = |was: &Figures| was.until_ns >= recorded.all.until_ns / 10;
    let going = recorded.by_name.iter().filter(|(_, was)| goes_on(was));
    let rates = going.map(|(name, was)| {
        let is = replayed.by_name.get(name).unwrap_or(&nothing);
        [was, is].map(|it| rate(was, it))
    });
    Compared::throughput(rates.fold([0.0; 2], |all, more| [all[0] + more[0], all[1] + more[1]]))
}

fn compared(was: &Figures, is: &Figures) -> Vec<Compared> {
    let limits = Limits::STATED;
    let mut rows = vec![
        relative("run_time", "ms", [was, is].map(|it| it.run_ns as f64 / 1e6)),
        relative(WAKEUPS, "", [was, is].map(|it| it.wakeups as f64)),
    ];
    let quantiles = [("latency_p50", 0.5, limits.p50_pct), ("latency_p99", 0.99, limits.p99_pct)];
    for (figure, quantile, limit) in quantiles {
        let latency = |it: &Figures| it.latency_ns(quantile).unwrap_or(0) as f64 / 1e3;
        let row = relative(figure, "us", [was, is].map(latency));
        let counts = quantile < 0.9 || was.latencies() >= WAKEUPS_OF_P99;
        rows.push(if counts { row.within(limit) } else { row });
    }
    rows.push(relative("waited_behind", "ms", [was, is].map(|it| it.behind_ns as f64 / 1e6)));
    rows.push(relative("migrations", "", [was, is].map(|it| it.migrations as f64)));
    rows
}

fn distances(was: &Figures, is: &Figures) -> impl Iterator<Item = Compared> {
    let names = ["on_same_cpu", "on_smt", "on_llc", "on_other_llc", "on_other_node"];
    let shares = was.distances_pct().into_iter().zip(is.distances_pct());
    names.into_iter().zip(shares).map(|(figure, (recorded, replayed))| Compared {
        figure,
        unit: "%",
        recorded,
        replayed,
        error: Some(replayed - recorded),
        limit: Some(Limits::STATED.distance_points),
    })
}

fn relative(figure: &'static str, unit: &'static str, [recorded, replayed]: [f64; 2]) -> Compared {
    let error = (recorded > 0.0).then(|| (replayed - recorded) * 100.0 / recorded);
    Compared { figure, unit, recorded, replayed, error, limit: None }
}

impl Compared {
    fn throughput(rates: [f64; 2]) -> Self {
        relative("throughput", "segments/s", rates).within(Limits::STATED.throughput_pct)
    }

    fn within(self, limit: f64) -> Self {
        Compared { limit: Some(limit), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each name its wakeups, what each waited, and when it was done.
    type Tasks<'a> = &'a [(&'a str, u32, Nanos, Nanos)];

    const DONE: Nanos = 1_000_000_000;

    fn measured(tasks: Tasks<'_>) -> Measured {
        let mut measured = Measured::default();
        for &(name, wakeups, waited, until_ns) in tasks {
            let mut figures = Figures::waited(wakeups, waited);
            (figures.segments, figures.until_ns) = (1_000, until_ns);
            measured.replace(name, figures);
        }
        measured
    }

    fn blamed_of(recorded: Tasks<'_>, replayed: Tasks<'_>) -> Option<String> {
        let (recorded, runs) = (measured(recorded), vec![measured(replayed)]);
        let all = median_of_all(&recorded, &runs);
        assert!(all.iter().any(Compared::is_off), "{all:?}");
        blamed(&recorded, runs, &all)
    }

    #[test]
    fn a_replay_with_the_wakeups_of_its_trace_lacks_no_messages() {
        let replayed = |replayed| {
            let [was, is] = [1_000, replayed].map(|count| measured(&[("a", count, 10, DONE)]));
            compare(&Recording::default(), &was, vec![is])
        };
        let lacks = |count| replayed(count).lacks_messages();
        assert_eq!([980, 995, 1_005, 1_020].map(lacks), [true, false, false, true]);
        let is_nearer = |count| replayed(count).is_nearer_than(&replayed(980));
        assert_eq!(
            [960, 985, 1_000, 1_005, 1_015].map(is_nearer),
            [false, false, true, true, false]
        );
    }

    #[test]
    fn what_is_inferred_is_given_up_where_it_deadlocks_and_for_nothing_else() {
        let workload = "replay".to_owned();
        let deadlock = SimError::Deadlock { workload: workload.clone(), seconds: 1.0 };
        assert!(matches!(unless_deadlocked(Err(deadlock.into())), Ok(None)));
        let large = SimError::TooManyTasks { workload, limit: 1 };
        assert!(unless_deadlocked(Err(large.into())).is_err());
    }

    #[test]
    fn who_explains_most_of_an_error_is_to_blame() {
        let recorded = [("a", 3_000, 10_000, DONE), ("b", 1_000, 10_000, DONE)];
        let replayed = [("a", 3_000, 90_000, DONE), ("b", 1_000, 13_000, DONE)];
        assert_eq!(
            blamed_of(&recorded, &replayed).as_deref(),
            Some("a"),
            "p50 is that of its waits"
        );
        let replayed = [("a", 3_000, 10_000, DONE), ("b", 1_000, 10_000, 9 * DONE)];
        assert_eq!(blamed_of(&recorded, &replayed).as_deref(), Some("b"), "it takes longer");
    }

    /// Both wait as recorded; five wakeups more, and the median is that of the others.
    #[test]
    fn nobody_is_to_blame_for_a_median_between_two_groups_of_waits() {
        let recorded = [("a", 1_000, 10_000, DONE), ("b", 998, 90_000, DONE)];
        let replayed = [("a", 1_000, 10_000, DONE), ("b", 1_003, 90_000, DONE)];
        assert_eq!(blamed_of(&recorded, &replayed), None);
    }

    #[test]
    fn nobody_is_to_blame_for_what_all_do_alike() {
        let recorded = ["a", "b", "c"].map(|name| (name, 1_000, 10_000, DONE));
        let replayed = ["a", "b", "c"].map(|name| (name, 1_000, 10_000, 2 * DONE));
        assert_eq!(blamed_of(&recorded, &replayed), None);
    }
}
