//! `placewise report` from outside: what is in the page, that the same input gives the same bytes, and
//! that nothing is written of input that is at fault. How the page looks, `make test-browser` sees.

use std::fs;
use std::io::Read;
use std::path::Path;

use assert_cmd::Command;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use serde_json::Value;

const TRACE: &str = "traces/vm32-k73-hackbench-pipe.txt.zst";

fn placewise(args: &[&str]) -> std::process::Output {
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut command = Command::cargo_bin("placewise").unwrap();
    command.args(args).current_dir(repository).output().unwrap()
}

/// The page of some files.
fn page(files: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.html");
    let output = placewise(&[&["report", "-o", path.to_str().unwrap()], files].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(path).unwrap()
}

/// What a refusal says; nothing may have been written.
fn refusal(files: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.html");
    let output = placewise(&[&["report", "-o", path.to_str().unwrap()], files].concat());
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told.lines().count(), 1, "{told}");
    told
}

fn blocks(page: &str, class: &str) -> Vec<Vec<u8>> {
    let begin = format!("<script type=\"application/octet-stream;base64\" class=\"{class}\">");
    let block = |after: &str| {
        let packed = STANDARD.decode(after.split("</script>").next().unwrap()).unwrap();
        let mut bytes = Vec::new();
        ZlibDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
        bytes
    };
    page.split(&begin).skip(1).map(block).collect()
}

fn data(page: &str) -> Value {
    serde_json::from_slice(&blocks(page, "data")[0]).unwrap()
}

