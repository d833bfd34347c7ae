//! mix: several workloads at once, each in a cgroup of one's choice.
//!
//! **Motive.** Machines rarely run one thing. What does a service suffer from a batch job beside it,
//! and how much of that does a cgroup's weight take away?
//!
//! **Method.** A shell starts the parts one after the other and waits for them. Each part is a
//! workload or rt-app file as it is: its programs, messages, barriers and figures are those that it has alone. A
//! part that names a cgroup is in there with all its tasks; cgroups that a part makes itself (lu)
//! are inside. The window is the same for all parts: it begins `warmup_ms` after the last of them
//! has started its measured phase, so that all figures are of the same time. A part ends with its
//! first task and is not started again; its rates are those up to its end, and the others have its
//! CPUs from then on.
//!
//! **Left out.** What parts share beside CPUs, memory bandwidth and caches: no part waits for
//! another. The start-up of the tools. The `duration` of an rt-app file, whose endless tasks go on as
//! long as the mix. Alone, a workload's main task starts on the first CPU; here
//! it is forked by the shell and placed.
//!
//! **Weak points.** One warm-up has to do for all: a part that settles late (lu, hackbench on
//! several nodes) wants a longer one. What a part leaves running when it ends (lu's burners) goes
//! on. dbench's kworkers are in the part's cgroup; the kernel's are in the root.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::benchmark::BENCHMARKS;
use crate::case::Case;
use crate::error::{WorkloadError, quoted};
use crate::model::{Model, find};
use crate::parameter::{Parameter, Settings, Value};
use crate::program::{Cgroup, CgroupId, Object, Op, Part, PartId, Program, Workload};
use crate::rt_app::from_rt_app;

pub(crate) const MODEL: Model = Model {
    name: "mix",
    summary: "several workloads at once, in cgroups with weights; the figures of each",
    parameters: &PARAMETERS,
    build,
    default_cases,
};

const PARAMETERS: [Parameter; 3] = [
    Parameter {
        name: "parts",
        meaning: "the workloads and their cgroups",
        value: Value::Text {
            default: "schbench:workers=8@web+lu:threads=8@batch",
            form: FORM,
            canonical: |text| Ok(text.parse::<Parts>()?.to_string()),
        },
    },
    Parameter::warmup_ms(1_000),
    Parameter::window_ms(2_000),
];

const FORM: &str = "WORKLOAD[:KEY=VALUE,...][@CGROUP[:WEIGHT]] joined by `+`; WORKLOAD may be an \
                    rt-app FILE.json";

/// cpu.weight.
const DEFAULT_WEIGHT: u32 = 100;

/// A service beside a batch job that would take all CPUs: in no cgroups, in two, in two of which the
/// service's weighs ten times as much.
fn default_cases(nr_cpus: usize) -> Vec<Case> {
    let workers = (nr_cpus / 2).clamp(1, 4096);
    let threads = nr_cpus.clamp(2, 160);
    let case = |[web, batch]: [&str; 2]| {
        let parts = format!(
            "schbench:workers={workers}{web}+lu:threads={threads},burners=0,cgroups=one{batch}"
        );
        Case::default().with("parts", parts)
    };
    [["", ""], ["@web", "@batch"], ["@web:1000", "@batch"]].map(case).to_vec()
}

/// The checked value of `parts`.
struct Parts(Vec<PartSpec>);

struct PartSpec {
    what: What,
    cgroup: Option<CgroupSpec>,
}

enum What {
    Benchmark {
        model: &'static Model,
        case: Case,
    },
    /// Its path, which has a `/` or a `.`.
    RtApp(String),
}

struct CgroupSpec {
    name: String,
    weight: Option<u32>,
}

impl FromStr for Parts {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let part = |(number, text): (usize, &str)| {
            text.parse::<PartSpec>().map_err(|error| error.within(&place(number)))
        };
        let parts = Parts(text.split('+').enumerate().map(part).collect::<Result<_, _>>()?);
        parts.check_weights()?;
        Ok(parts)
    }
}

/// Of the `number`th part, as people count.
fn place(number: usize) -> String {
    format!("part {}", number + 1)
}

