//! `placewise top --once`: what a frame shows is what the audit says of the same trace. The live tests
//! are skipped where nothing can be recorded.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use assert_cmd::Command;
use serde_json::Value;

use super::record::{PLACEWISE, cannot_record, has_instance, signal, wait_until, with_tracefs};

fn bundled(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name)
}

fn run(args: &[&str]) -> String {
    let output = Command::cargo_bin("placewise").unwrap().args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn audit(trace: &str) -> Value {
    serde_json::from_str(&run(&["audit", trace, "--format", "json"])).unwrap()
}

/// The words of the line that begins with these.
fn words<'f>(frame: &'f str, begins: &str) -> Vec<&'f str> {
    let of_line = |line: &'f str| line.trim_matches(['│', ' ']).split_whitespace().collect();
    let lines = frame.lines().map(of_line);
    let begins: Vec<&str> = begins.split_whitespace().collect();
    let mut found = lines.filter(|words: &Vec<&str>| words.starts_with(&begins));
    found.next().unwrap_or_else(|| panic!("no {begins:?} in\n{frame}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn figures_are_those_of_the_audit() {
    for name in ["vm32-k73-hackbench-pipe.txt.zst", "vm16-k618-forkloop.txt.zst"] {
        let trace = bundled(name).display().to_string();
        let audit = audit(&trace);
        for (size, width, height) in [("80x24", 80, 24), ("200x60", 200, 60)] {
            let frame = run(&["top", &trace, "--once", "--size", size]);
            assert_eq!(frame.lines().count(), height);
            assert!(frame.lines().all(|line| line.chars().count() <= width), "{frame}");
            let events = number(&audit["trace"]["events"]).to_string();
            assert!(frame.contains(&format!("{events} events  0 lost")), "{frame}");
            for of in audit["turns"].as_array().unwrap().iter().take(3) {
                let words = words(&frame, of["name"].as_str().unwrap());
                assert_eq!(words[1], number(&of["waits"]).to_string());
                assert_eq!(words[2], format!("{:.3}", number(&of["waited_ns"]) as f64 / 1e6));
                let worst = &of["worst_wait"];
                assert_eq!(words[4], format!("{:.1}", number(&worst["wait_ns"]) as f64 / 1e3));
                assert_eq!(words[5], number(&worst["pid"]).to_string());
                assert_eq!(words[6], number(&worst["cpu"]).to_string());
            }
        }
    }
}

/// All wakeups count here; the audit counts those apart that no policy was asked for.
#[test]
fn wakeups_are_those_with_a_placement_and_those_without() {
    let trace = bundled("vm16-k618-forkloop.txt.zst").display().to_string();
    let frame = run(&["top", &trace, "--once"]);
    let audit = audit(&trace);
    let same_cpu: u64 = words(&frame, "same CPU")[2].parse().unwrap();
    let placed = number(&audit["latency"]["wakeups"][0]["wakeup_to_run"]["count"]);
    let others = audit["no_placement"].as_array().unwrap().iter();
    let others: u64 = others.map(|of| number(&of["count"])).sum();
    assert!(others > 0);
    assert_eq!(same_cpu, placed + others);
}

#[test]
fn what_cannot_be_shown_is_refused_in_a_line() {
    let refused = |args: &[&str], expected: &str| {
        let output = Command::cargo_bin("placewise").unwrap().args(args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.lines().count() == 1 && stderr.contains(expected), "{stderr}");
    };
    refused(&["top", "nowhere.txt", "--once"], "nowhere.txt: cannot open");
    refused(&["top", "x", "--once", "--size", "80"], "such as 80x24");
    refused(&["top", "x", "--speed", "0"], "expected a number from 0.001");
    refused(&["top", "--overhead", "0"], "expected a number from 0.1 to 100");
}

#[test]
fn the_running_kernel_is_shown_and_left_as_it_was() {
    if let Some(why) = cannot_record() {
        return println!("skipped: {why}");
    }
    let top = with_tracefs(&[PLACEWISE, "top", "--once", "--interval", "0.5"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = top.id();
    let output = top.wait_with_output().unwrap();
    assert!(output.status.success());
    let frame = String::from_utf8(output.stdout).unwrap();
    assert_eq!(words(&frame, "LLC 0")[3..5], ["%", "busy"], "{frame}");
    // Its own sleeps alone are so many.
    let events = frame.split_once(" events").unwrap().0.rsplit(' ').next().unwrap();
    assert!(events.parse::<u64>().unwrap() >= 4, "{frame}");
    assert!(!has_instance(pid));
}

#[test]
fn nothing_is_left_of_a_view_that_is_ended() {
    if let Some(why) = cannot_record() {
        return println!("skipped: {why}");
    }
    for with in ["-TERM", "-KILL"] {
        let words = [PLACEWISE, "top", "--once", "--interval", "60"];
        let mut top = with_tracefs(&words).stdout(Stdio::null()).spawn().unwrap();
        wait_until("it has an instance", || has_instance(top.id()));
        signal(with, &top.id().to_string());
        top.wait().unwrap();
        wait_until("the instance is gone", || !has_instance(top.id()));
    }
}
