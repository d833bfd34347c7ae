//! `--perfetto`: what a reader of the wire format that shares nothing with the writer finds in it is
//! what the trace has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message by their numbers, in the order of the file.
struct Message<'a>(Vec<(u64, Field<'a>)>);

impl<'a> Message<'a> {
    fn parse(mut bytes: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => Field::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    Field::Bytes(take(&mut bytes, length))
                }
                other => panic!("wire type {other}"),
            };
            fields.push((key >> 3, field));
        }
        Message(fields)
    }

    fn all(&self, wanted: u64) -> impl Iterator<Item = &Field<'a>> {
        self.0.iter().filter(move |(number, _)| *number == wanted).map(|(_, field)| field)
    }

    fn messages(&self, wanted: u64) -> Vec<Message<'a>> {
        let message = |field: &Field<'a>| match field {
            Field::Bytes(bytes) => Message::parse(bytes),
            Field::Number(_) => panic!("field {wanted} is a number"),
        };
        self.all(wanted).map(message).collect()
    }

    fn number(&self, wanted: u64) -> Option<u64> {
        self.all(wanted).next().map(|field| match field {
            Field::Number(number) => *number,
            Field::Bytes(_) => panic!("field {wanted} is no number"),
        })
    }

    fn text(&self, wanted: u64) -> Option<&'a str> {
        self.all(wanted).next().map(|field| match field {
            Field::Bytes(bytes) => std::str::from_utf8(bytes).unwrap(),
            Field::Number(_) => panic!("field {wanted} is a number"),
        })
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a number without end");
}

/// Fields of `FtraceEvent`.
const EVENTS: [(&str, u64); 8] = [
    ("sched_switch", 4),
    ("sched_wakeup", 17),
    ("sched_waking", 20),
    ("sched_wakeup_new", 114),
    ("sched_process_exec", 237),
    ("sched_process_exit", 238),
    ("sched_process_fork", 239),
    ("sched_migrate_task", 491),
];

/// What is found in a file.
#[derive(Default)]
pub struct Found {
    /// How often each event is there.
    pub events: BTreeMap<&'static str, usize>,
    /// The event of each time: no two have the same.
    by_time: BTreeMap<u64, &'static str>,
    tracks: BTreeMap<u64, String>,
    counters: BTreeSet<u64>,
    threads: BTreeSet<u64>,
    /// The arrows that begin at decisions, and those that end at waits.
    decisions: Vec<u64>,
    waits: BTreeSet<u64>,
    /// Begun, less ended, by track.
    open: BTreeMap<u64, i64>,
    arguments: Vec<(String, String)>,
    processes: BTreeMap<u64, String>,
}

impl Found {
    pub fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let mut found = Found::default();
        for packet in Message::parse(&bytes).messages(1) {
            assert_eq!(packet.number(10), Some(1), "every packet names its sequence");
            packet.messages(1).iter().for_each(|bundle| found.bundle(bundle));
            packet.messages(60).iter().for_each(|track| found.track(track));
            for event in packet.messages(11) {
                found.track_event(&event);
            }
            for process in packet.messages(2).iter().flat_map(|tree| tree.messages(1)) {
                let name = process.text(3).unwrap().to_owned();
                found.processes.insert(process.number(1).unwrap(), name);
            }
        }
        found
    }

    fn bundle(&mut self, bundle: &Message<'_>) {
        let mut last = 0;
        for event in bundle.messages(2) {
            let time = event.number(1).unwrap();
            assert!(time > last, "the events of a CPU are in order");
            last = time;
            let mut named = EVENTS.iter().filter(|(_, field)| event.all(*field).next().is_some());
            let (name, _) = named.next().expect("an event that is known");
            *self.events.entry(name).or_default() += 1;
            assert_eq!(self.by_time.insert(time, name), None, "two events at {time}");
        }
    }

    fn track(&mut self, track: &Message<'_>) {
        let number = track.number(1).unwrap();
        let name = track.text(2).unwrap_or_default().to_owned();
        assert_eq!(self.tracks.insert(number, name), None);
        if track.all(8).next().is_some() {
            self.counters.insert(number);
        }
        if track.all(4).next().is_some() {
            self.threads.insert(number);
        }
    }

    fn track_event(&mut self, event: &Message<'_>) {
        let track = event.number(11).unwrap();
        assert!(self.tracks.contains_key(&track), "a track is described before it is used");
        let kind = event.number(9).unwrap();
        assert_eq!(kind == 4, self.counters.contains(&track));
        match kind {
            1 => {
                *self.open.entry(track).or_default() += 1;
                self.waits.extend(event.number(48));
            }
            2 => *self.open.entry(track).or_default() -= 1,
            3 => self.decisions.push(event.number(47).unwrap()),
            _ => {}
        }
        for argument in event.messages(4) {
            let value = argument.text(6).map(str::to_owned);
            let value = value.or_else(|| argument.number(3).map(|number| number.to_string()));
            self.arguments.push((argument.text(10).unwrap().to_owned(), value.unwrap()));
        }
    }
}

