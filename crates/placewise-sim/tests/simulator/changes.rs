//! What changes while tasks run: CPUs that go and come, cpusets, affinities and quotas.

use placewise_machine::CpuSet;
use placewise_sim::{Scenario, SimError, simulate};
use placewise_trace::{Event, Record, Sink};
use placewise_workload::program::{
    Cgroup, Change, FOREVER, Op, Program, Quota, Setting, Window, Workload,
};
use proptest::prelude::*;

use crate::common::{MS, Setup, counter, main_of, programs};
use crate::properties::{MACHINES, config, kernel, part, workload};
use crate::trace::parse;

/// A stopper may have to wait for the end of what its CPU does.
const GRACE: u64 = MS / 5;

/// Kernels with either run queue.
const KERNELS: [&str; 4] = ["v5.3", "v6.0", "v6.12", "v6.18"];

fn cpus(list: &str) -> CpuSet {
    CpuSet::parse_list(list).expect("a list of CPUs")
}

fn change(at_ms: u64, to: Setting) -> Change {
    Change { at: at_ms * MS, to }
}

/// Computes for `ms` in all.
fn worker(name: &str, ms: u32) -> Program {
    let ops =
        vec![Op::Run { ns: 100_000 }, Op::Repeat { counter: 0, times: 10 * ms, to: 0 }, Op::Exit];
    Program::new(name, ops)
}

/// Wakes up every now and then, for ever.
fn sleeper(name: &str) -> Program {
    let ops = vec![
        Op::Run { ns: 20_000 },
        Op::Sleep { ns: 100_000, random_pct: 50 },
        Op::Repeat { counter: 0, times: FOREVER, to: 0 },
        Op::Exit,
    ];
    Program::new(name, ops)
}

/// Some tasks of each program, and what happens to them.
fn with_changes(tasks: Vec<Program>, ms: u64, changes: Vec<Change>) -> Workload {
    let mut all = vec![main_of(tasks.len() as u32)];
    all.extend(tasks);
    Workload { changes, ..programs(all, ms) }
}

/// A task began to run.
#[derive(Clone, Debug)]
struct Run {
    time: u64,
    cpu: u32,
    comm: String,
}

#[derive(Default)]
struct Runs {
    runs: Vec<Run>,
    migrations: Vec<Migration>,
    exits: usize,
}

/// A task went to another CPU.
#[derive(Clone, Debug)]
struct Migration {
    time: u64,
}

impl Sink for Runs {
    fn record(&mut self, record: &Record<'_>) {
        match record.event {
            Event::Switch { next_comm, next_pid, .. } if next_pid != 0 => self.runs.push(Run {
                time: record.time_ns,
                cpu: record.cpu,
                comm: next_comm.to_string(),
            }),
            Event::Migrate { .. } => self.migrations.push(Migration { time: record.time_ns }),
            Event::Exit { .. } => self.exits += 1,
            _ => {}
        }
    }
}

impl Runs {
    fn of(setup: &Setup) -> Self {
        let mut runs = Runs::default();
        let Setup { machine, policy, workload, seed } = setup;
        let scenario = Scenario { machine, policy, workload, seed: *seed };
        simulate(&scenario, Some(&mut runs)).expect("the run ends well");
        runs
    }

    /// The CPUs where tasks of that name began to run from one time to another.
    fn cpus_of(&self, comm: &str, from_ms: u64, to_ms: u64) -> CpuSet {
        let from = if from_ms == 0 { 0 } else { from_ms * MS + GRACE };
        let during = from..to_ms * MS;
        let runs = self.runs.iter().filter(|run| run.comm == comm && during.contains(&run.time));
        runs.map(|run| run.cpu as usize).collect()
    }
}