impl Parts {
    /// A cgroup has one weight, wherever it is named.
    fn check_weights(&self) -> Result<(), WorkloadError> {
        for (number, cgroup) in self.cgroups() {
            let weight = self.weight_named(&cgroup.name);
            if cgroup.weight.is_some_and(|other| Some(other) != weight) {
                let problem = "the cgroup has another weight already; name it once";
                return Err(
                    WorkloadError::new(quoted(&cgroup.to_string()), problem).within(&place(number))
                );
            }
        }
        Ok(())
    }

    /// The cgroups with the numbers of the parts that name them.
    fn cgroups(&self) -> impl Iterator<Item = (usize, &CgroupSpec)> {
        let parts = self.0.iter().enumerate();
        parts.filter_map(|(number, part)| Some((number, part.cgroup.as_ref()?)))
    }

    fn weight_named(&self, cgroup: &str) -> Option<u32> {
        self.cgroups().filter(|(_, other)| other.name == cgroup).find_map(|(_, other)| other.weight)
    }

    /// What the figures of a part are called after: its workload and cgroup, with a number where
    /// other parts have the same.
    fn name(&self, number: usize) -> String {
        let name = |part: &PartSpec| match &part.cgroup {
            Some(cgroup) => format!("{}@{}", part.what.name(), cgroup.name),
            None => part.what.name(),
        };
        let own = name(&self.0[number]);
        let same = |parts: &[PartSpec]| parts.iter().filter(|part| name(part) == own).count();
        match same(&self.0) {
            1 => own,
            _ => format!("{own}#{}", same(&self.0[..=number])),
        }
    }
}

impl FromStr for PartSpec {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let text = text.trim();
        let (what, cgroup) = match text.split_once('@') {
            Some((what, cgroup)) => (what.trim(), Some(cgroup.parse::<CgroupSpec>()?)),
            None => (text, None),
        };
        if what.is_empty() {
            return Err(WorkloadError::new(quoted(text), format!("expected {FORM}")));
        }
        Ok(PartSpec { what: what.parse()?, cgroup })
    }
}

impl FromStr for What {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        if name.contains(['/', '.']) {
            let wrong = |problem: &str| Err(WorkloadError::new(quoted(text), problem));
            return match settings {
                "" if name.contains(char::is_control) => wrong("expected the path of a file"),
                "" => Ok(Self::RtApp(name.to_owned())),
                _ => wrong("an rt-app file has no settings"),
            };
        }
        if name.is_empty() {
            return Err(WorkloadError::new(quoted(text), format!("expected {FORM}")));
        }
        if name == MODEL.name {
            return Err(WorkloadError::new(quoted(name), "a mix cannot be part of a mix"));
        }
        let case = Case::separated_by(',', settings)?;
        let model = find(BENCHMARKS.iter().copied(), name)?;
        let case = model.canonical(&case)?;
        if let Some((key, _)) = case.iter().find(|(key, _)| is_of_the_window(key)) {
            let problem = "all parts have the window of the mix; set it beside `parts`";
            return Err(WorkloadError::new(quoted(key), problem));
        }
        Ok(Self::Benchmark { model, case })
    }
}

impl What {
    /// Of a file, without directory and extension.
    fn name(&self) -> String {
        match self {
            Self::Benchmark { model, .. } => model.name.to_owned(),
            Self::RtApp(path) => {
                let stem = Path::new(path).file_stem().unwrap_or_default();
                stem.to_string_lossy().into_owned()
            }
        }
    }

    fn build(&self) -> Result<Workload, WorkloadError> {
        match self {
            Self::Benchmark { model, case } => model.build(case),
            Self::RtApp(path) => from_rt_app(Path::new(path)),
        }
    }
}

fn is_of_the_window(key: &str) -> bool {
    ["warmup_ms", "window_ms"].contains(&key)
}

impl FromStr for CgroupSpec {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let wrong = |problem: String| Err(WorkloadError::new(quoted(&format!("@{text}")), problem));
        let (name, weight) = match text.trim().split_once(':') {
            Some((name, weight)) => (name, Some(weight)),
            None => (text.trim(), None),
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || !name.chars().all(is_plain) {
            return wrong(
                "expected the cgroup's name, of letters, digits, `_`, `-` and `.`".into(),
            );
        }
        let number =
            weight.map(|text| text.parse::<u32>().ok().filter(|it| Cgroup::WEIGHTS.contains(it)));
        if number == Some(None) {
            let (least, most) = (Cgroup::WEIGHTS.start(), Cgroup::WEIGHTS.end());
            return wrong(format!("expected a weight (cpu.weight) from {least} to {most}"));
        }
        Ok(CgroupSpec { name: name.to_owned(), weight: number.flatten() })
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, part) in self.0.iter().enumerate() {
            let separator = if number == 0 { "" } else { "+" };
            write!(out, "{separator}{part}")?;
        }
        Ok(())
    }
}

