//! No text makes the readers panic, and whatever they accept is sound.
//!
//! The ignored tests keep at it for PLACEWISE_FUZZ_SECONDS (default 60):
//! `cargo test -p placewise-workload --release -- --ignored fuzz`.

use std::time::{Duration, Instant};

use placewise_workload::{Case, Environment, build, from_rt_app_text, names};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Words that mean something in an rt-app file, or nearly do.
const WORDS: [&str; 40] = [
    "tasks",
    "global",
    "resources",
    "duration",
    "default_policy",
    "pi_enabled",
    "calibration",
    "instance",
    "delay",
    "loop",
    "phases",
    "cpus",
    "policy",
    "priority",
    "run",
    "run1",
    "runtime",
    "sleep",
    "timer",
    "ref",
    "period",
    "mode",
    "absolute",
    "lock",
    "unlock",
    "wait",
    "mutex",
    "signal",
    "broad",
    "sync",
    "barrier",
    "suspend",
    "resume",
    "yield",
    "fork",
    "mem",
    "unique",
    "SCHED_IDLE",
    "a",
    "",
];

fn word() -> impl Strategy<Value = String> {
    proptest::sample::select(&WORDS[..]).prop_map(|word| format!("\"{word}\""))
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => word(),
        4 => (-2_i64..3000).prop_map(|number| number.to_string()),
        1 => any::<i64>().prop_map(|number| number.to_string()),
        1 => any::<f64>().prop_map(|number| number.to_string()),
        1 => Just("true".to_string()),
        1 => Just("null".to_string()),
        1 => "\\PC{0,6}".prop_map(|text| format!("{text:?}")),
    ]
}

/// JSON of any shape.
fn json() -> impl Strategy<Value = String> {
    scalar().prop_recursive(6, 60, 6, |inner| {
        let members = proptest::collection::vec((word(), inner.clone()), 0..6);
        let members = members.prop_map(|members| {
            let members: Vec<String> = members.iter().map(|(key, value)| format!("{key}: {value}")).collect();
            format!("{{ {} }}", members.join(",\n"))
        });
        let elements = proptest::collection::vec(inner, 0..4);
        prop_oneof![3 => members, 1 => elements.prop_map(|elements| format!("[{}]", elements.join(",")))]
    })
}

/// An event that may well be right, so that much gets past the reader and into the compiler.
fn event() -> impl Strategy<Value = String> {
    let name = || proptest::sample::select(&["a", "b", "c", ""][..]);
    let named = (
        proptest::sample::select(
            &["lock", "unlock", "signal", "broad", "barrier", "suspend", "resume", "fork", "yield"]
                [..],
        ),
        name(),
    );
    let timer = proptest::sample::select(&["t", "unique", "unique2"][..]);
    prop_oneof![
        4 => (proptest::sample::select(&["run", "sleep", "runtime"][..]), 0..5000_u32)
            .prop_map(|(key, time)| format!("\"{key}\": {time}")),
        3 => named.prop_map(|(key, name)| format!("\"{key}\": \"{name}\"")),
        1 => (name(), name()).prop_map(|(a, b)| format!("\"lock\": \"{b}\", \"wait\": {{ \"ref\": \"{a}\", \"mutex\": \"{b}\" }}, \"unlock\": \"{b}\"")),
        1 => (name(), name()).prop_map(|(a, b)| format!("\"sync\": {{ \"ref\": \"{a}\", \"mutex\": \"{b}\" }}")),
        1 => (timer, 0..9000_u32).prop_map(|(name, period)| format!("\"timer\": {{ \"ref\": \"{name}\", \"period\": {period} }}")),
    ]
}

fn events() -> impl Strategy<Value = String> {
    (proptest::collection::vec(event(), 1..6), proptest::option::of(-1..4_i32)).prop_map(
        |(events, times)| {
            let times = times.map(|times| format!(", \"loop\": {times}")).unwrap_or_default();
            format!("{}{times}", events.join(", "))
        },
    )
}

