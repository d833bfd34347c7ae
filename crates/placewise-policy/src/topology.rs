//! Lays a machine's topology and sched domains out in the policy's state: when it boots, and anew
//! when a CPU goes offline or comes online.
//!
//! Limits: capacities and the scaled time constants stay as they were at boot; an LLC that has lost
//! a CPU counts the CPUs that tick exactly, where the kernel lets the count be wrong for a while.

use std::collections::BTreeMap;

use crate::kernel::MIGRATION_COST;
use crate::shared_runq::{drain_lists, share_lists};
use crate::state::*;
use placewise_machine::{
    CpuSet, DomainFlags, DomainRules, Domains, Group, Level, Machine, MachineError,
    NumaImbalanceRule, build, domains,
};

/// A machine whose domains do not fit is refused when they are built.
const _: () = assert!(
    domains::MAX_SIBLINGS == NR_SIBLINGS as usize
        && domains::MAX_LEVELS == NR_LEVELS as usize
        && domains::MAX_SPANS == NR_SPANS as usize
        && domains::MAX_GROUPS == NR_GROUPS as usize
);

/// Times of an idle CPU begin here, so that a stamp of 0 can mean "none".
pub const BOOT: u64 = 1;

/// How a kernel builds sched domains.
pub fn domain_rules(profile: &Profile) -> DomainRules {
    DomainRules {
        cluster_level: profile.cluster_level,
        package_name: if profile.package_level_is_pkg { "PKG" } else { "DIE" },
        default_imbalance_pct: profile.imbalance_pct,
        numa_imbalance: match profile.imb_numa {
            IMB_NUMA_QUARTER => NumaImbalanceRule::Quarter,
            IMB_NUMA_EIGHTH => NumaImbalanceRule::Eighth,
            _ => NumaImbalanceRule::None,
        },
        asym_packing_smt: profile.asym_packing_smt,
        asym_capacity_spreads: profile.asym_capacity_spreads,
    }
}

/// The state of `machine` when it has been idle since it booted: every LLC is
/// known to have idle cores, and to be worth a full search.
pub fn boot(machine: &Machine, profile: &Profile) -> Result<(Placement, Domains), MachineError> {
    let domains = build(machine, &domain_rules(profile))?;
    let mut state = Placement::new(scaled(*profile, machine));
    fill_root(&mut state, machine);
    for (cpu, _) in machine.cpus.iter().enumerate().filter(|(_, cpu)| cpu.online) {
        fill_cpu(&mut state, machine, cpu);
        fill_rq(&mut state, machine, cpu);
    }
    fill_spans(&mut state, machine, &domains);
    fill_domains(&mut state, &domains, 0);
    fill_llcs(&mut state, machine, &domains);
    Ok((state, domains))
}

/// CPUs of `machine` have gone offline or come online: the sched domains are built anew, and what
/// they had learned is forgotten. A CPU that is offline, but may still have to get rid of its
/// tasks, is in no domain, and in an LLC that has no CPUs: the one after the last.
pub fn rebuild(
    state: &mut Placement,
    machine: &Machine,
    now: u64,
) -> Result<Domains, MachineError> {
    let domains = build(machine, &domain_rules(&state.profile))?;
    let online = machine.online();
    drain_lists(state);
    state.root.online = mask(&online);
    state.root.smt_active = has_smt(machine).into();
    for cpu in 0..machine.cpus.len() {
        if online.contains(cpu) {
            fill_cpu(state, machine, cpu);
        } else {
            take_out(state, cpu);
        }
    }
    fill_idle_cores(state);
    fill_spans(state, machine, &domains);
    let jiffies = now / u64::from(state.root.tick_ns);
    fill_domains(state, &domains, jiffies);
    let llcs = (state.root.nr_llcs + 1).min(NR_CPUS) as usize;
    state.llc[..llcs].fill(Llc { domain_level: NR_LEVELS, ..Llc::default() });
    fill_llcs(state, machine, &domains);
    forget_llcs(state, &online);
    Ok(domains)
}

