//! The sched domains of the presets, as a table per machine: level, span of CPU 0, groups,
//! imbalance_pct, imb_numa_nr. Wrong numbers here would change every decision of a simulation.

use placewise_machine::domains::{
    self, DomainFlags, DomainRules, DomainSpan, Domains, NumaImbalanceRule,
};
use placewise_machine::{CpuSet, Machine, load, presets};

const V6_0: DomainRules = DomainRules {
    cluster_level: true,
    package_name: "DIE",
    default_imbalance_pct: 117,
    numa_imbalance: NumaImbalanceRule::Eighth,
    asym_packing_smt: true,
    asym_capacity_spreads: false,
};

const V5_19: DomainRules = DomainRules { numa_imbalance: NumaImbalanceRule::Quarter, ..V6_0 };

const V5_3: DomainRules = DomainRules {
    cluster_level: false,
    package_name: "DIE",
    default_imbalance_pct: 125,
    numa_imbalance: NumaImbalanceRule::None,
    ..V6_0
};

fn machine(name: &str) -> Machine {
    load(name).unwrap()
}

fn build(name: &str, rules: &DomainRules) -> Domains {
    domains::build(&machine(name), rules).unwrap()
}

fn chain(domains: &Domains, cpu: usize) -> Vec<&DomainSpan> {
    domains.chains[cpu].iter().map(|index| &domains.spans[*index]).collect()
}

/// `MC 16 = 8 x 2, pct 117, imb 0` for each domain of CPU 0.
fn table(name: &str, rules: &DomainRules) -> Vec<String> {
    let domains = build(name, rules);
    let row = |domain: &&DomainSpan| {
        let weight = domain.groups[0].cpus.len();
        assert!(domain.groups.iter().all(|group| group.cpus.len() == weight));
        format!(
            "{} {} = {} x {}, pct {}, imb {}",
            domain.level,
            domain.weight(),
            domain.groups.len(),
            weight,
            domain.imbalance_pct,
            domain.imb_numa_nr
        )
    };
    chain(&domains, 0).iter().map(row).collect()
}

const SMT2: &str = "SMT 2 = 2 x 1, pct 110, imb 0";

#[test]
fn zen3() {
    let mc = "MC 16 = 8 x 2, pct 117, imb 0";
    assert_eq!(
        table("zen3-2s-nps1", &V6_0),
        [SMT2, mc, "DIE 128 = 8 x 16, pct 117, imb 8", "NUMA 256 = 2 x 128, pct 117, imb 8"]
    );
    assert_eq!(
        table("zen3-2s-nps2", &V6_0),
        [
            SMT2,
            mc,
            "NODE 64 = 4 x 16, pct 117, imb 4",
            "NUMA 128 = 2 x 64, pct 117, imb 4",
            "NUMA 256 = 2 x 128, pct 117, imb 8"
        ]
    );
    assert_eq!(
        table("zen3-2s-nps4", &V6_0),
        [
            SMT2,
            mc,
            "NODE 32 = 2 x 16, pct 117, imb 2",
            "NUMA 128 = 4 x 32, pct 117, imb 2",
            "NUMA 256 = 2 x 128, pct 117, imb 4"
        ]
    );
}

#[test]
fn epyc_9654() {
    assert_eq!(
        table("epyc-9654-2s", &V6_0),
        [
            SMT2,
            "MC 16 = 8 x 2, pct 117, imb 0",
            "DIE 192 = 12 x 16, pct 117, imb 12",
            "NUMA 384 = 2 x 192, pct 117, imb 12"
        ]
    );
}

#[test]
fn one_llc_per_node() {
    let mc = "MC 64 = 32 x 2, pct 117, imb 0";
    assert_eq!(table("icx-2s", &V6_0), [SMT2, mc, "NUMA 128 = 2 x 64, pct 117, imb 8"]);
    assert_eq!(table("icx-2s", &V5_19), [SMT2, mc, "NUMA 128 = 2 x 64, pct 117, imb 16"]);
    assert_eq!(
        table("xeon-4n80", &V6_0),
        [SMT2, "MC 20 = 10 x 2, pct 117, imb 0", "NUMA 80 = 4 x 20, pct 117, imb 2"]
    );
    assert_eq!(
        table("arm64-224", &V6_0),
        [
            "SMT 4 = 4 x 1, pct 110, imb 0",
            "MC 112 = 28 x 4, pct 117, imb 0",
            "NUMA 224 = 2 x 112, pct 117, imb 14"
        ]
    );
}

