//! lstopo synthetic strings: `pack:2 l3:8 core:8 pu:2`, each level with its count per object of the
//! level above.
//!
//! Taken from the string: packages, NUMA nodes (as a level `node:2` or attached, `[numa]`), caches,
//! cores, PUs, and the numbering of PUs (`indexes=`, as `lstopo --of synthetic` prints it). Other
//! levels only multiply. Without any NUMA node each package is one: hwloc itself would give the
//! whole machine a single node, which servers with several packages do not have.

use super::processor::Vendor;
use super::shape::{CAPACITY_SCALE, Identity, Place, Shape};
use crate::cpuset::CpuSet;
use crate::error::MachineError;
use crate::machine::Machine;

/// Reads a synthetic string.
pub(crate) fn parse(text: &str) -> Result<Machine, MachineError> {
    let error = |problem: String| MachineError::new(format!("synthetic machine `{text}`"), problem);
    let levels = levels(text).map_err(error)?;
    let shape = shape(&levels).map_err(error)?;
    let identity = Identity::borrowing_costs(text, "synthetic machine", Vendor::Unknown);
    shape.assemble(identity)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Package,
    Node,
    Cache(u32),
    Core,
    Pu,
    // These only multiply.
    Die,
    Group,
    InstructionCache,
}

struct Level<'a> {
    name: &'a str,
    kind: Kind,
    count: usize,
    /// NUMA nodes are attached to each object of this level.
    has_node: bool,
    attributes: &'a str,
}

fn levels(text: &str) -> Result<Vec<Level<'_>>, String> {
    let mut levels: Vec<Level> = Vec::new();
    for token in tokens(text)? {
        if let Some(attached) = token.strip_prefix('[') {
            attach(attached.trim_end_matches(']'), &mut levels)?;
        } else {
            levels.push(level(token)?);
        }
    }
    if let Some(twice) = (1..levels.len()).find(|at| is_repeated(&levels, *at)) {
        let name = levels[twice].name;
        return Err(format!("`{name}` comes twice, expected each level but `group` once"));
    }
    match levels.last() {
        Some(level) if level.kind == Kind::Pu => Ok(levels),
        _ => Err("must end with `pu:` and the number of threads per core".to_string()),
    }
}

/// Splits at white space outside of brackets.
fn tokens(text: &str) -> Result<Vec<&str>, String> {
    let mut depth = 0usize;
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1).ok_or("has an unmatched bracket")?,
            _ => {}
        }
    }
    if depth > 0 {
        return Err("has an unmatched bracket".to_string());
    }
    let separator = |character: char| {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        depth == 0 && character.is_whitespace()
    };
    Ok(text.split(separator).filter(|token| !token.is_empty()).collect())
}

/// hwloc takes no level twice either, but groups.
fn is_repeated(levels: &[Level], at: usize) -> bool {
    let level = &levels[at];
    level.kind != Kind::Group && levels[..at].iter().any(|other| other.kind == level.kind)
}

fn attach(attached: &str, levels: &mut [Level]) -> Result<(), String> {
    let name = attached.split('(').next().unwrap_or_default();
    match (kind(name), levels.last_mut()) {
        (Some(Kind::Node), Some(level)) => {
            level.has_node = true;
            Ok(())
        }
        (Some(Kind::Node), None) => Ok(()),
        _ => Err(format!("`[{attached}]` is not a NUMA node, such as `[numa]`")),
    }
}

fn level(token: &str) -> Result<Level<'_>, String> {
    let expected = || format!("`{token}` is not a level, expected TYPE:COUNT such as `l3:8`");
    let (name, rest) = token.split_once(':').ok_or_else(expected)?;
    let (count, attributes) = rest.split_once('(').unwrap_or((rest, ""));
    let kind = kind(name).ok_or_else(|| {
        format!("`{name}` is not a level, expected pack, node, die, group, l5 to l1, core or pu")
    })?;
    let digits = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    let count: usize = match digits {
        true => count.parse().map_err(|_| expected())?,
        false => return Err(expected()),
    };
    if !(1..=CpuSet::MAX_CPUS).contains(&count) {
        return Err(format!("`{token}`: the count must be 1 to {}", CpuSet::MAX_CPUS));
    }
    Ok(Level {
        name,
        kind,
        count,
        has_node: kind == Kind::Node,
        attributes: attributes.trim_end_matches(')'),
    })
}

