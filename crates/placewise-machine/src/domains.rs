//! The sched domains Linux builds on a machine, level by level, as `build_sched_domains` does.
//!
//! ```text
//! NUMA 0-255                  groups {0-63,128-191} {64-127,192-255}
//!   DIE 0-63,128-191          groups {0-7,128-135} {8-15,136-143} ...
//!     MC 0-7,128-135          groups {0,128} {1,129} ...
//!       SMT 0,128             groups {0} {128}
//! ```
//!
//! What differs between kernels is data ([`DomainRules`]).
//!
//! NUMA levels need not nest: in a ring or a ladder of nodes each node sees domains of its own, and
//! their groups overlap.
//!
//! Limits: overlapping groups are those of kernels since 5.13, whatever the version. ASYM_PACKING is
//! set as x86 does when cores have a preference order, whatever gives them one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bitflags::bitflags;

use crate::cpuset::CpuSet;
use crate::error::MachineError;
use crate::machine::{Cpu, Machine};

/// What differs between kernels in building sched domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainRules {
    /// The CLS level exists (5.16).
    pub cluster_level: bool,
    /// `DIE`, or `PKG` since 6.7.
    pub package_name: &'static str,
    /// `imbalance_pct` of the levels above the LLC: 125, since 5.10 117.
    pub default_imbalance_pct: u32,
    pub numa_imbalance: NumaImbalanceRule,
    /// Until 6.5 SMT has ASYM_PACKING, and DIE has not; since then it is the other way round.
    pub asym_packing_smt: bool,
    /// Whether PREFER_SIBLING stays below a level of unequal CPUs: since 7.3.
    pub asym_capacity_spreads: bool,
}

/// How `imb_numa_nr` is computed for a node of one LLC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumaImbalanceRule {
    /// Before 5.18: there is no `imb_numa_nr`; it is 0 here.
    None,
    /// 5.18 and 5.19: a quarter of the node.
    Quarter,
    /// 6.0: an eighth of the node, at least 1.
    Eighth,
}

bitflags! {
    /// The SD_* flags of a domain that a policy looks at.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct DomainFlags: u32 {
        const BALANCE_NEWIDLE = 1 << 0;
        const BALANCE_EXEC = 1 << 1;
        const BALANCE_FORK = 1 << 2;
        const WAKE_AFFINE = 1 << 3;
        const SHARE_CPUCAPACITY = 1 << 4;
        /// SD_SHARE_PKG_RESOURCES before 6.9.
        const SHARE_LLC = 1 << 5;
        const CLUSTER = 1 << 6;
        const PREFER_SIBLING = 1 << 7;
        const NUMA = 1 << 8;
        const SERIALIZE = 1 << 9;
        const ASYM_CPUCAPACITY = 1 << 10;
        const ASYM_CPUCAPACITY_FULL = 1 << 11;
        const ASYM_PACKING = 1 << 12;
    }
}

impl DomainFlags {
    /// The flags that mean something even in a domain of one group.
    const GROUP_INDEPENDENT: DomainFlags = DomainFlags::WAKE_AFFINE;
}

/// A topology level; lower ones are less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Smt,
    Cls,
    Mc,
    Die,
    Pkg,
    /// The NUMA node, where packages hold several nodes.
    Node,
    /// The nodes up to this distance.
    Numa(u32),
}

impl Level {
    /// The kernel's name of the level.
    pub fn name(&self) -> &'static str {
        match self {
            Level::Smt => "SMT",
            Level::Cls => "CLS",
            Level::Mc => "MC",
            Level::Die => "DIE",
            Level::Pkg => "PKG",
            Level::Node => "NODE",
            Level::Numa(_) => "NUMA",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// The sched domains of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domains {
    /// Every distinct domain, once for all CPUs that have it.
    pub spans: Vec<DomainSpan>,
    /// The domains of each CPU bottom up, as indices into `spans`; empty for an offline CPU.
    pub chains: Vec<Vec<usize>>,
}

/// A sched domain. CPUs share it if level, span, constants and groups agree: in a machine of unequal
/// nodes the constants of one span can differ between its CPUs, and where groups overlap so do they.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainSpan {
    pub level: Level,
    pub cpus: CpuSet,
    /// The sched groups, in ring order. A CPU's ring begins with its own group.
    pub groups: Vec<Group>,
    pub flags: DomainFlags,
    pub imbalance_pct: u32,
    pub cache_nice_tries: u32,
    /// How many tasks a node may take before NUMA balance cares.
    pub imb_numa_nr: u32,
}