impl fmt::Display for PartSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.what)?;
        self.cgroup.iter().try_for_each(|cgroup| write!(out, "{cgroup}"))
    }
}

impl fmt::Display for What {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RtApp(path) => out.write_str(path),
            Self::Benchmark { model, case } => {
                out.write_str(model.name)?;
                for (number, (key, value)) in case.iter().enumerate() {
                    let separator = if number == 0 { ":" } else { "," };
                    write!(out, "{separator}{key}={value}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for CgroupSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "@{}", self.name)?;
        self.weight.iter().try_for_each(|weight| write!(out, ":{weight}"))
    }
}

fn build(settings: &Settings) -> Result<Workload, WorkloadError> {
    let parts: Parts = settings.text("parts").parse().expect("the parts are checked");
    let shell = Program::new("sh", Vec::new());
    let mut mix = Workload::new(MODEL.name, vec![shell], settings.window());
    let mut start = Vec::new();
    for (number, spec) in parts.0.iter().enumerate() {
        let part = spec.what.build().map_err(|error| error.within(&place(number)))?;
        let cgroup = spec.cgroup.as_ref().map(|cgroup| {
            let weight = parts.weight_named(&cgroup.name).unwrap_or(DEFAULT_WEIGHT);
            cgroup_of(&mut mix, Cgroup::new(&cgroup.name, None, Cgroup::shares_of(weight)))
        });
        let main = mix.programs.len() as u32;
        start.push(Op::Fork { program: main, count: 1, base: 0, step: 0 });
        add(&mut mix, parts.name(number), part, cgroup);
    }
    start.extend([Op::Join, Op::Exit]);
    mix.programs[0].ops = start;
    Ok(mix)
}

/// A cgroup is what its path says: parts that name the same one share it.
fn cgroup_of(mix: &mut Workload, cgroup: Cgroup) -> CgroupId {
    let is_it = |known: &Cgroup| known.name == cgroup.name && known.parent == cgroup.parent;
    let known = mix.cgroups.iter().position(is_it);
    let id = known.unwrap_or_else(|| {
        mix.cgroups.push(cgroup);
        mix.cgroups.len() - 1
    });
    id as CgroupId
}

/// Adds a workload to the mix: its programs and objects get the numbers after those there are.
fn add(mix: &mut Workload, name: String, part: Workload, cgroup: Option<CgroupId>) {
    let offsets = Offsets::behind(mix);
    let mut cgroups: Vec<CgroupId> = Vec::new();
    for inner in part.cgroups {
        let parent = inner.parent.map_or(cgroup, |parent| Some(cgroups[parent as usize]));
        cgroups.push(cgroup_of(mix, Cgroup { parent, ..inner }));
    }
    let id = mix.parts.len() as PartId;
    // Parts of it stand behind it.
    let moved = |inner: Option<PartId>| inner.map_or(id, |inner| id + 1 + inner);
    let inner = part.parts.into_iter().map(|inner| Part {
        name: format!("{name}/{}", inner.name),
        within: Some(moved(inner.within)),
        ..inner
    });
    let inner: Vec<Part> = inner.collect();
    mix.parts.push(Part { name, metrics: part.metrics, within: None });
    mix.parts.extend(inner);
    for (number, program) in part.programs.into_iter().enumerate() {
        // What main forks is in its cgroup, unless it names another.
        let outer = cgroup.filter(|_| number == 0);
        mix.programs.push(Program {
            ops: program.ops.iter().map(|op| offsets.moved(*op)).collect(),
            cgroup: program.cgroup.map_or(outer, |inner| Some(cgroups[inner as usize])),
            part: Some(moved(program.part)),
            // The shell forks what is run.
            process: program.process || number == 0,
            ..program
        });
    }
    mix.channels.extend(part.channels);
    mix.barriers.extend(part.barriers);
    mix.mutexes += part.mutexes;
    mix.conditions += part.conditions;
    mix.gates += part.gates;
    mix.flags += part.flags;
    mix.lists += part.lists;
    mix.semaphores.extend(part.semaphores);
    mix.timers += part.timers;
}

/// How many programs and objects of each kind stand before those of a part.
struct Offsets {
    programs: u32,
    channels: u32,
    mutexes: u32,
    conditions: u32,
    barriers: u32,
    gates: u32,
    flags: u32,
    lists: u32,
    semaphores: u32,
    timers: u32,
}

impl Offsets {
    fn behind(mix: &Workload) -> Self {
        Offsets {
            programs: mix.programs.len() as u32,
            channels: mix.channels.len() as u32,
            mutexes: mix.mutexes,
            conditions: mix.conditions,
            barriers: mix.barriers.len() as u32,
            gates: mix.gates,
            flags: mix.flags,
            lists: mix.lists,
            semaphores: mix.semaphores.len() as u32,
            timers: mix.timers,
        }
    }

    /// The operation with its objects where the mix has them. Sections are each part's own.
    fn moved(&self, op: Op) -> Op {
        let channel = |object: Object| object.behind(self.channels);
        let mutex = |object: Object| object.behind(self.mutexes);
        let condition = |object: Object| object.behind(self.conditions);
        let semaphore = |it: Object| it.behind(self.semaphores);
        let timer = |object: Object| object.behind(self.timers);
        match op {
            Op::StartTimer { timer: it } => Op::StartTimer { timer: timer(it) },
            Op::Timer { timer: it, period, absolute } => {
                Op::Timer { timer: timer(it), period, absolute }
            }
            Op::Send { channel: it, bytes } => Op::Send { channel: channel(it), bytes },
            Op::Receive { channel: it, bytes } => Op::Receive { channel: channel(it), bytes },
            Op::Reply { channel: it, bytes } => Op::Reply { channel: channel(it), bytes },
            Op::GateWait { gate } => Op::GateWait { gate: gate.behind(self.gates) },
            Op::GateOpen { gate } => Op::GateOpen { gate: gate.behind(self.gates) },
            Op::Enlist { list } => Op::Enlist { list: list.behind(self.lists) },
            Op::WakeListed { list } => Op::WakeListed { list: list.behind(self.lists) },
            Op::Lock { mutex: it } => Op::Lock { mutex: mutex(it) },
            Op::Unlock { mutex: it } => Op::Unlock { mutex: mutex(it) },
            Op::CondWait { condition: it, mutex: held } => {
                Op::CondWait { condition: condition(it), mutex: held.map(mutex) }
            }
            Op::Signal { condition: it } => Op::Signal { condition: condition(it) },
            Op::Broadcast { condition: it } => Op::Broadcast { condition: condition(it) },
            Op::Barrier { barrier, spin_ns } => {
                Op::Barrier { barrier: barrier.behind(self.barriers), spin_ns }
            }
            Op::Arrive { barrier } => Op::Arrive { barrier: barrier.behind(self.barriers) },
            Op::Post { semaphore: it, wake, call, answered_at } => {
                let (it, answered_at) = (semaphore(it), answered_at.map(semaphore));
                Op::Post { semaphore: it, wake, call, answered_at }
            }
            Op::Answer { inbox, otherwise, wake, call } => {
                let (inbox, otherwise) = (semaphore(inbox), semaphore(otherwise));
                Op::Answer { inbox, otherwise, wake, call }
            }
            Op::Await { semaphore: it, lines } => Op::Await { semaphore: semaphore(it), lines },
            Op::Close { semaphore: it } => Op::Close { semaphore: semaphore(it) },
            Op::RaiseFlag { flag } => Op::RaiseFlag { flag: flag.behind(self.flags) },
            Op::LowerFlag { flag } => Op::LowerFlag { flag: flag.behind(self.flags) },
            Op::Fork { program, count, base, step } => {
                Op::Fork { program: program + self.programs, count, base, step }
            }
            Op::LockCpu
            | Op::UnlockCpu
            | Op::BeginRequest
            | Op::EndRequest
            | Op::Run { .. }
            | Op::RunAbout { .. }
            | Op::Device { .. }
            | Op::Spin { .. }
            | Op::Sleep { .. }
            | Op::WakeParent
            | Op::Wait { .. }
            | Op::Stream { .. }
            | Op::Yield
            | Op::Join
            | Op::Count
            | Op::Repeat { .. }
            | Op::Start
            | Op::BeginSection { .. }
            | Op::EndSection { .. }
            | Op::Exit => op,
        }
    }
}
