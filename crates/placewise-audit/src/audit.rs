//! One pass over a trace: the kernel's decisions beside those of its own policy and of others.
//!
//! ```text
//! reader -> Timeline -> one Reconstruction per policy -> tallies
//! ```
//!
//! Memory does not grow with the length of the trace. The policies see the same steps; after each
//! decision all of them go on from where the kernel put the task, so a difference between two of
//! them is that of one decision, not of what followed from earlier ones.

use std::collections::BTreeMap;

use placewise_machine::{Machine, MachineError};
use placewise_policy::{Policy, State};
use placewise_trace::{Header, Losses, Record, TraceError, TraceReader};

use crate::cost::places::{ByNearest, Nearest};
use crate::cost::{Cost, CostReport};
use crate::judge::inference::InferenceCounts;
use crate::reconstruction::Reconstruction;
use crate::recorded::RecordedDecisions;
use crate::report::agreement::Agreement;
use crate::report::explain::Sight;
use crate::report::moves::{Moves, Placements};
use crate::report::other::Other;
use crate::steps::selection::Selection;
use crate::steps::step::{Action, Step};
use crate::steps::task::{TaskNumber, Tasks};
use crate::steps::timeline::{Repairs, Timeline};
use crate::verdict::{NoPlacement, Placed, Verdict};
use crate::world::stated::Stated;
use placewise_policy::Distance;

const NSEC_PER_SEC: u64 = 1_000_000_000;
/// Later times, of some hundred years, are no clock's: room to reckon with those before.
const LATEST_NS: u64 = 1 << 62;
/// Steps between two calls of [`Observer::progress`].
const PROGRESS_STEP: u64 = 1 << 16;

/// What to audit a trace with.
pub struct Options<'a> {
    pub machine: &'a Machine,
    /// That of the kernel that made the trace.
    pub kernel: &'a Policy,
    /// What else the kernel might have done.
    pub others: &'a [Policy],
    /// Only these tasks count: a name, a pattern, a pid or a cgroup.
    pub task: Option<&'a str>,
}

#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(
        "line {line}: an event at {seconds} s: expected a clock that counts from boot, such as `mono`"
    )]
    Clock { line: u64, seconds: u64 },
    #[error("no task of the trace is `{wanted}`; there are {}", some(names))]
    NoTask { wanted: String, names: Vec<String> },
    #[error("no task of the trace is in the cgroup `{wanted}`; {}", known(paths))]
    NoCgroup { wanted: String, paths: Vec<String> },
}

/// What cgroups the header names.
fn known(paths: &[String]) -> String {
    match paths {
        [] => "it says of no task in which cgroup it is, as traces of `placewise record` do".into(),
        paths => format!("there are {}", some(paths)),
    }
}

/// Names that an error tells.
const NAMES_TOLD: usize = 24;

/// `a, b, c and 12 more`
fn some(names: &[String]) -> String {
    let told = names[..names.len().min(NAMES_TOLD)].join(", ");
    match names.len().saturating_sub(NAMES_TOLD) {
        0 => told,
        more => format!("{told} and {more} more"),
    }
}

/// Everything about a trace.
#[derive(Debug)]
pub struct Audit {
    pub events: u64,
    pub losses: Losses,
    pub repairs: Repairs,
    pub moves: Moves,
    /// Most moves first.
    pub moves_by_name: Vec<(String, Moves)>,
    pub cost: CostReport,
    /// With what decisions read, where the trace has recorded it.
    pub agreement: Agreement,
    /// Without, if it has.
    pub plain: Option<Agreement>,
    /// Wakeups and forks that ran no placement, by reason.
    pub no_placement: BTreeMap<NoPlacement, u64>,
    /// What was inferred for the kernel's own policy.
    pub inferred: InferenceCounts,
    /// Where the kernel's policy would have gone.
    pub predicted: Moves,
    /// One for each of [`Options::others`].
    pub others: Vec<Other>,
}

/// A decision as it is taken.
pub struct Decided<'a> {
    /// From 1, in the order of the trace; tasks that do not count have none.
    pub number: u64,
    /// As the trace has it.
    pub time_ns: u64,
    pub placed: &'a Placed,
    /// Where the nearest idle CPU was that it missed.
    pub missed: Option<Nearest>,
    /// What the decision saw and overwrote.
    pub sight: &'a Sight,
    /// Under the kernel's policy, once the decision was taken.
    pub state: &'a State,
    pub tasks: &'a Tasks,
}

