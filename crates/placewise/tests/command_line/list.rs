//! `placewise list`: all of it or one kind, with what a case may set.

use assert_cmd::Command;
use serde_json::Value;

fn list(args: &[&str]) -> String {
    let output = Command::cargo_bin("placewise").unwrap().arg("list").args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&list(&[args, &["--format", "json"]].concat())).unwrap()
}

#[test]
fn one_kind_is_what_all_has_of_it() {
    let (all, text) = (json(&[]), list(&[]));
    for kind in ["kernels", "policies", "workloads", "machines"] {
        let one = json(&[kind]);
        assert_eq!(one[kind], all[kind]);
        assert!(one[kind].as_array().is_some_and(|names| names.len() > 2), "{one}");
        let others = one.as_object().unwrap().keys().filter(|key| *key != "schema");
        assert_eq!(others.collect::<Vec<_>>(), [kind]);
        assert!(text.contains(&list(&[kind])), "{kind}");
    }
}

/// However long it is.
#[test]
fn each_name_begins_a_line_and_stands_apart() {
    for kind in ["kernels", "policies", "workloads", "machines"] {
        let (text, all) = (list(&[kind]), json(&[kind]));
        let first_words: Vec<_> =
            text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
        for one in all[kind].as_array().unwrap() {
            let name = one["name"].as_str().unwrap();
            assert!(first_words.contains(&name), "{name} is not in:\n{text}");
        }
    }
}

#[test]
fn parameters_have_their_defaults_and_ranges() {
    let text = list(&["workloads"]);
    for told in ["thread or process [default: thread]", "1 to 512 [default: 10]", "@CGROUP"] {
        assert!(text.contains(told), "no `{told}` in:\n{text}");
    }
    let workloads = json(&["workloads"]);
    let hackbench = workloads["workloads"].as_array().unwrap().iter();
    let hackbench = hackbench.clone().find(|one| one["name"] == "hackbench").unwrap();
    let parameter = |name: &str| {
        let parameters = hackbench["parameters"].as_array().unwrap();
        parameters.iter().find(|one| one["name"] == name).unwrap().clone()
    };
    let window = parameter("window_ms");
    assert_eq!((&window["max"], &window["unit"]), (&600_000.into(), &"ms".into()));
    assert_eq!(parameter("tasks")["choices"][0], parameter("tasks")["default"]);
}