/// A sched group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub cpus: CpuSet,
    /// `group_balance_mask`: the CPUs that balance for the group, because it is their own. Without
    /// overlap these are all.
    pub balance_mask: CpuSet,
    /// The flags of the group's own (child) domain; empty for a group without one.
    pub child_flags: DomainFlags,
    /// Groups of the same level and CPUs are one to the kernel, in whatever domains they stand.
    pub level: Level,
}

impl DomainSpan {
    /// The number of CPUs in the span.
    pub fn weight(&self) -> usize {
        self.cpus.len()
    }

    /// The CPU's own group, as an index into `groups`.
    pub fn group_of(&self, cpu: usize) -> Option<usize> {
        self.groups.iter().position(|group| group.balance_mask.contains(cpu))
    }
}

/// Builds the sched domains of the online CPUs.
pub fn build(machine: &Machine, rules: &DomainRules) -> Result<Domains, MachineError> {
    let levels = levels(machine, rules)?;
    check_nesting(machine, &levels)?;
    let whole = Whole::new(machine, rules);
    let chain_of = |cpu: usize| match machine.cpus[cpu].online {
        true => whole.chain(&levels, cpu),
        false => Vec::new(),
    };
    let built = Built::new((0..machine.cpus.len()).map(chain_of).collect());
    let within = |error: MachineError| error.within(&place(machine));
    share(&built).map_err(within)
}

fn place(machine: &Machine) -> String {
    format!("sched domains of machine `{}`", machine.name)
}

/// A topology level with the span it gives to each CPU; empty for an offline CPU.
struct LevelSpans {
    level: Level,
    spans: Vec<CpuSet>,
}

impl LevelSpans {
    /// The level on which CPUs with the same `key` belong together.
    fn by_key(machine: &Machine, level: Level, key: impl Fn(&Cpu) -> u16) -> Self {
        let mut members: BTreeMap<u16, CpuSet> = BTreeMap::new();
        for cpu in machine.online().iter() {
            members.entry(key(&machine.cpus[cpu])).or_default().insert(cpu);
        }
        let span = |cpu: &Cpu| match cpu.online {
            true => members[&key(cpu)],
            false => CpuSet::EMPTY,
        };
        Self { level, spans: machine.cpus.iter().map(span).collect() }
    }

    /// The level of all nodes up to `distance`.
    fn by_distance(machine: &Machine, distance: u32) -> Self {
        let reached = |from: &Cpu| {
            let row = &machine.node_distances[usize::from(from.node)];
            machine.cpus_where(|to| row[usize::from(to.node)] <= distance)
        };
        let by_node: Vec<Option<CpuSet>> = (0..machine.node_distances.len())
            .map(|node| machine.cpus.iter().find(|cpu| cpu.online && usize::from(cpu.node) == node))
            .map(|cpu| cpu.map(reached))
            .collect();
        let span = |cpu: &Cpu| match cpu.online {
            true => by_node[usize::from(cpu.node)].unwrap_or_default(),
            false => CpuSet::EMPTY,
        };
        Self { level: Level::Numa(distance), spans: machine.cpus.iter().map(span).collect() }
    }
}

