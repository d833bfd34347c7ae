//! hwloc dumps and machine files as a user has them: read from disk, refused with one line.

use placewise_machine::domains::{self, DomainRules, Domains, NumaImbalanceRule};
use placewise_machine::{Group, Machine, load};

const RULES: DomainRules = DomainRules {
    cluster_level: true,
    package_name: "DIE",
    default_imbalance_pct: 117,
    numa_imbalance: NumaImbalanceRule::Eighth,
    asym_packing_smt: false,
    asym_capacity_spreads: false,
};

fn fixture(name: &str) -> String {
    format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn text(name: &str) -> String {
    std::fs::read_to_string(fixture(name)).unwrap()
}

/// Loads `text` from a file with the given extension.
fn load_text(extension: &str, text: &str) -> Result<Machine, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(format!("machine.{extension}"));
    std::fs::write(&path, text).unwrap();
    load(path.to_str().unwrap()).map_err(|error| error.to_string())
}

fn domains_of(machine: &Machine) -> Domains {
    domains::build(machine, &RULES).unwrap()
}

fn ids(machine: &Machine, id: impl Fn(&placewise_machine::Cpu) -> u16) -> Vec<u16> {
    machine.cpus.iter().map(id).collect()
}

#[test]
fn a_dump_of_an_epyc_pair_has_the_domains_of_the_preset() {
    let dump = load(&fixture("zen3-2s.xml")).unwrap();
    let preset = load("zen3-2s-nps1").unwrap();
    assert_eq!(dump.cpus, preset.cpus);
    assert_eq!(dump.node_distances, preset.node_distances);
    assert_eq!(dump.node_reclaim_distance, 32);
    assert_eq!(domains_of(&dump), domains_of(&preset));
    assert_eq!(dump.costs, preset.costs);
    assert!(dump.description.contains("costs of zen3-2s-nps1"));
}

#[test]
fn the_synthetic_string_has_the_same_shape() {
    let synthetic = load("pack:2 [numa] l3:8 core:8 pu:2(indexes=2*128:1*2)").unwrap();
    assert_eq!(synthetic.cpus, load("zen3-2s-nps1").unwrap().cpus);
}

#[test]
fn older_amd_families_keep_the_default_reclaim_distance() {
    let older = text("zen3-2s.xml")
        .replace("\"CPUFamilyNumber\" value=\"25\"", "\"CPUFamilyNumber\" value=\"21\"");
    assert_eq!(load_text("xml", &older).unwrap().node_reclaim_distance, 30);
}

#[test]
fn a_memory_only_node_is_dropped_and_distances_are_compacted() {
    let machine = load(&fixture("memory-only-node.xml")).unwrap();
    assert_eq!(machine.node_distances, [[10, 21], [21, 10]]);
    assert_eq!(ids(&machine, |cpu| cpu.node), [[0u16; 8], [1; 8]].concat());
}

/// hwloc makes up one node for the whole machine when it saw none.
#[test]
fn without_numa_information_each_package_is_a_node() {
    let blind = load(&fixture("no-numa.xml")).unwrap();
    assert_eq!(blind.nr_nodes(), 2);
    assert!(blind.description.contains("one per package"), "{}", blind.description);
    let seen = text("no-numa.xml").replace("\"Synthetic\"", "\"Linux\"");
    assert_eq!(load_text("xml", &seen).unwrap().nr_nodes(), 1);
}

#[test]
fn the_largest_cache_stands_in_for_a_missing_l3() {
    let machine = load(&fixture("no-l3.xml")).unwrap();
    assert_eq!(ids(&machine, |cpu| cpu.llc), [0, 0, 1, 1]);
    // A cluster as large as the LLC is no level of its own.
    assert_eq!(ids(&machine, |cpu| cpu.cluster), [0, 1, 2, 3]);
    let no_cache = text("no-l3.xml").replace("L2Cache", "Group");
    assert_eq!(ids(&load_text("xml", &no_cache).unwrap(), |cpu| cpu.llc), [0, 1, 2, 3]);
}

