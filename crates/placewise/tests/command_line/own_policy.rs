//! Policies of somebody's own: written, changed, compiled and decided by.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::schemas::assert_value_fits;

const PLACEWISE: &str = env!("CARGO_BIN_EXE_placewise");

/// A tree as it is ejected, and a cache.
struct Lab {
    place: TempDir,
    cache: PathBuf,
}

impl Lab {
    /// What one test has compiled, others need not.
    fn new() -> Self {
        Self::with_cache(|_| Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-policies"))
    }

    /// One that nobody else looks into.
    fn with_own_cache() -> Self {
        Self::with_cache(|place| place.join("cache"))
    }

    fn with_cache(cache: impl Fn(&Path) -> PathBuf) -> Self {
        let place = tempfile::tempdir().unwrap();
        let lab = Self { cache: cache(place.path()), place };
        let wrote = lab.run(&["policy", "eject", "mine"]);
        assert!(wrote.status.success(), "{}", stderr(&wrote));
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(PLACEWISE);
        command.current_dir(self.place.path()).env("XDG_CACHE_HOME", &self.cache);
        command.args(args).output().unwrap()
    }

    /// Replaces what stands there once.
    fn edit(&self, header: &str, from: &str, to: &str) {
        let path = self.path("mine").join(header);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches(from).count(), 1, "{header}: {from}");
        fs::write(path, text.replace(from, to)).unwrap();
    }

    /// A short run of two policies, with a trace of each.
    fn compare(&self, policy: &str) -> Output {
        let case = "instances=6;warmup_ms=1;window_ms=4";
        let what =
            ["compare", "--machine", "uma-8", "--workload", "context_switch1", "--case", case];
        let how = ["--runs", "1", "--format", "csv", "--trace", "out.txt", "--policy", "baseline"];
        self.run(&[&what[..], &how, &["--policy", policy]].concat())
    }

    /// The events of a trace that `compare` has written.
    fn trace(&self, policy: &str) -> String {
        let text = fs::read_to_string(self.path(&format!("out.{policy}.txt"))).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
    }

