//! Properties of every importer: any text is read or refused, never a panic; what was read has
//! sched domains or a reason why not; and those are consistent.
//!
//! The tests named `fuzz_*` try for PLACEWISE_FUZZ_SECONDS each (60 unless set) and run only when
//! asked for: `cargo test -p placewise-machine --release -- --ignored fuzz`.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::presets::PRESETS;
use super::{file, hwloc, synthetic};
use crate::cpuset::CpuSet;
use crate::domains::{self, DomainRules, Level, NumaImbalanceRule};
use crate::error::MachineError;
use crate::machine::Machine;

const XML: [&str; 7] = [
    include_str!("../../tests/fixtures/two-packages.xml"),
    include_str!("../../tests/fixtures/memory-only-node.xml"),
    include_str!("../../tests/fixtures/l3-over-nodes.xml"),
    include_str!("../../tests/fixtures/no-numa.xml"),
    include_str!("../../tests/fixtures/cpuset.xml"),
    include_str!("../../tests/fixtures/hybrid.xml"),
    include_str!("../../tests/fixtures/ladder.xml"),
];

const SYNTHETIC: [&str; 4] = [
    "pack:2 l3:8 core:8 pu:2",
    "Package:2 [NUMANode(memory=1)] L3Cache:2(size=16777216) Core:4 PU:2(indexes=2*16:1*2)",
    "node:3 l2:2 core:1 pu:1",
    "die:2 group:2 l3:1 l2:2 core:2 pu:2(indexes=0,1)",
];

/// Words that mean something to one of the formats.
const WORDS: [&str; 26] = [
    "0",
    "1",
    "7",
    "-1",
    "1024",
    "4294967295",
    "18446744073709551616",
    "0x00000003",
    "0xf...f",
    "",
    "\"",
    ">",
    "<object type=\"PU\" os_index=\"3\"/>",
    "</object>",
    "<info name=\"LinuxCapacity\" value=\"512\"/>",
    "<info name=\"Architecture\" value=\"aarch64\"/>",
    ":",
    "*",
    "(",
    "]",
    " pu:2",
    "[numa]",
    "\n",
    "[[package]]",
    "value",
    "é",
];

#[derive(Debug, Clone)]
struct Edit {
    at: prop::sample::Index,
    remove: usize,
    insert: &'static str,
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = (any::<prop::sample::Index>(), 0usize..40, prop::sample::select(&WORDS[..]));
    let edit = edit.prop_map(|(at, remove, insert)| Edit { at, remove, insert });
    prop::collection::vec(edit, 0..6)
}

fn edited(text: &str, edits: &[Edit]) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for Edit { at, remove, insert } in edits {
        let start = at.index(characters.len() + 1);
        let end = (start + remove).min(characters.len());
        characters.splice(start..end, insert.chars());
    }
    characters.into_iter().collect()
}

/// One of `texts` with a few edits, or no such text at all.
fn damaged(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    let near =
        (prop::sample::select(texts), edits()).prop_map(|(text, edits)| edited(text, &edits));
    prop_oneof![9 => near, 1 => "\\PC{0,200}"]
}

fn damaged_file() -> impl Strategy<Value = String> {
    let preset = prop::sample::select(PRESETS).prop_map(|(_, text)| text);
    (preset, edits()).prop_map(|(text, edits)| edited(text, &edits))
}

/// Up to eight nodes of two CPUs at any symmetric distances.
fn any_nodes() -> impl Strategy<Value = Machine> {
    let distance = prop::sample::select(vec![15, 20, 21, 30, 40]);
    (2usize..9, prop::collection::vec(distance, 64)).prop_map(|(nr_nodes, distances)| {
        let text = format!("node:{nr_nodes} core:2 pu:1");
        let mut machine = synthetic::parse(&text).expect("a synthetic string");
        let distance = |from: usize, to: usize| match from == to {
            true => 10,
            false => distances[from.min(to) * 8 + from.max(to)],
        };
        let row = |from| (0..nr_nodes).map(|to| distance(from, to)).collect();
        machine.node_distances = (0..nr_nodes).map(row).collect();
        machine
    })
}