/// `match_llc` of x86 and `cpu_coregroup_mask` of arm64 agree here.
#[test]
fn an_l3_over_several_nodes_is_cut() {
    let llcs = |machine: &Machine| ids(machine, |cpu| cpu.llc);
    assert_eq!(llcs(&load(&fixture("l3-over-nodes.xml")).unwrap()), [0, 0, 1, 1]);
    let arm64 = text("l3-over-nodes.xml").replace(
        "<info name=\"Backend\"",
        "<info name=\"Architecture\" value=\"aarch64\"/><info name=\"Backend\"",
    );
    assert_eq!(llcs(&load_text("xml", &arm64).unwrap()), [0, 0, 1, 1]);
}

/// x86 takes a CPU without caches for alone, arm64 takes its package for the LLC.
#[test]
fn without_caches_the_llc_is_what_the_architecture_says() {
    let caches = text("no-numa.xml").replace("L3Cache", "Group");
    assert_eq!(load_text("xml", &caches).unwrap().nr_llcs(), 8);
    let arm64 = caches.replace(
        "<info name=\"Backend\"",
        "<info name=\"Architecture\" value=\"aarch64\"/><info name=\"Backend\"",
    );
    assert_eq!(load_text("xml", &arm64).unwrap().nr_llcs(), 2);
}

#[test]
fn an_offline_cpu_is_in_no_domain() {
    let machine = load(&fixture("offline-cpu.xml")).unwrap();
    assert_eq!(machine.cpus.len(), 8);
    assert_eq!(machine.online().to_string(), "0-2,4-7");
    assert!(machine.description.contains("CPUs 3 taken as offline"), "{}", machine.description);
    let domains = domains_of(&machine);
    assert!(domains.chains[3].is_empty());
    // Its sibling has lost the SMT level.
    let levels = |cpu: usize| -> Vec<&str> {
        let chain = domains.chains[cpu].iter();
        chain.map(|index| domains.spans[*index].level.name()).collect()
    };
    assert_eq!(levels(2), ["DIE", "NUMA"]);
    assert_eq!(levels(1), ["SMT", "DIE", "NUMA"]);
}

#[test]
fn cpus_that_lstopo_might_not_use_are_not_taken_as_offline() {
    for (dump, cpus) in [("cpuset.xml", "CPUs 3"), ("cpuset-package.xml", "CPUs 2-3")] {
        let message = load(&fixture(dump)).unwrap_err().to_string();
        assert!(message.contains(&format!("lacks {cpus}, which lstopo was not")), "{message}");
        assert!(message.contains("`lstopo --disallowed --of xml FILE.xml`"), "{message}");
    }
    // `lstopo --disallowed` shows PUs outside of what it is allowed to use: what is missing is offline.
    let allowed = "allowed_cpuset=\"0x000000f7\"";
    let all = text("cpuset.xml").replace(allowed, "allowed_cpuset=\"0x000000f0\"");
    assert_eq!(load_text("xml", &all).unwrap().online().to_string(), "0-2,4-7");
}

#[test]
fn a_cpu_in_no_node_is_refused() {
    let node = "<object type=\"NUMANode\" os_index=\"1\"";
    let dump = text("two-packages.xml")
        .replace("\"Synthetic\"", "\"Linux\"")
        .replace(node, "<object type=\"Misc\" os_index=\"1\"");
    let message = load_text("xml", &dump).unwrap_err();
    assert!(message.contains("CPU 8: is in no NUMA node of the dump"), "{message}");
}