/// All levels, lowest first. The mask of DIE/PKG is the NUMA node, so x86 leaves that level out
/// when packages hold several nodes, and NODE stands in its place.
fn levels(machine: &Machine, rules: &DomainRules) -> Result<Vec<LevelSpans>, MachineError> {
    check_distances(machine)?;
    let mut levels = vec![LevelSpans::by_key(machine, Level::Smt, |cpu| cpu.core)];
    if rules.cluster_level {
        levels.push(LevelSpans::by_key(machine, Level::Cls, |cpu| cpu.cluster));
    }
    levels.push(LevelSpans::by_key(machine, Level::Mc, |cpu| cpu.llc));
    if !has_numa_in_package(machine) {
        let package = match rules.package_name {
            "DIE" => Level::Die,
            _ => Level::Pkg,
        };
        levels.push(LevelSpans::by_key(machine, package, |cpu| cpu.node));
    }
    levels.push(LevelSpans::by_key(machine, Level::Node, |cpu| cpu.node));
    let distances = remote_distances(machine).into_iter();
    levels.extend(distances.map(|distance| LevelSpans::by_distance(machine, distance)));
    Ok(levels)
}

fn has_numa_in_package(machine: &Machine) -> bool {
    let online = || machine.cpus.iter().filter(|cpu| cpu.online);
    let node_of_package: BTreeMap<u16, u16> = online().map(|cpu| (cpu.package, cpu.node)).collect();
    online().any(|cpu| node_of_package[&cpu.package] != cpu.node)
}

/// The distinct distances between nodes that have online CPUs, ascending.
fn remote_distances(machine: &Machine) -> BTreeSet<u32> {
    let online = machine.cpus.iter().filter(|cpu| cpu.online);
    let nodes: BTreeSet<usize> = online.map(|cpu| usize::from(cpu.node)).collect();
    let row = |from: &usize| {
        let from = *from;
        let others = nodes.iter().filter(move |to| **to != from);
        others.map(move |to| machine.node_distances[from][*to])
    };
    nodes.iter().flat_map(row).collect()
}

fn check_distances(machine: &Machine) -> Result<(), MachineError> {
    let size = machine.node_distances.len();
    let square = machine.node_distances.iter().all(|row| row.len() == size);
    let mut online = machine.cpus.iter().filter(|cpu| cpu.online);
    match square && online.all(|cpu| usize::from(cpu.node) < size) {
        true => Ok(()),
        false => Err(MachineError::new(
            format!("machine `{}`", machine.name),
            "node_distances must have one row and one column per NUMA node",
        )),
    }
}

/// `topology_span_sane`: each level below NUMA must cut the machine into disjoint spans that contain
/// those of the level below. The kernel builds no sched domains at all otherwise.
fn check_nesting(machine: &Machine, levels: &[LevelSpans]) -> Result<(), MachineError> {
    let refuse = |problem: String| Err(MachineError::new(place(machine), problem));
    let may_overlap = |level: &LevelSpans| matches!(level.level, Level::Numa(_));
    for (below, level) in levels.iter().zip(&levels[1..]).take_while(|pair| !may_overlap(pair.1)) {
        for cpu in machine.online().iter() {
            let (name, span) = (level.level.name(), level.spans[cpu]);
            if !below.spans[cpu].is_subset(&span) {
                let (inner, name_below) = (below.spans[cpu], below.level.name());
                return refuse(format!(
                    "{name_below} {inner} reaches beyond {name} {span}; levels must nest"
                ));
            }
            if let Some(other) = span.iter().find(|other| level.spans[*other] != span) {
                let theirs = level.spans[other];
                return refuse(format!(
                    "{name} of CPU {cpu} spans {span} and that of CPU {other} {theirs}; \
                     only NUMA levels may overlap"
                ));
            }
        }
    }
    Ok(())
}

/// What the domains of all CPUs look at.
struct Whole<'a> {
    machine: &'a Machine,
    rules: &'a DomainRules,
    online: CpuSet,
    nr_capacities: usize,
    asym_packing: DomainFlags,
}

impl<'a> Whole<'a> {
    fn new(machine: &'a Machine, rules: &'a DomainRules) -> Self {
        let online = machine.online();
        let asym_packing = match machine.has_preference_order() {
            true => DomainFlags::ASYM_PACKING,
            false => DomainFlags::empty(),
        };
        Self {
            machine,
            rules,
            online,
            nr_capacities: nr_capacities(machine, &online),
            asym_packing,
        }
    }