#[test]
fn one_llc() {
    assert_eq!(table("spr-112", &V6_0), [SMT2, "MC 112 = 56 x 2, pct 117, imb 0"]);
    assert_eq!(table("uma-8", &V6_0), [SMT2, "MC 8 = 4 x 2, pct 117, imb 0"]);
    assert_eq!(table("x86-12", &V6_0), [SMT2, "MC 12 = 6 x 2, pct 117, imb 0"]);
}

#[test]
fn several_llcs_per_node() {
    let die = "DIE 120 = 2 x 60, pct 117, imb 2";
    assert_eq!(table("spr-2s-120", &V6_0), [SMT2, "MC 60 = 30 x 2, pct 117, imb 0", die]);
    let die = "DIE 240 = 2 x 120, pct 117, imb 2";
    assert_eq!(table("spr-2s-240", &V6_0), [SMT2, "MC 120 = 60 x 2, pct 117, imb 0", die]);
    assert_eq!(
        table("zen4-2s-128c", &V6_0),
        [
            SMT2,
            "MC 16 = 8 x 2, pct 117, imb 0",
            "DIE 256 = 16 x 16, pct 117, imb 16",
            "NUMA 512 = 2 x 256, pct 117, imb 16"
        ]
    );
}

#[test]
fn two_intel_sockets() {
    assert_eq!(
        table("spr-2s-224", &V6_0),
        [SMT2, "MC 112 = 56 x 2, pct 117, imb 0", "NUMA 224 = 2 x 112, pct 117, imb 14"]
    );
    assert_eq!(
        table("clx-2s-8260-snc-off", &V6_0),
        [SMT2, "MC 48 = 24 x 2, pct 117, imb 0", "NUMA 96 = 2 x 48, pct 117, imb 6"]
    );
    assert_eq!(
        table("clx-2s-8260-snc-on", &V6_0),
        [
            SMT2,
            "MC 24 = 12 x 2, pct 117, imb 0",
            "NUMA 48 = 2 x 24, pct 117, imb 3",
            "NUMA 96 = 2 x 48, pct 117, imb 6"
        ]
    );
}

/// The domains have four LLCs where the hardware has one cache.
#[test]
fn an_llc_may_be_split_in_the_domains_only() {
    assert_eq!(
        table("spr-2s-224-llcsplit4", &V6_0),
        [
            SMT2,
            "MC 28 = 14 x 2, pct 117, imb 0",
            "DIE 112 = 4 x 28, pct 117, imb 4",
            "NUMA 224 = 2 x 112, pct 117, imb 4"
        ]
    );
    let split = machine("spr-2s-224-llcsplit4");
    let of = |cpu: usize| (split.cpus[cpu].llc, split.cpus[cpu].cache);
    assert_eq!([13, 14, 55, 56, 112].map(of), [(0, 0), (1, 0), (3, 0), (4, 1), (0, 0)]);
    assert_eq!((split.nr_llcs(), split.nr_caches()), (8, 2));
    let whole = machine("spr-2s-224");
    assert!(whole.cpus.iter().all(|cpu| cpu.cache == cpu.llc));
}

#[test]
fn clusters_of_cores() {
    let levels: Vec<String> = chain(&build("kunpeng920", &V6_0), 5)
        .iter()
        .map(|domain| format!("{} {}", domain.level, domain.cpus))
        .take(3)
        .collect();
    assert_eq!(levels, ["CLS 4-7", "MC 0-31", "NUMA 0-63"]);
    let top = chain(&build("kunpeng920", &V6_0), 5).last().unwrap().cpus;
    assert_eq!(top, machine("kunpeng920").online());
}

#[test]
fn no_smt() {
    let mc = "MC 8 = 8 x 1, pct 117, imb 0";
    assert_eq!(
        table("milan-2n128", &V6_0),
        [mc, "DIE 64 = 8 x 8, pct 117, imb 8", "NUMA 128 = 2 x 64, pct 117, imb 8"]
    );
    assert_eq!(
        table("milan-4n128", &V6_0),
        [
            mc,
            "NODE 32 = 4 x 8, pct 117, imb 4",
            "NUMA 64 = 2 x 32, pct 117, imb 4",
            "NUMA 128 = 2 x 64, pct 117, imb 8"
        ]
    );
    assert_eq!(
        table("arm64-8", &V6_0),
        ["MC 4 = 4 x 1, pct 117, imb 0", "DIE 8 = 2 x 4, pct 117, imb 2"]
    );
}