/// Wherever a dump breaks off, but within the last tag.
#[test]
fn a_truncated_dump_is_refused() {
    let whole = text("zen3-2s.xml");
    let end = whole.find("</topology>").unwrap();
    for at in [end / 4, end / 2, end - 1, end] {
        let message = load_text("xml", &whole[..at]).unwrap_err();
        assert!(message.contains("truncated") || message.contains("is not XML"), "{message}");
        assert!(message.contains("xml: line "), "{message}");
    }
    let lines: Vec<&str> = whole.lines().take(100).collect();
    let message = load_text("xml", &lines.join("\n")).unwrap_err();
    assert!(message.contains("line 100: the dump ends before </topology>"), "{message}");
}

/// Distances as two Kunpeng 920 have them.
#[test]
fn a_ladder_of_nodes_has_the_domains_of_the_kernel() {
    let domains = domains_of(&load(&fixture("ladder.xml")).unwrap());
    let expected =
        ["0-1: {0} {1}", "0-3: {0-1} {2-3}", "0-5: {0-3}(0-1) {4-5}", "0-7: {0-5}(0-1) {2-7}(6-7)"];
    assert_eq!(rings(&domains, 0), expected);
    let expected =
        ["2-3: {2} {3}", "0-3: {2-3} {0-1}", "0-5: {0-3} {4-5}", "0-7: {0-5}(2-3) {4-7}(6-7)"];
    assert_eq!(rings(&domains, 2), expected);
}

fn speeds(machine: &Machine) -> Vec<u32> {
    machine.cpus.iter().map(|cpu| cpu.speed).collect()
}

/// As machines/adl-24.toml has them.
#[test]
fn kinds_of_cores_with_frequencies_have_speeds_and_priorities() {
    let machine = load(&fixture("hybrid.xml")).unwrap();
    assert_eq!(speeds(&machine), [1024, 1024, 605, 605]);
    let priorities: Vec<i32> = machine.cpus.iter().map(|cpu| cpu.priority).collect();
    assert_eq!(priorities, [66, 66, 39, 39]);
    let silent = text("hybrid.xml").replace("FrequencyMaxMHz", "FrequencyBaseMHz");
    let machine = load_text("xml", &silent).unwrap();
    assert_eq!(speeds(&machine), [1024; 4]);
    let remark = "kinds of cores (IntelAtom, IntelCore) but no speeds, all run alike";
    assert!(machine.description.contains(remark), "{}", machine.description);
}

#[test]
fn kinds_without_sense_are_refused() {
    let dump = text("hybrid.xml").replace("\"5200\"", "\"fast\"");
    let message = load_text("xml", &dump).unwrap_err();
    assert!(message.contains("FrequencyMaxMHz is `fast`, expected 1 to 100000"), "{message}");
}

/// Whether or not a dump names the vendor, and whatever name Zen has.
#[test]
fn costs_are_those_of_the_nearest_preset() {
    let zen = text("zen3-2s.xml");
    let vendor = "<info name=\"CPUVendor\" value=\"AuthenticAMD\"/>";
    assert!(zen.contains(vendor));
    let hygon = zen
        .replace("AuthenticAMD", "HygonGenuine")
        .replace("value=\"25\"", "value=\"24\"")
        .replace("name=\"CPUModel\"", "name=\"Other\"");
    let model = zen.replace(vendor, "<info name=\"CPUModel\" value=\"AMD EPYC 7763\"/>");
    for dump in [&zen, &hygon, &model] {
        let machine = load_text("xml", dump).unwrap();
        assert_eq!(
            (machine.costs_of.as_str(), machine.node_reclaim_distance),
            ("those of zen3-2s-nps1", 32)
        );
    }
    for (machine, lender) in [
        ("pack:2 l3:8 core:8 pu:2", "zen3-2s-nps1"),
        ("pack:2 l3:1 core:8 pu:2", "icx-2s"),
        ("pack:1 l3:1 core:8 pu:2", "uma-8"),
        ("pack:1 l3:1 core:64 pu:2", "icx-2s"),
    ] {
        assert_eq!(load(machine).unwrap().costs_of, format!("those of {lender}"), "{machine}");
    }
    assert_eq!(load("uma-8").unwrap().costs_of, "its own");
    assert_eq!(load("spr-112").unwrap().costs_of, "those of icx-2s and 22 of its own");
}