    fn libraries(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.cache.join("placewise")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The one line that says why it was refused.
fn refused(output: &Output) -> String {
    let stderr = stderr(output);
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
    stderr
}

const WAKE_AFFINE: &str = "return wake_affine(wakeup, level);";

#[test]
fn an_unchanged_tree_decides_as_the_built_in_one_and_is_compiled_once() {
    let lab = Lab::with_own_cache();
    let inode = |library: &PathBuf| fs::metadata(library).unwrap().ino();
    let mut compiled = Vec::new();
    for _ in 0..2 {
        let output = lab.compare("same=./mine");
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(lab.trace("baseline").lines().count() > 1_000);
        assert!(lab.trace("baseline") == lab.trace("same"), "the traces differ");
        compiled.push(lab.libraries().iter().map(inode).collect::<Vec<_>>());
    }
    assert_eq!(compiled[0].len(), 1);
    assert_eq!(compiled[0], compiled[1], "it was compiled again");
}

#[test]
fn a_line_that_is_edited_decides() {
    let lab = Lab::new();
    lab.edit("place.h", WAKE_AFFINE, "return wakeup->prev;");
    let output = lab.compare("./mine,set:SIS_UTIL=0");
    assert!(output.status.success(), "{}", stderr(&output));
    let csv = String::from_utf8(output.stdout).unwrap();
    assert!(csv.contains("\"./mine,set:SIS_UTIL=0\""), "{csv}");
    assert!(lab.trace("baseline") != lab.trace("._mine,set_SIS_UTIL_0"), "nothing has changed");
}

/// One line of `wakeup_target()`: wakeups never pull.
#[test]
fn what_differs_is_told_by_entry_point_and_example() {
    let lab = Lab::new();
    let diff = || {
        let output = lab.run(&["policy", "diff", "./mine", "--states=2000", "--format=json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let differ = |diff: &Value| -> Vec<(String, u64)> {
        let of = |of: &Value| {
            (of["entry_point"].as_str().unwrap().to_owned(), of["differ"].as_u64().unwrap())
        };
        diff["entry_points"].as_array().unwrap().iter().map(of).collect()
    };
    let same = diff();
    assert_eq!((&same["headers"], &same["examples"]), (&json!([]), &json!([])));
    assert_eq!(same["states"], 2000);
    assert!(differ(&same).iter().all(|(_, differ)| *differ == 0), "{same}");
    let asked = same["entry_points"].as_array().unwrap().iter().map(|of| of["asked"].as_u64());
    assert_eq!(asked.collect::<Vec<_>>(), [Some(250); 8], "each as often");

    lab.edit("place.h", WAKE_AFFINE, "return wakeup->prev;");
    let diff = diff();
    assert_value_fits("policy-diff", &diff);
    let header = &diff["headers"].as_array().unwrap()[..];
    let [place] = header else { panic!("{diff}") };
    assert_eq!(place["header"], "place.h");
    let lines: Vec<&str> = place["diff"].as_str().unwrap().lines().collect();
    let changed = lines.iter().filter(|line| line.starts_with(['+', '-'])).skip(2);
    let expected = ["-\treturn wake_affine(wakeup, level);", "+\treturn wakeup->prev;"];
    assert_eq!(changed.copied().collect::<Vec<_>>(), expected);
    for (entry_point, differ) in differ(&diff) {
        assert_eq!(differ > 0, entry_point == "select_task_rq: wakeup", "{entry_point}: {differ}");
    }
    let examples = diff["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 3);
    let cpus = examples.iter().map(|example| example["cpus"].as_u64().unwrap());
    assert!(cpus.is_sorted(), "the smallest machines first");
    for example in examples {
        assert_eq!(example["entry_point"], "select_task_rq: wakeup");
        assert_ne!(example["built_in"], example["own"]);
        let own = example["own"].as_str().unwrap();
        assert!(own.contains("(wake_affine: not_tried;"), "{own}");
    }
}

#[test]
fn what_does_not_compile_is_told_with_its_line() {
    let lab = Lab::new();
    lab.edit("place.h", WAKE_AFFINE, "return no_such_thing;");
    let output = lab.compare("./mine");
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    let text = fs::read_to_string(lab.path("mine/place.h")).unwrap();
    let line = 1 + text.lines().position(|line| line.contains("no_such_thing")).unwrap();
    let last = stderr.lines().last().unwrap();
    assert!(last.starts_with("placewise: ./mine: "), "{last}");
    assert!(last.contains(&format!("./mine/place.h:{line}:")), "{last}");
    assert!(last.contains("no_such_thing"), "{last}");
    assert_eq!(stderr.matches("placewise: ").count(), 1, "{stderr}");
}

#[test]
fn an_endless_loop_is_ended_and_told() {
    let lab = Lab::new();
    lab.edit("place.h", WAKE_AFFINE, "for (;;)\n\t\tasm volatile(\"\");");
    let line = refused(&lab.compare("./mine"));
    assert!(line.contains("./mine: select_task_rq has not come back"), "{line}");
    assert!(!lab.path("out.baseline.txt").exists(), "half a trace");
}

#[test]
fn a_crash_is_told_with_its_place_by_whatever_decides() {
    let lab = Lab::new();
    assert!(lab.compare("set:WA_IDLE=0").status.success());
    lab.edit("place.h", WAKE_AFFINE, "return *(volatile u32 *)8;");
    let line = refused(&lab.compare("./mine"));
    assert!(line.contains("./mine: select_task_rq crashed (SIGSEGV)"), "{line}");
    let audit = refused(&lab.run(&["audit", "out.baseline.txt", "--policy", "./mine"]));
    assert!(audit.contains("./mine: select_task_rq crashed"), "{audit}");
    lab.write_study();
    let reproduce = refused(&lab.run(&["reproduce", "study.csv", "--policy", "./mine"]));
    assert!(reproduce.contains("./mine: select_task_rq crashed"), "{reproduce}");
}

impl Lab {
    fn write_study(&self) {
        let study = "series,machine,kernel,workload,case,metric,policy,value,unit,better,spread_pct,change_pct\n\
            s,uma-8,v6.0,hackbench,groups=1;fds=2;warmup_ms=1;window_ms=4,time,baseline,1,s,lower,,\n";
        fs::write(self.path("study.csv"), study).unwrap();
    }
}

#[test]
fn studies_are_asked_about_it() {
    let lab = Lab::new();
    lab.write_study();
    let output = lab.run(&["reproduce", "study.csv", "--format", "csv", "--policy", "x=./mine"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let csv = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((rows[1][6], rows[2][6]), ("baseline", "x"), "{csv}");
    assert_eq!(rows[1][12], rows[2][12], "the same is predicted: {csv}");
}

#[test]
fn an_answer_that_is_no_cpu_is_told_as_the_policy_s() {
    let lab = Lab::new();
    lab.edit("place.h", "scratch_of(st)->decision.result_cpu = result;", "result = 4000000;");
    let line = refused(&lab.compare("./mine"));
    assert!(line.contains("./mine: what it decided cannot be carried out"), "{line}");
}

#[test]
fn a_struct_that_has_grown_is_refused() {
    let lab = Lab::new();
    lab.edit("state.h", "struct task {", "struct task {\n\tu64 mine[2];");
    let line = refused(&lab.compare("./mine"));
    assert!(line.contains("./mine: the layout differs: task is"), "{line}");
}

#[test]
fn what_has_no_policy_in_it_is_refused() {
    let lab = Lab::new();
    fs::create_dir(lab.path("empty")).unwrap();
    let line = refused(&lab.compare("./empty"));
    assert!(line.contains("./empty: has no place.h; `placewise policy eject DIR`"), "{line}");
    let line = refused(&lab.compare("./nowhere"));
    assert!(line.contains("./nowhere: has no place.h"), "{line}");
    let line = refused(&lab.compare("mine"));
    assert!(line.contains("the directory is `./mine`"), "{line}");
}

#[test]
fn nothing_is_ejected_over_something() {
    let lab = Lab::new();
    let line = refused(&lab.run(&["policy", "eject", "mine"]));
    assert!(line.contains("mine: is not empty"), "{line}");
    fs::write(lab.path("file"), "").unwrap();
    let line = refused(&lab.run(&["policy", "eject", "file"]));
    assert!(line.contains("file: is a file"), "{line}");
    fs::create_dir(lab.path("empty")).unwrap();
    assert!(lab.run(&["policy", "eject", "empty"]).status.success());
    let (ejected, policy) =
        (lab.path("empty"), Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policy"));
    for entry in fs::read_dir(policy).unwrap() {
        let entry = entry.unwrap();
        let ejected = fs::read(ejected.join(entry.file_name())).unwrap();
        assert!(ejected == fs::read(entry.path()).unwrap(), "{:?}", entry.file_name());
    }
}

/// What a study or a trace names comes from others.
#[test]
fn only_the_command_line_names_code() {
    let lab = Lab::with_own_cache();
    let study = "series,machine,kernel,workload,case,metric,policy,value,unit,better,spread_pct,change_pct\n\
        s,uma-8,v6.0,hackbench,groups=1,time,./mine,,,,,\n";
    fs::write(lab.path("study.csv"), study).unwrap();
    let output = lab.run(&["reproduce", "study.csv"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("unknown policy './mine'"), "{stdout}");
    assert!(!lab.cache.exists(), "it was compiled");
}

/// Root compiles only what nobody else can change, others whatever they like.
#[test]
fn root_refuses_what_others_may_write() {
    let lab = Lab::new();
    fs::set_permissions(lab.path("mine/place.h"), fs::Permissions::from_mode(0o666)).unwrap();
    let output = lab.compare("./mine");
    if rustix::process::geteuid().is_root() {
        let line = refused(&output);
        assert!(line.contains("mine/place.h: others may write to it (mode 666)"), "{line}");
    } else {
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

#[test]
fn a_cache_that_others_may_write_is_not_used() {
    let lab = Lab::with_own_cache();
    let cache = lab.cache.join("placewise");
    fs::create_dir_all(&cache).unwrap();
    fs::set_permissions(cache, fs::Permissions::from_mode(0o777)).unwrap();
    let line = refused(&lab.compare("./mine"));
    assert!(line.contains("cache/placewise: has to be ours"), "{line}");
}