/// Fails if the tasks of a CPU that goes offline stayed there, were lost, or lost work; or if a CPU
/// that comes back got nothing to do.
#[test]
fn tasks_of_an_offline_cpu_go_on_elsewhere() {
    for kernel in KERNELS {
        for pinned in [None, Some(cpus("0-3"))] {
            let tasks = (0..12).map(|_| Program { cpus: pinned, ..worker("hog", 40) }).collect();
            let changes = vec![
                change(20, Setting::Offline { cpu: 2 }),
                change(60, Setting::Online { cpu: 2 }),
            ];
            let workload = with_changes(tasks, 1_000, changes);
            let setup = Setup::new("pack:1 l3:2 core:2 pu:1", kernel, "baseline", workload);
            let (outcome, _) = setup.checked(5);
            assert!(counter(&outcome, "migrations_displaced") >= 2.0, "{kernel}");
            let runs = Runs::of(&setup);
            assert_eq!(runs.exits, 13, "{kernel}: all end, and main");
            assert!(runs.cpus_of("hog", 0, 20).contains(2), "{kernel}");
            assert_eq!(runs.cpus_of("hog", 20, 60), cpus("0-1,3"), "{kernel}");
            assert!(runs.cpus_of("hog", 60, 1_000).contains(2), "{kernel}");
            // 12 tasks of 40 ms on 4 CPUs, of which one is away for 40 ms.
            let took = outcome.statistics.simulated_ns;
            assert!((130 * MS..150 * MS).contains(&took), "{kernel}: {took}");
        }
    }
}

/// Fails if wakeups, timers or idle CPUs still went to a CPU that is offline, and if an idle CPU
/// could not go; the LLC loses all its CPUs, and a core one of its threads.
#[test]
fn nobody_wakes_up_on_an_offline_cpu() {
    for kernel in KERNELS {
        let tasks = (0..6).map(|_| sleeper("sleeper")).collect();
        let mut changes: Vec<Change> =
            (0..5).map(|cpu| change(10 + u64::from(cpu), Setting::Offline { cpu })).collect();
        changes.push(change(30, Setting::Online { cpu: 1 }));
        let setup = Setup::new(
            "pack:1 l3:2 core:2 pu:2",
            kernel,
            "baseline",
            with_changes(tasks, 60, changes),
        );
        setup.checked(5);
        let runs = Runs::of(&setup);
        assert!(runs.cpus_of("sleeper", 0, 10).intersects(&cpus("0-4")), "{kernel}");
        let later = runs.cpus_of("sleeper", 15, 30);
        assert!(!later.is_empty() && later.is_subset(&cpus("5-7")), "{kernel}: {later}");
        assert!(runs.cpus_of("sleeper", 30, 60).is_subset(&cpus("1,5-7")), "{kernel}");
    }
}

/// Fails if a pinned task kept its affinity when there was nowhere left to run.
#[test]
fn a_task_whose_only_cpu_goes_offline_may_run_anywhere() {
    for kernel in KERNELS {
        let pinned = |task: Program| Program { cpus: Some(cpus("3")), ..task };
        let tasks = vec![pinned(worker("hog", 50)), pinned(sleeper("sleeper"))];
        let changes = vec![change(40, Setting::Offline { cpu: 3 })];
        let workload = with_changes(tasks, 200, changes);
        let setup = Setup::new("pack:1 l3:1 core:4 pu:1", kernel, "baseline", workload);
        setup.checked(5);
        let runs = Runs::of(&setup);
        for comm in ["hog", "sleeper"] {
            assert_eq!(runs.cpus_of(comm, 0, 40), cpus("3"), "{kernel}");
            assert!(!runs.cpus_of(comm, 40, 200).contains(3), "{kernel}: {comm}");
            let last = runs.runs.iter().rfind(|run| run.comm == comm).expect("it runs");
            assert!(last.time >= 40 * MS && last.cpu != 3, "{kernel}: {last:?}");
        }
        assert_eq!(runs.exits, 1, "{kernel}: the hog ends");
    }
}

