//! Bad input ends with exit status 2 and one line that names the culprit and the remedy; it never
//! panics and never leaves a file behind.

use std::fs;
use std::path::Path;

use assert_cmd::Command;

/// Runs `placewise` in a directory with `files`; what it says on stderr is returned.
fn refused(files: &[(&str, &str)], args: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let output = Command::cargo_bin("placewise")
        .unwrap()
        .current_dir(directory.path())
        .args(args)
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert!(stderr.starts_with("placewise: "), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(output.stdout.is_empty(), "{args:?} printed a result");
    assert_eq!(file_names(directory.path()), names(files), "{args:?} left a file behind");
    stderr
}

fn names(files: &[(&str, &str)]) -> Vec<String> {
    let mut names: Vec<String> = files.iter().map(|(name, _)| name.to_string()).collect();
    names.sort();
    names
}

fn file_names(directory: &Path) -> Vec<String> {
    let entries = directory.read_dir().unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> = entries.map(|entry| name(entry).into_string().unwrap()).collect();
    names.sort();
    names
}

/// `placewise compare` with hackbench on a small machine, and `changes` behind it.
fn compare(files: &[(&str, &str)], changes: &[&str]) -> String {
    let mut args = vec!["compare"];
    let given = |option: &str| changes.contains(&option);
    if !given("--machine") {
        args.extend(["--machine", "uma-8"]);
    }
    if !given("--workload") {
        args.extend(["--workload", "hackbench"]);
    }
    args.extend(changes);
    refused(files, &args)
}

#[track_caller]
fn assert_says(stderr: &str, parts: &[&str]) {
    for part in parts {
        assert!(stderr.contains(part), "no `{part}` in: {stderr}");
    }
}

#[test]
fn unknown_machine_lists_the_near_ones() {
    assert_says(&compare(&[], &["--machine", "zen3-2s-nps3"]), &["zen3-2s-nps1"]);
}

#[test]
fn unknown_kernel_lists_the_near_ones() {
    assert_says(&compare(&[], &["--kernel", "v6.1"]), &["v6.1", "v6.0", "v6.12"]);
}

#[test]
fn unknown_policy_lists_the_near_ones() {
    assert_says(&compare(&[], &["--policy", "short-tusk"]), &["short-tusk", "short-task"]);
}

#[test]
fn unknown_hint_lists_the_near_ones() {
    assert_says(&compare(&[], &["--policy", "hint:wake_afine"]), &["hint:wake_affine"]);
}

#[test]
fn hints_that_contradict_each_other() {
    let stderr = compare(&[], &["--policy", "hint:fork_affine+fork_spread"]);
    assert_says(&stderr, &["fork_affine+fork_spread"]);
}

#[test]
fn patch_on_a_kernel_it_does_not_fit() {
    let wrong = ["--kernel", "v7.3", "--policy", "lb-rework"];
    assert_says(&compare(&[], &wrong), &["lb-rework", "v7.3", "v4.15, v5.3"]);
    // One of several is enough.
    let one = ["--kernel=v5.3", "--kernel=v6.0", "--policy=baseline", "--policy=lb-rework"];
    assert_says(&compare(&[], &one), &["lb-rework", "v6.0"]);
}

#[test]
fn knob_that_the_kernel_has_not() {
    for option in [["--set", "SIS_UTIL=0"], ["--policy", "set:SIS_UTIL=0"]] {
        let stderr = compare(&[], &[&["--kernel", "v5.3"], &option[..]].concat());
        assert_says(
            &stderr,
            &["v5.3 has no SIS_UTIL", "v6.0, v6.1.176, v6.2", "SIS_PROP", "nr_migrate"],
        );
    }
}

#[test]
fn unknown_knob_lists_the_near_ones() {
    assert_says(&compare(&[], &["--set", "SIS_UTL=0"]), &["SIS_UTL", "SIS_UTIL"]);
}

#[test]
fn knob_value_that_is_none() {
    assert_says(&compare(&[], &["--set", "SIS_UTIL=off"]), &["set:SIS_UTIL=off", "1 or 0"]);
    assert_says(&compare(&[], &["--set", "nr_migrate=64"]), &["set:nr_migrate=64", "0 to 32"]);
}

#[test]
fn policy_given_twice() {
    let twice = ["--policy", "baseline", "--policy", "baseline"];
    assert_says(&compare(&[], &twice), &["baseline", "twice"]);
}

/// Written differently, it is still the same.
#[test]
fn case_given_twice() {
    let twice = ["--case", "groups=1;fds=2", "--case", "fds=02;groups=1"];
    assert_says(&compare(&[], &twice), &["--case fds=02;groups=1", "twice"]);
}

#[test]
fn bench_given_twice() {
    let twice = ["bench", "hackbench-16-zen3", "hackbench-16-zen3"];
    assert_says(&refused(&[], &twice), &["hackbench-16-zen3", "twice"]);
}

#[test]
fn files_of_any_length_are_not_read() {
    let text = " ".repeat((16 << 20) + 1);
    let says = &["larger than 16 MiB"];
    assert_says(&compare(&[("a.toml", &text)], &["--environment", "a.toml"]), says);
    assert_says(&compare(&[("a.json", &text)], &["--workload", "a.json"]), says);
    assert_says(&refused(&[("a.csv", &text)], &["reproduce", "a.csv"]), says);
}

#[test]
fn unknown_workload_lists_the_near_ones() {
    assert_says(&compare(&[], &["--workload", "hackbensh"]), &["hackbensh", "hackbench"]);
}

#[test]
fn unknown_case_key_lists_the_near_ones() {
    assert_says(&compare(&[], &["--case", "group=1"]), &["hackbench", "group", "groups"]);
}

#[test]
fn case_without_a_value() {
    assert_says(&compare(&[], &["--case", "groups"]), &["groups", "key=value"]);
}

#[test]
fn case_value_that_is_no_number() {
    assert_says(&compare(&[], &["--case", "groups=many"]), &["groups=many", "whole number"]);
}

#[test]
fn zero_groups() {
    assert_says(&compare(&[], &["--case", "groups=0"]), &["groups=0", "from 1"]);
}

#[test]
fn zero_workers() {
    let stderr = compare(&[], &["--workload", "schbench", "--case", "workers=0"]);
    assert_says(&stderr, &["workers=0", "from 1"]);
}

#[test]
fn unknown_format_lists_the_near_ones() {
    assert_says(&compare(&[], &["--format", "tabel"]), &["tabel", "table"]);
}

#[test]
fn zero_runs() {
    assert_says(&compare(&[], &["--runs", "0"]), &["--runs", "1.."]);
}

#[test]
fn zero_jobs() {
    assert_says(&compare(&[], &["--jobs", "0"]), &["--jobs", "1.."]);
}

#[test]
fn seeds_beyond_the_largest() {
    let largest = u64::MAX.to_string();
    assert_says(&compare(&[], &["--seed", &largest]), &["--seed", &largest, "5 runs"]);
}

#[test]
fn unknown_option_and_unknown_verb() {
    assert_says(&compare(&[], &["--kernels", "v6.0"]), &["--kernels", "--kernel"]);
    assert_says(&refused(&[], &["compere"]), &["compere", "compare"]);
}

#[test]
fn a_mix_names_the_part_at_fault() {
    let mix = |case| compare(&[], &["--workload", "mix", "--case", case]);
    assert_says(&mix("parts=schbench@web+hackbensh"), &["part 2", "hackbensh", "hackbench"]);
    assert_says(&mix("parts=lu@web:0"), &["part 1", "@web:0", "1 to 10000"]);
    assert_says(&mix("parts=lu:window_ms=5"), &["part 1", "window_ms", "beside `parts`"]);
    assert_says(&mix("part=lu"), &["mix", "`part`", "parts"]);
}

#[test]
fn missing_workload() {
    assert_says(&refused(&[], &["compare"]), &["--workload"]);
}

#[test]
fn missing_files() {
    assert_says(&compare(&[], &["--machine", "no.xml"]), &["no.xml"]);
    assert_says(&compare(&[], &["--machine", "no.toml"]), &["no.toml"]);
    assert_says(&compare(&[], &["--workload", "no.json"]), &["no.json"]);
}

#[test]
fn broken_xml_says_where() {
    let xml = "<?xml version=\"1.0\"?>\n<topology version=\"2.0\">\n<object type=\"Machine\">\n</topology>\n";
    let stderr = compare(&[("broken.xml", xml)], &["--machine", "broken.xml"]);
    assert_says(&stderr, &["broken.xml", "4"]);
}

#[test]
fn broken_toml_says_where() {
    let toml = "description = \"x\"\n[[package]\n";
    let stderr = compare(&[("broken.toml", toml)], &["--machine", "broken.toml"]);
    assert_says(&stderr, &["broken.toml", "line 2"]);
}

#[test]
fn broken_json_says_where() {
    let json = "{\n  \"tasks\": {\n    \"a\" 1\n  }\n}\n";
    let stderr = compare(&[("broken.json", json)], &["--workload", "broken.json"]);
    assert_says(&stderr, &["broken.json", "line 3"]);
}

#[test]
fn unsupported_rt_app_key_is_named() {
    let json = "{\n  \"tasks\": { \"a\": { \"run\": 1000, \"warp\": 9 } }\n}\n";
    let stderr = compare(&[("keys.json", json)], &["--workload", "keys.json"]);
    assert_says(&stderr, &["keys.json", "warp"]);
}

#[test]
fn rt_app_file_with_a_case() {
    let json = "{ \"tasks\": { \"a\": { \"run\": 1000 } } }";
    let stderr = compare(&[("a.json", json)], &["--workload", "a.json", "--case", "groups=1"]);
    assert_says(&stderr, &["groups=1", "--case"]);
}

#[test]
fn machine_without_cpus() {
    assert_says(&compare(&[], &["--machine", "pack:2 l3:0 core:8 pu:2"]), &["l3"]);
}

#[test]
fn machine_with_too_many_cpus() {
    assert_says(&compare(&[], &["--machine", "pack:2 l3:10 core:50 pu:2"]), &["1024"]);
}

#[test]
fn negative_cost() {
    let preset = include_str!("../../../../machines/uma-8.toml");
    let toml = preset.replace("value = 1381", "value = -1381");
    assert_ne!(toml, preset);
    let stderr = compare(&[("negative.toml", &toml)], &["--machine", "negative.toml"]);
    assert_says(&stderr, &["negative.toml", "-1381"]);
}

#[test]
fn trace_into_a_missing_directory() {
    assert_says(&compare(&[], &["--trace", "no/trace.txt"]), &["no/trace.txt", "directory"]);
}

#[test]
fn trace_onto_a_directory_or_device() {
    assert_says(&compare(&[], &["--trace", "."]), &["regular file"]);
    assert_says(&compare(&[], &["--trace", "/dev/null"]), &["/dev/null", "regular file"]);
}

#[test]
fn trace_is_not_begun_when_other_input_is_bad() {
    compare(&[], &["--trace", "trace.txt", "--case", "groups=0"]);
}

#[test]
fn unknown_bench_lists_all() {
    assert_says(&refused(&[], &["bench", "epyc"]), &["epyc-9654-2s-768-tasks"]);
}

#[test]
fn environment_says_which_line_is_wrong() {
    let with = |text: &str| {
        let files = [("a.toml", text)];
        compare(&files, &["--environment", "a.toml"])
    };
    let missing = compare(&[], &["--environment", "missing.toml"]);
    assert_says(&missing, &["missing.toml: cannot be read"]);
    let unknown = with("[[cgroup]]\nname = \"a\"\ntasks = [\"reciever\"]\n");
    assert_says(&unknown, &["a.toml: line 1:", "no task `reciever`", "did you mean"]);
    let offline = with("[[change]]\nat = \"1ms\"\ncpu_offline = \"0-8\"\n");
    assert_says(&offline, &["0.001 s", "CPU 7 is the last one online"]);
    let outside = with("[[cgroup]]\nname = \"a\"\ncpuset.cpus = \"64\"\n");
    assert_says(&outside, &["cgroup 'a' may run on none of the online CPUs of uma-8"]);
    let twice = with("[[cgroup]]\nname = \"a\"\n[[cgroup]]\nname = \"a\"\ncpu.weight = 5\n");
    assert_says(&twice, &["a.toml: line 3:", "cgroup `a` is in line 1 already"]);
}

/// Each lu brings cgroups along.
#[test]
fn a_cgroup_that_is_several_cannot_be_set() {
    let environment = "[[cgroup]]\nname = \"lu\"\ncpu.weight = 5\n";
    let mix = ["--workload", "mix", "--case", "parts=lu@web+lu@batch"];
    let args = [&mix[..], &["--environment", "a.toml"]].concat();
    assert_says(&compare(&[("a.toml", environment)], &args), &["line 1", "several cgroups `lu`"]);
}