/// A file that looks right.
fn file() -> impl Strategy<Value = String> {
    let phases = proptest::collection::vec(events(), 1..4).prop_map(|phases| {
        let phases: Vec<String> =
            phases.iter().map(|events| format!("\"p\": {{ {events} }}")).collect();
        format!("\"phases\": {{ {} }}", phases.join(", "))
    });
    let body = prop_oneof![events(), phases];
    let task = (proptest::sample::select(&["a", "b", "c"][..]), 0..4_u32, body).prop_map(
        |(name, instances, body)| format!("\"{name}\": {{ \"instance\": {instances}, {body} }}"),
    );
    proptest::collection::vec(task, 1..4).prop_map(|tasks| {
        format!("{{ \"tasks\": {{ {} }}, \"global\": {{ \"duration\": 1 }} }}", tasks.join(",\n"))
    })
}

/// One of `examples/DIRECTORY` with some of its text overwritten.
fn mutated_example(
    directory: &str,
    new: impl Strategy<Value = String>,
) -> impl Strategy<Value = String> {
    let examples = format!("{}/../../examples/{directory}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> =
        std::fs::read_dir(examples).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path| std::fs::read_to_string(path).unwrap();
    let examples: Vec<String> = files.iter().map(read).collect();
    let patch = (any::<prop::sample::Index>(), 0..12_usize, new);
    (proptest::sample::select(examples), proptest::collection::vec(patch, 1..4)).prop_map(
        |(text, patches)| {
            let mut text: Vec<char> = text.chars().collect();
            for (at, length, new) in patches {
                let at = at.index(text.len() + 1);
                let end = (at + length).min(text.len());
                text.splice(at..end, new.chars());
            }
            text.into_iter().collect()
        },
    )
}

fn any_file() -> impl Strategy<Value = String> {
    let new = prop_oneof![scalar(), "[{}\\[\\]\",:/*a-z0-9]{0,3}"];
    prop_oneof![json(), file(), mutated_example("rt-app", new), any::<String>()]
}

/// An entry of an environment file for lu that may well be right.
fn entry() -> impl Strategy<Value = String> {
    let text = |values: &'static [&'static str]| proptest::sample::select(values);
    let line = prop_oneof![
        text(&["name", "parent", "cgroup"]).prop_flat_map(move |key| {
            text(&["lu", "stress-1", "a", "b", "", "a/b"])
                .prop_map(move |name| format!("{key} = \"{name}\""))
        }),
        text(&["stress", "lu.C.x", "sh"]).prop_map(|task| format!("tasks = [\"{task}\"]")),
        text(&["stress", "lu.C.x", "sh"]).prop_map(|task| format!("task = \"{task}\"")),
        (0..20_000_u32).prop_map(|weight| format!("cpu.weight = {weight}")),
        (any::<u32>(), 0..2_000_000_u32).prop_map(|(a, b)| format!("cpu.max = \"{a} {b}\"")),
        text(&["cpus", "cpuset.cpus", "cpu_offline", "cpu_online"]).prop_flat_map(|key| {
            "[0-9]{1,4}([,-][0-9]{1,4}){0,2}".prop_map(move |list| format!("{key} = \"{list}\""))
        }),
        (any::<u32>(), text(&["ns", "us", "ms", "s", "h", ""]))
            .prop_map(|(at, unit)| format!("at = \"{at}{unit}\"")),
    ];
    (text(&["cgroup", "change"]), proptest::collection::vec(line, 1..4))
        .prop_map(|(kind, lines)| format!("[[{kind}]]\n{}\n", lines.join("\n")))
}

fn any_environment() -> impl Strategy<Value = String> {
    let entries = proptest::collection::vec(entry(), 0..5).prop_map(|entries| entries.concat());
    let new = prop_oneof![any::<i64>().prop_map(|n| n.to_string()), "[\\[\\]\"=.,a-z0-9-]{0,3}"];
    prop_oneof![entries, mutated_example("environment", new), any::<String>()]
}