/// Fails if running, waiting or sleeping tasks stayed outside of a new cpuset, if a child's cpuset
/// reached beyond its parent's, or if tasks elsewhere were moved as well.
#[test]
fn tasks_follow_their_cpuset() {
    for kernel in KERNELS {
        let inside = |task: Program, cgroup| task.in_cgroup(cgroup);
        let mut tasks: Vec<Program> = (0..6).map(|_| inside(worker("hog", 200), 0)).collect();
        tasks.extend((0..3).map(|_| inside(sleeper("sleeper"), 0)));
        tasks.extend((0..2).map(|_| inside(sleeper("inner"), 1)));
        tasks.extend((0..4).map(|_| sleeper("free")));
        let cpuset = |list| Setting::Cpuset { cgroup: 0, cpus: Some(cpus(list)) };
        let changes = vec![
            change(20, cpuset("0-1")),
            change(40, cpuset("4-7")),
            change(60, Setting::Cpuset { cgroup: 0, cpus: None }),
        ];
        let mut workload = with_changes(tasks, 90, changes);
        workload.cgroups = vec![Cgroup::new("a", None, 1024), Cgroup::new("b", Some(0), 1024)];
        workload.cgroups[1].cpus = Some(cpus("1,4-5"));
        let setup = Setup::new("pack:1 l3:2 core:4 pu:1", kernel, "baseline", workload);
        setup.checked(5);
        let runs = Runs::of(&setup);
        for comm in ["hog", "sleeper"] {
            assert!(!runs.cpus_of(comm, 0, 20).is_subset(&cpus("0-1")), "{kernel}");
            assert!(runs.cpus_of(comm, 20, 40).is_subset(&cpus("0-1")), "{kernel}: {comm}");
            assert!(runs.cpus_of(comm, 40, 60).is_subset(&cpus("4-7")), "{kernel}: {comm}");
            assert!(!runs.cpus_of(comm, 60, 90).is_empty());
        }
        let inner = [(0, 20, "1,4-5"), (20, 40, "1"), (40, 60, "4-5"), (60, 90, "1,4-5")];
        for (from, to, list) in inner {
            let seen = runs.cpus_of("inner", from, to);
            assert!(!seen.is_empty() && seen.is_subset(&cpus(list)), "{kernel}: {seen} at {from}");
        }
        assert!(runs.cpus_of("free", 20, 40).intersects(&cpus("2-7")), "{kernel}");
    }
}

/// Fails if hogs displaced at one moment all went to one CPU, or a child forked later went astray.
#[test]
fn displaced_tasks_are_spread() {
    for kernel in KERNELS {
        let fork = Op::Fork { program: 1, count: 1, base: 0, step: 0 };
        let tasks = (0..4).map(|_| worker("hog", 30)).collect();
        let to = Setting::Affinity { task: "hog".to_string(), cpus: cpus("4-7") };
        let mut workload = with_changes(tasks, 200, vec![change(10, to)]);
        let later = [Op::Sleep { ns: 20 * MS, random_pct: 0 }, fork];
        workload.programs[0].ops.splice(4..4, later);
        let setup = Setup::new("pack:1 l3:1 core:8 pu:1", kernel, "baseline", workload);
        let (outcome, _) = setup.checked(5);
        let took = outcome.statistics.simulated_ns;
        assert!(took < 55 * MS, "{kernel}: not side by side, {took}");
        let runs = Runs::of(&setup);
        assert!(runs.cpus_of("hog", 10, 200).is_subset(&cpus("4-7")), "{kernel}");
        assert_eq!(runs.exits, 6);
    }
}

/// Fails if a policy still balanced over domains that have a CPU which is offline.
#[test]
fn counters_leave_out_what_is_offline() {
    let tasks = (0..8).map(|_| worker("hog", 20)).collect();
    let changes = vec![change(5, Setting::Offline { cpu: 1 })];
    let workload = Workload {
        window: Window { measure: 30 * MS, ..Window::default() },
        ..with_changes(tasks, 0, changes)
    };
    let setup = Setup::new("pack:1 l3:1 core:2 pu:2", "v6.0", "baseline", workload);
    let outcome = setup.run();
    let schedstat = &outcome.statistics.schedstat;
    assert!(!schedstat.contains("cpu1 "), "{schedstat}");
    assert!(!schedstat.contains("domain0 f"), "all four CPUs: {schedstat}");
    assert!(counter(&outcome, "idle_share") < 5.0, "the CPU that is offline does not idle");
}

fn quota(quota_ms: u64, period_ms: u64) -> Option<Quota> {
    Some(Quota { quota: quota_ms * MS, period: period_ms * MS })
}

/// Hogs in cgroup a, which is in b, and a hog beside them, on two CPUs.
fn under_quota(kernel: &str, ms: u64, quotas: [Option<Quota>; 2], changes: Vec<Change>) -> Setup {
    let mut tasks = vec![worker("free", 10_000)];
    tasks.extend((0..3).map(|_| worker("hog", 10_000).in_cgroup(1)));
    tasks.push(sleeper("sleeper").in_cgroup(1));
    let mut workload = with_changes(tasks, ms, changes);
    workload.cgroups = vec![Cgroup::new("b", None, 1024), Cgroup::new("a", Some(0), 1024)];
    for (cgroup, quota) in workload.cgroups.iter_mut().zip(quotas) {
        cgroup.quota = quota;
    }
    Setup::new("pack:1 l3:1 core:2 pu:1", kernel, "baseline", workload)
}

