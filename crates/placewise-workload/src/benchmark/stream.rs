//! STREAM: OpenMP threads that sweep over large arrays; memory bandwidth (McCalpin's benchmark).
//!
//! **Motive.** Where the threads of one process land decides how much memory bandwidth they reach:
//! all of them wait for the slowest, and that is one that shares an LLC or a node with another.
//!
//! **Method.** Main is the first thread. Its first parallel region creates the others, one after
//! the other; a new thread first futex-wakes main, which waits for that, as in published traces of
//! this benchmark, and these wakeups are not sync. The threads then initialise the arrays, so that
//! each thread's part is on the node where the thread is by then, and run `runs` times Copy, Scale,
//! Add and Triad. Around each loop all threads meet at a barrier: they are let go by main, and wait
//! for the last. At a barrier of libgomp a thread spins `spin_count` rounds before it futex-waits.
//! The figures are the bytes of each loop by its shortest time, the first run left out.
//!
//! **Left out.** The check of the results, the clock's calibration, and the two small regions that
//! count threads.
//!
//! **Weak points.** Published tables do not give the size of the arrays. It matters little to the
//! rates as long as caches hold none of it, but it sets how long a run lasts, and so how much
//! balancing can repair. In the published trace not every new thread wakes main; here each one does.

use super::libgomp;
use crate::case::Case;
use crate::model::Model;
use crate::parameter::{Parameter, Settings};
use crate::program::{Access, Metric, Nanos, Object, Op, Program, Workload};

pub(crate) const MODEL: Model = Model {
    name: "stream",
    summary: "OpenMP threads stream through memory; bandwidth (STREAM)",
    parameters: &PARAMETERS,
    build: |settings| Ok(build(settings)),
    default_cases,
};

const PARAMETERS: [Parameter; 7] = [
    Parameter::integer("threads", 16, 1, 1024, "", "OpenMP threads, main included"),
    Parameter::integer("runs", 10, 2, 100_000, "", "times that each loop runs (NTIMES)"),
    Parameter::integer(
        "elements",
        100_000_000,
        1_000_000,
        10_000_000_000,
        "",
        "elements of 8 bytes in each of the three arrays [assumed]",
    ),
    Parameter::choice(
        "copy",
        &["memcpy", "loop"],
        "what the compiler makes of Copy: a call, whose stores go past the caches, or a loop like the others",
    ),
    libgomp::SPIN_COUNT,
    Parameter::warmup_ms(0),
    Parameter::window_ms(600_000),
];

const ARRAYS: u64 = 3;

/// The loops in their order, each with the bytes it counts per element.
type Loops = [(&'static str, Access, u64); 4];

fn loops(settings: &Settings) -> Loops {
    let copy = match settings.choice("copy") {
        "loop" => Access::Scale,
        _ => Access::Copy,
    };
    [
        ("copy", copy, 16),
        ("scale", Access::Scale, 16),
        ("add", Access::Add, 24),
        ("triad", Access::Triad, 24),
    ]
}

fn default_cases(nr_cpus: usize) -> Vec<Case> {
    let doubled = std::iter::successors(Some(1), |threads| Some(threads * 2));
    let threads = doubled.take_while(|threads| *threads == 1 || *threads <= nr_cpus / 2);
    threads.map(|threads| Case::default().with("threads", threads)).collect()
}

const THREAD: u32 = 1;

/// Where threads wait for main to begin a loop, and where all wait for the end of it.
const DOCK: Object = Object::shared(0);
const END: Object = Object::shared(1);

fn build(settings: &Settings) -> Workload {
    let threads = settings.count("threads");
    let bytes = |per_element: u64| settings.integer("elements") * per_element;
    let team = Team { threads, spin_ns: libgomp::spin_ns(settings), loops: loops(settings) };
    let part = |per_element| bytes(per_element) / u64::from(threads);
    let programs = vec![
        Program::new("stream", main(&team, settings, part))
            .with_footprint(Program::TASK_KIB)
            .with_memory(bytes(ARRAYS * 8) / 1024),
        Program::new("stream", thread(&team, settings, part)).with_footprint(Program::TASK_KIB),
    ];
    let rate = |(section, (name, _, per_element)): (usize, (&'static str, Access, u64))| {
        Metric::BestRate { name, section: section as u8, bytes: bytes(per_element) }
    };
    Workload {
        barriers: vec![threads; 2],
        metrics: team.loops.into_iter().enumerate().map(rate).collect(),
        ..Workload::new(MODEL.name, programs, settings.window())
    }
}

struct Team {
    threads: u32,
    spin_ns: Nanos,
    loops: Loops,
}

impl Team {
    /// What one thread does in one parallel loop.
    fn parallel(&self, access: Access, bytes: u64) -> [Op; 3] {
        let meet = |barrier| Op::Barrier { barrier, spin_ns: self.spin_ns };
        [meet(DOCK), Op::Stream { access, bytes }, meet(END)]
    }

    /// Filling three arrays, and the pass that STREAM estimates its clock with.
    fn initialise(&self, part: impl Fn(u64) -> u64) -> Vec<Op> {
        [self.parallel(Access::Add, part(24)), self.parallel(Access::Scale, part(16))].concat()
    }

    fn loops(&self, part: impl Fn(u64) -> u64) -> Vec<Op> {
        let ops = |(_, access, per_element)| self.parallel(access, part(per_element));
        self.loops.into_iter().flat_map(ops).collect()
    }
}

fn main(team: &Team, settings: &Settings, part: impl Fn(u64) -> u64 + Copy) -> Vec<Op> {
    let mut ops = vec![Op::Start];
    if team.threads > 1 {
        ops.extend([
            Op::Fork { program: THREAD, count: 1, base: 0, step: 0 },
            Op::Wait { sample: false },
            Op::Repeat { counter: 0, times: team.threads - 1, to: 1 },
        ]);
    }
    ops.extend(team.initialise(part));
    ops.extend(team.loops(part));
    let first_timed = ops.len() as u32;
    for (section, (_, access, per_element)) in team.loops.into_iter().enumerate() {
        let section = section as u8;
        ops.push(Op::BeginSection { section });
        ops.extend(team.parallel(access, part(per_element)));
        ops.push(Op::EndSection { section });
    }
    ops.push(Op::Repeat { counter: 0, times: settings.count("runs") - 1, to: first_timed });
    ops.extend([Op::Join, Op::Exit]);
    ops
}

fn thread(team: &Team, settings: &Settings, part: impl Fn(u64) -> u64 + Copy) -> Vec<Op> {
    let mut ops = vec![Op::WakeParent];
    ops.extend(team.initialise(part));
    let first = ops.len() as u32;
    ops.extend(team.loops(part));
    ops.push(Op::Repeat { counter: 0, times: settings.count("runs"), to: first });
    ops.push(Op::Exit);
    ops
}