fn check(result: Result<Machine, MachineError>) -> Result<(), TestCaseError> {
    let machine = match result {
        Ok(machine) => machine,
        Err(error) => {
            prop_assert!(!error.to_string().contains('\n'), "{error}");
            return Ok(());
        }
    };
    prop_assert!(!machine.online().is_empty());
    prop_assert_eq!(machine.cost_figures().len(), machine.cost_sources.len());
    let rules = DomainRules {
        cluster_level: true,
        package_name: "PKG",
        default_imbalance_pct: 117,
        numa_imbalance: NumaImbalanceRule::Eighth,
        asym_packing_smt: false,
        asym_capacity_spreads: false,
    };
    domains::build(&machine, &rules).map_or(Ok(()), |domains| check_domains(&machine, &domains))
}

/// Spans grow up each chain and end with the machine; groups cover each span, and cut it into
/// disjoint parts below NUMA. Every CPU has a group of its own.
fn check_domains(machine: &Machine, domains: &domains::Domains) -> Result<(), TestCaseError> {
    for (cpu, chain) in domains.chains.iter().enumerate() {
        prop_assert!(chain.iter().all(|at| domains.spans[*at].group_of(cpu).is_some()));
        let spans: Vec<_> = chain.iter().map(|index| &domains.spans[*index]).collect();
        prop_assert!(machine.cpus[cpu].online || spans.is_empty());
        for pair in spans.windows(2) {
            prop_assert!(pair[0].cpus.is_subset(&pair[1].cpus) && pair[0].cpus != pair[1].cpus);
        }
        match spans.last() {
            Some(top) => prop_assert_eq!(top.cpus, machine.online()),
            None => prop_assert!(!machine.cpus[cpu].online || machine.online().len() == 1),
        }
    }
    for span in &domains.spans {
        let covered = span.groups.iter().fold(CpuSet::EMPTY, |all, group| all | group.cpus);
        prop_assert_eq!(covered, span.cpus);
        let weights = span.groups.iter().map(|group| group.cpus.len()).sum::<usize>();
        let may_overlap = matches!(span.level, Level::Numa(_));
        prop_assert!(weights == span.weight() || may_overlap && weights > span.weight());
        prop_assert!(span.groups.len() > 1);
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_hwloc_dump(text in damaged(&XML)) {
        check(hwloc::parse("dump", &text))?;
    }

    #[test]
    fn any_synthetic_string(text in damaged(&SYNTHETIC)) {
        check(synthetic::parse(&text))?;
    }

    #[test]
    fn any_machine_file(text in damaged_file()) {
        check(file::parse("file", &text))?;
    }

    #[test]
    fn any_distances(machine in any_nodes()) {
        check(Ok(machine))?;
    }
}

fn fuzz(text: impl Strategy<Value = String>, parse: fn(&str) -> Result<Machine, MachineError>) {
    let seconds = std::env::var("PLACEWISE_FUZZ_SECONDS").ok();
    let seconds = seconds.map_or(60, |text| text.parse().expect("PLACEWISE_FUZZ_SECONDS"));
    let end = Instant::now() + Duration::from_secs(seconds);
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    while Instant::now() < end {
        let outcome = runner.run(&text, |text| check(parse(&text)));
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
#[ignore = "runs for PLACEWISE_FUZZ_SECONDS"]
fn fuzz_hwloc_dumps() {
    fuzz(damaged(&XML), |text| hwloc::parse("dump", text));
}

#[test]
#[ignore = "runs for PLACEWISE_FUZZ_SECONDS"]
fn fuzz_synthetic_strings() {
    fuzz(damaged(&SYNTHETIC), synthetic::parse);
}

#[test]
#[ignore = "runs for PLACEWISE_FUZZ_SECONDS"]
fn fuzz_machine_files() {
    fuzz(damaged_file(), |text| file::parse("file", text));
}