/// CPU time of the tasks of a name, in ms, by the trace: from switch to switch.
fn ran(setup: &Setup, comm: &str, from_ms: u64, to_ms: u64) -> f64 {
    let (_, text) = setup.traced();
    let mut since: [Option<u64>; 2] = [None; 2];
    let mut total = 0;
    let (from, to) = (from_ms * 1_000, to_ms * 1_000);
    for line in parse(&text).iter().filter(|line| line.event == "sched_switch") {
        if let Some(since) = since[line.cpu as usize].take() {
            total += line.micros.clamp(from, to) - since.clamp(from, to);
        }
        if line.text("next_comm") == comm {
            since[line.cpu as usize] = Some(line.micros);
        }
    }
    for since in since.into_iter().flatten() {
        total += to - since.clamp(from, to);
    }
    total as f64 / 1e3
}

/// Fails if a cgroup got more or less than its quota: but for a slice or a tick of each CPU.
#[test]
fn a_cgroup_gets_its_quota_in_each_period() {
    for kernel in KERNELS {
        for (quota_ms, period_ms) in [(20, 100), (30, 50), (5, 10)] {
            for level in 0..2 {
                let mut quotas = [None; 2];
                quotas[level] = quota(quota_ms, period_ms);
                let setup = under_quota(kernel, 1_000, quotas, Vec::new());
                let (outcome, _) = setup.checked(7);
                let had = ran(&setup, "hog", 0, 1_000) + ran(&setup, "sleeper", 0, 1_000);
                let due = (1_000 * quota_ms / period_ms) as f64;
                assert!((had - due).abs() < 25.0, "{kernel}: {had} ms of {due}");
                let name = ["b", "a"][level];
                let periods = counter(&outcome, &format!("{name}_nr_periods"));
                let throttled = counter(&outcome, &format!("{name}_nr_throttled"));
                let expected = (1_000 / period_ms) as f64;
                assert!((periods - expected).abs() <= 1.0, "{kernel}: {periods} periods");
                assert!(throttled >= 0.9 * expected - 1.0, "{kernel}: throttled in {throttled}");
                // At worst the other task shares a CPU with the cgroup while it runs.
                let free = ran(&setup, "free", 0, 1_000);
                assert!(free > 970.0 - had / 2.0, "{kernel}: {free} ms beside {had}");
            }
        }
    }
}

/// Fails if a group were throttled that has not used up its quota, or if a group that may use more
/// than a CPU could not.
#[test]
fn a_quota_that_is_enough_throttles_nobody() {
    for kernel in KERNELS {
        let setup = under_quota(kernel, 300, [None, quota(250, 100)], Vec::new());
        let (outcome, _) = setup.checked(7);
        assert_eq!(counter(&outcome, "a_nr_throttled"), 0.0, "{kernel}");
        assert!(ran(&setup, "hog", 0, 300) > 250.0, "{kernel}");
    }
}

/// Fails if a new quota came into force late, or not at all: 20 %, then half a CPU, then no limit.
#[test]
fn a_quota_may_change_at_any_time() {
    for kernel in KERNELS {
        let to = |quota| Setting::Quota { cgroup: 1, quota };
        let changes = vec![change(503, to(quota(25, 50))), change(1_007, to(None))];
        let setup = under_quota(kernel, 1_500, [None, quota(10, 50)], changes);
        setup.checked(7);
        for (from, to, due) in [(0, 500, 100.0), (510, 1_000, 245.0)] {
            let had = ran(&setup, "hog", from, to) + ran(&setup, "sleeper", from, to);
            assert!(f64::abs(had - due) < 25.0, "{kernel}: {had} ms from {from} to {to}");
        }
        assert!(ran(&setup, "hog", 1_010, 1_500) > 400.0, "{kernel}: it is free");
    }
}