#[test]
fn a_core_of_too_many_threads_is_refused() {
    let message = load("core:4 pu:16").unwrap_err().to_string();
    assert!(message.contains("CPUs 0-15: are one core, at most 8 threads"), "{message}");
}

#[test]
fn bad_dumps_are_refused_with_the_line() {
    let good = text("two-packages.xml");
    for (from, to, key) in [
        (
            "version=\"2.0\"",
            "version=\"1.0\"",
            "line 3: is an hwloc dump of version 1.0, expected 2 or 3",
        ),
        ("os_index=\"3\"", "os_index=\"x\"", "os_index=\"x\" is not a number"),
        ("type=\"PU\" os_index=\"3\"", "type=\"PU\" os_index=\"2\"", "names CPU 2 a second time"),
        ("type=\"PU\" os_index=\"3\"", "type=\"PU\" os_index=\"1024\"", "names CPU 1024"),
        (
            "</topology>",
            "<distances2 type=\"NUMANode\" kind=\"5\"><indexes>0 1</indexes><u64values>10</u64values></distances2></topology>",
            "has 1 distances for 2 NUMA nodes",
        ),
        ("</topology>", "</object>", "is not XML"),
        ("<topology", "<something", "is not XML"),
    ] {
        let message = load_text("xml", &good.replacen(from, to, 1)).unwrap_err();
        assert!(message.contains(key), "{message}");
    }
    let message = load_text("xml", "<a/>").unwrap_err();
    assert!(message.contains("no <topology> element"), "{message}");
}

const SHAPE: &str = r#"
description = "two unequal packages"
thread_numbering = "siblings-adjacent"
node_distances = [[10, 20], [20, 10]]
costs_from = "uma-8"

[[package]]
llcs_per_node = 2
cores_per_llc = 2
threads_per_core = 2

[[package]]
llcs_per_node = 1
cores_per_llc = 3
threads_per_core = 1
"#;

#[test]
fn unequal_packages() {
    let machine = load_text("toml", SHAPE).unwrap();
    assert_eq!(ids(&machine, |cpu| cpu.llc), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2]);
    assert_eq!(ids(&machine, |cpu| cpu.core), [0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6]);
    let domains = domains_of(&machine);
    let rows = |cpu: usize| -> Vec<String> {
        let chain = domains.chains[cpu].iter().map(|index| &domains.spans[*index]);
        chain
            .map(|domain| {
                let groups: Vec<usize> =
                    domain.groups.iter().map(|group| group.cpus.len()).collect();
                format!("{} {} {groups:?} {}", domain.level, domain.cpus, domain.imb_numa_nr)
            })
            .collect()
    };
    assert_eq!(
        rows(0),
        ["SMT 0-1 [1, 1] 0", "MC 0-3 [2, 2] 0", "DIE 0-7 [4, 4] 2", "NUMA 0-10 [8, 3] 2"]
    );
    // One LLC in the node: an eighth of 3 CPUs, at least 1.
    assert_eq!(rows(9), ["MC 8-10 [1, 1, 1] 0", "NUMA 0-10 [8, 3] 1"]);
}

