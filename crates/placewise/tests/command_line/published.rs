//! The table of what became of patches: it has all of them, and what was published of each.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use placewise_policy::patch_names;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Published changes by policy and workload. How runs scatter, and what schedstat counted, is no change
/// of a workload.
fn published() -> BTreeMap<String, BTreeMap<String, Vec<f64>>> {
    let mut published = BTreeMap::<_, BTreeMap<_, Vec<f64>>>::new();
    for entry in fs::read_dir(repository().join("studies")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "csv") {
            continue;
        }
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_path(&path).unwrap();
        for row in reader.deserialize() {
            let row: BTreeMap<String, String> = row.unwrap();
            let metric = &row["metric"];
            let of_workload = !metric.starts_with("schedstat_")
                && metric != "stddev"
                && !metric.contains("coeffvar");
            if let (true, Ok(change)) = (of_workload, row["change_pct"].parse()) {
                let of_policy = published.entry(row["policy"].clone()).or_default();
                of_policy.entry(row["workload"].clone()).or_default().push(change);
            }
        }
    }
    published
}

/// `hackbench -5 to +12, schedpipe +0`
fn told(changes: &BTreeMap<&str, Vec<f64>>) -> String {
    let range = |(workload, changes): (&&str, &Vec<f64>)| {
        let least = changes.iter().copied().fold(f64::INFINITY, f64::min).round() as i64;
        let greatest = changes.iter().copied().fold(f64::NEG_INFINITY, f64::max).round() as i64;
        match least == greatest {
            true => format!("{workload} {least:+}"),
            false => format!("{workload} {least:+} to {greatest:+}"),
        }
    };
    match changes.is_empty() {
        true => "none here".to_owned(),
        false => changes.iter().map(range).collect::<Vec<_>>().join(", "),
    }
}

#[test]
fn every_patch_has_its_fate_and_what_was_published_of_it() {
    let page = fs::read_to_string(repository().join("docs/policies.md")).unwrap();
    let (_, section) = page.split_once("### What became of them\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let (published, mut left) = (published(), Vec::new());
    left.extend(patch_names().into_iter().map(|(name, _)| name));
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [names, idea, posted, fate, changes] = cells[..] else { panic!("{row}") };
        assert!(![idea, posted, fate].contains(&""), "{row}");
        let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
        let mut of_names = BTreeMap::<&str, Vec<f64>>::new();
        for (workload, changes) in names.iter().filter_map(|name| published.get(*name)).flatten() {
            of_names.entry(workload).or_default().extend(changes);
        }
        assert_eq!(changes, told(&of_names), "{names:?}");
        left.retain(|name| !names.contains(&name.as_str()));
    }
    assert_eq!(left, Vec::<String>::new(), "they are not in the table");
}