fn kind(name: &str) -> Option<Kind> {
    let kind = match name.to_ascii_lowercase().as_str() {
        "pack" | "package" | "socket" => Kind::Package,
        "node" | "numa" | "numanode" => Kind::Node,
        "l1" | "l1d" | "l1cache" => Kind::Cache(1),
        "l2" | "l2cache" => Kind::Cache(2),
        "l3" | "l3cache" => Kind::Cache(3),
        "l4" | "l4cache" => Kind::Cache(4),
        "l5" | "l5cache" => Kind::Cache(5),
        "core" => Kind::Core,
        "pu" => Kind::Pu,
        "die" => Kind::Die,
        "group" => Kind::Group,
        "l1i" | "l1icache" => Kind::InstructionCache,
        _ => return None,
    };
    Some(kind)
}

fn shape(levels: &[Level]) -> Result<Shape, String> {
    let nr_cpus = levels
        .iter()
        .try_fold(1usize, |product, level| product.checked_mul(level.count))
        .filter(|product| *product <= CpuSet::MAX_CPUS)
        .ok_or_else(|| format!("has more than {} CPUs", CpuSet::MAX_CPUS))?;
    let position = |wanted: &dyn Fn(&Level) -> bool| levels.iter().rposition(wanted);
    let package = position(&|level| level.kind == Kind::Package);
    let node = position(&|level| level.has_node).or(package);
    let core = position(&|level| matches!(level.kind, Kind::Core)).unwrap_or(levels.len() - 1);
    let cache = |wanted: u32| position(&|level| level.kind == Kind::Cache(wanted));
    let llc = (1..=5).rev().find_map(cache);
    let cluster = cache(2);
    // How many PUs an object of a level has; the machine has them all.
    let weight = |level: Option<usize>| match level {
        Some(level) => levels[level + 1..].iter().map(|level| level.count).product(),
        None => nr_cpus,
    };
    let mut cpus = vec![None; nr_cpus];
    for (pu, cpu) in numbering(levels, nr_cpus)?.into_iter().enumerate() {
        let object = |level: Option<usize>| (pu / weight(level)) as u32;
        let known = |level: Option<usize>| level.map(|_| object(level));
        cpus[cpu] = Some(Place {
            core: object(Some(core)),
            cluster: known(cluster),
            llc: known(llc),
            cache: None,
            node: object(node),
            package: object(package),
            capacity: CAPACITY_SCALE,
            speed: None,
            priority: None,
        });
    }
    Ok(Shape { cpus, ..Shape::default() })
}

/// The CPU id of each PU in the order of the tree: `indexes=0,4,1,5` lists them, and
/// `indexes=STEP*COUNT:STEP*COUNT...` adds up ((pu / STEP) % COUNT) in mixed radix.
fn numbering(levels: &[Level], nr_cpus: usize) -> Result<Vec<usize>, String> {
    let attributes = levels.last().map_or("", |level| level.attributes);
    let indexes =
        attributes.split_whitespace().find_map(|attribute| attribute.strip_prefix("indexes="));
    let Some(indexes) = indexes else {
        return Ok((0..nr_cpus).collect());
    };
    let cpus = match indexes.contains('*') {
        true => interleaved(indexes, nr_cpus),
        false => indexes.split(',').map(|cpu| cpu.parse().ok()).collect(),
    };
    let cpus: Vec<usize> = cpus.unwrap_or_default();
    let mut seen = CpuSet::EMPTY;
    for cpu in cpus.iter().filter(|cpu| **cpu < nr_cpus) {
        seen.insert(*cpu);
    }
    match cpus.len() == nr_cpus && seen.len() == nr_cpus {
        true => Ok(cpus),
        false => Err(format!(
            "`indexes={indexes}` does not number the CPUs 0 to {} once each, \
             expected a list `0,4,1,5` or loops `2*128:1*2`",
            nr_cpus - 1
        )),
    }
}