/// Level, span and flags of asymmetry of each domain of a CPU.
fn asymmetry(name: &str, rules: &DomainRules, cpu: usize) -> Vec<String> {
    let domains = build(name, rules);
    let asym = DomainFlags::ASYM_CPUCAPACITY
        | DomainFlags::ASYM_CPUCAPACITY_FULL
        | DomainFlags::ASYM_PACKING
        | DomainFlags::PREFER_SIBLING;
    let row = |domain: &&DomainSpan| {
        let flags: Vec<&str> = (domain.flags & asym).iter_names().map(|(name, _)| name).collect();
        format!("{} {} {}", domain.level, domain.cpus, flags.join(" ")).trim_end().to_string()
    };
    chain(&domains, cpu).iter().map(row).collect()
}

#[test]
fn cpus_of_unlike_capacity() {
    let capacities =
        |name: &str| -> Vec<u32> { machine(name).cpus.iter().map(|cpu| cpu.capacity).collect() };
    assert_eq!(capacities("hikey960"), [462, 462, 462, 462, 1024, 1024, 1024, 1024]);
    assert_eq!(capacities("sm8250"), [284, 284, 284, 284, 871, 871, 871, 1024]);
    assert_eq!(
        asymmetry("hikey960", &V6_0, 0),
        ["MC 0-3", "DIE 0-7 PREFER_SIBLING ASYM_CPUCAPACITY ASYM_CPUCAPACITY_FULL"]
    );
    let one_llc = "MC 0-7 PREFER_SIBLING ASYM_CPUCAPACITY ASYM_CPUCAPACITY_FULL";
    assert_eq!(asymmetry("sm8250", &V6_0, 7), [one_llc]);
    assert_eq!(table("sm8250", &V6_0), ["MC 8 = 8 x 1, pct 117, imb 0"]);
    let spreading = DomainRules { asym_capacity_spreads: true, ..V6_0 };
    assert_eq!(asymmetry("hikey960", &spreading, 0)[0], "MC 0-3 PREFER_SIBLING");
}

#[test]
fn cores_of_unlike_priority() {
    let of = |cpu: usize| {
        let cpu = machine("adl-24").cpus[cpu];
        (cpu.core, cpu.cluster, cpu.capacity, cpu.speed, cpu.priority)
    };
    assert_eq!((of(1), of(15)), ((0, 0, 1024, 1024, 66), (7, 7, 1024, 1008, 65)));
    assert_eq!((of(16), of(23)), ((8, 8, 1024, 605, 39), (15, 9, 1024, 605, 39)));
    let all = "MC 0-23 PREFER_SIBLING ASYM_PACKING";
    assert_eq!(asymmetry("adl-24", &V6_0, 0), ["SMT 0-1 PREFER_SIBLING ASYM_PACKING", all]);
    assert_eq!(asymmetry("adl-24", &V6_0, 16), ["CLS 16-19 PREFER_SIBLING ASYM_PACKING", all]);
    let newer = DomainRules { asym_packing_smt: false, ..V6_0 };
    assert_eq!(asymmetry("adl-24", &newer, 0), ["SMT 0-1 PREFER_SIBLING", all]);
    let groups = &build("adl-24", &V6_0);
    let sizes: Vec<usize> =
        chain(groups, 0)[1].groups.iter().map(|group| group.cpus.len()).collect();
    assert_eq!(sizes, [2, 2, 2, 2, 2, 2, 2, 2, 4, 4]);
}

#[test]
fn several_llcs_per_node_do_not_depend_on_the_single_llc_rule() {
    assert_eq!(table("zen3-2s-nps4", &V5_19), table("zen3-2s-nps4", &V6_0));
}

#[test]
fn old_kernels_have_125_percent_above_the_llc_and_no_imb_numa_nr() {
    assert_eq!(
        table("zen3-2s-nps1", &V5_3),
        [
            SMT2,
            "MC 16 = 8 x 2, pct 117, imb 0",
            "DIE 128 = 8 x 16, pct 125, imb 0",
            "NUMA 256 = 2 x 128, pct 125, imb 0"
        ]
    );
}

