//! `placewise report` from outside: what is in the page, that the same input gives the same bytes, and
//! that nothing is written of input that is at fault. How the page looks, `make test-browser` sees.

use std::collections::BTreeMap;
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
    let of_llc = |counts: &Value| sum(counts, |count| count[1].as_u64().unwrap());
    let wakeups = sum(&trace["latencies"], |of| sum(&of["by_llc"], of_llc));
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
        "groups=1;fds=4;loops=20",
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

/// Baseline and patch, one above the other.
#[test]
fn a_comparison_with_traces_draws_the_first_two() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (html, trace) = (path("result.html"), path("out.txt"));
    let compare = ["compare", "--machine=uma-8", "--workload=schedpipe", "--kernel=v6.0"];
    let policies = ["--policy=baseline", "--policy=short-task", "--policy=hint:wake_affine"];
    let outputs = ["--case=window_ms=5", "--runs=1", "--html", &html, "--trace", &trace];
    let output = placewise(&[&compare[..], &policies, &outputs].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let data = data(&fs::read_to_string(&html).unwrap());
    let kinds: Vec<&Value> =
        data["results"].as_array().unwrap().iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, ["compare", "difference"]);
    let names: Vec<&Value> =
        data["traces"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, [path("out.baseline.txt").as_str(), path("out.short-task.txt").as_str()]);
}

/// The plots of some files, by name.
fn plots(files: &[&str]) -> BTreeMap<String, String> {
    let directory = tempfile::tempdir().unwrap();
    let output =
        placewise(&[&["report", "--svg", directory.path().to_str().unwrap()], files].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let plot = |file: std::io::Result<fs::DirEntry>| {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    fs::read_dir(directory.path()).unwrap().map(plot).collect()
}

#[test]
fn every_plot_of_a_trace_is_written() {
    let all = plots(&[TRACE]);
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    let expected = ["latency", "machine-0", "moves-0", "residency-0", "tasks-0", "timeline"];
    assert_eq!(names, expected.map(|name| format!("{name}.svg")));
    let cpus = 32;
    assert_eq!(all["machine-0.svg"].matches("fill=\"#b45309\"").count(), cpus + 10, "and a ramp");
    let runs = data(&page(&[TRACE]))["traces"][0]["runs"]["of_cpu"].clone();
    let runs = sum(&runs, |count| count.as_u64().unwrap()) as usize;
    let legend = all["timeline.svg"].matches("height=\"11.0\"").count();
    assert_eq!(all["timeline.svg"].matches("fill-opacity=\"1.00\"").count(), runs + legend);
    assert!(all == plots(&[TRACE]), "the same input gives the same bytes");
}

#[test]
fn plots_of_results_alone_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("advice.json");
    let advice = r#"{"schema": 1, "advice": [], "candidates": 0, "is_trusted": true}"#;
    fs::write(&json, advice).unwrap();
    let pictures = directory.path().join("pictures");
    let args = ["report", "--svg", pictures.to_str().unwrap(), json.to_str().unwrap()];
    let output = placewise(&args);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no trace to draw"));
    assert!(!pictures.exists());
}

/// Neither does a name end the script that it is in.
#[test]
fn a_name_means_nothing_to_html() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.txt");
    let packed = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(TRACE)).unwrap();
    let text = String::from_utf8(zstd::decode_all(&packed[..]).unwrap()).unwrap();
    fs::write(&path, text.replace("comm=hackbench ", "comm=</script><b> ")).unwrap();
    assert!(plots(&[path.to_str().unwrap()]).values().all(|svg| !svg.contains("<b>")));
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
    assert!(
        refused("{\"schema\": 1}").contains("expected JSON of compare, audit, reproduce or advise")
    );
    assert!(refused("no trace\n").contains("broken.json"));
    assert!(refusal(&["nowhere.json"]).contains("nowhere.json: cannot read"));
    assert!(refusal(&[TRACE, "--from", "100"]).contains("has no time"));
    assert!(refusal(&[TRACE, TRACE, TRACE]).contains("third trace"));
}
