//! `placewise compare --uncertain` from outside: the same bytes for any number of jobs, and rows for each
//! change beside all that is there without it.

use assert_cmd::Command;
use serde_json::Value;

const QUICK: [&str; 14] = [
    "compare",
    "--machine",
    "zen3-2s-nps1",
    "--workload",
    "hackbench",
    "--case",
    "groups=2;fds=8;warmup_ms=2;window_ms=5",
    "--policy",
    "baseline",
    "--policy",
    "short-task",
    "--runs",
    "2",
    "--format",
];

fn compare(more: &[&str]) -> std::process::Output {
    Command::cargo_bin("placewise").unwrap().args(QUICK).args(more).output().unwrap()
}

fn stdout(more: &[&str]) -> String {
    let output = compare(more);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn json_has_a_row_for_each_change_and_is_the_same_for_any_number_of_jobs() {
    let one = stdout(&["json", "--uncertain=6", "--jobs=1"]);
    assert_eq!(one, stdout(&["json", "--uncertain=6", "--jobs=3"]));
    let with: Value = serde_json::from_str(&one).unwrap();
    let without: Value = serde_json::from_str(&stdout(&["json"])).unwrap();
    assert_eq!(with["rows"], without["rows"]);
    assert_eq!(without["uncertain"], Value::Null);
    let [row] = &with["uncertain"].as_array().unwrap()[..] else { panic!("{one}") };
    assert_eq!((&row["metric"], &row["draws"]), (&"time".into(), &6.into()));
    let changes = with["rows"].as_array().unwrap().iter();
    let change = changes.filter_map(|row| row["change_pct"].as_f64()).next();
    assert_eq!(row["change_pct"].as_f64(), change, "that of the costs as they are");
    assert!(row["least_pct"].as_f64() < row["most_pct"].as_f64(), "costs make a difference: {row}");
}

#[test]
fn the_report_for_lists_stays_under_80_columns() {
    let text = stdout(&["lkml", "--uncertain=2"]);
    assert!(text.contains("of 2 draws"), "{text}");
    let (_, command) = text.split_once("Simulated with:").unwrap();
    assert!(command.contains("--uncertain=2"), "what it was asked gives it again: {command}");
    assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
}

#[test]
fn csv_is_refused_in_one_line() {
    let output = compare(&["csv", "--uncertain"]);
    let problem = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), problem.lines().count()), (Some(2), 1), "{problem}");
    assert!(problem.contains("--uncertain: CSV has no place for it"), "{problem}");
}