/// Fails if tasks that wait for runtime were pulled to another CPU: the hogs share one, and their
/// group is throttled for half of the time, while the other CPU idles.
#[test]
fn throttled_tasks_are_not_migrated() {
    for kernel in KERNELS {
        let hogs = (0..3).map(|_| worker("hog", 10_000).in_cgroup(0));
        let mut workload = with_changes(hogs.collect(), 1_000, Vec::new());
        workload.cgroups = vec![Cgroup::new("a", None, 1024)];
        workload.cgroups[0].quota = quota(100, 200);
        let pinned = Setting::Affinity { task: "hog".to_string(), cpus: cpus("0") };
        let free = Setting::Affinity { task: "hog".to_string(), cpus: cpus("0-1") };
        workload.changes = vec![change(1, pinned), change(320, free)];
        let setup = Setup::new("pack:1 l3:1 core:2 pu:1", kernel, "baseline", workload);
        setup.checked(1);
        let runs = Runs::of(&setup);
        let throttled = |run: &&Run| (320 * MS..395 * MS).contains(&run.time);
        assert_eq!(runs.runs.iter().filter(throttled).count(), 0, "{kernel}: nobody runs");
        let moved = |run: &&Migration| (320 * MS..399 * MS).contains(&run.time);
        assert_eq!(runs.migrations.iter().filter(moved).count(), 0, "{kernel}");
    }
}

/// Fails if tasks that wait for runtime stayed on a CPU that goes offline, or outside their cpuset.
#[test]
fn throttled_tasks_may_have_to_go() {
    for kernel in KERNELS {
        for to in
            [Setting::Offline { cpu: 1 }, Setting::Cpuset { cgroup: 1, cpus: Some(cpus("0")) }]
        {
            let setup =
                under_quota(kernel, 400, [quota(10, 100), None], vec![change(90, to.clone())]);
            setup.checked(3);
            let runs = Runs::of(&setup);
            assert!(runs.cpus_of("hog", 0, 90).contains(1), "{kernel}");
            assert_eq!(runs.cpus_of("hog", 90, 400), cpus("0"), "{kernel}: {to:?}");
            let had = ran(&setup, "hog", 0, 400) + ran(&setup, "sleeper", 0, 400);
            assert!((30.0..55.0).contains(&had), "{kernel}: {had}");
        }
    }
}

#[test]
fn changes_that_cannot_be_are_refused() {
    let refused = |to: Vec<Setting>| {
        let changes = to.into_iter().map(|to| change(1, to)).collect();
        let workload = with_changes(vec![worker("hog", 1)], 10, changes);
        let setup = Setup::new("pack:1 l3:1 core:2 pu:1", "v6.0", "baseline", workload);
        let Setup { machine, policy, workload, seed } = &setup;
        match simulate(&Scenario { machine, policy, workload, seed: *seed }, None) {
            Err(SimError::Change { problem, .. }) => Some(problem),
            other => other.err().map(|error| error.to_string()),
        }
    };
    let (off, on) = (|cpu| Setting::Offline { cpu }, |cpu| Setting::Online { cpu });
    let affinity = Setting::Affinity { task: "hog".to_string(), cpus: cpus("0") };
    assert_eq!(refused(vec![off(0), on(0), off(1)]), None);
    for (changes, reason) in [
        (vec![off(2)], "CPU 2 is not online then"),
        (vec![off(0), off(0)], "CPU 0 is not online then"),
        (vec![off(0), off(1)], "CPU 1 is the last one"),
        (vec![on(0)], "CPU 0 is online then"),
        (vec![on(9)], "CPU 9 was never online"),
        (vec![off(0), affinity], "none of the CPUs 0 is online then"),
    ] {
        let problem = refused(changes).expect("it is refused");
        assert!(problem.starts_with(reason), "{problem}");
    }
}

/// One change, in numbers that are made to fit the machine.
#[derive(Clone, Debug)]
struct Draw {
    at: u64,
    what: u32,
    numbers: (usize, u64),
}

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    let draw = (0..25 * MS, 0..6_u32, any::<(usize, u64)>()).prop_map(|(at, what, numbers)| Draw {
        at,
        what,
        numbers,
    });
    prop::collection::vec(draw, 1..24).prop_map(|mut draws| {
        draws.sort_by_key(|draw| draw.at);
        draws
    })
}