/// Accepted and sound, or refused in one line.
fn assert_sound(text: &str) -> bool {
    match from_rt_app_text("fuzz", text) {
        Ok(workload) => {
            assert_eq!(workload.check(), Ok(()), "{text}");
            true
        }
        Err(error) => {
            let error = error.to_string();
            assert!(!error.contains('\n') && error.len() < 2_000, "{error:?}\n{text}");
            false
        }
    }
}

/// Read and put on lu, whatever else lu may be missing: sound, or refused in one line.
fn assert_environment_sound(text: &str) -> bool {
    let lu = build("lu", &Case::default()).unwrap();
    match Environment::from_text("fuzz", text).and_then(|it| it.around(lu)) {
        Ok(workload) => {
            assert_eq!(workload.check(), Ok(()), "{text}");
            assert!(workload.changes.is_sorted_by_key(|change| change.at), "{text}");
            let mut names: Vec<&str> = workload.cgroups.iter().map(|it| &*it.name).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}\n{text}");
            true
        }
        Err(error) => {
            let error = error.to_string();
            assert!(!error.contains('\n') && error.len() < 2_000, "{error:?}\n{text}");
            false
        }
    }
}

proptest! {
    #[test]
    fn environments_are_refused_in_one_line_or_sound(text in any_environment()) {
        assert_environment_sound(&text);
    }

    #[test]
    fn files_are_refused_in_one_line_or_sound(text in any_file()) {
        assert_sound(&text);
    }

    #[test]
    fn cases_are_refused_in_one_line_or_sound(
        name in proptest::sample::select(names().collect::<Vec<_>>()),
        settings in proptest::collection::vec(
            (proptest::sample::select(&["groups", "fds", "loops", "ipc", "workers", "instances", "user_ns", "window_ms"][..]),
             prop_oneof![(0..300_u64).prop_map(|n| n.to_string()), any::<u64>().prop_map(|n| n.to_string()), Just("pipe".to_string())]),
            0..4),
    ) {
        let case = settings.iter().fold(Case::default(), |case, (key, value)| case.with(key, value));
        match build(name, &case) {
            Ok(workload) => prop_assert_eq!(workload.check(), Ok(())),
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }
}

/// Or else the generators above would prove nothing about the compiler.
#[test]
fn a_fair_share_of_generated_files_is_accepted() {
    let mut runner = TestRunner::deterministic();
    let accepted =
        (0..400).filter(|_| assert_sound(&file().new_tree(&mut runner).unwrap().current())).count();
    assert!(accepted > 20, "{accepted} of 400");
}

#[test]
fn deep_and_wide_files_are_refused_quickly() {
    assert!(!assert_sound(&"[".repeat(100_000)));
    assert!(!assert_sound(&format!("{}{}", "[".repeat(300), "]".repeat(300))));
    let wide = r#""lock0": "m", "unlock0": "m", "#.repeat(20_000);
    assert!(assert_sound(&format!(
        r#"{{ "tasks": {{ "a": {{ "loop": 1, {wide} "run": 1 }} }}, "global": {{ "duration": 1 }} }}"#
    )));
}

/// Feeds texts to a reader for PLACEWISE_FUZZ_SECONDS, and says how many it accepted.
fn keep_at_it(texts: impl Strategy<Value = String>, is_accepted: fn(&str) -> bool) {
    let seconds = std::env::var("PLACEWISE_FUZZ_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(60);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut runner = TestRunner::default();
    let (mut tried, mut accepted) = (0_u64, 0_u64);
    while Instant::now() < end {
        let text = texts.new_tree(&mut runner).unwrap().current();
        accepted += u64::from(is_accepted(&text));
        tried += 1;
    }
    println!("{tried} texts, {accepted} accepted");
    assert!(accepted > 0);
}

#[test]
#[ignore = "runs for PLACEWISE_FUZZ_SECONDS, 60 by default"]
fn fuzz_rt_app() {
    keep_at_it(any_file(), assert_sound);
}

#[test]
#[ignore = "runs for PLACEWISE_FUZZ_SECONDS, 60 by default"]
fn fuzz_environment() {
    keep_at_it(any_environment(), assert_environment_sound);
}
