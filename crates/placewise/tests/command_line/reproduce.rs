//! `placewise reproduce` from outside: a small study end to end, the same bytes for any number of
//! jobs, rows that cannot be simulated, and studies that are refused.

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

const HEADER: &str =
    "series,machine,kernel,workload,case,metric,policy,value,unit,better,spread_pct,change_pct";

/// Two rows that are simulated quickly.
const SCHEDPIPE: [&str; 2] = [
    "s,uma-8,v6.0,schedpipe,window_ms=5,throughput,baseline,100000,ops/s,higher,0.5,",
    "s,uma-8,v6.0,schedpipe,window_ms=5,throughput,short-task,110000,ops/s,higher,,10.00",
];

fn study(rows: &[&str]) -> String {
    format!("# source: made up\n{HEADER}\n{}\n", rows.join("\n"))
}

/// Runs `placewise reproduce study.csv` with `args`.
fn run(study: &str, args: &[&str]) -> std::process::Output {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("study.csv"), study).unwrap();
    let mut command = Command::cargo_bin("placewise").unwrap();
    let command = command.current_dir(directory.path()).args(["reproduce", "study.csv"]);
    command.args(args).output().unwrap()
}

fn reproduce(rows: &[&str], args: &[&str]) -> String {
    let output = run(&study(rows), args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "progress is for terminals only");
    String::from_utf8(output.stdout).unwrap()
}

fn json(rows: &[&str]) -> Value {
    serde_json::from_str(&reproduce(rows, &["--format", "json"])).unwrap()
}