#[test]
fn the_package_level_is_named_by_the_kernel() {
    let rules = DomainRules { package_name: "PKG", ..V6_0 };
    assert!(table("zen3-2s-nps1", &rules)[2].starts_with("PKG 128"));
}

#[test]
fn cpu_ids_of_zen3_follow_the_published_traces() {
    let machine = machine("zen3-2s-nps4");
    for (id, cpu) in machine.cpus.iter().enumerate() {
        assert_eq!(usize::from(cpu.core), id % 128);
        assert_eq!(usize::from(cpu.llc), id % 128 / 8);
        assert_eq!(usize::from(cpu.node), id % 128 / 16);
        assert_eq!(usize::from(cpu.package), id % 128 / 64);
    }
    let domains = build("zen3-2s-nps4", &V6_0);
    let spans: Vec<String> =
        chain(&domains, 152).iter().map(|domain| domain.cpus.to_string()).collect();
    assert_eq!(spans, ["24,152", "24-31,152-159", "16-31,144-159", "0-63,128-191", "0-255"]);
}

#[test]
fn flags_of_each_level() {
    use DomainFlags as Flags;
    let every =
        Flags::BALANCE_NEWIDLE | Flags::BALANCE_EXEC | Flags::BALANCE_FORK | Flags::WAKE_AFFINE;
    let domains = build("zen3-2s-nps4", &V6_0);
    let flags: Vec<Flags> = chain(&domains, 0).iter().map(|domain| domain.flags).collect();
    let numa = every | Flags::NUMA | Flags::SERIALIZE;
    assert_eq!(
        flags,
        [
            every | Flags::SHARE_CPUCAPACITY | Flags::SHARE_LLC | Flags::PREFER_SIBLING,
            every | Flags::SHARE_LLC | Flags::PREFER_SIBLING,
            every | Flags::PREFER_SIBLING,
            numa,
            numa,
        ]
    );
}

/// The balancer's prefer_sibling is the child's flag: set for the first NUMA level only.
#[test]
fn only_the_first_numa_level_prefers_siblings() {
    let domains = build("zen3-2s-nps4", &V6_0);
    let prefer: Vec<bool> = chain(&domains, 0)
        .iter()
        .map(|domain| {
            domain
                .groups
                .iter()
                .all(|group| group.child_flags.contains(DomainFlags::PREFER_SIBLING))
        })
        .collect();
    assert_eq!(prefer, [false, true, true, true, false]);
}

/// Distance 32 is beyond the default limit of 30, but not beyond that of AMD Zen.
#[test]
fn wakeups_cross_zen_sockets_only_because_of_the_raised_reclaim_distance() {
    let crossing = DomainFlags::WAKE_AFFINE | DomainFlags::BALANCE_FORK | DomainFlags::BALANCE_EXEC;
    let mut machine = machine("zen3-2s-nps1");
    let top = |machine: &Machine| {
        let domains = domains::build(machine, &V6_0).unwrap();
        chain(&domains, 0).last().unwrap().flags
    };
    assert!(top(&machine).contains(crossing));
    machine.node_reclaim_distance = 30;
    assert!(!top(&machine).intersects(crossing));
    assert!(top(&machine).contains(DomainFlags::BALANCE_NEWIDLE));
}

#[test]
fn groups_are_in_ring_order() {
    let domains = build("zen3-2s-nps1", &V6_0);
    let die = chain(&domains, 0)[2];
    assert_eq!(die.groups[2].cpus, CpuSet::parse_list("16-23,144-151").unwrap());
    assert_eq!((die.group_of(0), die.group_of(150)), (Some(0), Some(2)));
}

#[test]
fn cpus_share_equal_domains() {
    let domains = build("zen3-2s-nps1", &V6_0);
    // 128 cores, 16 LLCs, 2 nodes, 1 machine
    assert_eq!(domains.spans.len(), 128 + 16 + 2 + 1);
    assert_eq!(domains.chains[5], domains.chains[133]);
}

#[test]
fn every_cost_of_every_preset_says_what_kind_of_figure_it_is() {
    let kinds = ["measured", "published", "calibrated", "assumed"];
    for preset in presets() {
        let machine = machine(preset.name);
        assert_eq!(machine.description, preset.description);
        for figure in machine.cost_figures() {
            let kind = kinds.iter().any(|kind| figure.source.starts_with(kind));
            assert!(kind, "{} {}: {}", preset.name, figure.name, figure.source);
        }
    }
}
