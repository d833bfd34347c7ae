//! `placewise study` from outside: cells are simulated once, by whomever, and rows are the same bytes.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::schemas::assert_value_fits;

const PLACEWISE: &str = env!("CARGO_BIN_EXE_placewise");

const PLAN: &str = r#"
machines = ["uma-8", "x86-12"]
policies = ["baseline", "short-task"]
runs = 2

[[workload]]
name = "hackbench"
cases = ["groups=1;fds=2;warmup_ms=1;window_ms=4", "groups=2;fds=2;warmup_ms=1;window_ms=4"]
"#;

/// Two policies that differ, and not by more than noise.
const NOISE: &str = r#"
machines = ["uma-8"]
policies = ["baseline", "set:SIS_UTIL=0"]
runs = 2

[[workload]]
name = "hackbench"
cases = ["groups=1;warmup_ms=5;window_ms=10"]
"#;

struct Lab {
    place: TempDir,
}

impl Lab {
    fn new(plan: &str) -> Self {
        let lab = Self { place: tempfile::tempdir().unwrap() };
        fs::write(lab.path("plan.toml"), plan).unwrap();
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PLACEWISE);
        command.current_dir(self.place.path()).env("XDG_CACHE_HOME", self.path("cache"));
        command.args(args);
        command
    }

    fn output(&self, args: &[&str]) -> Output {
        self.command(&[&["study", "plan.toml"], args].concat()).output().unwrap()
    }

    #[track_caller]
    fn study(&self, args: &[&str]) -> String {
        let output = self.output(args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn lines(&self, args: &[&str]) -> Vec<Value> {
        let text = self.study(args);
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("plan.results")).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

fn texts<'a>(lines: &'a [Value], key: &str) -> Vec<&'a str> {
    lines.iter().map(|line| line[key].as_str().unwrap()).collect()
}

#[test]
fn cells_of_another_engine_give_the_same_bytes_as_any_number_of_jobs() {
    let lab = Lab::new(PLAN);
    let told = lab.study(&["--jobs=1"]);
    assert!(told.starts_with("16 cells: 16 simulated, 0 there before, 0 failed"), "{told}");
    let figures = lab.study(&["--figures"]);
    assert_eq!(lab.study(&["--emit"]), "");

    lab.study(&["--jobs=4", "--results=four"]);
    assert_eq!(lab.study(&["--figures", "--results=four"]), figures);

    let emitted = lab.lines(&["--emit", "--results=engine"]);
    let cells = texts(&emitted, "cell");
    assert_eq!(cells.len(), 16);
    for pair in cells.chunks(2) {
        let asked: Vec<String> = pair.iter().map(|cell| format!("--cell={cell}")).collect();
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        assert_eq!(lab.study(&[&asked[..], &["--results=engine"]].concat()), "");
    }
    assert_eq!(lab.study(&["--figures", "--results=engine"]), figures);
}

/// A file that another process has written is not written anew.
#[test]
fn nothing_is_simulated_twice() {
    let lab = Lab::new(PLAN);
    let emitted = lab.lines(&["--emit"]);
    let first = texts(&emitted, "cell")[0];
    lab.study(&["--cell", first]);
    let marked = lab.path("plan.results").join(format!("{first}.json"));
    let text = fs::read_to_string(&marked).unwrap().replace("\"s\"", "\"marked\"");
    fs::write(&marked, &text).unwrap();
    let told = lab.study(&[]);
    assert!(told.starts_with("16 cells: 15 simulated, 1 there before"), "{told}");
    assert_eq!(fs::read_to_string(&marked).unwrap(), text);
    assert!(lab.study(&[]).starts_with("16 cells: 0 simulated, 16 there before"));
    assert!(lab.study(&["--figures"]).contains("\"marked\""));
}