fn interleaved(loops: &str, nr_cpus: usize) -> Option<Vec<usize>> {
    let mut cpus = vec![0usize; nr_cpus];
    let mut radix = 1usize;
    for part in loops.split(':') {
        let (step, count) = part.split_once('*')?;
        let step: usize = step.parse().ok().filter(|step| *step > 0)?;
        let count: usize = count.parse().ok().filter(|count| *count > 0)?;
        for (pu, cpu) in cpus.iter_mut().enumerate() {
            *cpu = cpu.checked_add((pu / step % count).checked_mul(radix)?)?;
        }
        radix = radix.checked_mul(count)?;
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> (usize, usize, usize, usize, usize) {
        let machine = parse(text).unwrap();
        (
            machine.nr_packages(),
            machine.nr_nodes(),
            machine.nr_llcs(),
            machine.nr_cores(),
            machine.online().len(),
        )
    }

    #[test]
    fn levels_and_nodes() {
        assert_eq!(numbers("pack:2 l3:8 core:8 pu:2"), (2, 2, 16, 128, 256));
        assert_eq!(numbers("node:4 l3:2 l2:3 core:1 pu:1"), (1, 4, 8, 24, 24));
        assert_eq!(
            numbers("Package:2 L3Cache:2(size=16777216) [NUMANode(memory=1)] Core:2 PU:2"),
            (2, 4, 4, 8, 16)
        );
        assert_eq!(numbers("pack:2 core:4 pu:1"), (2, 2, 8, 8, 8));
        assert_eq!(numbers("pack:1 l2:2 core:2 pu:1"), (1, 1, 2, 4, 4));
    }

    #[test]
    fn an_l2_below_the_l3_is_a_cluster() {
        let machine = parse("l3:1 l2:2 core:2 pu:1").unwrap();
        let clusters: Vec<u16> = machine.cpus.iter().map(|cpu| cpu.cluster).collect();
        assert_eq!(clusters, [0, 0, 1, 1]);
    }

    #[test]
    fn indexes_number_the_cpus() {
        for indexes in ["2*4:1*2", "0,4,1,5,2,6,3,7"] {
            let machine = parse(&format!("l3:2 core:2 pu:2(indexes={indexes})")).unwrap();
            let cores: Vec<u16> = machine.cpus.iter().map(|cpu| cpu.core).collect();
            assert_eq!(cores, [0, 1, 2, 3, 0, 1, 2, 3], "{indexes}");
        }
    }

    #[test]
    fn bad_strings_say_what_was_expected() {
        for (text, key) in [
            ("pack:2 core:4", "must end with `pu:`"),
            ("pack:0 pu:1", "`pack:0`: the count must be 1 to 1024"),
            ("pack:-2 pu:1", "expected TYPE:COUNT"),
            ("pack:2 pu", "`pu` is not a level"),
            ("cpu:2 pu:1", "`cpu` is not a level"),
            ("pack:64 core:64 pu:2", "more than 1024 CPUs"),
            ("pack:2 [gpu] pu:2", "is not a NUMA node"),
            ("pack:2) pu:2", "unmatched bracket"),
            ("core:2 pu:2(indexes=0,0,1,2)", "once each"),
            ("core:2 pu:2(indexes=core:pack)", "once each"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(key), "{message}");
        }
    }

    #[test]
    fn a_cache_over_two_nodes_is_cut() {
        assert_eq!(numbers("l3:1 node:2 core:2 pu:1"), (1, 2, 2, 4, 4));
    }

    #[test]
    fn a_level_given_twice_is_refused() {
        for text in ["pack:2 pack:2 pu:2", "l3:2 core:2 L3Cache:2 pu:1", "die:2 die:2 pu:1"] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains("comes twice"), "{message}");
        }
        assert_eq!(numbers("group:2 group:2 core:1 pu:1"), (1, 1, 4, 4, 4));
    }
}
