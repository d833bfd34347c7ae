//! `placewise record` as a user runs it. The live tests need root and a kernel with tracefs, which
//! they mount for themselves alone; elsewhere they say why they are skipped.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use placewise_machine::{CpuSet, from_trace, load};
use placewise_trace::{Event, Header, Losses, TraceReader};
use tempfile::TempDir;

use super::perfetto;

pub const PLACEWISE: &str = env!("CARGO_BIN_EXE_placewise");
const TRACEFS: &str = "/sys/kernel/tracing";
/// With an end of its own, should a test fail before.
const UNTIL_TOLD: [&str; 2] = ["--duration", "1min"];
/// Starts ten children, and is woken by the end of each.
const LOAD: [&str; 3] =
    ["sh", "-c", "for i in 0 1 2 3 4 5 6 7 8 9; do /bin/true; sleep 0.01; done"];

/// A shell in a mount namespace of its own, with tracefs mounted, that becomes `words`.
pub fn with_tracefs(words: &[&str]) -> Command {
    with_mounts("", words)
}

/// The same after a script that mounts more.
fn with_mounts(script: &str, words: &[&str]) -> Command {
    let mount = format!("mount -t tracefs tracefs {TRACEFS} 2>/dev/null; {script} exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &mount, "sh"]).args(words);
    command
}

/// Why nothing can be recorded here.
pub fn cannot_record() -> Option<&'static str> {
    let events = format!("{TRACEFS}/events/sched/sched_waking/enable");
    let probe = with_tracefs(&["test", "-w", &events]).stderr(Stdio::null()).status();
    let can = probe.is_ok_and(|status| status.success());
    (!can).then_some("needs root, unshare, and a kernel with tracefs")
}

macro_rules! needs_tracefs {
    () => {
        if let Some(why) = cannot_record() {
            return println!("skipped: {why}");
        }
    };
}

fn record(directory: &TempDir, args: &[&str]) -> Command {
    let mut command = with_tracefs(&[PLACEWISE, "record", "--output", "trace.zst"]);
    command.args(args).current_dir(directory.path());
    command
}

/// A recorder that has ended.
struct Ended {
    pid: u32,
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run(mut command: Command) -> Ended {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    Ended { pid, code: output.status.code(), stdout, stderr }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = directory.read_dir().unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// What `placewise audit` reads: the header with the footer, the losses, and the events.
struct Trace {
    header: Header,
    losses: Losses,
    /// In the notation of Rust, with the pid of the task that ran.
    events: Vec<(u32, String)>,
    /// Of the tasks that ran, as far as the kernel told.
    tgids: BTreeMap<u32, u32>,
    /// Of how many events the time is not of whole microseconds.
    nanos: usize,
}

impl Trace {
    fn read(directory: &TempDir) -> Self {
        let mut reader = TraceReader::open(&directory.path().join("trace.zst")).unwrap();
        let (mut events, mut tgids, mut nanos) = (Vec::new(), BTreeMap::new(), 0);
        while let Some(record) = reader.next_record().unwrap() {
            tgids.extend(record.tgid.map(|tgid| (record.pid, tgid)));
            nanos += usize::from(!record.time_ns.is_multiple_of(1_000));
            events.push((record.pid, format!("{:?}", record.event)));
        }
        let (header, losses) = (reader.header().clone(), reader.losses().clone());
        assert_eq!(header.problems, [""; 0]);
        assert_eq!(losses.first_malformed, None);
        assert_eq!((losses.clock_steps, losses.unknown_events), (0, 0));
        Self { header, losses, events, tgids, nanos }
    }

    fn has(&self, event: &str) -> bool {
        self.events.iter().any(|(_, text)| text.starts_with(event))
    }
}

/// The recorder keeps the pid of the shell that becomes it.
pub fn instance_of(pid: u32) -> String {
    format!("{TRACEFS}/instances/placewise-{pid}")
}

pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("waited for long: {what}");
}

pub fn has_instance(pid: u32) -> bool {
    with_tracefs(&["test", "-e", &instance_of(pid)]).status().unwrap().success()
}

/// Waits until `child` has read its first events.
fn wait_for_events(child: &Child) {
    let stats = format!("{}/per_cpu/cpu*/stats", instance_of(child.id()));
    let check = format!("grep -h 'read events' {stats} 2>/dev/null | grep -qv ': 0$'");
    let has_read = || with_tracefs(&["sh", "-c", &check]).status().unwrap().success();
    wait_until("the recorder's first events", has_read);
}

pub fn signal(signal: &str, target: &str) {
    assert!(Command::new("kill").args([signal, "--", target]).status().unwrap().success());
}

#[test]
fn without_rights_one_line_says_what_is_needed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.zst");
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = Command::new(PLACEWISE);
    command.args(["record", "--output"]).arg(&file);
    if Command::new("id").arg("-u").output().unwrap().stdout == b"0\n" {
        command.uid(65534).gid(65534);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return println!("skipped: cannot run {PLACEWISE} as another user: {error}"),
    };
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("recording needs root"), "{stderr}");
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);
}