/// A step once it was taken.
pub struct Stepped<'a> {
    pub step: &'a Step,
    /// Under the kernel's policy, after the step.
    pub state: &'a State,
    pub tasks: &'a Tasks,
    cost: &'a Cost,
}

impl Stepped<'_> {
    /// How many tasks wait beside an idle CPU that they may use, until the next step.
    pub fn beside_idle(&self) -> ByNearest<u64> {
        self.cost.beside_idle()
    }
}

/// Looks on while a trace is audited. The decision of a step comes after the step.
pub trait Observer {
    fn progress(&mut self, _events: u64) {}
    /// As it is read: what is decided there comes later.
    fn read(&mut self, _record: &Record<'_>) {}
    fn stepped(&mut self, _step: &Stepped<'_>) {}
    fn decided(&mut self, _decision: &Decided<'_>) {}
}

impl Observer for () {}

/// Reads the trace to its end.
pub fn audit(
    reader: &mut TraceReader,
    options: &Options<'_>,
    observer: &mut dyn Observer,
) -> Result<Audit, AuditError> {
    let mut pass = Pass::new(reader.header(), options, observer)?;
    let tick_ns = NSEC_PER_SEC / u64::from(options.machine.costs.hz);
    let overwritten = reader.header().overrun.is_some_and(|cpus| cpus > 0);
    let select = |task| Selection::of(task, &reader.header().cgroups);
    let selection = options.task.map(select).unwrap_or_default();
    let mut timeline =
        Timeline::new(options.machine.cpus.len() as u32, tick_ns, overwritten).about(selection);
    let mut events = 0;
    while let Some(record) = &reader.next_record()? {
        if record.time_ns > LATEST_NS {
            let seconds = record.time_ns / NSEC_PER_SEC;
            return Err(AuditError::Clock { line: reader.line_number(), seconds });
        }
        pass.observer.read(record);
        timeline.push(record);
        events += 1;
        if events % PROGRESS_STEP == 0 {
            pass.observer.progress(events);
        }
        pass.drain(&mut timeline);
    }
    timeline.end();
    pass.drain(&mut timeline);
    match options.task {
        Some(wanted) if !timeline.tasks().any_counts() => {
            Err(no_task(wanted.to_owned(), timeline.tasks(), reader.header()))
        }
        _ => Ok(pass.finish(events, &timeline, reader)),
    }
}

fn no_task(wanted: String, tasks: &Tasks, header: &Header) -> AuditError {
    match wanted.starts_with('/') {
        true => AuditError::NoCgroup { wanted, paths: header.cgroups.keys().cloned().collect() },
        false => {
            let names = tasks.names().into_iter().map(str::to_owned).collect();
            AuditError::NoTask { wanted, names }
        }
    }
}

struct Pass<'o> {
    observer: &'o mut dyn Observer,
    kernel: Reconstruction,
    others: Vec<Reconstruction>,
    placements: Placements,
    cost: Cost,
    agreement: Agreement,
    no_placement: BTreeMap<NoPlacement, u64>,
    predicted: Moves,
    recorded: RecordedDecisions,
    from_recorded: Agreement,
    differences: Vec<Other>,
    decisions: u64,
    /// Of the steps so far.
    silent_ns: u64,
}

impl<'o> Pass<'o> {
    fn new(
        header: &Header,
        options: &Options<'_>,
        observer: &'o mut dyn Observer,
    ) -> Result<Self, MachineError> {
        let stated = Stated::of(header);
        let reconstruct = |policy| Reconstruction::new(options.machine, policy, &stated);
        let kernel = reconstruct(options.kernel)?;
        Ok(Pass {
            observer,
            cost: Cost::new(options.machine, kernel.state()),
            kernel,
            others: options.others.iter().map(reconstruct).collect::<Result<_, _>>()?,
            placements: Placements::default(),
            agreement: Agreement::default(),
            no_placement: BTreeMap::new(),
            recorded: RecordedDecisions::new(options.machine, options.kernel),
            from_recorded: Agreement::default(),
            predicted: Moves::default(),
            differences: vec![Other::default(); options.others.len()],
            decisions: 0,
            silent_ns: 0,
        })
    }

    fn drain(&mut self, timeline: &mut Timeline) {
        while let Some(step) = timeline.pop() {
            self.step(&step, timeline.tasks());
        }
    }

    fn step(&mut self, step: &Step, tasks: &Tasks) {
        if let Action::Silence { ns } = step.action {
            self.silent_ns += ns;
        }
        let sight = Sight::before(step, self.kernel.state());
        let mut verdict = self.kernel.step(step, tasks);
        if !counts(step, &verdict, tasks) {
            verdict = Verdict::Nothing;
        }
        if let Some(placed) = self.recorded.step(step)
            && tasks.get(placed.task).counts
        {
            self.from_recorded.record(&placed, self.kernel.state());
        }
        let missed = self.cost.step(step, &verdict, self.kernel.state(), tasks);
        let (state, cost) = (self.kernel.state(), &self.cost);
        self.observer.stepped(&Stepped { step, state, tasks, cost });
        if let Action::Migrate { task, from, to, placement: false } = step.action
            && tasks.get(task).counts
        {
            let distance = Distance::of(self.kernel.state(), from, to);
            self.placements.balanced(distance, tasks.get(task).name);
        }
        let answers: Vec<Verdict> =
            self.others.iter_mut().map(|other| other.step(step, tasks)).collect();
        match verdict {
            Verdict::Placed(placed) => {
                let sight = sight.unwrap_or_else(|| Sight::of(placed.task, self.kernel.state()));
                self.placed(step, &placed, missed, &answers, &sight, tasks);
            }
            Verdict::NoPlacement(why) => *self.no_placement.entry(why).or_default() += 1,
            Verdict::Nothing => {}
        }
    }

    fn placed(
        &mut self,
        step: &Step,
        placed: &Placed,
        missed: Option<Nearest>,
        answers: &[Verdict],
        sight: &Sight,
        tasks: &Tasks,
    ) {
        let state = self.kernel.state();
        self.decisions += 1;
        self.agreement.record(placed, state);
        let distance = Distance::of(state, placed.prev_cpu, placed.actual);
        self.placements.placed(placed.kind, distance, tasks.get(placed.task).name);
        let distance = Distance::of(state, placed.prev_cpu, placed.predicted);
        self.predicted.placed(placed.kind, distance);
        for (other, answer) in self.differences.iter_mut().zip(answers) {
            if let Verdict::Placed(answer) = answer {
                other.record(placed, answer.predicted, state);
            }
        }
        let (number, time_ns) = (self.decisions, step.time_ns + self.silent_ns);
        self.observer.decided(&Decided { number, time_ns, placed, missed, sight, state, tasks });
    }

    fn finish(mut self, events: u64, timeline: &Timeline, reader: &TraceReader) -> Audit {
        let (agreement, plain) = if self.from_recorded == Agreement::default() {
            (self.agreement, None)
        } else {
            (self.from_recorded, Some(self.agreement))
        };
        Audit {
            events,
            losses: reader.losses().clone(),
            repairs: timeline.repairs(),
            moves: self.placements.overall,
            moves_by_name: self.placements.by_name(timeline.tasks()),
            cost: self.cost.report(timeline.tasks()),
            agreement,
            plain,
            no_placement: self.no_placement,
            inferred: self.kernel.inferred(),
            predicted: self.predicted,
            others: self.differences,
        }
    }
}

/// Is the verdict about a task that counts?
fn counts(step: &Step, verdict: &Verdict, tasks: &Tasks) -> bool {
    let about = match verdict {
        Verdict::Placed(placed) => Some(placed.task),
        Verdict::NoPlacement(_) => woken(step),
        Verdict::Nothing => None,
    };
    about.is_some_and(|task| tasks.get(task).counts)
}

/// The task that a step wakes.
fn woken(step: &Step) -> Option<TaskNumber> {
    match step.action {
        Action::Waking { task, .. }
        | Action::Wakeup { task, .. }
        | Action::WakeupNew { task, .. } => Some(task),
        Action::Switch { prev, .. } => Some(prev),
        _ => None,
    }
}
