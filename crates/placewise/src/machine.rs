//! `placewise machine`: the presets, and what Placewise makes of a machine: its shape, the sched
//! domains a kernel builds on it, and its cost figures with their sources. What this host's costs are
//! is measured by [`measure`], and what they are worth by [`check`].

mod check;
mod costs;
mod measure;

use std::io::{self, Write};

use clap::{Subcommand, ValueEnum};
use placewise_machine::domains::{self, DomainRules, DomainSpan, Domains, Level};
use placewise_machine::{Machine, load, presets};
use placewise_policy::Policy;
use placewise_policy::topology::domain_rules;
use serde::Serialize;
use serde_json::Value;

use self::costs::costs_with_sources;
use crate::report::foreign::visible;
use crate::report::json;
use crate::report::terminal::{empty_bare_table, fitting};

const EXAMPLE: &str = "\
Examples:
  placewise machine show zen3-2s-nps1
  placewise machine show host --kernel v6.12 --costs
  placewise machine show 'pack:2 l3:8 core:8 pu:2' --format dot | dot -Tsvg
  placewise machine measure -o mine.toml";

/// Show machines: shape, sched domains, costs; measure this host's
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct MachineArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List the presets
    List,
    /// Show a machine
    Show(ShowArgs),
    Measure(measure::MeasureArgs),
    Check(check::CheckArgs),
}

#[derive(clap::Args)]
struct ShowArgs {
    /// Preset, `host`, hwloc XML file, lstopo synthetic string or TOML file
    machine: String,

    /// Kernel that builds the sched domains
    #[arg(long, value_name = "KERNEL", default_value = "v6.0")]
    kernel: String,

    /// How to print the machine
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Add the cost figures and their sources to the table
    #[arg(long)]
    costs: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For the terminal
    Table,
    /// Everything, for programs
    Json,
    /// The tree of sched domains, for graphviz
    Dot,
}

pub fn run(args: &MachineArgs) -> anyhow::Result<()> {
    let text = match &args.verb {
        Verb::List => list(),
        Verb::Show(args) => show(args)?,
        Verb::Measure(args) => return measure::run(args),
        Verb::Check(args) => return check::run(args),
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn list() -> String {
    let mut table = fitting(empty_bare_table());
    for preset in presets() {
        table.add_row([preset.name, &preset.description]);
    }
    table.trimmed() + "\n"
}

fn show(args: &ShowArgs) -> anyhow::Result<String> {
    let machine = load(&args.machine)?;
    let domains = domains::build(&machine, &rules(&args.kernel)?)?;
    match args.format {
        Format::Table => Ok(table(&machine, &domains, args)),
        Format::Json => in_json(&machine, &domains, &args.kernel),
        Format::Dot => Ok(dot(&machine, &domains)),
    }
}

/// What a kernel's profile says about sched domains.
fn rules(kernel: &str) -> anyhow::Result<DomainRules> {
    Ok(domain_rules(&Policy::parse(kernel, "baseline")?.profile))
}

fn table(machine: &Machine, domains: &Domains, args: &ShowArgs) -> String {
    let what = visible(&format!("{}: {}", machine.name, machine.description));
    let costs = visible(&machine.costs_of);
    let mut text = format!("{what}\n{}\ncosts: {costs}\n", shape(machine));
    if machine.nr_nodes() > 1 {
        text += &format!("\nNUMA distances\n{}", distance_table(machine));
        text += &format!("node_reclaim_distance {}\n", machine.node_reclaim_distance);
    }
    text += &format!("\nsched domains of {}\n{}", args.kernel, domain_table(domains));
    text += &format!("\nflags\n{}", flag_table(domains));
    if args.costs {
        text += &format!("\ncosts\n{}", cost_table(machine));
    }
    text
}

fn shape(machine: &Machine) -> String {
    let counts = [
        ("packages", machine.nr_packages()),
        ("NUMA nodes", machine.nr_nodes()),
        ("LLCs", machine.nr_llcs()),
        ("cores", machine.nr_cores()),
        ("CPUs", machine.online().len()),
    ];
    let counts: Vec<String> = counts.iter().map(|(what, n)| format!("{what} {n}")).collect();
    format!("{}; online {}", counts.join(", "), machine.online())
}

fn distance_table(machine: &Machine) -> String {
    let mut table = fitting(empty_bare_table());
    for (node, row) in machine.node_distances.iter().enumerate() {
        let cpus = machine.cpus_where(|cpu| usize::from(cpu.node) == node);
        let distances = row.iter().map(u32::to_string);
        table.add_row([format!("node {node}"), cpus.to_string()].into_iter().chain(distances));
    }
    table.trimmed() + "\n"
}

/// Domains that differ in nothing but the CPUs they span.
struct Alike<'a> {
    first: &'a DomainSpan,
    count: usize,
}

fn alike(domains: &Domains) -> Vec<Alike<'_>> {
    let mut kinds: Vec<Alike> = Vec::new();
    for domain in &domains.spans {
        let key = |domain: &DomainSpan| {
            let limits = (domain.imbalance_pct, domain.cache_nice_tries, domain.imb_numa_nr);
            (domain.level, domain.flags, limits, groups(domain))
        };
        match kinds.iter_mut().find(|kind| key(kind.first) == key(domain)) {
            Some(kind) => kind.count += 1,
            None => kinds.push(Alike { first: domain, count: 1 }),
        }
    }
    kinds.sort_by_key(|kind| level_order(&kind.first.level));
    kinds
}

