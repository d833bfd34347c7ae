//! lu: NAS LU of class C with OpenMP, beside tasks that only burn CPU time.
//!
//! **Motive.** Threads that wait for each other busily are always runnable, so that a scheduler
//! sees nothing of their waiting; but two of them on one CPU stall all the others. If the balancer
//! looks at loads alone, burners in cgroups of their own, each of whose load weighs as much as that
//! of all the threads, make it crowd the threads on the nodes where no burner is.
//!
//! **Method.** A shell starts `burners` tasks that run for ever, gets ready, and starts lu. Its
//! `threads` threads solve: each of 250 iterations has two sweeps over 160 planes, and the rest. In
//! a sweep every thread works on its part of a plane once its left neighbour has done so and has
//! raised a flag, which it waits for busily, as NPB's sync_left and sync_right do; so the sweep is
//! a pipeline. The rest is work in four pieces with barriers in between. That is 2.039 million
//! operations (Mop). The whole run is measured, for the balance takes minutes to settle; where it is
//! longer than the window, its time is taken from the rate of planes in the window.
//!
//! **Left out.** Memory: neither footprints nor bandwidth slow a thread down, and there is no NUMA
//! balancing. The set-up and the verification around the iterations.
//!
//! **Weak points.** `plane_us` is calibrated on the published baseline with all in one cgroup; how
//! the work splits into sweeps and the rest is assumed, at 60 to 40. Everything hangs on where the
//! burners are when the threads start: published, each was on a node of its own throughout, and
//! never on the one where lu started. So the shell is busy for long enough (assumed) that the
//! balancer parts the three; with both burners on lu's own node fewer threads crowd.

use super::libgomp;
use crate::case::Case;
use crate::model::Model;
use crate::parameter::{Parameter, Settings};
use crate::program::{Cgroup, FOREVER, Metric, Nanos, Object, Op, Program, Workload};

pub(crate) const MODEL: Model = Model {
    name: "lu",
    summary: "threads sweep in a pipeline, waiting busily, beside burners (NAS LU.C, OpenMP)",
    parameters: &PARAMETERS,
    build: |settings| Ok(build(settings)),
    default_cases,
};

const PARAMETERS: [Parameter; 7] = [
    Parameter::integer("threads", 76, 2, 160, "", "threads of lu"),
    Parameter::integer("burners", 2, 0, 62, "", "tasks that only burn CPU time"),
    Parameter::choice(
        "cgroups",
        &["split", "one"],
        "whether lu and each burner have cgroups of their own or all tasks share one",
    ),
    Parameter::integer(
        "plane_us",
        216,
        1,
        1_000_000,
        "us",
        "CPU time of a thread of 76 on its part of a plane, alone on a core",
    ),
    libgomp::SPIN_COUNT,
    Parameter::warmup_ms(0),
    Parameter::window_ms(600_000),
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
/// The shell is busy for this long between the burners and lu (assumed).
const GETTING_READY_NS: Nanos = 1_000_000_000;

fn default_cases(nr_cpus: usize) -> Vec<Case> {
    let threads = nr_cpus.saturating_sub(4).clamp(2, PLANES as usize);
    let case = |cgroups| {
        Case::default().with("threads", threads).with("burners", 2).with("cgroups", cgroups)
    };
    ["split", "one"].map(case).to_vec()
}

const FIRST: u32 = 1;
const INNER: u32 = 2;
const LAST: u32 = 3;
/// The first of the burners, each of which has a program of its own.
const BURNER: u32 = 4;

/// The cgroup of lu; those of the burners, if they have any, follow.
const LU: u32 = 0;

/// Where all threads meet.
const TEAM: Object = Object::shared(0);
/// The flags of a thread: what its left neighbour raises, and what it raises for the right one.
const LEFT: Object = Object::own(0);
const RIGHT: Object = Object::own(1);

fn build(settings: &Settings) -> Workload {
    let threads = settings.count("threads");
    let burners = settings.count("burners");
    let split = settings.choice("cgroups") == "split";
    let mut cgroups = vec![cgroup("lu".to_owned())];
    let lu = |ops| Program::new("lu.C.x", ops).in_cgroup(LU);
    let mut programs = vec![
        Program::new("sh", shell(burners)),
        lu(first_thread(settings, threads)),
        lu(thread(settings, Neighbours::Both)),
        lu(thread(settings, Neighbours::Left)),
    ];
    for burner in 1..=burners {
        if split {
            cgroups.push(cgroup(format!("stress-{burner}")));
        }
        programs.push(Program::new("stress", burn()).in_cgroup(if split { burner } else { LU }));
    }
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

fn cgroup(name: String) -> Cgroup {
    Cgroup::new(name, None, Cgroup::DEFAULT_SHARES)
}

/// Ends when lu has ended, and with it the run.
fn shell(burners: u32) -> Vec<Op> {
    let fork = |program| Op::Fork { program, count: 1, base: 0, step: 0 };
    let mut ops: Vec<Op> = (BURNER..BURNER + burners).map(fork).collect();
    ops.extend([
        Op::Run { ns: GETTING_READY_NS },
        fork(FIRST),
        Op::Start,
        Op::Wait { sample: false },
        Op::Exit,
    ]);
    ops
}

fn burn() -> Vec<Op> {
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
    ops.extend([Op::Join, Op::WakeParent, Op::Exit]);
    ops
}

fn thread(settings: &Settings, neighbours: Neighbours) -> Vec<Op> {
    let mut ops = vec![];
    solve(&mut ops, settings, neighbours);
    ops.push(Op::Exit);
    ops
}

/// All iterations.
fn solve(ops: &mut Vec<Op>, settings: &Settings, neighbours: Neighbours) {
    let work = settings.integer("plane_us") * 1_000 * USUAL_THREADS / settings.integer("threads");
    let meet = Op::Barrier { barrier: TEAM, spin_ns: libgomp::spin_ns(settings) };
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
        Op::Repeat { counter: 3, times: ITERATIONS, to: begin },
    ]);
}