#[test]
fn what_a_kill_leaves_is_gone_on_with() {
    let lab = Lab::new(&PLAN.replace("window_ms=4", "window_ms=60"));
    let mut killed = lab.command(&["study", "plan.toml"]).stdout(Stdio::null()).spawn().unwrap();
    while !lab.path("plan.results").exists() || lab.files().len() < 3 {
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    // What was cut short does not count, whatever has cut it.
    let whole = lab.files().into_iter().find(|file| file.extension().is_some_and(|e| e == "json"));
    let text = fs::read_to_string(whole.as_ref().unwrap()).unwrap();
    fs::write(whole.unwrap(), &text[..text.len() / 2]).unwrap();
    lab.study(&[]);
    lab.study(&["--results=anew"]);
    assert_eq!(lab.study(&["--figures"]), lab.study(&["--figures", "--results=anew"]));
}

#[test]
fn the_address_of_a_cell_is_of_what_goes_into_it() {
    let lab = Lab::new(PLAN);
    let emitted = lab.lines(&["--emit"]);
    let before = texts(&emitted, "cell");
    let other = PLAN.replace("\"baseline\", ", "").replace("groups=2", "groups=3");
    fs::write(lab.path("plan.toml"), other).unwrap();
    let emitted = lab.lines(&["--emit"]);
    for cell in &emitted {
        let is_known = before.contains(&cell["cell"].as_str().unwrap());
        assert_eq!(is_known, cell["case"].as_str().unwrap().starts_with("groups=1"), "{cell}");
    }
    assert_eq!(emitted.len(), 8);
}

#[test]
fn runs_are_added_until_changes_are_known() {
    let plan = PLAN.replace("runs = 2", "runs = 2\nprecision = 1e-9\nbudget = 5");
    // The same decisions under another name are known at once, those of another seed never are.
    let lab = Lab::new(&plan.replace("short-task", "hint:none").replace(", \"x86-12\"", ""));
    assert!(lab.study(&[]).starts_with("8 cells: 8 simulated"));
    let noise = NOISE.replace("runs = 2", "runs = 3\nprecision = 1e-9\nbudget = 5");
    fs::write(lab.path("plan.toml"), noise).unwrap();
    lab.study(&[]);
    for row in lab.lines(&["--changes"]).iter().filter(|row| row["policy"] != "baseline") {
        let is_known = row["significant"] == true || row["identical"] == true;
        assert!(is_known || row["runs"] == 5, "{row}");
    }
    assert!(lab.lines(&["--figures"]).iter().any(|row| row["seed"] == 5));
    // Any engine is asked for the same.
    assert_eq!(lab.study(&["--emit"]), "");
}

#[test]
fn changes_are_those_of_compare() {
    let lab = Lab::new(&PLAN.replace("\"uma-8\", ", ""));
    lab.study(&[]);
    let mut changes = lab.lines(&["--changes"]);
    let args = ["--machine=x86-12", "--workload=hackbench", "--runs=2"];
    let cases = ["1", "2"].map(|n| format!("--case=groups={n};fds=2;warmup_ms=1;window_ms=4"));
    let mut compare = lab.command(&["compare", "--policy=baseline", "--policy=short-task"]);
    let compared = compare.args(args).args(cases).arg("--format=json").output().unwrap();
    let compared: Value = serde_json::from_slice(&compared.stdout).unwrap();
    for change in &mut changes {
        let change = change.as_object_mut().unwrap();
        assert_eq!(change.remove("workload"), Some("hackbench".into()));
        change.remove("schema");
    }
    assert_eq!(Value::from(changes), compared["rows"]);
}

/// Own code that crashes: the rest goes on.
#[test]
fn what_fails_is_a_row() {
    let lab = Lab::new(&PLAN.replace(", \"x86-12\"", ""));
    assert!(lab.command(&["policy", "eject", "mine"]).output().unwrap().status.success());
    let header = lab.path("mine/place.h");
    let text = fs::read_to_string(&header).unwrap();
    let from = "return wake_affine(wakeup, level);";
    assert_eq!(text.matches(from).count(), 1);
    fs::write(header, text.replace(from, &format!("__builtin_trap(); {from}"))).unwrap();
    let own = ["--policy=crashes=./mine"];
    let told = lab.study(&own);
    assert!(told.starts_with("12 cells: 12 simulated, 0 there before, 4 failed"), "{told}");
    for row in lab.lines(&[&own[..], &["--figures"]].concat()) {
        let failure = row["failure"].as_str().unwrap_or_default();
        assert_eq!(row["policy"] == "crashes", failure.starts_with("crashed (SIG"), "{row}");
        assert_value_fits("study-figures", &row);
    }
    let policies = lab.lines(&[&own[..], &["--changes"]].concat());
    assert_eq!(policies.len(), 4, "what has failed has no change");
    assert!(lab.study(&own).starts_with("12 cells: 0 simulated, 12 there before, 4 failed"));
    let again = lab.study(&[&own[..], &["--retry"]].concat());
    assert!(again.starts_with("12 cells: 4 simulated, 8 there before, 4 failed"), "{again}");
}

#[test]
fn lines_are_as_their_schemas_say() {
    let lab = Lab::new(&PLAN.replace("runs", "stats = true\nruns"));
    for cell in lab.lines(&["--emit"]) {
        assert_value_fits("study-cells", &cell);
    }
    lab.study(&[]);
    for row in lab.lines(&["--figures"]) {
        assert_value_fits("study-figures", &row);
    }
    for row in lab.lines(&["--changes"]) {
        assert_value_fits("study-changes", &row);
    }
}

/// The plan's directory is where its files are looked for, wherever one calls from.
#[test]
fn bad_plans_are_refused_in_one_line() {
    let lab = Lab::new(&PLAN.replace("\"hackbench\"", "\"app.json\""));
    fs::create_dir(lab.path("elsewhere")).unwrap();
    fs::write(lab.path("app.json"), "{\"tasks\": 3}").unwrap();
    let mut command = lab.command(&["study", "../plan.toml"]);
    let output = command.current_dir(lab.path("elsewhere")).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
    assert!(stderr.starts_with("placewise: ../plan.toml: line 7: workload."), "{stderr}");
    assert!(!lab.path("plan.results").exists());

    let output = Lab::new(PLAN).output(&["--cell=abc"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("--cell abc: is no cell"), "{stderr}");
}

#[test]
fn plans_of_the_gallery_are_good() {
    let gallery = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/gallery");
    let plans = fs::read_dir(gallery).unwrap().map(|entry| entry.unwrap().path());
    let plans: Vec<PathBuf> =
        plans.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    assert_eq!(plans.len(), 3);
    for plan in plans {
        let lab = Lab::new("");
        let mut command =
            lab.command(&["study", plan.to_str().unwrap(), "--emit", "--results=new"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty(), "{}", plan.display());
    }
}