    /// The domains of one CPU, bottom up, one for each level; groups are not filled in yet.
    fn chain(&self, levels: &[LevelSpans], cpu: usize) -> Vec<DomainSpan> {
        let mut chain: Vec<DomainSpan> = Vec::new();
        for level in levels {
            let domain = self.sd_init(level.level, level.spans[cpu]);
            if domain.flags.contains(DomainFlags::ASYM_CPUCAPACITY)
                && !self.rules.asym_capacity_spreads
                && let Some(child) = chain.last_mut()
            {
                child.flags.remove(DomainFlags::PREFER_SIBLING);
            }
            chain.push(domain);
            if level.spans[cpu] == self.online {
                break;
            }
        }
        set_imb_numa_nr(&mut chain, self.rules.numa_imbalance);
        chain
    }

    fn sd_init(&self, level: Level, cpus: CpuSet) -> DomainSpan {
        let (imbalance_pct, cache_nice_tries) = match level {
            Level::Smt => (110, 0),
            Level::Cls | Level::Mc => (117, 1),
            Level::Die | Level::Pkg | Level::Node => (self.rules.default_imbalance_pct, 1),
            Level::Numa(_) => (self.rules.default_imbalance_pct, 2),
        };
        DomainSpan {
            level,
            cpus,
            groups: Vec::new(),
            flags: self.level_flags(level) | self.asym_cpu_capacity_classify(&cpus),
            imbalance_pct,
            cache_nice_tries,
            imb_numa_nr: 0,
        }
    }

    fn level_flags(&self, level: Level) -> DomainFlags {
        use DomainFlags as Flags;
        let placement = Flags::BALANCE_EXEC | Flags::BALANCE_FORK | Flags::WAKE_AFFINE;
        let every_level = Flags::BALANCE_NEWIDLE | placement | Flags::PREFER_SIBLING;
        let (asym_smt, asym_package) = match self.rules.asym_packing_smt {
            true => (self.asym_packing, Flags::empty()),
            false => (Flags::empty(), self.asym_packing),
        };
        match level {
            Level::Smt => every_level | Flags::SHARE_CPUCAPACITY | Flags::SHARE_LLC | asym_smt,
            Level::Cls => every_level | Flags::CLUSTER | Flags::SHARE_LLC | self.asym_packing,
            Level::Mc => every_level | Flags::SHARE_LLC | self.asym_packing,
            Level::Die | Level::Pkg => every_level | asym_package,
            Level::Node => every_level,
            Level::Numa(distance) => {
                let numa = (every_level - Flags::PREFER_SIBLING) | Flags::NUMA | Flags::SERIALIZE;
                match distance > self.machine.node_reclaim_distance {
                    true => numa - placement,
                    false => numa,
                }
            }
        }
    }

    fn asym_cpu_capacity_classify(&self, span: &CpuSet) -> DomainFlags {
        if self.nr_capacities < 2 {
            return DomainFlags::empty();
        }
        match nr_capacities(self.machine, span) {
            0 | 1 => DomainFlags::empty(),
            some if some < self.nr_capacities => DomainFlags::ASYM_CPUCAPACITY,
            _ => DomainFlags::ASYM_CPUCAPACITY | DomainFlags::ASYM_CPUCAPACITY_FULL,
        }
    }
}

fn nr_capacities(machine: &Machine, cpus: &CpuSet) -> usize {
    cpus.iter().map(|cpu| machine.cpus[cpu].capacity).collect::<BTreeSet<u32>>().len()
}

/// Computed before degenerate levels go, as the rule looks at the node level even where the LLC
/// spans the node.
fn set_imb_numa_nr(chain: &mut [DomainSpan], rule: NumaImbalanceRule) {
    let llc_below = |chain: &[DomainSpan], index: usize| {
        let shares = |index: usize| chain[index].flags.contains(DomainFlags::SHARE_LLC);
        index > 0 && !shares(index) && shares(index - 1)
    };
    let Some(node) = (0..chain.len()).find(|index| llc_below(chain, *index)) else {
        return;
    };
    let node_weight = chain[node].weight();
    let imb = numa_imbalance(node_weight, chain[node - 1].weight(), rule);
    let first_numa =
        chain[node + 1..].iter().find(|domain| domain.flags.contains(DomainFlags::NUMA));
    let imb_span = first_numa.map_or(node_weight, DomainSpan::weight);
    chain[node].imb_numa_nr = imb;
    for domain in &mut chain[node + 1..] {
        domain.imb_numa_nr = imb * (domain.weight() / imb_span).max(1) as u32;
    }
}