/// How long tasks ran in all, by the single runs of the first trace.
fn ran_of(page: &str) -> u64 {
    let (columns, data) = (blocks(page, "columns").remove(0), data(page));
    let lengths = &data["traces"][0]["runs"]["lengths"];
    let [at, count] = [0, 1].map(|part| lengths[part].as_u64().unwrap() as usize);
    let mut bytes = columns[at..].iter();
    let mut next = || {
        let (mut value, mut shift) = (0, 0);
        for byte in bytes.by_ref() {
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    };
    (0..count).map(|_| next()).sum()
}

fn sum(values: &Value, of: impl Fn(&Value) -> u64) -> u64 {
    values.as_array().unwrap().iter().map(of).sum()
}

#[test]
fn the_recording_agrees_with_the_audit() {
    let page = page(&[TRACE]);
    let data = data(&page);
    let (audit, trace) = (&data["results"][0]["value"], &data["traces"][0]);
    let ran = sum(&audit["turns"], |task| task["run_ns"].as_u64().unwrap());
    assert_eq!(ran_of(&page), ran);
    let wakeups =
        sum(&trace["latencies"], |of| sum(&of["counts"], |count| count[1].as_u64().unwrap()));
    assert!(wakeups > 800, "{wakeups}");
    let runs = sum(&trace["runs"]["of_cpu"], |count| count.as_u64().unwrap());
    let switched_in = sum(&audit["turns"], |task| task["switched_in"].as_u64().unwrap());
    assert!(runs.abs_diff(switched_in) < switched_in / 20, "{runs} {switched_in}");
    for worst in audit["worst_decisions"].as_array().unwrap() {
        let same = |one: &&Value| one["time_ns"] == worst["time_ns"] && one["pid"] == worst["pid"];
        let explained = trace["explained"].as_array().unwrap().iter().find(same);
        let explained = explained.unwrap_or_else(|| panic!("{worst} is not explained"));
        assert_eq!(explained["actual_cpu"], worst["to_cpu"]);
        assert!(explained["rules"].as_array().unwrap().len() > 2);
    }
}

#[test]
fn cells_have_all_the_time_that_was_run() {
    let page = page(&[TRACE]);
    let (data, columns) = (data(&page), blocks(&page, "columns").remove(0));
    let (trace, turns) = (&data["traces"][0], &data["results"][0]["value"]["turns"]);
    let ran = sum(turns, |task| task["run_ns"].as_u64().unwrap()) as f64;
    for level in trace["levels"].as_array().unwrap() {
        let place = |at: usize| level["busy"][at].as_u64().unwrap() as usize;
        let busy: u64 = columns[place(0)..][..place(1)].iter().map(|&share| u64::from(share)).sum();
        let in_cells = busy as f64 / 255.0 * level["width_ns"].as_u64().unwrap() as f64;
        assert!((in_cells / ran - 1.0).abs() < 0.02, "{in_cells} {ran}");
    }
}

#[test]
fn the_same_input_gives_the_same_bytes_and_loads_nothing() {
    let one = page(&[TRACE]);
    assert!(one == page(&[TRACE]));
    assert!(one.contains("default-src 'none'"));
    assert!(!one.contains("src="), "all is in the page");
    assert!(one.len() < 3_000_000, "{}", one.len());
}

/// What is drawn of a part is what the whole has there.
#[test]
fn a_part_is_drawn_alone() {
    let part = data(&page(&[TRACE, "--from", "6.68", "--to", "6.69"]));
    let trace = &part["traces"][0];
    assert_eq!(trace["start_ns"], 6_680_000_000_u64);
    assert_eq!(trace["duration_ns"], 10_000_000);
    let ran = |options: &[&str]| ran_of(&page(&[&[TRACE], options].concat()));
    assert_eq!(ran(&["--to", "6.68"]) + ran(&["--from", "6.68"]), ran(&[]));
}

#[test]
fn two_traces_are_before_and_after() {
    let traces = ["traces/vm16-k612-pingpong.txt.zst", "traces/vm16-k618-forkloop.txt.zst"];
    let data = data(&page(&traces));
    assert_eq!(data["results"][0]["kind"], "difference");
    let names: Vec<&Value> =
        data["traces"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, traces);
}

#[test]
fn a_comparison_has_its_text_to_post() {
    let directory = tempfile::tempdir().unwrap();
    let (json, html) = (directory.path().join("result.json"), directory.path().join("result.html"));
    let compare = [
        "compare",
        "--machine",
        "uma-8",
        "--workload",
        "hackbench",
        "--case",
        "groups=1",
        "--runs",
        "2",
        "--policy",
        "short-task",
        "--kernel",
        "v6.0",
    ];
    let html_option = ["--format", "json", "--html", html.to_str().unwrap()];
    let output = placewise(&[&compare[..], &html_option[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::write(&json, &output.stdout).unwrap();
    let lkml = placewise(&[&compare[..], &["--format", "lkml"]].concat()).stdout;
    let of_json = data(&page(&[json.to_str().unwrap()]));
    let of_option = data(&fs::read_to_string(html).unwrap());
    for data in [of_json, of_option] {
        assert_eq!(data["results"][0]["text"].as_str().unwrap().as_bytes(), lkml);
        assert!(data["results"][0]["verdict"].as_str().unwrap().contains("hackbench"));
    }
}

/// Neither does a name end the script that it is in.
#[test]
fn a_name_means_nothing_to_html() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.txt");
    let packed = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(TRACE)).unwrap();
    let text = String::from_utf8(zstd::decode_all(&packed[..]).unwrap()).unwrap();
    fs::write(&path, text.replace("comm=hackbench ", "comm=</script><b> ")).unwrap();
    let page = page(&[path.to_str().unwrap()]);
    assert!(!page.contains("</script><b>"));
    let threads = data(&page)["traces"][0]["threads"].to_string();
    assert!(threads.contains("</script><b>"), "it is in the data");
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("broken.json");
    let refused = |text: &str| {
        fs::write(&path, text).unwrap();
        refusal(&[path.to_str().unwrap()])
    };
    assert!(refused("{\"schema\": 1, \"rows\"").contains("broken.json: EOF"));
    assert!(refused("{\"schema\": 1}").contains("expected JSON of compare, audit or reproduce"));
    assert!(refused("no trace\n").contains("broken.json"));
    assert!(refusal(&["nowhere.json"]).contains("nowhere.json: cannot read"));
    assert!(refusal(&[TRACE, "--from", "100"]).contains("has no time"));
    assert!(refusal(&[TRACE, TRACE, TRACE]).contains("third trace"));
}
