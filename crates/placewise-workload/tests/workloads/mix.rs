//! The mix: what is written is what is built, and each part does what it does alone.

use super::common::{Interpreter, Step};
use placewise_workload::program::*;
use placewise_workload::{Case, build, canonical, names};
use proptest::prelude::*;

fn mix(parts: &str) -> Workload {
    build("mix", &Case::default().with("parts", parts)).unwrap()
}

/// The steps of each of the tasks that run a program from `first` on, up to `end`.
fn steps_by_task(workload: &Workload, first: usize, end: usize) -> Vec<Vec<Step>> {
    let mut run = Interpreter::new(workload);
    run.run(1_100_000_000);
    let tasks = run.tasks.iter().enumerate();
    let tasks = tasks.filter(|(_, task)| (first..end).contains(&task.program));
    tasks.map(|(number, _)| run.steps_where(|step| step.task == number)).collect()
}

/// Parts with programs and objects of most kinds.
const BEFORE: &str = "hackbench:fds=2,loops=2+pgbench:clients=2,client_us=1000,backend_us=1000";

/// Fails if parts shared an object, a program or a loop: then steps would come at other times, in
/// other orders, or with objects that are not all shifted by the same number.
#[test]
fn each_part_does_what_it_does_alone() {
    for (name, settings) in [
        ("hackbench", "groups=2,fds=3,loops=4,user_ns=10000"),
        ("schbench", "workers=3,messengers=2"),
        ("context_switch1", "instances=3,user_ns=1000000"),
        ("netperf", "threads=2,user_ns=1000000"),
        ("tbench", "clients=2,user_ns=1000000"),
        ("pgbench", "clients=4,threads=2,client_us=1000,backend_us=1000"),
        ("dbench", "groups=3,op_us=1000"),
        ("stream", "threads=3,runs=2,elements=1000000"),
        ("lu", "threads=4,plane_us=100"),
    ] {
        let alone = build(name, &settings.replace(',', ";").parse().unwrap()).unwrap();
        let (before, size) = (mix(BEFORE).programs.len(), alone.programs.len());
        let all = mix(&format!("{BEFORE}+{name}:{settings}+{name}:{settings}"));
        assert_eq!(all.check(), Ok(()), "{name}");
        let expected = steps_by_task(&alone, 0, size);
        let found = steps_by_task(&all, before, before + size);
        assert!(expected.iter().flatten().count() > 50, "{name} does something");
        assert_eq!(found.len(), expected.len(), "tasks of {name}");
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            let same_op = std::mem::discriminant(&found.op) == std::mem::discriminant(&expected.op);
            assert!(same_op && found.time == expected.time, "{name}: {found:?}, {expected:?}");
        }
        assert_eq!(shifts(&found), shifts(&expected), "{name}");
    }
}

/// The objects of each kind of operation, counted from the lowest.
fn shifts(tasks: &[Vec<Step>]) -> Vec<(String, Vec<usize>)> {
    let mut kinds: Vec<(String, Vec<usize>)> = Vec::new();
    for step in tasks.iter().flatten() {
        let kind: String = format!("{:?}", step.op).chars().take_while(|c| *c != ' ').collect();
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, indices)) => indices.push(step.index),
            None => kinds.push((kind, vec![step.index])),
        }
    }
    for (_, indices) in &mut kinds {
        let lowest = *indices.iter().min().expect("not empty");
        indices.iter_mut().for_each(|index| *index -= lowest);
    }
    kinds
}

