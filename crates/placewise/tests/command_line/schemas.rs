//! Every JSON that is printed is what `schemas/` says: all keys that are required, of the types there,
//! and no key that is not described. The schemas need few words of JSON Schema; another is refused, so
//! that none is thought to be checked that is not.

use std::fs;
use std::path::Path;
use std::thread;

use assert_cmd::Command;
use placewise_hint::{Answer, Hinted, Inheritance, MESSAGE_MAX};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, accept, bind, listen, recv,
    send, socket,
};
use serde_json::Value;

const WORDS: [&str; 10] = [
    "$schema",
    "title",
    "type",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "const",
    "enum",
    "$ref",
];

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn schema(name: &str) -> Value {
    let text = fs::read_to_string(repository().join(format!("schemas/{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn placewise(args: &[&str]) -> Value {
    let mut command = Command::cargo_bin("placewise").unwrap();
    let output = command.args(args).args(["--format", "json"]).current_dir(repository());
    let output = output.output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What is wrong with a value, each with its path.
struct Check<'a> {
    root: &'a Value,
    wrong: Vec<String>,
}

impl Check<'_> {
    fn value(&mut self, path: &str, value: &Value, schema: &Value) {
        let schema = match schema["$ref"].as_str().map(|place| place.split_once('#').unwrap()) {
            Some(("", place)) => self.root.pointer(place).unwrap(),
            Some((file, place)) => return self.value_of_file(path, value, file, place),
            None => schema,
        };
        let schema = schema.as_object().unwrap();
        if schema.is_empty() {
            return; // anything
        }
        for word in schema.keys() {
            assert!(WORDS.contains(&word.as_str()) || word == "$defs", "{path}: {word}");
        }
        let is_one_of = |known: &Value| known.as_array().unwrap().contains(value);
        let fits = schema.get("type").is_none_or(|known| is_of(value, known))
            && schema.get("const").is_none_or(|known| known == value)
            && schema.get("enum").is_none_or(is_one_of);
        if !fits {
            self.wrong.push(format!("{path}: {value}"));
        }
        if let Some(object) = value.as_object() {
            self.object(path, object, schema);
        }
        for (at, item) in value.as_array().into_iter().flatten().enumerate() {
            match schema.get("items") {
                Some(schema) => self.value(&format!("{path}[{at}]"), item, schema),
                None => self.wrong.push(format!("{path}: items are not described")),
            }
        }
    }

    /// As another schema describes it.
    fn value_of_file(&mut self, path: &str, value: &Value, file: &str, place: &str) {
        let root = schema(file.strip_suffix(".json").unwrap());
        let mut check = Check { root: &root, wrong: Vec::new() };
        check.value(path, value, root.pointer(place).unwrap());
        self.wrong.append(&mut check.wrong);
    }

    fn object(&mut self, path: &str, object: &Map, schema: &Map) {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let missing = required.filter(|key| !object.contains_key(key.as_str().unwrap()));
        self.wrong.extend(missing.map(|key| format!("{path}: {key} is missing")));
        for (key, value) in object {
            let described = schema.get("properties").and_then(|known| known.get(key));
            let others = schema.get("additionalProperties").filter(|others| others.is_object());
            match described.or(others) {
                Some(schema) => self.value(&format!("{path}.{key}"), value, schema),
                None => self.wrong.push(format!("{path}.{key} is not described")),
            }
        }
    }
}

type Map = serde_json::Map<String, Value>;

fn is_of(value: &Value, known: &Value) -> bool {
    let one = |name: &Value| match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type: {other}"),
    };
    known.as_array().map_or_else(|| one(known), |names| names.iter().any(one))
}

fn problems(value: &Value, schema: &Value) -> Vec<String> {
    let mut check = Check { root: schema, wrong: Vec::new() };
    check.value("", value, schema);
    check.wrong
}

#[track_caller]
fn assert_fits(name: &str, args: &[&str]) {
    assert_value_fits(name, &placewise(args));
}

#[track_caller]
pub fn assert_value_fits(name: &str, value: &Value) {
    assert_eq!(value["schema"], 1, "{value}");
    assert_eq!(problems(value, &schema(name)), [""; 0], "schemas/{name}.json: {value}");
}

#[test]
fn names_and_machines() {
    assert_fits("list", &["list"]);
    assert_fits("list", &["list", "workloads"]);
    assert_fits("intents", &["hint", "intents"]);
    assert_fits("machine", &["machine", "show", "zen3-2s-nps4"]);
    assert_fits("machine", &["machine", "show", "adl-24"]);
    assert_fits("machine", &["machine", "show", "pack:2 l3:2 core:2 pu:2"]);
}

#[test]
fn comparisons() {
    let quick = [
        "compare",
        "--machine=uma-8",
        "--workload=hackbench",
        "--case=groups=1;fds=2;warmup_ms=1;window_ms=5",
        "--policy=baseline",
    ];
    assert_fits("compare", &[&quick[..], &["--runs=1"]].concat());
    let uncertain = ["--runs=2", "--policy=short-task", "--uncertain=2"];
    assert_fits("compare", &[&quick[..], &uncertain].concat());
    let more = ["--policy=short-task", "--runs=7", "--stats"];
    assert_fits("compare", &[&quick[..], &more].concat());
}

#[test]
fn reproductions() {
    let directory = tempfile::tempdir().unwrap();
    let study = directory.path().join("study.csv");
    let header =
        "series,machine,kernel,workload,case,metric,policy,value,unit,better,spread_pct,change_pct";
    let of = |what: &str| format!("s,uma-8,v6.0,schedpipe,window_ms=2,throughput,{what}");
    let rows = [
        header,
        &of("baseline,100000,ops/s,higher,0.5,"),
        &of("short-task,110000,ops/s,higher,,10.00"),
        &of("no-such-policy,,,,,"),
    ];
    fs::write(&study, rows.join("\n")).unwrap();
    let study = study.to_str().unwrap();
    assert_fits("reproduce", &["reproduce", study, "--runs=3"]);
    // One that is fitted, and one that the rows cannot tell.
    let figures = ["--figure=syscall_ns", "--figure=tcp_message_ns"];
    let calibrate = ["calibrate", "uma-8", "--on", study, "--runs=2", "--budget=11"];
    assert_fits("calibrate", &[&calibrate[..], &figures].concat());
}

#[test]
fn audits() {
    const TRACE: &str = "traces/vm8-k618-nosmt-hackbench-pipe.txt.zst";
    assert_fits("audit", &["audit", TRACE]);
    let task =
        ["audit", TRACE, "--task=hackbench", "--policy=short-task", "--policy=set:WA_IDLE=0"];
    assert_fits("audit", &task);
    assert_fits("decisions", &["audit", TRACE, "--at=1"]);
    for trace in fs::read_dir(repository().join("traces")).unwrap() {
        let trace = trace.unwrap().path();
        if trace.extension().is_some_and(|extension| extension == "zst") {
            assert_fits("audit", &["audit", trace.to_str().unwrap()]);
        }
    }
    assert_fits("difference", &["audit", TRACE, "traces/vm32-k73-hackbench-pipe.txt.zst"]);

    // One that has recorded what decisions read.
    let directory = tempfile::tempdir().unwrap();
    let trace = format!("{}", directory.path().join("trace.txt").display());
    let case = "--case=groups=1;fds=2;warmup_ms=1;window_ms=5";
    let traced = ["compare", "--machine=uma-8", "--workload=hackbench", case, "--runs=1"];
    placewise(&[&traced[..], &["--trace", &trace, "--trace-decisions"]].concat());
    assert_fits("audit", &["audit", &trace]);

    let [before, after] = [["before", "0"], ["after", "1"]].map(|[name, number]| {
        let file = directory.path().join(name);
        let (of_cpu, of_domain) = ([number; 9].join(" "), [number; 36].join(" "));
        let copy = format!("version 16\ntimestamp 1\ncpu0 {of_cpu}\ndomain0 1 {of_domain}\n");
        fs::write(&file, copy).unwrap();
        file.display().to_string()
    });
    assert_fits("audit", &["audit", &trace, "--schedstat", &before, &after]);
}

#[test]
fn replays() {
    assert_fits("replay", &["replay", "traces/vm32-k618-2llc-timers.txt.zst"]);
}

/// With advice in it.
#[test]
fn advice() {
    let directory = tempfile::tempdir().unwrap();
    let trace = format!("{}", directory.path().join("trace.txt").display());
    let case = "--case=threads=2;window_ms=10;warmup_ms=5";
    let traced = ["compare", "--machine=icx-2s", "--kernel=v6.12", "--workload=netperf", case];
    let off = ["--set=WA_IDLE=0", "--set=WA_WEIGHT=0", "--runs=1", "--trace", &trace];
    placewise(&[&traced[..], &off].concat());
    assert_fits("advise", &["advise", &trace, "--machine=icx-2s", "--budget=100"]);
}

/// The shorter one.
#[test]
fn benches() {
    assert_fits("bench", &["bench", "hackbench-16-zen3"]);
}

#[test]
fn hints() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hint.sock");
    let server = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&server, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&server, 1).unwrap();
    let answers = thread::spawn(move || {
        let client = accept(&server).unwrap();
        recv(&client, &mut [0; MESSAGE_MAX], RecvFlags::empty()).unwrap();
        let hint = |tid, inheritance| {
            let hint = "fork_spread+wake_hold".parse().unwrap();
            Answer::Hint(Hinted { tid, hint, inheritance })
        };
        for answer in [hint(1, Inheritance::Children), hint(2, Inheritance::OnlySelf), Answer::Ok] {
            send(&client, answer.to_string().as_bytes(), SendFlags::empty()).unwrap();
        }
    });
    let args = ["hint", "show", "--socket", path.to_str().unwrap()];
    assert_fits("hints", &args);
    answers.join().unwrap();
}