/// A CPU that is offline has no neighbours; it keeps its node.
fn take_out(state: &mut Placement, cpu: usize) {
    let nr_llcs = state.root.nr_llcs;
    let entry = &mut state.cpu[cpu];
    entry.siblings = [0; NR_SIBLINGS as usize];
    entry.siblings[0] = cpu as u16;
    entry.nr_siblings = 1;
    entry.cluster_first = cpu as u16;
    (entry.shared_first, entry.shared_next) = (cpu as u16, cpu as u16);
    // If there is no number left, each CPU has an LLC of its own anyway.
    if nr_llcs < NR_CPUS {
        entry.llc = nr_llcs as u16;
    }
    state.domain[cpu].fill(SchedDomain::default());
}

/// Whether all of a core is idle hangs on which of its CPUs are online.
fn fill_idle_cores(state: &mut Placement) {
    for cpu in 0..state.root.nr_cpu_ids as usize {
        let entry = state.cpu[cpu];
        let siblings = &entry.siblings[..entry.nr_siblings as usize];
        let idle = siblings.iter().all(|&sibling| state.root.idle.contains(sibling.into()));
        let word = &mut state.root.idle_core.bits[cpu / 64];
        *word = *word & !(1 << (cpu % 64)) | u64::from(idle) << (cpu % 64);
    }
}

/// New LLCs know neither of idle cores nor how far a search may go: the next balance pass says.
fn forget_llcs(state: &mut Placement, online: &CpuSet) {
    for llc in 0..state.root.nr_llcs as usize {
        state.llc[llc].has_idle_cores = 0;
        state.llc[llc].nr_idle_scan = 0;
    }
    for cpu in online.iter().filter(|&cpu| state.rq[cpu].tick_stopped == 0).collect::<Vec<_>>() {
        let llc = state.cpu[cpu].llc;
        state.llc[llc as usize].nr_busy_cpus += 1;
    }
}

/// Time constants grow with the logarithm of the number of CPUs, up to eight.
fn scaled(mut profile: Profile, machine: &Machine) -> Profile {
    let scale = u64::from(1 + machine.online().len().min(8).ilog2());
    let Profile { min_gran, latency, wakeup_gran, base_slice, .. } = &mut profile;
    for tunable in [min_gran, latency, wakeup_gran, base_slice] {
        if std::mem::take(&mut tunable.grows) {
            tunable.ns *= scale;
        }
    }
    profile
}

fn mask(cpus: &CpuSet) -> Cpumask {
    Cpumask { bits: *cpus.words() }
}

/// The first word that is not empty, and one past the last.
fn word_range(cpus: &CpuSet) -> (u32, u32) {
    let used = |word: &u64| *word != 0;
    let words = cpus.words();
    let first = words.iter().position(used).unwrap_or(0);
    let last = words.iter().rposition(used).map_or(0, |last| last + 1);
    (first as u32, last as u32)
}

fn fill_root(state: &mut Placement, machine: &Machine) {
    let online = machine.online();
    let capacities = || machine.cpus.iter().filter(|cpu| cpu.online).map(|cpu| cpu.capacity);
    state.root.nr_cpu_ids = machine.cpus.len() as u32;
    state.root.nr_nodes = machine.node_distances.len() as u32;
    state.root.smt_active = has_smt(machine).into();
    state.root.asym_capacity = (capacities().min() != capacities().max()).into();
    state.root.tick_ns = 1_000_000_000 / machine.costs.hz;
    state.root.online = mask(&online);
    state.root.idle = mask(&online);
    state.root.idle_core = mask(&online);
    state.root.tickless = mask(&online);
}

fn has_smt(machine: &Machine) -> bool {
    machine.online().iter().any(|cpu| siblings(machine, cpu).len() > 1)
}

fn siblings(machine: &Machine, cpu: usize) -> CpuSet {
    machine.cpus_where(|other| other.online && other.core == machine.cpus[cpu].core)
}

