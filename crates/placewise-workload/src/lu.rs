//! lu: NAS LU of class C with OpenMP, beside tasks that only burn CPU time.
//!
//! **Motive.** Threads that wait for each other busily are always runnable, so that a scheduler
//! sees nothing of their waiting; but two of them on one CPU stall all the others. If the balancer
//! looks at loads alone, burners in a cgroup of their own, whose load weighs many times that of a
//! thread, make it crowd the threads on the nodes where no burner is.
//!
//! **Method.** `burners` tasks run for ever. `threads` threads solve: each iteration has two sweeps
//! over 160 planes, and the rest. In a sweep every thread works on its part of a plane once its
//! left neighbour has done so and has raised a flag, which it waits for busily, as NPB's sync_left
//! and sync_right do; so the sweep is a pipeline. The rest is work in four pieces with barriers in
//! between. The whole run is 250 iterations, 2.039 million operations (Mop); its time is taken from
//! the rate of planes in the window, after a warm-up in which the balancer has spread the threads.
//!
//! **Left out.** Memory: neither footprints nor bandwidth slow a thread down. The set-up and the
//! verification around the iterations.
//!
//! **Weak points.** `plane_us` is calibrated on the published baseline with all in one cgroup; how
//! the work splits into sweeps and the rest is assumed, at 60 to 40. A window sees one state of
//! the balance, which may change over the minutes of a whole run; use several seeds, or a longer
//! window.

use crate::Case;
use crate::model::Model;
use crate::parameter::{Parameter, Settings};
use crate::program::{Cgroup, FOREVER, Metric, Nanos, Object, Op, Program, Workload};

pub(crate) const MODEL: Model = Model {
    name: "lu",
    summary: "threads sweep in a pipeline, waiting busily, beside burners (NAS LU.C, OpenMP)",
    parameters: &PARAMETERS,
    build,
    default_cases,
};

const PARAMETERS: [Parameter; 7] = [
    Parameter::integer("threads", 76, 2, 160, "", "threads of lu"),
    Parameter::integer("burners", 2, 0, 1024, "", "tasks that only burn CPU time"),
    Parameter::choice(
        "cgroups",
        &["split", "one"],
        "whether lu and the burners have a cgroup each or all tasks share one",
    ),
    Parameter::integer(
        "plane_us",
        216,
        1,
        1_000_000,
        "us",
        "CPU time of a thread of 76 on its part of a plane, alone on a core",
    ),
    Parameter::integer(
        "spin_count",
        300_000,
        1,
        1_000_000_000,
        "",
        "rounds that a thread spins at a barrier before it sleeps (GOMP_SPINCOUNT)",
    ),
    Parameter::warmup_ms(5_000),
    Parameter::window_ms(10_000),
];

/// Published: Mop/s times seconds, the same for all results.
const MOP: f64 = 2.039e6;
const ITERATIONS: u32 = 250;
/// Of 162 planes the two outer ones are not swept.
const PLANES: u32 = 160;
/// The lower and the upper triangular solution.
const SWEEPS: u32 = 2;
/// The threads that `plane_us` is for.
const USUAL_THREADS: u64 = 76;
/// The rest of an iteration in planes, for 40 % of the work (assumed).
const REST_PLANES: u64 = (SWEEPS * PLANES) as u64 * 2 / 3;
/// Right-hand side in three directions, and the update (assumed).
const REST_PIECES: u64 = 4;
/// A round of spinning is a load, a compare and a pause (assumed: some 60 cycles).
const SPIN_ROUND_NS: Nanos = 17;
/// The shell starts the burners this long before lu (assumed).
const HEAD_START_NS: Nanos = 100_000_000;

fn default_cases(nr_cpus: usize) -> Vec<Case> {
    let threads = nr_cpus.saturating_sub(4).clamp(2, PLANES as usize);
    let case = |cgroups| {
        Case::default().with("threads", threads).with("burners", 2).with("cgroups", cgroups)
    };
    ["split", "one"].map(case).to_vec()
}

const BURNER: u32 = 1;
const FIRST: u32 = 2;
const INNER: u32 = 3;
const LAST: u32 = 4;

/// A cpu.weight of 100.
const DEFAULT_SHARES: u32 = 1024;