/// Where the top of a schema is closed, all of it is.
#[test]
fn a_schema_is_closed_all_the_way() {
    fn open(schema: &Value) -> usize {
        let below = schema.as_object().into_iter().flatten().map(|(_, below)| open(below));
        let is_open = schema["properties"].is_object() && schema["additionalProperties"] != false;
        usize::from(is_open) + below.sum::<usize>()
    }
    for name in ["audit", "difference"] {
        let schema = schema(name);
        assert_eq!((&schema["additionalProperties"], open(&schema)), (&false.into(), 0), "{name}");
    }
}

/// The check itself: what it must find.
#[test]
fn what_does_not_fit_is_found() {
    let schema = schema("intents");
    let fits = placewise(&["hint", "intents"]);
    let broken = |change: fn(&mut Value)| {
        let mut value = fits.clone();
        change(&mut value);
        problems(&value, &schema)
    };
    assert_eq!(broken(|_| ()), [""; 0]);
    assert_eq!(broken(|value| value["schema"] = 2.into()), [".schema: 2"]);
    assert_eq!(broken(|value| value["intents"][0]["hint"] = 2.into()), [".intents[0].hint: 2"]);
    assert_eq!(broken(|value| value["new"] = 2.into()), [".new is not described"]);
    let without = broken(|value| {
        value["intents"][1].as_object_mut().unwrap().remove("about");
    });
    assert_eq!(without, [".intents[1]: \"about\" is missing"]);
}