#[test]
fn parts_are_in_their_cgroups_and_what_they_make_is_inside() {
    let workload =
        mix("hackbench:groups=1@web:300+lu:threads=2,burners=1@batch+schedpipe+schedpipe@web");
    let expected = [
        Cgroup::new("web", None, 3072),
        Cgroup::new("batch", None, 1024),
        Cgroup::new("lu", Some(1), 1024),
        Cgroup::new("stress-1", Some(1), 1024),
    ];
    assert_eq!(workload.cgroups, expected);
    let places: Vec<(&str, Option<u32>, Option<u32>)> = workload
        .programs
        .iter()
        .map(|program| (program.name.as_str(), program.cgroup, program.part))
        .collect();
    let expected = [
        ("sh", None, None),
        ("hackbench", Some(0), Some(0)),
        ("receiver", None, Some(0)),
        ("sender", None, Some(0)),
        ("sh", Some(1), Some(1)),
        ("lu.C.x", Some(2), Some(1)),
        ("lu.C.x", Some(2), Some(1)),
        ("lu.C.x", Some(2), Some(1)),
        ("stress", Some(3), Some(1)),
        ("sched-pipe", None, Some(2)),
        ("sched-pipe", None, Some(2)),
        ("sched-pipe", Some(0), Some(3)),
        ("sched-pipe", None, Some(3)),
    ];
    assert_eq!(places, expected);
}

#[test]
fn parts_are_told_apart_by_name() {
    let names = |parts: &str| -> Vec<String> {
        mix(parts).parts.into_iter().map(|part| part.name).collect()
    };
    assert_eq!(names("lu@a+lu@b+lu"), ["lu@a", "lu@b", "lu"]);
    assert_eq!(names("lu@a+schedpipe+lu@a"), ["lu@a#1", "schedpipe", "lu@a#2"]);
}

#[test]
fn a_weight_named_once_holds_wherever_the_cgroup_is_named() {
    let shares = |parts: &str| mix(parts).cgroups[0].shares;
    assert_eq!(shares("schedpipe@a+schedpipe@a:200"), 2048);
    assert_eq!(shares("schedpipe@a:200+schedpipe@a:200"), 2048);
    assert_eq!(shares("schedpipe@a:1"), 10);
    assert_eq!(shares("schedpipe@a"), 1024);
}

#[test]
fn bad_parts_are_refused_with_the_part_and_the_remedy() {
    for (parts, message) in [
        ("hackbnech", "mix: part 1: workload `hackbnech`: unknown; did you mean `hackbench`?"),
        ("lu+", "mix: part 2: ``: expected WORKLOAD"),
        ("lu+@web", "mix: part 2: `@web`: expected WORKLOAD"),
        ("lu+schbench:workes=8", "part 2: schbench: case key `workes`: unknown; did you mean"),
        ("schbench:workers=0@web", "part 1: schbench: `workers=0`: expected a whole number from 1"),
        ("schbench:workers", "part 1: case `workers`: expected key=value, with `,` between"),
        ("lu:burners=1,burners=2", "part 1: case `burners=2`: this key is set twice"),
        ("lu@", "part 1: `@`: expected the cgroup's name"),
        ("lu@a/b", "part 1: `@a/b`: expected the cgroup's name, of letters"),
        ("lu@a:0", "part 1: `@a:0`: expected a weight (cpu.weight) from 1 to 10000"),
        ("lu@a:heavy", "part 1: `@a:heavy`: expected a weight (cpu.weight) from 1 to 10000"),
        ("lu@a:1+lu@a:2", "part 2: `@a:2`: the cgroup has another weight already"),
        ("lu+mix:window_ms=1", "part 2: `mix`: a mix cannot be part of a mix"),
        ("lu:window_ms=1", "part 1: `window_ms`: all parts have the window of the mix"),
    ] {
        let case = Case::default().with("parts", parts);
        let error = build("mix", &case).unwrap_err().to_string();
        assert!(error.contains(message), "{parts}: {error}");
        assert_eq!(canonical("mix", &case).unwrap_err().to_string(), error);
    }
}