fn fill_cpu(state: &mut Placement, machine: &Machine, cpu: usize) {
    let here = &machine.cpus[cpu];
    let siblings = siblings(machine, cpu);
    let cluster = machine.cpus_where(|other| other.online && other.cluster == here.cluster);
    let node = machine.cpus_where(|other| other.online && other.node == here.node);
    let priority = asym_priority(&state.profile, machine, cpu);
    let entry = &mut state.cpu[cpu];
    for (at, sibling) in siblings.iter().enumerate() {
        entry.siblings[at] = sibling as u16;
    }
    entry.nr_siblings = siblings.len() as u16;
    entry.llc = here.llc;
    entry.cluster_first = cluster.first().unwrap_or(cpu) as u16;
    entry.node = here.node;
    entry.node_cpus = node.len() as u16;
    entry.capacity_orig = here.capacity;
    entry.asym_priority = priority;
}

/// `arch_asym_cpu_priority`: what the kernel makes of the preference for a core on each of its
/// threads. All threads of a machine count as those of its widest core.
fn asym_priority(profile: &Profile, machine: &Machine, cpu: usize) -> i32 {
    let priority = machine.cpus[cpu].priority;
    if !machine.has_preference_order() {
        return priority;
    }
    let threads = machine.online().iter().map(|cpu| siblings(machine, cpu).len()).max();
    let threads = threads.unwrap_or(1) as i32;
    let nth =
        1 + siblings(machine, cpu).iter().position(|sibling| sibling == cpu).unwrap_or(0) as i32;
    match profile.sibling_priority {
        SIBLING_PRIORITY_DIVIDED => priority.saturating_mul(threads) / nth,
        SIBLING_PRIORITY_DIVIDED_SQUARED => priority.saturating_mul(threads) / (nth * nth),
        _ => priority,
    }
}

fn fill_rq(state: &mut Placement, machine: &Machine, cpu: usize) {
    let deepest = machine.costs.idle_states.last().map_or(0, |state| state.exit_ns);
    let rq = &mut state.rq[cpu];
    rq.curr = cpu as u32;
    rq.capacity = machine.cpus[cpu].capacity;
    rq.mru_head = NO_TASK;
    rq.mru_tail = NO_TASK;
    rq.rt_head = NO_TASK;
    rq.clock_rests = 1;
    rq.avg_rt.last_update_time = BOOT;
    rq.idle_stamp = BOOT;
    rq.idle_exit_latency = deepest as u32;
    // Whatever the migration cost is set to: nobody can before the machine has booted.
    rq.avg_idle = 2 * MIGRATION_COST;
    rq.wake_avg_idle = 2 * MIGRATION_COST;
    rq.max_idle_balance_cost = MIGRATION_COST;
    rq.tick_stopped = 1;
    rq.cfs.avg.last_update_time = BOOT;

    let idle_task = &mut state.task[cpu];
    idle_task.cpu = cpu as u16;
    idle_task.recent_used_cpu = cpu as u16;
    idle_task.last_wakee = NO_TASK;
    idle_task.idle_policy = 1;
    idle_task.mru_prev = NO_TASK;
    idle_task.mru_next = NO_TASK;
}

fn fill_spans(state: &mut Placement, machine: &Machine, domains: &Domains) {
    let mut next_group = 0;
    let mut first_copies: BTreeMap<(Level, CpuSet), u32> = BTreeMap::new();
    for (at, span) in domains.spans.iter().enumerate() {
        let (first_word, end_word) = word_range(&span.cpus);
        state.span[at] = SchedSpan {
            cpus: mask(&span.cpus),
            first_word,
            end_word,
            weight: span.weight() as u32,
            flags: span.flags.bits(),
            imbalance_pct: span.imbalance_pct,
            cache_nice_tries: span.cache_nice_tries,
            imb_numa_nr: span.imb_numa_nr,
            first_group: next_group,
            nr_groups: span.groups.len() as u32,
            asym_capacity_max: span
                .cpus
                .iter()
                .map(|cpu| machine.cpus[cpu].capacity)
                .max()
                .unwrap_or(0),
        };
        for group in &span.groups {
            let first = *first_copies.entry((group.level, group.cpus)).or_insert(next_group);
            let first_copy = next_group - first;
            let group = group_of(state, machine, group);
            state.group[next_group as usize] = SchedGroup { first_copy, ..group };
            next_group += 1;
        }
    }
    state.root.nr_spans = domains.spans.len() as u32;
    state.root.nr_groups = next_group;
}