#[test]
fn capacity_priority_and_offline_settings() {
    let settings = "offline = \"3\"\ncapacity = [{ cpus = \"4-7\", value = 446 }]\npriority = [{ cpus = \"0\", value = 5 }]\n";
    let machine = load_text("toml", &format!("{settings}{SHAPE}")).unwrap();
    assert_eq!(machine.online().to_string(), "0-2,4-10");
    assert_eq!((machine.cpus[0].priority, machine.cpus[4].priority), (5, -4));
    use domains::DomainFlags as Flags;
    let domains = domains_of(&machine);
    let flags = |cpu: usize, level: usize| domains.spans[domains.chains[cpu][level]].flags;
    let asym = Flags::ASYM_CPUCAPACITY | Flags::ASYM_CPUCAPACITY_FULL;
    // SMT, MC, DIE, NUMA: DIE is the lowest level with both capacities.
    assert!(!flags(5, 1).intersects(asym | Flags::PREFER_SIBLING));
    assert!(flags(5, 2).contains(asym | Flags::ASYM_PACKING));
    assert!(flags(5, 3).contains(asym));
    assert!(!flags(5, 3).contains(Flags::ASYM_PACKING));
    // The package of equal CPUs keeps its flag.
    assert!(flags(9, 0).contains(Flags::PREFER_SIBLING));
}

#[test]
fn bad_machine_files_name_the_field() {
    for (from, to, key) in [
        ("threads_per_core = 2", "threads_per_core = 0", "[[package]] 1: threads_per_core: is 0"),
        (
            "threads_per_core = 2",
            "threads_per_core = 300",
            "add up to 1203 CPUs, must be 1 to 1024",
        ),
        ("threads_per_core = 2", "threads_per_core = -2", "`threads_per_core = -2`"),
        (
            "threads_per_core = 2",
            "threads_per_core = 2\nllcs_per_cache = 7",
            "[[package]] 1: llcs_per_cache: is 7, must divide the",
        ),
        ("threads_per_core = 2", "threads = 2", "unknown field `threads`"),
        ("siblings-adjacent", "mixed", "expected `siblings-adjacent` or `siblings-apart`"),
        ("[[10, 20], [20, 10]]", "[[10, 20]]", "node_distances: must have 2 rows of 2 values"),
        (
            "[[10, 20], [20, 10]]",
            "[[10, 20], [21, 10]]",
            "distance from node 0 to node 1: is 20, must be the same in both",
        ),
        ("[[10, 20], [20, 10]]", "[[10, 10], [10, 10]]", "must be 11 to 254"),
        ("[[10, 20], [20, 10]]", "[[12, 20], [20, 10]]", "must be 10 within a node"),
        ("costs_from = \"uma-8\"", "", "missing field"),
        ("uma-8", "uma-9", "costs_from: `uma-9` is not a preset"),
        (
            "costs_from",
            "offline = \"0-99\"\ncosts_from",
            "offline: names CPU 99, the highest CPU is 10",
        ),
        ("costs_from", "offline = \"0-10\"\ncosts_from", "no online CPU"),
        (
            "costs_from",
            "capacity = [{ cpus = \"0\", value = 2000 }]\ncosts_from",
            "capacity: is 2000, must be 1 to 1024",
        ),
    ] {
        let message = load_text("toml", &SHAPE.replacen(from, to, 1)).unwrap_err();
        assert!(message.contains(key), "{key}: {message}");
    }
}