#[test]
fn wrong_arguments_are_the_inputs_fault() {
    for (args, expected) in [
        (&["--duration", "soon"][..], "expected seconds, or a time such as 500ms or 2min"),
        (&["--duration", "0s"], "expected more than nothing"),
        (&["--buffer-size", "0"], "0 is not in 4.."),
        (&["--output", "/nonexistent/trace.zst"], "no such directory"),
        (&["--user", "no such name", "--", "true"], "there is no such user"),
        (&["--user", "root"], "<COMMAND>..."),
    ] {
        let output = Command::new(PLACEWISE).arg("record").args(args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn a_command_is_recorded_on_the_machine_it_ran_on() {
    needs_tracefs!();
    let directory = tempfile::tempdir().unwrap();
    let Ended { pid, code, stderr, .. } = run(record(&directory, &[&["--"][..], &LOAD].concat()));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.ends_with("next: placewise audit trace.zst\n"), "{stderr}");

    let trace = Trace::read(&directory);
    let header = &trace.header;
    assert!(header.command.as_ref().unwrap().starts_with("sh -c 'for i in"));
    assert_eq!(header.clock.as_deref(), Some("mono"));
    assert_eq!(header.recorder, Some(pid));
    assert_eq!(header.lost_events(), Some(0));
    let machine = from_trace("trace", &header.topology).unwrap();
    assert_eq!(machine.online(), load("host").unwrap().online());
    for event in ["Waking", "Wakeup ", "WakeupNew", "Switch", "Fork", "Exec", "Exit"] {
        assert!(trace.has(event), "{event}");
    }
    let mut of_recorder = trace.events.iter().filter(|event| event.0 == pid);
    assert!(of_recorder.any(|event| event.1.starts_with("Fork")), "no fork of the command");
    assert_eq!(trace.tgids[&pid], pid);
    assert!(10 * trace.nanos > 9 * trace.events.len(), "{} of times", trace.nanos);
    assert!(!has_instance(pid));
}

/// It binds itself to a CPU once it runs, and sleeps for longer than the recorder looks away.
#[test]
fn of_a_command_that_binds_itself_the_trace_says_where_it_may_run() {
    needs_tracefs!();
    let online = load("host").unwrap().online();
    if online.len() < 2 {
        return println!("skipped: nobody can be bound to one of one CPUs");
    }
    let directory = tempfile::tempdir().unwrap();
    let script = "taskset -p 1 $$ > /dev/null; sleep 2 & echo $!; wait";
    let Ended { code, stdout, stderr, .. } = run(record(&directory, &["sh", "-c", script]));
    assert_eq!(code, Some(0), "{stderr}");
    let header = Trace::read(&directory).header;
    let sleeper: u32 = stdout.trim().parse().unwrap();
    assert_eq!(header.tasks[&sleeper].cpus, CpuSet::single(0));
}

#[test]
fn the_status_of_a_command_is_passed_on() {
    needs_tracefs!();
    for (script, code, how) in [
        ("exit 3", 3, "exit status: 3"),
        ("kill -KILL $$", 137, "signal: 9 (SIGKILL)"),
        ("kill -INT $$", 130, "signal: 2 (SIGINT)"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let ended = run(record(&directory, &["--", "sh", "-c", script]));
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let line = format!("placewise: command `sh` failed: {how}; the trace is kept");
        assert_eq!(ended.stderr.lines().last(), Some(&*line));
        assert!(Trace::read(&directory).has("Exit"));
    }
}

#[test]
fn a_command_runs_as_the_user_that_is_named() {
    needs_tracefs!();
    let directory = tempfile::tempdir().unwrap();
    let accounts = [
        ("passwd", "root:x:0:0::/root:/bin/sh\nada:x:4711:4712::/home/of/ada:/bin/sh\n"),
        ("group", "root:x:0:\nada:x:4712:\nengines:x:4713:ada\n"),
    ];
    for (name, text) in accounts {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let mount =
        "for file in passwd group; do mount --bind $file /etc/$file; done; rm passwd group;";
    let script = "id -u; id -g; id -G; echo $HOME $USER $LOGNAME";
    let words = ["record", "--user", "ada", "--output", "trace.zst", "--", "sh", "-c", script];
    let mut command = with_mounts(mount, &[&[PLACEWISE][..], &words].concat());
    command.current_dir(directory.path());
    let Ended { stdout, stderr, .. } = run(command);
    let identity = "4711\n4712\n4712 4713\n/home/of/ada ada ada\n";
    assert_eq!(stdout, identity, "{stderr}");
    assert!(Trace::read(&directory).has("Exit"));
}

#[test]
fn a_command_that_cannot_be_started_leaves_nothing() {
    needs_tracefs!();
    let directory = tempfile::tempdir().unwrap();
    for (name, why) in [
        ("./nothing", "there is no such file, or its interpreter is missing"),
        ("no-such-program", "there is no such program in PATH"),
    ] {
        let Ended { pid, code, stderr, .. } = run(record(&directory, &["--", name]));
        assert_eq!(code, Some(2), "{stderr}");
        let line = format!("placewise: command `{name}`: cannot be started: {why}");
        assert!(stderr.starts_with(&line), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
        assert!(!has_instance(pid));
    }
}

/// As after `perf record`: the options behind the program are its own.
#[test]
fn a_command_needs_no_dashes_before_it() {
    needs_tracefs!();
    let directory = tempfile::tempdir().unwrap();
    let Ended { code, stdout, stderr, .. } =
        run(record(&directory, &["sh", "-c", "echo $0 $1", "--user", "--duration"]));
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stdout, "--user --duration\n");
}

#[test]
fn the_last_trace_is_kept() {
    needs_tracefs!();
    let directory = tempfile::tempdir().unwrap();
    let first = run(record(&directory, &["--", "echo", "first"]));
    assert!(!first.stderr.contains("old"), "{}", first.stderr);
    let second = run(record(&directory, &["--duration", "1", "--", "echo", "second"]));
    assert!(second.stderr.contains("(the last one is trace.zst.old)"), "{}", second.stderr);
    assert_eq!(Trace::read(&directory).header.command.as_deref(), Some("echo second"));
    fs::rename(directory.path().join("trace.zst.old"), directory.path().join("trace.zst")).unwrap();
    assert_eq!(Trace::read(&directory).header.command.as_deref(), Some("echo first"));
}

#[test]
fn ctrl_c_ends_a_recording_with_a_whole_trace() {
    needs_tracefs!();
    for interrupt in ["-INT", "-TERM", "-HUP", "-QUIT"] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = record(&directory, &UNTIL_TOLD).stderr(Stdio::null()).spawn().unwrap();
        wait_for_events(&child);
        signal(interrupt, &child.id().to_string());
        assert!(child.wait().unwrap().success(), "{interrupt}");
        let trace = Trace::read(&directory);
        assert!(trace.header.overrun.is_some(), "the footer is missing");
        assert!(trace.has("Switch"));
        assert_eq!(names(directory.path()), ["trace.zst"]);
        assert!(!has_instance(child.id()));
    }
}

/// As the terminal does it: to the recorder and the command.
#[test]
fn a_command_that_ctrl_c_ends_has_not_failed() {
    needs_tracefs!();
    let directory = tempfile::tempdir().unwrap();
    let mut command = record(&directory, &["--duration", "1min", "--", "sleep", "1000"]);
    let child = command.process_group(0).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_events(&child);
    signal("-INT", &format!("-{}", child.id()));
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("failed"), "{stderr}");
}

#[test]
fn a_command_does_not_outlive_the_duration() {
    needs_tracefs!();
    let directory = tempfile::tempdir().unwrap();
    let forever = ["--duration", "200ms", "--", "sh", "-c", "echo $$ > pid; exec sleep 1000"];
    let Ended { code, stderr, .. } = run(record(&directory, &forever));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!stderr.contains("failed"), "{stderr}");
    let pid = fs::read_to_string(directory.path().join("pid")).unwrap();
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[test]
fn what_small_buffers_lose_is_counted() {
    needs_tracefs!();
    let directory = tempfile::tempdir().unwrap();
    // Without a pause in between, the recorder has no time to read.
    let burst = "i=0; while [ $i -lt 2000 ]; do /bin/true & i=$((i + 1)); done; wait";
    let small = ["--buffer-size", "4", "--", "sh", "-c", burst];
    let Ended { stderr, .. } = run(record(&directory, &small));
    assert!(stderr.contains("(a larger --buffer-size loses fewer)"), "{stderr}");
    let trace = Trace::read(&directory);
    let Trace { header, losses, .. } = &trace;
    assert!(losses.gaps > 0, "no mark where events are lost");
    // A page that is full says that events are missing before it, and not how many.
    let overrun = header.overrun.unwrap();
    assert!((1..=overrun).contains(&losses.lost_events), "{} of {overrun}", losses.lost_events);
    let all_are_counted = !trace.has("LostEvents { count: 0 }");
    assert!(!all_are_counted || losses.lost_events == overrun);
    assert_eq!(header.lost.values().sum::<u64>(), overrun);
}

#[test]
fn nothing_is_left_of_a_recorder_that_is_killed() {
    needs_tracefs!();
    let directory = tempfile::tempdir().unwrap();
    let mut command = record(&directory, &UNTIL_TOLD);
    let mut child = command.process_group(0).stderr(Stdio::null()).spawn().unwrap();
    wait_for_events(&child);
    signal("-KILL", &format!("-{}", child.id()));
    child.wait().unwrap();
    assert_eq!(names(directory.path()), [""; 0]);
    wait_until("the instance to go", || !has_instance(child.id()));
}

/// One that was killed with all around it, and whose pid somebody else has now.
#[test]
fn an_instance_that_nobody_reads_goes_with_the_next_recording() {
    needs_tracefs!();
    let directory = tempfile::tempdir().unwrap();
    let mut reader = record(&directory, &UNTIL_TOLD).stderr(Stdio::null()).spawn().unwrap();
    wait_for_events(&reader);
    let stale = instance_of(1);
    let script = format!("mkdir -p {stale}; echo 1 > {stale}/events/sched/enable;");
    let mut command = with_mounts(&script, &[PLACEWISE, "record", "--", "true"]);
    command.current_dir(directory.path());
    assert_eq!(run(command).code, Some(0));
    assert!(!has_instance(1));
    assert!(has_instance(reader.id()));
    signal("-INT", &reader.id().to_string());
    assert!(reader.wait().unwrap().success());
}

#[test]
fn a_recording_can_be_had_for_perfetto_too() {
    needs_tracefs!();
    let directory = tempfile::tempdir().unwrap();
    let args = ["--perfetto", "trace.pftrace"];
    let Ended { code, stderr, .. } = run(record(&directory, &[&args[..], &LOAD].concat()));
    assert_eq!(code, Some(0), "{stderr}");
    let mut reader = TraceReader::open(&directory.path().join("trace.zst")).unwrap();
    let mut switches = 0;
    while let Some(record) = reader.next_record().unwrap() {
        switches += usize::from(matches!(record.event, Event::Switch { .. }));
    }
    let found = perfetto::Found::read(&directory.path().join("trace.pftrace"));
    assert_eq!(found.events["sched_switch"], switches);
}

#[test]
fn a_full_disk_ends_a_recording() {
    needs_tracefs!();
    let directory = tempfile::tempdir().unwrap();
    let mount = "mkdir full; mount -t tmpfs -o size=8k tmpfs full; cd full;";
    let load = "i=0; while [ $i -lt 3000 ]; do /bin/true; i=$((i + 1)); done";
    let script = "\"$0\" record -- sh -c \"$1\"; status=$?; ls -A; exit $status";
    let mut command = with_mounts(mount, &["sh", "-c", script, PLACEWISE, load]);
    command.current_dir(directory.path());
    let Ended { code, stdout, stderr, .. } = run(command);
    assert_eq!(code, Some(1), "{stderr}");
    assert_eq!(stdout, "", "files are left");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("cannot write placewise-trace.txt.zst: No space left"), "{stderr}");
}

fn mode(file: &Path) -> u32 {
    file.metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_trace_is_its_owners_unless_it_replaces_one() {
    needs_tracefs!();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.zst");
    assert_eq!(run(record(&directory, &["--", "true"])).code, Some(0));
    assert_eq!(mode(&file), 0o600);
    fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    assert_eq!(run(record(&directory, &["--", "true"])).code, Some(0));
    assert_eq!(mode(&file), 0o640);
}

#[test]
fn a_trace_does_not_go_through_a_link() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o1777)).unwrap();
    let [link, target] = ["trace.zst", "target"].map(|name| directory.path().join(name));
    symlink(&target, &link).unwrap();
    let output = Command::new(PLACEWISE)
        .args(["record", "--duration=1ms", "-o"])
        .arg(&link)
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("is not a regular file (a link is not followed)"), "{stderr}");
    assert_eq!(names(directory.path()), ["trace.zst"]);
}