fn level_order(level: &Level) -> (u32, u32) {
    match level {
        Level::Smt => (0, 0),
        Level::Cls => (1, 0),
        Level::Mc => (2, 0),
        Level::Die | Level::Pkg => (3, 0),
        Level::Node => (4, 0),
        Level::Numa(distance) => (5, *distance),
    }
}

/// `8 of 16`; groups of several sizes are listed, largest last: `1 of 8, 7 of 16`.
fn groups(domain: &DomainSpan) -> String {
    let mut weights: Vec<usize> = domain.groups.iter().map(|group| group.cpus.len()).collect();
    weights.sort_unstable();
    let runs = weights.chunk_by(|a, b| a == b);
    let sizes: Vec<String> = runs.map(|run| format!("{} of {}", run.len(), run[0])).collect();
    sizes.join(", ")
}

fn level_name(level: &Level) -> String {
    match level {
        Level::Numa(distance) => format!("{level} {distance}"),
        level => level.to_string(),
    }
}

fn domain_table(domains: &Domains) -> String {
    let mut table = fitting(empty_bare_table());
    table.set_header([
        "level",
        "domains",
        "CPUs",
        "groups",
        "imbalance_pct",
        "cache_nice_tries",
        "imb_numa_nr",
        "first span",
    ]);
    table.align_right([1, 2, 4, 5, 6]);
    for Alike { first, count } in alike(domains) {
        table.add_row([
            level_name(&first.level),
            count.to_string(),
            first.weight().to_string(),
            groups(first),
            first.imbalance_pct.to_string(),
            first.cache_nice_tries.to_string(),
            first.imb_numa_nr.to_string(),
            first.cpus.to_string(),
        ]);
    }
    table.trimmed() + "\n"
}

fn flag_table(domains: &Domains) -> String {
    let mut table = fitting(empty_bare_table());
    let mut rows: Vec<[String; 2]> = Vec::new();
    for Alike { first, .. } in alike(domains) {
        let row = [level_name(&first.level), flags(first).join(" ")];
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows.into_iter().for_each(|row| table.add_row(row));
    table.trimmed() + "\n"
}

fn flags(domain: &DomainSpan) -> Vec<&'static str> {
    domain.flags.iter_names().map(|(name, _)| name).collect()
}

fn cost_table(machine: &Machine) -> String {
    let mut table = fitting(empty_bare_table());
    for figure in machine.cost_figures() {
        // Idle states below each other.
        let value = figure.value.replace("}, {", "},\n {");
        let (first, rest) = value.split_once('\n').unwrap_or((&value, ""));
        table.add_row([&figure.name, first, figure.source]);
        rest.lines().for_each(|line| table.add_row(["", line, ""]));
    }
    table.trimmed() + "\n"
}

#[derive(Serialize)]
struct MachineReport<'a> {
    name: &'a str,
    description: &'a str,
    packages: usize,
    nodes: usize,
    llcs: usize,
    cores: usize,
    cpus: Vec<CpuReport>,
    node_distances: &'a [Vec<u32>],
    node_reclaim_distance: u32,
    costs_of: &'a str,
    kernel: &'a str,
    domains: Vec<DomainReport>,
    costs: serde_json::Map<String, Value>,
}

/// An online CPU.
#[derive(Serialize)]
struct CpuReport {
    id: usize,
    core: u16,
    cluster: u16,
    llc: u16,
    node: u16,
    package: u16,
    capacity: u32,
    speed: u32,
    priority: i32,
}

#[derive(Serialize)]
struct DomainReport {
    level: &'static str,
    /// Of a NUMA level.
    distance: Option<u32>,
    span: String,
    groups: Vec<String>,
    flags: Vec<&'static str>,
    imbalance_pct: u32,
    cache_nice_tries: u32,
    imb_numa_nr: u32,
}

fn in_json(machine: &Machine, domains: &Domains, kernel: &str) -> anyhow::Result<String> {
    let report = MachineReport {
        name: &machine.name,
        description: &machine.description,
        packages: machine.nr_packages(),
        nodes: machine.nr_nodes(),
        llcs: machine.nr_llcs(),
        cores: machine.nr_cores(),
        cpus: machine.online().iter().map(|id| cpu_report(machine, id)).collect(),
        node_distances: &machine.node_distances,
        node_reclaim_distance: machine.node_reclaim_distance,
        costs_of: &machine.costs_of,
        kernel,
        domains: domains.spans.iter().map(domain_report).collect(),
        costs: costs_with_sources(machine)?,
    };
    json::render(&report)
}