#[test]
fn bad_costs_name_the_figure() {
    for (cost, key) in [
        ("wakeup_ns = { value = 400 }", "[costs] wakeup_ns: missing field `source`"),
        ("wakeup_ns = { value = 400, source = \" \" }", "[costs] wakeup_ns: source is empty"),
        ("wakeup_ns = 400", "[costs] wakeup_ns"),
        (
            "wakeup_ns = { value = -1, source = \"x\" }",
            "[costs] wakeup_ns: is -1, must be a whole number",
        ),
        (
            "wakeup_ns = { value = 1.5, source = \"x\" }",
            "[costs] wakeup_ns: is 1.5, must be a whole number",
        ),
        ("wakeup_us = { value = 1, source = \"x\" }", "unknown field `wakeup_us`"),
        (
            "cache_line_ns = { value = { smt = 1, llc = -2, package = 1, remote = 1 }, source = \"x\" }",
            "[costs] cache_line_ns.llc: is -2",
        ),
        (
            "cache_line_ns = { value = { smt = 1, llc = 2, package = 1 }, source = \"x\" }",
            "missing field `remote`",
        ),
        (
            "smt_throughput_pct = { value = 0, source = \"x\" }",
            "[costs] smt_throughput_pct: is 0, must be a whole number from 1 to 100",
        ),
        (
            "remote_bandwidth_pct = { value = { package = 90, remote = 0 }, source = \"x\" }",
            "[costs] remote_bandwidth_pct.remote: is 0, must be a whole number from 1 to 100",
        ),
        (
            "llc_bandwidth_mbps = { value = 0, source = \"x\" }",
            "[costs] llc_bandwidth_mbps: is 0, must be a whole number from 1 to 1000000000",
        ),
        (
            "node_bandwidth_mbps = { value = { copy = { one = 9, peak = 9 }, \
             scale = { one = 9, peak = 8 }, add = { one = 9, peak = 9 }, \
             triad = { one = 9, peak = 9 } }, source = \"x\" }",
            "[costs] node_bandwidth_mbps.scale: must have one <= peak",
        ),
        (
            "hz = { value = 5000, source = \"x\" }",
            "[costs] hz: is 5000, must be a whole number from 100 to 1000",
        ),
        (
            "idle_states = { value = [], source = \"x\" }",
            "[costs] idle_states: must name 1 to 16 states",
        ),
    ] {
        let message = load_text("toml", &format!("{SHAPE}\n[costs]\n{cost}\n")).unwrap_err();
        assert!(message.contains(key), "{key}: {message}");
    }
}

/// `text` with `number` for each number that does not belong to a name.
fn with_numbers(text: &str, number: &str) -> String {
    let words = text.split_inclusive([' ', ',', '}', ']']);
    let replaced = |word: &str| {
        let digits = word.chars().take_while(char::is_ascii_digit).count();
        if digits > 0 { format!("{number}{}", &word[digits..]) } else { word.to_string() }
    };
    words.map(replaced).collect()
}

/// The simulator adds and multiplies them: nothing may be as large as its types allow.
#[test]
fn no_cost_is_without_bounds() {
    let figures = load("zen3-2s-nps1").unwrap();
    for figure in figures.cost_figures() {
        let absurd = with_numbers(&figure.value, "9223372036854775807");
        let cost = format!("{} = {{ value = {absurd}, source = \"x\" }}", figure.name);
        let message = load_text("toml", &format!("{SHAPE}\n[costs]\n{cost}\n")).unwrap_err();
        let place = format!("[costs] {}", figure.name);
        assert!(
            message.contains(&place) && message.contains("must be a whole number from"),
            "{message}"
        );
    }
}

#[test]
fn an_override_leaves_the_other_borrowed_costs() {
    let file = format!("{SHAPE}\n[costs]\nwakeup_ns = {{ value = 7, source = \"measured\" }}\n");
    let machine = load_text("toml", &file).unwrap();
    let lender = load("uma-8").unwrap();
    assert_eq!(machine.costs.wakeup_ns, 7);
    assert_eq!(machine.cost_sources["wakeup_ns"], "measured");
    assert_eq!(machine.costs.idle_states, lender.costs.idle_states);
}

/// A machine of one CPU per node.
fn nodes_at(distances: &str, nr_nodes: usize) -> Machine {
    let text = format!(
        "description = \"nodes\"\nthread_numbering = \"siblings-adjacent\"\n\
         node_distances = {distances}\ncosts_from = \"uma-8\"\n[[package]]\n\
         count = {nr_nodes}\nllcs_per_node = 1\ncores_per_llc = 1\nthreads_per_core = 1\n"
    );
    load_text("toml", &text).unwrap()
}