fn refused(study: &str) -> String {
    let output = run(study, &[]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(output.stdout.is_empty() && stderr.lines().count() == 1, "{stderr}");
    stderr
}

/// The figure that `placewise compare` prints is the prediction, where it has a login session, too.
#[test]
fn predictions_are_the_figures_of_compare() {
    let report = json(&SCHEDPIPE);
    let compare = Command::cargo_bin("placewise")
        .unwrap()
        .args(["compare", "--machine=uma-8", "--workload=schedpipe", "--case=window_ms=5"])
        .args(["--policy=baseline", "--policy=short-task", "--runs=1", "--format=json"])
        .arg("--environment=session")
        .output()
        .unwrap();
    let compare: Value = serde_json::from_slice(&compare.stdout).unwrap();
    for row in 0..2 {
        let (predicted, compared) = (&report["rows"][row], &compare["rows"][row]);
        assert!(predicted["predicted"].as_f64().unwrap() > 0.0);
        assert_eq!(predicted["predicted"], compared["mean"]);
        assert_eq!(predicted["predicted_change_pct"], compared["change_pct"]);
        assert!(predicted["not_simulated"].is_null());
    }
    assert_eq!(report["rows"][1]["change_pct"], 10.0);
    assert_eq!(report["rows"][1]["line"], 4);
}

#[test]
fn the_summary_judges_the_predicted_change() {
    let report = json(&SCHEDPIPE);
    let predicted = report["rows"][1]["predicted_change_pct"].as_f64().unwrap();
    let summary = &report["summary"];
    assert_eq!((&summary["significant"], &summary["null"]), (&1.into(), &0.into()));
    assert_eq!(summary["sign_right"], u64::from(predicted > 0.0));
    assert!(summary["spearman"].is_null() && summary["null_rate"].is_null());

    let against = SCHEDPIPE[1].replace("10.00", "-10.00");
    let report = json(&[SCHEDPIPE[0], &against]);
    assert_eq!(report["summary"]["sign_right"], u64::from(predicted < 0.0));
}

/// With a spread of 5 % of the second row and 0.5 % of the first, twice the noise is 10.05 %.
#[test]
fn a_row_beyond_the_noise_is_judged_once() {
    let with = |rows: &[&str]| json(rows)["summary"].clone();
    let summary = with(&SCHEDPIPE);
    assert_eq!((&summary["decisive"], &summary["null_real"]), (&1.into(), &0.into()));
    assert_eq!(summary["decisive_right"], summary["sign_right"]);
    assert_eq!(summary["experiments"].as_array().unwrap().len(), 1);
    assert_eq!(summary["no_change"]["decisive_rate"], 0.0);
    assert_eq!(summary["ceiling"]["rows"], 168);
    let baselines = &summary["baselines"][0];
    assert_eq!(
        (&baselines["workload"], &baselines["quantity"]),
        (&"schedpipe".into(), &"rate".into())
    );
    assert!(baselines["value"]["median"].as_f64().unwrap() >= 1.0);
    assert!(baselines["shape"].is_null(), "there is one case only");

    let noisy = SCHEDPIPE[1].replace("higher,,", "higher,5.0,");
    assert_eq!(with(&[SCHEDPIPE[0], &noisy])["decisive"], 0);
    let nothing = SCHEDPIPE[1].replace("short-task", "hint:none").replace("10.00", "0.10");
    let summary = with(&[SCHEDPIPE[0], &nothing]);
    assert_eq!((&summary["null"], &summary["null_real"]), (&1.into(), &0.into()));
}

/// Of a table with three judged cases, the one in the middle is simulated, with its baseline.
#[test]
fn a_sample_leaves_out_the_rest() {
    let case = |window: &str| SCHEDPIPE.map(|row| row.replace("window_ms=5", window));
    let rows = ["window_ms=5", "window_ms=6", "window_ms=7"].map(case).concat();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let text = reproduce(&rows, &["--sample", "1", "--format", "json"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    let lines: Vec<u64> = report["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["line"].as_u64().unwrap())
        .collect();
    assert_eq!(lines, [5, 6]);
    assert_eq!(report["summary"]["series"][0]["experiments"], 1);
    let told = reproduce(&rows, &["--sample", "1"]);
    assert!(told.contains("at most 1 judged case of each experiment"), "{told}");
}

/// Runs are added to what is published only, and only while it is not known.
#[test]
fn runs_are_added_until_a_change_is_known() {
    let asked = SCHEDPIPE[1]
        .replace("110000", "")
        .replace("10.00", "")
        .replace("short-task", "hint:wake_hold");
    let rows = [SCHEDPIPE[0], SCHEDPIPE[1], &asked];
    let report = |more: &[&str]| -> Value {
        let args = [&["--format=json", "--precision=0.0001", "--budget=4"], more].concat();
        serde_json::from_str(&reproduce(&rows, &args)).unwrap()
    };
    let runs = |report: &Value, row: usize| report["rows"][row]["runs"].as_u64().unwrap();
    let all = report(&[]);
    assert!([2, 4].contains(&runs(&all, 0)) && runs(&all, 0) == runs(&all, 1));
    assert_eq!(runs(&all, 2), 1);
    assert!(all["rows"][1]["predicted_change_low_pct"].is_number());
    assert_eq!(report(&["--only-published"])["rows"].as_array().unwrap().len(), 2);
}

#[test]
fn the_page_is_written_with_its_plot_and_rows() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_str().unwrap();
    let csv = reproduce(&SCHEDPIPE, &["--format", "csv", "--page", place]);
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(read("accuracy.csv"), csv);
    assert!(read("ACCURACY.md").contains("| s      | uma-8   | schedpipe | short-task |"));
    assert_eq!(read("accuracy.svg").matches("<circle").count(), 1 + 1 + 3, "row and legend");
    let output = run(&study(&SCHEDPIPE), &["--page", "nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}

/// A time of 4,310 ms is not compared with one of 4.31.
#[test]
fn predictions_are_in_the_unit_of_the_table() {
    let case = "groups=1;fds=2;warmup_ms=10;window_ms=20";
    let predicted = |metric: &str, unit: &str| {
        let row = format!("s,uma-8,v6.0,hackbench,{case},{metric},baseline,2,{unit},,,");
        json(&[&row])["rows"][0]["predicted"].as_f64().unwrap()
    };
    let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
    let seconds = predicted("time", "s");
    assert!(close(predicted("time", "ms"), 1e3 * seconds));
    assert!(close(predicted("time", "usec_of_the_author"), 1e6 * seconds));
    let (percent, ratio) = (predicted("idle_share", "pct"), predicted("idle_share", "ratio"));
    assert!(close(percent, 100.0 * ratio), "{percent} {ratio}");
}

/// Rows of one table may have units of their own: a change compares what was measured.
#[test]
fn changes_do_not_depend_on_units() {
    let of = |rows: &[&str]| json(rows)["rows"][1]["predicted_change_pct"].clone();
    let thousands = SCHEDPIPE[1].replace("110000,ops/s", "110,kop/s");
    assert_eq!(of(&SCHEDPIPE), of(&[SCHEDPIPE[0], &thousands]));
}

/// What order the keys of a case are in, and whether a number has leading zeros, is no matter.
#[test]
fn one_case_has_one_name() {
    let row = |case: &str, policy: &str| {
        format!("s,uma-8,v6.0,hackbench,{case},time,{policy},2,s,lower,,")
    };
    let baseline = row("groups=1;fds=2;warmup_ms=10;window_ms=20;run=1", "baseline");
    let other = row("run=1;window_ms=020;warmup_ms=10;fds=2;groups=1", "short-task");
    let report = json(&[&baseline, &other]);
    assert!(report["rows"][1]["predicted_change_pct"].is_number());
    let again = other.replace("short-task", "baseline");
    let says = refused(&study(&[&baseline, &again]));
    assert!(says.contains("study.csv:4:") && says.contains("line 3"), "{says}");
}

/// A counter that differs between seeds gives a spread.
#[test]
fn counters_are_predicted_with_their_spread() {
    let metric = |row: &str| row.replace("throughput", "schedstat_schedule_called");
    let rows = SCHEDPIPE.map(metric).map(|row| row.replace("ops/s,higher", "count,"));
    let rows = [rows[0].as_str(), rows[1].as_str()];
    let text = reproduce(&rows, &["--format", "json", "--runs", "3"]);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(report["rows"][0]["predicted"].as_f64().unwrap() > 0.0);
    assert!(report["rows"][0]["predicted_spread_pct"].is_number());
    assert!(report["rows"][1]["predicted_change_pct"].is_number());
}

#[test]
fn any_number_of_jobs_gives_the_same_bytes() {
    for format in ["table", "markdown", "csv", "json"] {
        let with = |jobs| reproduce(&SCHEDPIPE, &["--runs=4", "--format", format, "--jobs", jobs]);
        assert_eq!(with("1"), with("2"), "{format}");
    }
}

/// Each has a published effect that would count if it were predicted.
#[test]
fn rows_that_cannot_be_simulated_are_named_and_not_counted() {
    let unknown = [
        ("uma-8", "vax"),
        ("v6.0", "v9.9"),
        ("schedpipe", "kernbench"),
        ("window_ms=5", "clients=5"),
        ("throughput", "joy"),
        ("short-task", "magic"),
    ];
    for (known, unknown) in unknown {
        let row = SCHEDPIPE[1].replace(known, unknown);
        let rows = [SCHEDPIPE[0], &row];
        let report = json(&rows);
        let reason = report["rows"][1]["not_simulated"].as_str().unwrap();
        let key = unknown.split('=').next().unwrap();
        assert!(reason.contains(key), "{reason}");
        assert!(report["rows"][1]["predicted"].is_null(), "{unknown}");
        assert_eq!(report["summary"]["significant"], 0, "{unknown}");
        assert!(report["rows"][0]["predicted"].is_number(), "the other row is predicted");
        for (format, reason) in
            [("table", reason.to_owned()), ("markdown", reason.replace('`', r"\`"))]
        {
            let text = reproduce(&rows, &["--format", format]);
            let unbroken = text.replace('\n', " ");
            assert!(unbroken.contains(&format!("study.csv, line 4: {reason}")), "{text}");
        }
    }
}

#[test]
fn a_row_without_a_value_asks_for_a_prediction() {
    let open = SCHEDPIPE[1].replace("110000", "").replace("10.00", "");
    let report = json(&[SCHEDPIPE[0], &open]);
    assert!(report["rows"][1]["value"].is_null() && report["rows"][1]["change_pct"].is_null());
    assert!(report["rows"][1]["predicted_change_pct"].is_number());
    assert_eq!(report["summary"]["significant"], 0);
}

#[test]
fn csv_is_a_study_again() {
    let text = reproduce(&SCHEDPIPE, &["--format", "csv"]);
    let header = text.lines().next().unwrap();
    let appended = "predicted,predicted_change_pct,predicted_spread_pct,not_simulated,\
                    predicted_change_low_pct,predicted_change_high_pct,runs,states,in_sample,verdict";
    assert_eq!(header, format!("{HEADER},{appended}"));
    assert!(text.lines().last().unwrap().starts_with("# summary: {\"significant\":1,"));
    let again = run(&text, &["--format", "csv"]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), text);
}

#[test]
fn markdown_lays_published_and_predicted_side_by_side() {
    let text = reproduce(&SCHEDPIPE, &["--format", "markdown"]);
    let rows = text.split("## study.csv").nth(1).unwrap();
    let row = rows.lines().find(|line| line.contains("short-task")).unwrap();
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    assert_eq!((cells[1], cells[2], cells[4]), ("short-task", "110000", "+10.00"), "{row}");
    assert!(cells[3].parse::<f64>().unwrap() > 0.0, "{row}");
    assert!(cells[5].parse::<f64>().is_ok(), "{row}");
    assert!(rows.contains("| window_ms=5 "), "{rows}");
}

#[test]
fn bad_studies_are_refused_with_line_and_field() {
    let without = study(&SCHEDPIPE).replace("metric,", "");
    assert!(refused(&without).contains("study.csv:2: column `metric` is missing"));
    let number = study(&SCHEDPIPE).replace("110000", "much");
    let says = refused(&number);
    assert!(says.contains("study.csv:4: value: expected a number") && says.contains("`much`"));
    let direction = study(&SCHEDPIPE).replacen("higher", "upper", 1);
    let says = refused(&direction);
    assert!(says.contains("study.csv:3: better: expected `lower`, `higher`"), "{says}");
    assert!(refused("").contains("study.csv:1: column `series` is missing"));
}

/// Each is the second row, changed so that it cannot be.
#[test]
fn fields_that_cannot_be_are_refused() {
    for (from, to, says) in [
        ("ops/s", "furlong", "unit: expected one of s, sec, ms,"),
        ("ops/s", "", "unit: expected one of s, sec, ms,"),
        ("ops/s", "ms", "unit: expected ops/s, tps,"),
        ("ops/s", "MB/s", "for metric `throughput`, found `MB/s`"),
        ("110000", "-110000", "value: expected a number from 0 on, found `-110000`"),
        ("110000", "0", "value: expected more than 0 for metric `throughput`"),
        ("110000", "-0", "value: expected more than 0 for metric `throughput`"),
        ("110000", "1e-999", "value: expected more than 0 for metric `throughput`"),
        ("110000", "1e999", "value: expected a number, such as 4.23"),
        ("110000", "inf", "value: expected a number, such as 4.23"),
        (",10.00", ",nan", "change_pct: expected a number, such as 4.23"),
        (
            "higher,,10.00",
            "higher,,-101",
            "change_pct: expected -100 or more where higher is better",
        ),
        ("higher,,10.00", "lower,,101", "change_pct: expected 100 or less where lower is better"),
        (",,10.00", ",-1,10.00", "spread_pct: expected a number from 0 on, found `-1`"),
        (",,10.00", ",\"10.00", "a quotation mark is not closed"),
        (",,10.00", ",10.00", "has 11 fields; expected 12"),
        (",,10.00", ",,10.00,", "has 13 fields; expected 12"),
        ("short-task", "short\rtask", "has a control character"),
        ("short-task", "\u{1b}[31m", "has a control character"),
        ("short-task", "baseline", "policy `baseline` has this case and metric in line 3"),
    ] {
        let row = SCHEDPIPE[1].replace(from, to);
        let refusal = refused(&study(&[SCHEDPIPE[0], &row]));
        assert!(
            refusal.starts_with("placewise: study.csv:4: ") && refusal.contains(says),
            "{to}: {refusal}"
        );
    }
}

#[test]
fn nothing_may_have_been_counted() {
    let counter = SCHEDPIPE[0].replace("throughput", "migrations_active");
    let row = counter.replace("100000,ops/s,higher,0.5", "0,count,,0");
    assert!(json(&[&row])["rows"][0]["predicted"].is_number());
    let as_time = row.replace("count", "ms");
    let report = json(&[&as_time]);
    assert_eq!(
        report["rows"][0]["not_simulated"],
        "metric `migrations_active`: is in tasks, not in `ms`"
    );
}

#[test]
fn tables_that_are_none_are_refused() {
    let twice = study(&SCHEDPIPE).replace("spread_pct", "value");
    assert!(refused(&twice).contains("study.csv:2: column `value` is there twice"));
    let further = study(&SCHEDPIPE).replace("change_pct", "change_pct,,").replace("0.5,", "0.5,,,");
    let further = further.replace("10.00", "10.00,,");
    assert!(run(&further, &[]).status.success(), "columns without a name are ignored");
    assert!(refused(&study(&[])).contains("study.csv:2: there is no row below the header"));
    assert!(refused("\0\0").contains("study.csv:1: has a control character"));
}

#[test]
fn a_file_that_is_no_text_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("study.csv"), b"# source\n# caf\xe9\n").unwrap();
    let mut command = Command::cargo_bin("placewise").unwrap();
    let command = command.current_dir(directory.path()).args(["reproduce", "study.csv"]);
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr, "placewise: study.csv: line 2 is no text; expected UTF-8\n");
}

#[test]
fn missing_and_repeated_files_are_refused() {
    let output = run(&study(&SCHEDPIPE), &["other.csv"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("other.csv: cannot be read"), "{stderr}");
    let output = run(&study(&SCHEDPIPE), &["study.csv"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("study.csv: is given twice"), "{stderr}");
    let output = run(&study(&SCHEDPIPE), &["./study.csv"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("./study.csv: is given twice"), "{stderr}");
}

/// Every study of the project is well formed: with a machine that there is not, nothing is
/// simulated, and every row is named.
#[test]
fn the_studies_of_the_project_are_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let studies = directory.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut known = 0;
    for study in studies.filter(|path| path.extension().is_some_and(|ext| ext == "csv")) {
        let text = std::fs::read_to_string(&study).unwrap();
        let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        let elsewhere = |row: &str| {
            let (series, rest) = row.split_once(',').unwrap();
            let (_machine, rest) = rest.split_once(',').unwrap();
            format!("{series},nowhere,{rest}")
        };
        let rows: Vec<String> = rows.map(elsewhere).collect();
        let report = json(&rows.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(report["rows"].as_array().unwrap().len(), rows.len(), "{}", study.display());
        known += 1;
    }
    assert!(known > 0);
}

/// A directory with a study of four runs, and what `placewise reproduce` prints there.
struct Stopped(tempfile::TempDir);

impl Stopped {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("study.csv"), study(&SCHEDPIPE)).unwrap();
        Self(directory)
    }

    fn reproduce(&self, args: &[&str]) -> std::process::Output {
        let mut command = Command::cargo_bin("placewise").unwrap();
        let command = command.current_dir(self.0.path()).args(["reproduce", "study.csv"]);
        command.args(["--runs=2", "--format=json"]).args(args).output().unwrap()
    }

    fn kept(&self) -> String {
        std::fs::read_to_string(self.0.path().join("runs")).unwrap()
    }

    fn keep(&self, text: &str) {
        std::fs::write(self.0.path().join("runs"), text).unwrap();
    }
}

/// As after a kill in the middle of a write.
#[test]
fn what_was_stopped_goes_on_and_ends_with_the_same_bytes() {
    let stopped = Stopped::new();
    let unbroken = stopped.reproduce(&[]).stdout;
    assert_eq!(stopped.reproduce(&["--resume=runs"]).stdout, unbroken);
    let all = stopped.kept();
    assert_eq!(all.lines().count(), 4);
    let (first, _) = all.split_once('\n').unwrap();
    stopped.keep(&format!("{first}\n{}", &all[first.len() + 1..first.len() + 100]));
    assert_eq!(stopped.reproduce(&["--resume=runs"]).stdout, unbroken);
    assert_eq!(stopped.kept().lines().count(), 4);
    assert!(stopped.kept().starts_with(&format!("{first}\n")));
    assert_eq!(stopped.reproduce(&["--resume=runs"]).stdout, unbroken);
    assert_eq!(stopped.kept().lines().count(), 4, "nothing is simulated again");
}

/// What is kept counts for the same inputs alone.
#[test]
fn kept_runs_are_taken_for_what_they_are_of() {
    let stopped = Stopped::new();
    let unbroken = stopped.reproduce(&["--resume=runs"]).stdout;
    let changed = |from: &str, to: &str| {
        let lines: Vec<String> =
            stopped.kept().lines().map(|line| line.replacen(from, to, 1)).collect();
        lines.join("\n") + "\n"
    };
    let doubled = changed("[\"throughput\",", "[\"throughput\",1");
    stopped.keep(&doubled);
    assert_ne!(stopped.reproduce(&["--resume=runs"]).stdout, unbroken);
    let of_another_build = doubled.replace("{\"key\":\"", "{\"key\":\"x");
    stopped.keep(&of_another_build);
    assert_eq!(stopped.reproduce(&["--resume=runs"]).stdout, unbroken);
    assert_eq!(stopped.kept().lines().count(), 8);
    // The seeds from 2 on share one run of two with those from 1 on.
    stopped.reproduce(&["--resume=runs", "--seed=2"]);
    assert_eq!(stopped.kept().lines().count(), 10);
}

#[test]
fn a_file_of_something_else_stays_as_it_is() {
    let stopped = Stopped::new();
    let before = std::fs::read_to_string(stopped.0.path().join("study.csv")).unwrap();
    let output = stopped.reproduce(&["--resume=study.csv"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("study.csv: line 1 is no finished run"), "{stderr}");
    assert_eq!(std::fs::read_to_string(stopped.0.path().join("study.csv")).unwrap(), before);
}