fn numa_imbalance(node_weight: usize, llc_weight: usize, rule: NumaImbalanceRule) -> u32 {
    let nr_llcs = node_weight / llc_weight;
    let imb = match (rule, nr_llcs) {
        (NumaImbalanceRule::None, _) => 0,
        (NumaImbalanceRule::Quarter, 1) => node_weight / 4,
        (NumaImbalanceRule::Eighth, 1) => (node_weight / 8).max(1),
        (_, nr_llcs) => nr_llcs,
    };
    imb as u32
}

/// `cpu_attach_domain`: drops levels that add nothing; a child inherits a dropped parent's
/// PREFER_SIBLING.
fn without_degenerate(chain: &[DomainSpan]) -> Vec<DomainSpan> {
    let mut kept: Vec<DomainSpan> = Vec::new();
    for domain in chain {
        match kept.last_mut() {
            Some(child) if adds_nothing(domain, child) => {
                child.flags |= domain.flags & DomainFlags::PREFER_SIBLING;
            }
            _ => kept.push(domain.clone()),
        }
    }
    kept.retain(|domain| domain.weight() > 1);
    kept
}

impl DomainSpan {
    fn is_but_for_groups(&self, other: &DomainSpan) -> bool {
        let constants = |domain: &DomainSpan| {
            (domain.imbalance_pct, domain.cache_nice_tries, domain.imb_numa_nr)
        };
        (self.level, self.cpus, self.flags) == (other.level, other.cpus, other.flags)
            && constants(self) == constants(other)
    }
}

fn adds_nothing(domain: &DomainSpan, child: &DomainSpan) -> bool {
    let own_flags = (domain.flags - child.flags) & DomainFlags::GROUP_INDEPENDENT;
    domain.cpus == child.cpus && own_flags.is_empty()
}

/// The domains of all CPUs, by CPU and level.
struct Built {
    /// One domain for each level up to the first that spans the machine.
    all: Vec<Vec<DomainSpan>>,
    /// Without those that add nothing.
    kept: Vec<Vec<DomainSpan>>,
}

impl Built {
    fn new(all: Vec<Vec<DomainSpan>>) -> Self {
        let kept = all.iter().map(|chain| without_degenerate(chain)).collect();
        Self { all, kept }
    }

    /// The flags of the domain that `cpu` has on exactly `cpus`, or of the widest within them.
    fn child_flags(&self, cpu: usize, cpus: &CpuSet) -> DomainFlags {
        let child = self.kept[cpu].iter().rev().find(|child| child.weight() <= cpus.len());
        child.map_or(DomainFlags::empty(), |child| child.flags)
    }

    /// `build_sched_groups`: the groups are the spans of the child domains; a CPU without one is its
    /// own group.
    fn groups(&self, domain: &DomainSpan) -> Vec<Group> {
        let mut groups = Vec::new();
        let mut covered = CpuSet::EMPTY;
        for cpu in domain.cpus.iter() {
            if covered.contains(cpu) {
                continue;
            }
            let smaller = |other: &&DomainSpan| other.weight() < domain.weight();
            let child = self.kept[cpu].iter().rev().find(smaller);
            let cpus = child.map_or(CpuSet::single(cpu), |child| child.cpus);
            let child_flags = child.map_or(DomainFlags::empty(), |child| child.flags);
            covered |= cpus;
            groups.push(Group { cpus, balance_mask: cpus, child_flags, level: domain.level });
        }
        groups
    }