/// The ring of groups of a CPU at each level, with the balance mask where it is not the group.
fn rings(domains: &Domains, cpu: usize) -> Vec<String> {
    let ring = |at: &usize| {
        let span = &domains.spans[*at];
        let mut groups = span.groups.clone();
        groups.rotate_left(span.group_of(cpu).unwrap());
        let group = |group: &Group| match group.balance_mask == group.cpus {
            true => format!("{{{}}}", group.cpus),
            false => format!("{{{}}}({})", group.cpus, group.balance_mask),
        };
        format!("{}: {}", span.cpus, groups.iter().map(group).collect::<Vec<_>>().join(" "))
    };
    domains.chains[cpu].iter().map(ring).collect()
}

/// The example in the comments of the kernel's `build_balance_mask`.
#[test]
fn a_ring_of_nodes_has_overlapping_groups() {
    let ring = "[[10, 20, 30, 20], [20, 10, 20, 30], [30, 20, 10, 20], [20, 30, 20, 10]]";
    let domains = domains_of(&nodes_at(ring, 4));
    let expected = [
        ["0-1,3: {0} {1} {3}", "0-3: {0-1,3}(0) {1-3}(2)"],
        ["0-2: {1} {2} {0}", "0-3: {0-2}(1) {0,2-3}(3)"],
        ["1-3: {2} {3} {1}", "0-3: {1-3}(2) {0-1,3}(0)"],
        ["0,2-3: {3} {0} {2}", "0-3: {0,2-3}(3) {0-2}(1)"],
    ];
    for (cpu, expected) in expected.iter().enumerate() {
        assert_eq!(rings(&domains, cpu), expected, "CPU {cpu}");
    }
}

/// A line of four nodes: at distance 30 node 0 must not take the group of node 2, which reaches
/// out to node 3, but what that is made of (`find_descended_sibling`).
#[test]
fn groups_of_a_line_of_nodes_stay_in_their_domain() {
    let line = "[[10, 20, 30, 40], [20, 10, 20, 30], [30, 20, 10, 20], [40, 30, 20, 10]]";
    let domains = domains_of(&nodes_at(line, 4));
    let expected = ["0-1: {0} {1}", "0-2: {0-1}(0) {2}", "0-3: {0-2}(0) {1-3}(3)"];
    assert_eq!(rings(&domains, 0), expected);
    let expected = ["0-2: {1} {2} {0}", "0-3: {0-2}(1) {2-3}(3)"];
    assert_eq!(rings(&domains, 1), expected);
}

#[test]
fn domains_that_do_not_fit_the_model_are_refused() {
    let distance = |from: usize, to: usize| 10 + from.abs_diff(to);
    let row =
        |from: usize| format!("{:?}", (0..12).map(|to| distance(from, to)).collect::<Vec<_>>());
    let rows: Vec<String> = (0..12).map(row).collect();
    let line = nodes_at(&format!("[{}]", rows.join(",")), 12);
    let message = domains::build(&line, &RULES).unwrap_err().to_string();
    assert!(message.contains("levels of sched domains: are more than the 8"), "{message}");
}

#[test]
fn unknown_machines_list_near_names() {
    let message = load("zen3-2s-nps3").unwrap_err().to_string();
    assert!(
        message.contains("did you mean zen3-2s-nps1 or zen3-2s-nps2 or zen3-2s-nps4"),
        "{message}"
    );
    assert!(load("qqq").unwrap_err().to_string().contains("`placewise machine list`"));
    assert!(load("missing.toml").unwrap_err().to_string().contains("missing.toml: cannot be read"));
}

/// A machine of one package, with `settings` at the top.
fn one_package(settings: &str, llcs_per_node: u32, cores_per_cluster: u32) -> Machine {
    let text = format!(
        "description = \"one package\"\nthread_numbering = \"siblings-adjacent\"\n\
         costs_from = \"uma-8\"\n{settings}\n[[package]]\nllcs_per_node = {llcs_per_node}\n\
         cores_per_llc = 4\nthreads_per_core = 1\ncores_per_cluster = {cores_per_cluster}\n"
    );
    load_text("toml", &text).unwrap()
}