fn bundled(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name)
}

/// How often each event stands in a text.
fn counted(text: &str) -> BTreeMap<&'static str, usize> {
    let count =
        |&(name, _): &(&'static str, u64)| (name, text.matches(&format!(": {name}: ")).count());
    EVENTS.iter().map(count).filter(|(_, count)| *count > 0).collect()
}

fn run(args: &[&str]) -> String {
    let output = Command::cargo_bin("placewise").unwrap().args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The audit of a bundled trace as JSON, and what it wrote for Perfetto.
fn audited(name: &str) -> (Value, Found) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("out.perfetto-trace");
    let trace = bundled(name);
    let args = ["audit", trace.to_str().unwrap(), "--format", "json", "--perfetto"];
    let figures = run(&[&args[..], &[file.to_str().unwrap()]].concat());
    (serde_json::from_str(&figures).unwrap(), Found::read(&file))
}

const TRACES: [&str; 3] = [
    "vm16-k618-forkloop.txt.zst",
    "vm32-k73-hackbench-pipe.txt.zst",
    "vm16-k510-hackbench-sockets.txt.zst",
];

#[test]
fn every_event_of_a_trace_is_there_once_and_in_its_order() {
    for name in TRACES {
        let (_, found) = audited(name);
        let text = zstd::decode_all(std::fs::File::open(bundled(name)).unwrap()).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(found.events, counted(&text), "{name}");
        let in_order: Vec<&str> = found.by_time.into_values().collect();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let named = |line: &str| {
            let of_line = |(name, _): &(&'static str, u64)| line.contains(&format!(": {name}: "));
            EVENTS.iter().find(|event| of_line(event)).map(|(name, _)| *name)
        };
        assert_eq!(in_order, lines.filter_map(named).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn every_decision_of_the_audit_has_reasons_and_an_arrow() {
    for name in TRACES {
        let (figures, found) = audited(name);
        let of = |key: &str| figures["agreement"][key].as_u64().unwrap();
        let decisions = of("wakeups") + of("forks");
        assert_eq!(found.decisions.len() as u64, decisions, "{name}");
        let wakers = found.arguments.iter().filter(|(argument, _)| argument == "waker");
        assert_eq!(wakers.count() as u64, decisions, "{name}");
        let rules = found.arguments.iter().filter(|(argument, _)| argument == "the kernel");
        assert_eq!(rules.count() as u64, decisions, "{name}: the last rule is what the kernel did");
        // Of some the wait outlasts the trace, or the way to the decision took a switch.
        let arrive = found.decisions.iter().filter(|flow| found.waits.contains(flow)).count();
        assert!(arrive as u64 * 100 >= decisions * 98, "{name}: {arrive} of {decisions}");
        assert!(found.open.values().all(|open| *open == 0), "{name}: every wait ends");
    }
}

#[test]
fn llcs_have_counters_and_tasks_have_processes() {
    let (_, found) = audited("vm32-k73-hackbench-pipe.txt.zst");
    let named = |name: &str| found.tracks.values().filter(|track| *track == name).count();
    assert_eq!((named("idle CPUs"), named("queued tasks"), named("LLC 3")), (4, 4, 1));
    assert_eq!((found.counters.len(), named("CPU 31 decides")), (8, 1));
    assert!(!found.threads.is_empty());
    assert!(found.processes.values().any(|name| name == "hackbench"));
}

#[test]
fn compare_writes_a_file_for_each_policy() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let text = |name: &str| path(name).to_str().unwrap().to_owned();
    let case = "instances=10;warmup_ms=2;window_ms=5";
    let what = ["compare", "--machine", "uma-8", "--workload", "context_switch1", "--case", case];
    let how = ["--runs", "1", "--policy", "baseline", "--policy", "short-task"];
    let (trace, perfetto) = (text("out.txt"), text("out.pftrace"));
    run(&[&what[..], &how, &["--trace", &trace, "--perfetto", &perfetto]].concat());
    for policy in ["baseline", "short-task"] {
        let trace = std::fs::read_to_string(path(&format!("out.{policy}.txt"))).unwrap();
        assert!(!trace.contains("placewise_select_task_rq"), "nobody asked for decisions there");
        let found = Found::read(&path(&format!("out.{policy}.pftrace")));
        assert_eq!(found.events, counted(&trace), "{policy}");
        assert!(found.decisions.len() > 100, "{policy}");
        let arrive = found.decisions.iter().filter(|flow| found.waits.contains(flow)).count();
        assert!(
            arrive * 100 >= found.decisions.len() * 95,
            "{policy}: {arrive} of {}",
            found.decisions.len()
        );
    }
}

/// A directory is in the place of the file: nothing is audited for it.
#[test]
fn a_place_that_cannot_be_written_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let trace = bundled(TRACES[0]);
    let mut command = Command::cargo_bin("placewise").unwrap();
    command.arg("audit").arg(trace).arg("--perfetto").arg(directory.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}