fn group_of(state: &State, machine: &Machine, group: &Group) -> SchedGroup {
    let cpus = &group.cpus;
    let (first_word, end_word) = word_range(cpus);
    let capacities = || cpus.iter().map(|cpu| machine.cpus[cpu].capacity);
    let mut cores: Vec<u16> = cpus.iter().map(|cpu| machine.cpus[cpu].core).collect();
    cores.sort_unstable();
    cores.dedup();
    SchedGroup {
        cpus: mask(cpus),
        balance_mask: mask(&group.balance_mask),
        first_word,
        end_word,
        weight: cpus.len() as u32,
        flags: group.child_flags.bits(),
        cores: cores.len() as u32,
        first_copy: 0,
        capacity: capacities().sum(),
        min_capacity: capacities().min().unwrap_or(0),
        max_capacity: capacities().max().unwrap_or(0),
        imbalance: 0,
        asym_prefer_cpu: most_preferred(state, cpus),
        next_update: 0,
    }
}

/// The first of the most preferred CPUs.
fn most_preferred(state: &State, cpus: &CpuSet) -> u32 {
    let priority = |cpu: usize| state.cpu[cpu].asym_priority;
    let better = |best, cpu| if priority(cpu) > priority(best) { cpu } else { best };
    cpus.iter().reduce(better).unwrap_or(0) as u32
}

fn fill_domains(state: &mut Placement, domains: &Domains, jiffies: u64) {
    for (cpu, chain) in domains.chains.iter().enumerate() {
        state.cpu[cpu].nr_domains = chain.len() as u16;
        for (level, &span_index) in chain.iter().enumerate() {
            let span = &domains.spans[span_index];
            let weight = span.weight() as u32;
            let first_group = state.span[span_index].first_group;
            let local_group = span.group_of(cpu).expect("a domain's groups cover its span");
            let domain = &mut state.domain[cpu][level];
            *domain = SchedDomain {
                last_balance: jiffies,
                last_decay_max_lb_cost: jiffies,
                ..SchedDomain::default()
            };
            domain.span = span_index as u32;
            domain.local_group = first_group + local_group as u32;
            domain.min_interval = weight;
            domain.max_interval = 2 * weight;
            domain.balance_interval = weight;
        }
    }
}

fn fill_llcs(state: &mut Placement, machine: &Machine, domains: &Domains) {
    let mut cluster_active = false;
    for cpu in machine.online().iter() {
        let llc = usize::from(machine.cpus[cpu].llc);
        let cpus = machine.cpus_where(|other| other.online && usize::from(other.llc) == llc);
        let has = |flag| move |&span: &usize| domains.spans[span].flags.contains(flag);
        let level = domains.chains[cpu].iter().rposition(has(DomainFlags::SHARE_LLC));
        cluster_active |= domains.chains[cpu].iter().any(has(DomainFlags::CLUSTER));
        let (first_word, end_word) = word_range(&cpus);
        if cpus.first() == Some(cpu) {
            share_lists(state, &cpus.iter().collect::<Vec<_>>());
        }
        state.llc[llc] = Llc {
            cpus: mask(&cpus),
            first_word,
            end_word,
            size: cpus.len() as u32,
            has_idle_cores: state.root.smt_active,
            nr_busy_cpus: 0,
            nr_idle_scan: cpus.len() as u32,
            imbalance_pct: level
                .map_or(0, |level| domains.spans[domains.chains[cpu][level]].imbalance_pct),
            domain_level: level.map_or(NR_LEVELS, |level| level as u32),
            bytes: machine.costs.llc_kib * 1024,
            ..Llc::default()
        };
        state.root.nr_llcs = state.root.nr_llcs.max(llc as u32 + 1);
    }
    state.root.cluster_active = cluster_active.into();
}