#[test]
fn the_cluster_level_depends_on_the_kernel() {
    use domains::DomainFlags as Flags;
    let machine = one_package("", 1, 2);
    let first = |rules: &DomainRules| {
        let domains = domains::build(&machine, rules).unwrap();
        let first = &domains.spans[domains.chains[0][0]];
        (first.level.name(), first.cpus.to_string(), first.flags.contains(Flags::CLUSTER))
    };
    assert_eq!(first(&RULES), ("CLS", "0-1".to_string(), true));
    let older = DomainRules { cluster_level: false, ..RULES };
    assert_eq!(first(&older), ("MC", "0-3".to_string(), false));
}

/// No level is built above one that spans the machine, so none clears the flag of its child.
#[test]
fn big_and_little_cpus_in_one_llc_keep_prefer_sibling() {
    let machine = one_package("capacity = [{ cpus = \"0-1\", value = 446 }]", 1, 1);
    let domains = domains_of(&machine);
    let flags = domains.spans[0].flags;
    assert!(flags.contains(domains::DomainFlags::ASYM_CPUCAPACITY_FULL));
    assert!(flags.contains(domains::DomainFlags::PREFER_SIBLING));
}

#[test]
fn a_level_that_lacks_a_capacity_of_the_machine_is_not_full() {
    use domains::DomainFlags as Flags;
    let settings = "capacity = [{ cpus = \"0-1\", value = 446 }, { cpus = \"4-7\", value = 871 }]";
    let domains = domains_of(&one_package(settings, 2, 1));
    let flags = |level: usize| domains.spans[domains.chains[0][level]].flags;
    let asym = Flags::ASYM_CPUCAPACITY | Flags::ASYM_CPUCAPACITY_FULL;
    assert_eq!(flags(0) & asym, Flags::ASYM_CPUCAPACITY);
    assert_eq!(flags(1) & asym, asym);
}

#[test]
fn a_node_over_two_packages_is_one_die_domain() {
    let seen = text("no-numa.xml").replace("\"Synthetic\"", "\"Linux\"");
    let domains = domains_of(&load_text("xml", &seen).unwrap());
    let top = &domains.spans[*domains.chains[0].last().unwrap()];
    assert_eq!((top.level.name(), top.weight(), top.groups.len()), ("DIE", 8, 4));
}

#[test]
fn a_dump_tells_capacities() {
    let kinds = "<cpukind cpuset=\"0x00000003\"><info name=\"LinuxCapacity\" value=\"446\"/></cpukind>\
                 <cpukind cpuset=\"0x0000000c\"><info name=\"LinuxCapacity\" value=\"1024\"/></cpukind>\
                 </topology>";
    let dump = text("no-l3.xml").replace("</topology>", kinds);
    let machine = load_text("xml", &dump).unwrap();
    let capacities: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.capacity).collect();
    assert_eq!(capacities, [446, 446, 1024, 1024]);
}

/// Bandwidth matrices use the same element.
#[test]
fn only_latencies_are_distances() {
    let bandwidth = text("zen3-2s.xml").replace("kind=\"5\"", "kind=\"9\"");
    let machine = load_text("xml", &bandwidth).unwrap();
    assert_eq!(machine.node_distances, [[10, 20], [20, 10]]);
    assert!(machine.description.contains("no NUMA distances"));
}

#[test]
fn the_example_of_the_documentation_is_a_machine_file() {
    let page = include_str!("../../../../docs/machines.md");
    let example = page.split("```toml").nth(1).and_then(|rest| rest.split("```").next());
    let machine = load_text("toml", example.unwrap()).unwrap();
    assert_eq!(machine.online().len(), 128 + 16 - 2);
    assert_eq!(machine.cost_sources["wakeup_ns"].split(':').next(), Some("measured"));
}