/// One part as it may be written, and as it is written canonically.
fn part() -> impl Strategy<Value = (String, String)> {
    let what = proptest::sample::select(
        &[
            (" schedpipe ", "schedpipe"),
            ("schedpipe:", "schedpipe"),
            ("hackbench: groups=02 ,, ipc = socket", "hackbench:ipc=socket,groups=2"),
            ("lu:cgroups=one,threads=4,", "lu:threads=4,cgroups=one"),
        ][..],
    );
    let cgroup = proptest::option::of("[a-zA-Z0-9_.-]{1,8}");
    (what, cgroup).prop_map(|((loose, strict), cgroup)| {
        let cgroup = cgroup.map(|cgroup| format!("@{cgroup}")).unwrap_or_default();
        (format!("{loose}{cgroup} "), format!("{strict}{cgroup}"))
    })
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(parts in proptest::collection::vec(part(), 1..5)) {
        let (loose, strict): (Vec<String>, Vec<String>) = parts.into_iter().unzip();
        let case = |parts: &[String]| Case::default().with("parts", parts.join("+"));
        prop_assert_eq!(canonical("mix", &case(&loose)).unwrap(), case(&strict));
        let workload = build("mix", &case(&loose)).unwrap();
        prop_assert_eq!(workload.check(), Ok(()));
        prop_assert_eq!(workload.parts.len(), strict.len());
    }

    #[test]
    fn any_parts_are_read_or_refused_in_one_line(
        text in prop_oneof![any::<String>(), "[a-z@:+=,0-9]{0,40}", nearly_right()],
    ) {
        let case = Case::default().with("parts", &text);
        let canonical_case = canonical("mix", &case);
        if let Ok(case) = &canonical_case {
            prop_assert_eq!(&canonical("mix", case).unwrap(), case);
        }
        // Of files only what they are called has been looked at yet.
        match canonical_case.and_then(|case| build("mix", &case)) {
            Ok(workload) => prop_assert_eq!(workload.check(), Ok(())),
            Err(error) => {
                let error = error.to_string();
                prop_assert!(!error.contains('\n') && error.starts_with("mix: "), "{}", error);
            }
        }
    }
}

/// Pieces of the form in any order.
fn nearly_right() -> impl Strategy<Value = String> {
    let names: Vec<String> = names().map(str::to_owned).collect();
    let piece = prop_oneof![
        proptest::sample::select(names),
        proptest::sample::select(
            &["@", ":", "+", ",", "=", "web", "groups=1", "threads=3", "100", " "][..]
        )
        .prop_map(str::to_owned),
    ];
    proptest::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat())
}

fn herd() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/rt-app/02-herd.json")
}

/// Its tasks are parts of its part, behind those of the parts before it.
#[test]
fn an_rt_app_file_is_a_part() {
    let file = herd();
    let alone = placewise_workload::from_rt_app(std::path::Path::new(file)).unwrap();
    let all = mix(&format!("schbench:workers=2+{file}@web"));
    assert_eq!(all.check(), Ok(()));
    let names: Vec<&str> = all.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names[..2], ["schbench", "02-herd@web"]);
    for (part, inner) in alone.parts.iter().zip(&all.parts[2..]) {
        assert_eq!(inner.name, format!("02-herd@web/{}", part.name));
        assert_eq!(inner.within, Some(part.within.map_or(1, |outer| outer + 2)));
    }
    let first = all.programs.len() - alone.programs.len();
    for (program, moved) in alone.programs.iter().zip(&all.programs[first..]) {
        assert_eq!(moved.part, Some(program.part.map_or(1, |part| part + 2)));
        assert_eq!(moved.part_step, program.part_step);
    }
}

#[test]
fn what_is_wrong_with_an_rt_app_part_is_told() {
    let wrong = |parts: &str| {
        let case = Case::default().with("parts", parts);
        build("mix", &case).unwrap_err().to_string()
    };
    let missing = wrong("schbench+./no-such.json");
    assert!(missing.starts_with("mix: part 2: ./no-such.json: cannot be read"), "{missing}");
    let settings = wrong(&format!("{}:groups=1", herd()));
    assert!(settings.contains("an rt-app file has no settings"), "{settings}");
}