    /// `build_overlap_sched_groups`: the ring of `cpu` at a NUMA level. Each CPU that no group before
    /// it covers adds the span of its own child domain there.
    fn overlapping_groups(&self, cpu: usize, domain: &DomainSpan) -> Vec<Group> {
        let Some(at) = self.all[cpu].iter().position(|known| known.level == domain.level) else {
            return Vec::new();
        };
        let mut groups: Vec<Group> = Vec::new();
        let mut covered = CpuSet::EMPTY;
        for sibling in domain.cpus.iter_wrap(cpu) {
            // Where some CPUs span the machine at a lower level, they have no domain at this one.
            if covered.contains(sibling) || at >= self.all[sibling].len() {
                continue;
            }
            let at = self.descended(sibling, at, &domain.cpus);
            let cpus = self.child_span(sibling, at);
            covered |= cpus;
            groups.push(Group {
                cpus,
                balance_mask: self.balance_mask(at, &cpus),
                child_flags: self.child_flags(sibling, &cpus),
                level: self.all[sibling][at].level,
            });
        }
        // CPUs with the same ring share it, wherever in it they begin.
        let first = (0..groups.len()).min_by_key(|at| (groups[*at].cpus.first(), groups[*at].cpus));
        groups.rotate_left(first.unwrap_or(0));
        groups
    }

    fn child_span(&self, cpu: usize, at: usize) -> CpuSet {
        self.all[cpu][at.saturating_sub(1)].cpus
    }

    /// `find_descended_sibling`: where nodes are three steps apart the child of a sibling can reach
    /// out of `span`; then it is a lower one that counts.
    fn descended(&self, sibling: usize, mut at: usize, span: &CpuSet) -> usize {
        if self.child_span(sibling, at).is_subset(span) {
            return at;
        }
        while at > 0 && !self.child_span(sibling, at).is_subset(span) {
            at -= 1;
        }
        while at > 0 && self.child_span(sibling, at) == self.all[sibling][at].cpus {
            at -= 1;
        }
        at
    }

    /// `build_balance_mask`: the CPUs whose own child domain is the group.
    fn balance_mask(&self, at: usize, group: &CpuSet) -> CpuSet {
        let owns = |cpu: &usize| at < self.all[*cpu].len() && self.child_span(*cpu, at) == *group;
        group.iter().filter(owns).collect()
    }
}

/// What the policy's state has room for.
pub const MAX_SIBLINGS: usize = 8;
pub const MAX_LEVELS: usize = 8;
pub const MAX_SPANS: usize = 4096;
pub const MAX_GROUPS: usize = 8192;

/// Stores equal domains of different CPUs once, and fills in the groups.
fn share(built: &Built) -> Result<Domains, MachineError> {
    let mut domains = Domains { spans: Vec::new(), chains: Vec::with_capacity(built.kept.len()) };
    let mut nr_groups = 0;
    for (cpu, chain) in built.kept.iter().enumerate() {
        let mut indices = Vec::with_capacity(chain.len());
        for domain in chain {
            let mut domain = domain.clone();
            let overlaps = matches!(domain.level, Level::Numa(_));
            if overlaps {
                domain.groups = built.overlapping_groups(cpu, &domain);
            }
            // Of the others the groups follow from the rest, which is compared first.
            let alike = |known: &DomainSpan| match overlaps {
                true => *known == domain,
                false => known.is_but_for_groups(&domain),
            };
            let known = domains.spans.iter().position(alike);
            indices.push(known.unwrap_or(domains.spans.len()));
            if known.is_none() {
                if !overlaps {
                    domain.groups = built.groups(&domain);
                }
                nr_groups += domain.groups.len();
                domains.spans.push(domain);
            }
            check_limit("sched domains", domains.spans.len(), MAX_SPANS)?;
            check_limit("sched groups", nr_groups, MAX_GROUPS)?;
        }
        check_limit("levels of sched domains", indices.len(), MAX_LEVELS)?;
        domains.chains.push(indices);
    }
    Ok(domains)
}

fn check_limit(what: &str, number: usize, most: usize) -> Result<(), MachineError> {
    match number <= most {
        true => Ok(()),
        false => Err(MachineError::new(what, format!("are more than the {most} of the model"))),
    }
}