fn cpu_report(machine: &Machine, id: usize) -> CpuReport {
    let cpu = &machine.cpus[id];
    CpuReport {
        id,
        core: cpu.core,
        cluster: cpu.cluster,
        llc: cpu.llc,
        node: cpu.node,
        package: cpu.package,
        capacity: cpu.capacity,
        speed: cpu.speed,
        priority: cpu.priority,
    }
}

fn domain_report(domain: &DomainSpan) -> DomainReport {
    DomainReport {
        level: domain.level.name(),
        distance: match domain.level {
            Level::Numa(distance) => Some(distance),
            _ => None,
        },
        span: domain.cpus.to_string(),
        groups: domain.groups.iter().map(|group| group.cpus.to_string()).collect(),
        flags: flags(domain),
        imbalance_pct: domain.imbalance_pct,
        cache_nice_tries: domain.cache_nice_tries,
        imb_numa_nr: domain.imb_numa_nr,
    }
}

fn dot(machine: &Machine, domains: &Domains) -> String {
    let mut text = format!("digraph {:?} {{\n  rankdir=LR;\n  node [shape=box];\n", machine.name);
    for (index, domain) in domains.spans.iter().enumerate() {
        let level = level_name(&domain.level);
        text += &format!("  d{index} [label=\"{level}\\n{}\"];\n", domain.cpus);
    }
    let edges = domains.chains.iter().flat_map(|chain| chain.windows(2));
    let edges: std::collections::BTreeSet<_> = edges.map(|edge| (edge[1], edge[0])).collect();
    for (parent, child) in edges {
        text += &format!("  d{parent} -> d{child};\n");
    }
    text + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(machine: &str, kernel: &str, format: Format, costs: bool) -> String {
        let (machine, kernel) = (machine.to_owned(), kernel.to_owned());
        show(&ShowArgs { machine, kernel, format, costs }).unwrap()
    }

    fn row<'a>(text: &'a str, level: &str) -> Vec<&'a str> {
        let mut rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.find(|row| row.first() == Some(&level) && row.len() > 2).unwrap()
    }

    #[test]
    fn the_table_counts_the_domains_of_each_level() {
        let text = shown("zen3-2s-nps1", "v6.0", Format::Table, false);
        assert!(text.contains("packages 2, NUMA nodes 2, LLCs 16, cores 128, CPUs 256"));
        let mc = ["MC", "16", "16", "8", "of", "2", "117", "1", "0", "0-7,128-135"];
        assert_eq!(row(&text, "MC"), mc);
        let numa = ["NUMA", "32", "1", "256", "2", "of", "128", "117", "2", "8", "0-255"];
        assert_eq!(row(&text, "NUMA"), numa);
        assert!(!text.contains("assumed"));
    }

    #[test]
    fn the_kernel_decides_names_and_constants() {
        let of = |kernel: &str, level: &str| {
            let text = shown("zen3-2s-nps1", kernel, Format::Table, false);
            let row = row(&text, level);
            (row[6].to_owned(), row[8].to_owned())
        };
        // imbalance_pct, imb_numa_nr
        assert_eq!(of("v5.3", "DIE"), ("125".to_owned(), "0".to_owned()));
        assert_eq!(of("v5.10", "DIE"), ("117".to_owned(), "0".to_owned()));
        assert_eq!(of("v6.0", "DIE"), ("117".to_owned(), "8".to_owned()));
        assert_eq!(of("v6.12", "PKG"), ("117".to_owned(), "8".to_owned()));
    }

    #[test]
    fn costs_are_shown_with_their_source() {
        let text = shown("icx-2s", "v6.0", Format::Table, true);
        let line = text.lines().find(|line| line.contains("cache_line_ns")).unwrap();
        assert!(line.contains("llc = 51") && line.contains("published: core-to-core"), "{line}");
    }

    #[test]
    fn json_has_domains_and_costs() {
        let text = shown("arm64-8", "v6.0", Format::Json, false);
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["domains"][0]["span"], "0-3");
        assert_eq!(report["domains"][1]["groups"], serde_json::json!(["0-3", "4-7"]));
        assert_eq!(report["costs"]["hz"]["value"], 250);
    }

    #[test]
    fn dot_draws_each_domain_below_its_parent() {
        let text = shown("arm64-8", "v6.0", Format::Dot, false);
        assert!(text.contains("d1 [label=\"DIE\\n0-7\"]"), "{text}");
        assert_eq!(text.matches("d1 ->").count(), 2);
    }

    #[test]
    fn unknown_kernels_are_refused() {
        assert!(rules("v9.9").is_err());
    }
}
