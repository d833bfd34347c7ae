//! What a user can name has its place in the documents.

use std::fs;

use placewise_policy::{kernel_names, knob_names, patch_names};

use crate::workspace;

fn page(name: &str) -> String {
    let file = workspace().join("docs").join(name);
    fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

fn assert_documented<'a>(page_name: &str, names: impl IntoIterator<Item = &'a str>) {
    let page = page(page_name);
    for name in names {
        let known = page.contains(&format!("`{name}`")) || page.contains(&format!("\n## {name}\n"));
        assert!(known, "docs/{page_name}: says nothing of `{name}`");
    }
}

#[test]
fn every_kernel_is_documented() {
    assert_documented("policies.md", kernel_names());
}

#[test]
fn every_policy_is_documented() {
    let names = patch_names();
    assert_documented("policies.md", names.iter().map(|(name, _)| name.as_str()));
}

#[test]
fn every_knob_is_documented() {
    assert_documented("policies.md", knob_names().iter().map(|(name, _, _)| *name));
}

#[test]
fn every_workload_is_documented() {
    assert_documented("workloads.md", placewise_workload::names());
}

#[test]
fn every_machine_is_documented() {
    let machines = placewise_machine::presets();
    assert_documented("machines.md", machines.iter().map(|machine| machine.name));
}