/// Where all threads meet.
const TEAM: Object = Object::shared(0);
/// The flags of a thread: what its left neighbour raises, and what it raises for the right one.
const LEFT: Object = Object::own(0);
const RIGHT: Object = Object::own(1);

fn build(settings: &Settings) -> Workload {
    let threads = settings.count("threads");
    let mut stress = Program::new("stress", burner());
    let mut first = Program::new("lu.C.x", first_thread(settings, threads));
    let mut cgroups = Vec::new();
    if settings.choice("cgroups") == "split" {
        cgroups = ["lu", "stress"].map(cgroup).to_vec();
        first = first.in_cgroup(0);
        stress = stress.in_cgroup(1);
    }
    let programs = vec![
        Program::new("sh", shell(settings.count("burners"))),
        stress,
        first,
        Program::new("lu.C.x", thread(settings, Neighbours::Both)),
        Program::new("lu.C.x", thread(settings, Neighbours::Left)),
    ];
    let planes = u64::from(ITERATIONS * SWEEPS * PLANES);
    Workload {
        cgroups,
        barriers: vec![threads],
        flags: threads,
        metrics: vec![
            Metric::Throughput { unit: "Mop/s", scale: MOP / planes as f64 },
            Metric::Time { units: planes },
        ],
        ..Workload::new(MODEL.name, programs, settings.window())
    }
}

fn cgroup(name: &str) -> Cgroup {
    Cgroup { name: name.to_owned(), parent: None, shares: DEFAULT_SHARES }
}

fn shell(burners: u32) -> Vec<Op> {
    let mut ops = Vec::new();
    if burners > 0 {
        ops.push(Op::Fork { program: BURNER, count: burners, base: 0, step: 0 });
        ops.push(Op::Sleep { ns: HEAD_START_NS, random_pct: 0 });
    }
    ops.extend([
        Op::Fork { program: FIRST, count: 1, base: 0, step: 0 },
        Op::Start,
        Op::Join,
        Op::Exit,
    ]);
    ops
}

fn burner() -> Vec<Op> {
    vec![Op::Run { ns: 1_000_000 }, Op::Repeat { counter: 0, times: FOREVER, to: 0 }, Op::Exit]
}

/// Whom a thread passes a plane on from and to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Neighbours {
    Left,
    Right,
    Both,
}

fn first_thread(settings: &Settings, threads: u32) -> Vec<Op> {
    let mut ops = vec![];
    if threads > 2 {
        ops.push(Op::Fork { program: INNER, count: threads - 2, base: 0, step: 1 });
    }
    ops.push(Op::Fork { program: LAST, count: 1, base: threads - 2, step: 0 });
    solve(&mut ops, settings, Neighbours::Right);
    ops
}

fn thread(settings: &Settings, neighbours: Neighbours) -> Vec<Op> {
    let mut ops = vec![];
    solve(&mut ops, settings, neighbours);
    ops
}

/// The iterations, for ever: the window ends them.
fn solve(ops: &mut Vec<Op>, settings: &Settings, neighbours: Neighbours) {
    let work = settings.integer("plane_us") * 1_000 * USUAL_THREADS / settings.integer("threads");
    let meet =
        Op::Barrier { barrier: TEAM, spin_ns: settings.integer("spin_count") * SPIN_ROUND_NS };
    let begin = ops.len() as u32;
    let plane = begin + 1;
    ops.push(meet);
    if neighbours != Neighbours::Right {
        ops.push(Op::LowerFlag { flag: LEFT });
    }
    ops.push(Op::Run { ns: work });
    match neighbours {
        Neighbours::Left => ops.push(Op::Count),
        Neighbours::Both => ops.push(Op::RaiseFlag { flag: RIGHT }),
        Neighbours::Right => ops.push(Op::RaiseFlag { flag: LEFT }),
    }
    ops.extend([
        Op::Repeat { counter: 0, times: PLANES, to: plane },
        Op::Repeat { counter: 1, times: SWEEPS, to: begin },
    ]);
    let rest = ops.len() as u32;
    ops.extend([
        meet,
        Op::Run { ns: work * REST_PLANES / REST_PIECES },
        Op::Repeat { counter: 2, times: REST_PIECES as u32, to: rest },
        Op::Repeat { counter: 3, times: FOREVER, to: begin },
        Op::Exit,
    ]);
}