/// Changes that can be carried out on a machine of `nr_cpus`.
fn changes(draws: &[Draw], nr_cpus: usize, nr_programs: usize) -> Vec<Change> {
    let mut online = CpuSet::first_n(nr_cpus);
    let mut changes = Vec::new();
    for Draw { at, what, numbers: (number, bits) } in draws {
        let cpu = number % nr_cpus;
        let some: CpuSet =
            (0..nr_cpus).filter(|&cpu| bits.rotate_left(cpu as u32) & 0b1010_0000 != 0).collect();
        let some = if some.intersects(&online) { some } else { online };
        let cgroup = (number % 3) as u32;
        let to = match what {
            0 if online.contains(cpu) && online.len() > 1 => {
                online.remove(cpu);
                Setting::Offline { cpu: cpu as u32 }
            }
            0 | 1 if !online.contains(cpu) => {
                online.insert(cpu);
                Setting::Online { cpu: cpu as u32 }
            }
            2 => Setting::Cpuset { cgroup, cpus: (bits % 4 > 0).then_some(some) },
            3 => {
                let task = format!("part{}", 1 + number % nr_programs);
                Setting::Affinity { task, cpus: some }
            }
            4 => {
                let (period, quota) = (1 + bits % 10, 1 + bits / 10 % 10);
                let quota = Quota { quota: quota * MS, period: period * MS };
                Setting::Quota { cgroup, quota: (bits % 5 > 0).then_some(quota) }
            }
            _ => continue,
        };
        changes.push(Change { at: *at, to });
    }
    changes
}

/// Ends every loop that has no end.
fn with_an_end(workload: &mut Workload, times: u32) {
    for op in workload.programs.iter_mut().flat_map(|program| &mut program.ops) {
        if let Op::Repeat { times: rounds @ FOREVER, .. } = op {
            *rounds = times;
        }
    }
}

proptest! {
    #![proptest_config(config(60, 9))]

    /// Whatever changes while whatever runs: no task is lost, in two places or where it may not be,
    /// no CPU time is lost, and it happens twice alike.
    #[test]
    fn any_workload_survives_any_changes(
        parts in prop::collection::vec(part(), 1..5),
        draws in draws(),
        machine in prop::sample::select(&MACHINES[..]),
        kernel in kernel(),
        seed in any::<u64>(),
    ) {
        let mut workload = workload(&parts, 30);
        let nr_cpus = placewise_machine::load(machine).expect("a machine").cpus.len();
        workload.cgroups = vec![
            Cgroup::new("a", None, 1024),
            Cgroup::new("b", Some(0), 512),
            Cgroup::new("c", None, 2048),
        ];
        let nr_programs = workload.programs.len() - 1;
        for (program, at) in workload.programs.iter_mut().skip(1).zip(0_u32..) {
            program.cgroup = [Some(0), Some(1), Some(2), None][at as usize % 4];
        }
        workload.changes = changes(&draws, nr_cpus, nr_programs);
        let setup = Setup { seed, ..Setup::new(machine, &kernel, "baseline", workload) };
        setup.checked(11);
        prop_assert_eq!(setup.traced().1, setup.traced().1);
    }

    /// Tasks that have an end come to it.
    #[test]
    fn every_task_ends_whatever_changes(
        tasks in prop::collection::vec((0..3_usize, 0..4_usize), 1..12),
        draws in draws(),
        machine in prop::sample::select(&MACHINES[..]),
        kernel in kernel(),
        seed in any::<u64>(),
    ) {
        let kinds = [worker("part1", 5), sleeper("part2"), worker("part3", 1)];
        let count = tasks.len();
        let tasks = tasks.into_iter().map(|(kind, cgroup)| Program {
            cgroup: [Some(0), Some(1), Some(2), None][cgroup],
            ..kinds[kind].clone()
        });
        let nr_cpus = placewise_machine::load(machine).expect("a machine").cpus.len();
        let mut workload = with_changes(tasks.collect(), 10_000, changes(&draws, nr_cpus, 3));
        with_an_end(&mut workload, 50);
        workload.cgroups = vec![
            Cgroup::new("a", None, 1024),
            Cgroup::new("b", Some(0), 512),
            Cgroup::new("c", None, 2048),
        ];
        let setup = Setup { seed, ..Setup::new(machine, &kernel, "baseline", workload) };
        setup.checked(7);
        prop_assert_eq!(Runs::of(&setup).exits, count + 1);
    }
}
