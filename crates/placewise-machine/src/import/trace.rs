//! The machine in the header of a trace: one comment line per CPU and NUMA node, the CPU vendor and
//! the tick rate.
//!
//! ```text
//! # cpu 0 core=0-1 llc=0-3 package=0
//! # node/node0 cpus=0-3 distance=10,32
//! # vendor: AuthenticAMD 25
//! # hz: 250
//! ```
//!
//! Lists of CPUs and distances are as sysfs shows them; a CPU without a line is offline. `llc` may
//! be missing, which makes the core the LLC, and so may `cluster`, `capacity` and `priority`.
//! Limits: a trace knows no costs, and offline CPUs above the highest online one are not written.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::cost_bounds::HZ;
use super::host;
use super::processor::{CpuVendor, RECLAIM_DISTANCE_ZEN, Vendor, ZEN_FAMILY};
use super::shape::{CAPACITY_SCALE, Distances, Figures, Identity, Place, Shape};
use crate::cpuset::CpuSet;
use crate::error::MachineError;
use crate::machine::Machine;

/// What a trace says about the machine it was recorded on. `Display` writes the header lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceTopology {
    /// The online CPUs by id.
    pub cpus: BTreeMap<usize, TraceCpu>,
    pub nodes: BTreeMap<u32, TraceNode>,
    pub vendor: Option<CpuVendor>,
    /// Scheduler ticks per second (CONFIG_HZ).
    pub hz: Option<u32>,
}

/// An online CPU, with the CPUs it shares things with, itself among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceCpu {
    pub core: CpuSet,
    /// None: the core.
    pub cluster: Option<CpuSet>,
    /// None: the core.
    pub llc: Option<CpuSet>,
    pub package: u32,
    /// None: that of the strongest CPUs, 1024.
    pub capacity: Option<u32>,
    /// None: minus the CPU's id.
    pub priority: Option<i32>,
}

/// An online NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceNode {
    pub cpus: CpuSet,
    /// To each online node, in the order of their ids.
    pub distances: Vec<u32>,
}

/// The machine that a trace was recorded on. It has the costs of a preset, as its description says.
pub fn from_trace(name: &str, topology: &TraceTopology) -> Result<Machine, MachineError> {
    let vendor = Vendor::of(topology.vendor.as_ref());
    let mut identity = Identity::borrowing_costs(name, "machine of the trace", vendor);
    identity.figures = Figures::Borrowed { hz: topology.hz };
    topology.shape()?.assemble(identity)
}

impl TraceTopology {
    /// Reads the running host, all but its tick rate.
    pub fn of_host() -> Result<Self, MachineError> {
        Ok(Self { vendor: host::vendor(), hz: None, ..Self::of(&host::load()?) })
    }

    /// A [`Machine`] has no vendor. One with the node reclaim distance of AMD Zen is written as the
    /// first Zen family, so that it is read back with the same.
    pub fn of(machine: &Machine) -> Self {
        let is_zen = machine.node_reclaim_distance == RECLAIM_DISTANCE_ZEN;
        let zen = || CpuVendor { id: "AuthenticAMD".into(), family: ZEN_FAMILY };
        let node = |(id, distances): (usize, &Vec<u32>)| {
            let cpus = machine.cpus_where(|cpu| usize::from(cpu.node) == id);
            (id as u32, TraceNode { cpus, distances: distances.clone() })
        };
        Self {
            cpus: machine.online().iter().map(|id| (id, TraceCpu::of(machine, id))).collect(),
            nodes: machine.node_distances.iter().enumerate().map(node).collect(),
            vendor: is_zen.then(zen),
            hz: Some(machine.costs.hz),
        }
    }

    /// Takes one line of a trace, and says whether it was one about the machine.
    pub fn line(&mut self, text: &str) -> Result<bool, MachineError> {
        let Some(text) = text.strip_prefix("# ") else { return Ok(false) };
        if let Some(rest) = numbered(text, "cpu ") {
            let (id, cpu) = parse_cpu(rest)?;
            insert(&mut self.cpus, id, cpu).map_err(|error| error.within(&format!("cpu {id}")))?;
        } else if let Some(rest) = text.strip_prefix("node/node") {
            let (id, node) = parse_node(rest)?;
            insert(&mut self.nodes, id, node)
                .map_err(|error| error.within(&format!("node {id}")))?;
        } else if let Some(vendor) = text.strip_prefix("vendor:") {
            self.vendor = Some(parse_vendor(vendor)?);
        } else if let Some(hz) = text.strip_prefix("hz:") {
            self.hz = Some(parse_hz(hz.trim())?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn shape(&self) -> Result<Shape, MachineError> {
        let nr_cpus = self.cpus.last_key_value().map_or(0, |(last, _)| last + 1);
        let mut shape = Shape { cpus: vec![None; nr_cpus], distances: self.distances()? };
        for (&id, cpu) in &self.cpus {
            self.check_lists(id, cpu)?;
            let llc = cpu.llc.as_ref().unwrap_or(&cpu.core);
            shape.cpus[id] = Some(Place {
                core: object(&cpu.core),
                cluster: cpu.cluster.as_ref().map(object),
                llc: Some(object(llc)),
                cache: None,
                node: self.node_of(id)?,
                package: cpu.package,
                capacity: cpu.capacity.unwrap_or(CAPACITY_SCALE),
                speed: None,
                priority: cpu.priority,
            });
        }
        Ok(shape)
    }

    /// A CPU shares a core, cluster or LLC with itself, and those it shares it with say the same.
    fn check_lists(&self, id: usize, cpu: &TraceCpu) -> Result<(), MachineError> {
        type List = fn(&TraceCpu) -> Option<CpuSet>;
        let lists: [(&str, List); 3] = [
            ("core", |cpu| Some(cpu.core)),
            ("cluster", |cpu| cpu.cluster),
            ("llc", |cpu| cpu.llc),
        ];
        for (name, list) in lists {
            let Some(cpus) = list(cpu) else { continue };
            let wrong =
                |problem: String| Err(MachineError::new(format!("cpu {id} {name}"), problem));
            if !cpus.contains(id) {
                return wrong(format!("the list {cpus} lacks the CPU itself"));
            }
            let mut sharers = cpus.iter().filter_map(|other| Some((other, self.cpus.get(&other)?)));
            if let Some((other, _)) = sharers.find(|(_, sharer)| list(sharer) != Some(cpus)) {
                return wrong(format!("the list {cpus} has CPU {other}, whose own list differs"));
            }
        }
        Ok(())
    }

    /// A kernel without NUMA support shows no nodes.
    fn node_of(&self, cpu: usize) -> Result<u32, MachineError> {
        let node = self.nodes.iter().find(|(_, node)| node.cpus.contains(cpu));
        match node {
            Some((id, _)) => Ok(*id),
            None if self.nodes.is_empty() => Ok(0),
            None => Err(MachineError::new(format!("cpu {cpu}"), "is in no `# node/node` line")),
        }
    }

    fn distances(&self) -> Result<Distances, MachineError> {
        let mut distances = Distances::new();
        for (from, node) in &self.nodes {
            if node.distances.len() != self.nodes.len() {
                let expected = format!("expected {}, one per node", self.nodes.len());
                let problem = format!("has {} distances, {expected}", node.distances.len());
                return Err(MachineError::new(format!("node {from}"), problem));
            }
            let cells = self.nodes.keys().zip(&node.distances);
            distances.extend(cells.map(|(to, distance)| ((*from, *to), *distance)));
        }
        Ok(distances)
    }
}

/// The first CPU of a list names the object that its CPUs share.
fn object(cpus: &CpuSet) -> u32 {
    cpus.first().map_or(0, |cpu| cpu as u32)
}

impl TraceCpu {
    fn of(machine: &Machine, id: usize) -> Self {
        let this = machine.cpus[id];
        let core = machine.cpus_where(|cpu| cpu.core == this.core);
        let cluster = machine.cpus_where(|cpu| cpu.cluster == this.cluster);
        Self {
            core,
            cluster: (cluster != core).then_some(cluster),
            llc: Some(machine.cpus_where(|cpu| cpu.llc == this.llc)),
            package: u32::from(this.package),
            capacity: (this.capacity != CAPACITY_SCALE).then_some(this.capacity),
            priority: (this.priority != -(id as i32)).then_some(this.priority),
        }
    }
}

impl fmt::Display for TraceTopology {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, cpu) in &self.cpus {
            writeln!(out, "# cpu {id}{cpu}")?;
        }
        for (id, node) in &self.nodes {
            let distances: Vec<String> = node.distances.iter().map(u32::to_string).collect();
            writeln!(out, "# node/node{id} cpus={} distance={}", node.cpus, distances.join(","))?;
        }
        if let Some(CpuVendor { id, family }) = &self.vendor {
            writeln!(out, "# vendor: {id} {family}")?;
        }
        match self.hz {
            Some(hz) => writeln!(out, "# hz: {hz}"),
            None => Ok(()),
        }
    }
}

/// The fields, each behind a space.
impl fmt::Display for TraceCpu {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, " core={}", self.core)?;
        write_field(out, "cluster", &self.cluster)?;
        write_field(out, "llc", &self.llc)?;
        write!(out, " package={}", self.package)?;
        write_field(out, "capacity", &self.capacity)?;
        write_field(out, "priority", &self.priority)
    }
}

fn write_field<T: fmt::Display>(
    out: &mut fmt::Formatter<'_>,
    name: &str,
    value: &Option<T>,
) -> fmt::Result {
    value.as_ref().map_or(Ok(()), |value| write!(out, " {name}={value}"))
}

/// `perf script` has comments such as `# cpu pmu capabilities`: only a number makes it ours.
fn numbered<'a>(text: &'a str, keyword: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(keyword)?;
    rest.starts_with(|first: char| first.is_ascii_digit()).then_some(rest)
}

/// `0 core=0-1 llc=0-3 package=0`
fn parse_cpu(text: &str) -> Result<(usize, TraceCpu), MachineError> {
    let (id, fields) = split_id(text);
    let id: usize = number("cpu", id)?;
    let within = |error: MachineError| error.within(&format!("cpu {id}"));
    if id >= CpuSet::MAX_CPUS {
        let problem = format!("at most {} CPUs can be modelled", CpuSet::MAX_CPUS);
        return Err(MachineError::new(format!("cpu {id}"), problem));
    }
    let known = ["core", "cluster", "llc", "package", "capacity", "priority"];
    let fields = Fields::parse(fields, &known).map_err(within)?;
    let cpu = || {
        Ok(TraceCpu {
            core: CpuSet::parse_list(fields.required("core")?)?,
            cluster: fields.get("cluster").map(CpuSet::parse_list).transpose()?,
            llc: fields.get("llc").map(CpuSet::parse_list).transpose()?,
            package: number("package", fields.required("package")?)?,
            capacity: fields.get("capacity").map(parse_capacity).transpose()?,
            priority: fields.get("priority").map(|text| number("priority", text)).transpose()?,
        })
    };
    Ok((id, cpu().map_err(within)?))
}

fn parse_capacity(text: &str) -> Result<u32, MachineError> {
    let capacity = number("capacity", text)?;
    if (1..=CAPACITY_SCALE).contains(&capacity) {
        return Ok(capacity);
    }
    let problem = format!("is {capacity}, expected 1 to {CAPACITY_SCALE}");
    Err(MachineError::new("capacity", problem))
}

/// `0 cpus=0-7 distance=10,32`
fn parse_node(text: &str) -> Result<(u32, TraceNode), MachineError> {
    let (id, fields) = split_id(text);
    let id: u32 = number("node", id)?;
    let node = || {
        let fields = Fields::parse(fields, &["cpus", "distance"])?;
        let distances = fields.required("distance")?.split(',');
        Ok(TraceNode {
            cpus: CpuSet::parse_list(fields.required("cpus")?)?,
            distances: distances.map(|text| number("distance", text)).collect::<Result<_, _>>()?,
        })
    };
    Ok((id, node().map_err(|error: MachineError| error.within(&format!("node {id}")))?))
}

/// `AuthenticAMD 25`
fn parse_vendor(text: &str) -> Result<CpuVendor, MachineError> {
    let expected = || MachineError::new("vendor", "expected a name and a number: AuthenticAMD 25");
    let (id, family) = text.trim().rsplit_once(' ').ok_or_else(expected)?;
    let family = family.parse().map_err(|_| expected())?;
    Ok(CpuVendor { id: id.trim().to_string(), family })
}

fn split_id(text: &str) -> (&str, &str) {
    text.trim().split_once(' ').unwrap_or((text.trim(), ""))
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T, MachineError> {
    text.parse().map_err(|_| MachineError::new(name, format!("`{text}` is not a number in range")))
}

fn parse_hz(text: &str) -> Result<u32, MachineError> {
    let hz: u32 = number("hz", text)?;
    if HZ.contains(&hz.into()) {
        return Ok(hz);
    }
    let problem = format!("is {hz}, expected {} to {}", HZ.start(), HZ.end());
    Err(MachineError::new("hz", problem))
}

/// A line that comes twice is a trace glued together.
fn insert<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V) -> Result<(), MachineError> {
    match map.insert(key, value) {
        None => Ok(()),
        Some(_) => Err(MachineError::new("line", "comes twice, expected one")),
    }
}

/// The `name=value` part of a line.
struct Fields<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Fields<'a> {
    fn parse(text: &'a str, known: &[&str]) -> Result<Self, MachineError> {
        let mut fields = BTreeMap::new();
        for field in text.split_whitespace() {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            if !known.contains(&name) {
                let problem = format!("unknown, expected {}", known.join(", "));
                return Err(MachineError::new(format!("`{name}`"), problem));
            }
            insert(&mut fields, name, value).map_err(|error| error.within(name))?;
        }
        Ok(Self(fields))
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    fn required(&self, name: &str) -> Result<&'a str, MachineError> {
        let missing = || MachineError::new(name, format!("missing, expected {name}=..."));
        self.get(name).ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::import::load::{load, presets};
    use crate::machine::Cpu;

    const PAIR: &str = "\
# cpu 0 core=0,2 llc=0,2 package=0
# cpu 1 core=1 llc=1,5 package=1
# cpu 2 core=0,2 llc=0,2 package=0
# cpu 5 core=5 llc=1,5 package=1
# node/node0 cpus=0,2 distance=10,17,32
# node/node1 cpus= distance=17,10,17
# node/node2 cpus=1,5 distance=32,17,10
# vendor: AuthenticAMD 25
# hz: 1000
";

    fn read(text: &str) -> Result<TraceTopology, MachineError> {
        let mut topology = TraceTopology::default();
        for line in text.lines() {
            assert!(topology.line(line)?, "{line}");
        }
        Ok(topology)
    }

    fn refused(text: &str) -> String {
        let machine = read(text).and_then(|topology| from_trace("trace", &topology));
        machine.unwrap_err().to_string()
    }

    /// Offline CPUs above the highest online one are not written.
    fn cpus(machine: &Machine) -> &[Cpu] {
        &machine.cpus[..=machine.online().last().unwrap()]
    }

    #[test]
    fn a_header_makes_a_machine() {
        let machine = from_trace("trace", &read(PAIR).unwrap()).unwrap();
        assert_eq!(machine.online().to_string(), "0-2,5");
        assert_eq!((machine.nr_cores(), machine.nr_llcs(), machine.nr_packages()), (3, 2, 2));
        assert_eq!(machine.cpus[5].llc, machine.cpus[1].llc);
        assert_eq!(machine.node_distances, [[10, 32], [32, 10]]);
        assert_eq!(machine.node_reclaim_distance, 32);
        assert_eq!(machine.costs.hz, 1000);
        assert!(machine.description.contains("costs of zen3-2s-nps1"));
    }

    #[test]
    fn without_vendor_hz_llc_and_nodes() {
        let topology = read("# cpu 0 core=0-1 package=0\n# cpu 1 core=0-1 package=0").unwrap();
        let machine = from_trace("trace", &topology).unwrap();
        assert_eq!((machine.nr_cores(), machine.nr_llcs(), machine.nr_nodes()), (1, 1, 1));
        assert_eq!(machine.node_reclaim_distance, 30);
        assert_eq!(machine.costs, load("uma-8").unwrap().costs);
    }

    #[test]
    fn an_llc_over_two_nodes_is_cut() {
        let text = "\
# cpu 0 core=0 llc=0-1 package=0
# cpu 1 core=1 llc=0-1 package=0
# node/node0 cpus=0 distance=10,20
# node/node1 cpus=1 distance=20,10
";
        for vendor in ["", "# vendor: GenuineIntel 6"] {
            let topology = read(&format!("{text}{vendor}")).unwrap();
            assert_eq!(from_trace("trace", &topology).unwrap().nr_llcs(), 2);
        }
    }

    #[test]
    fn every_preset_and_the_host_come_back() {
        let presets = presets().into_iter().map(|preset| load(preset.name).unwrap());
        for machine in presets.chain([load("host").unwrap()]) {
            let topology = TraceTopology::of(&machine);
            let again = read(&topology.to_string()).unwrap();
            assert_eq!(again, topology, "{}", machine.name);
            let back = from_trace(&machine.name, &again).unwrap();
            // How fast a CPU is, the trace itself shows; what of a cache is split, no kernel knows.
            let told = |cpu: &Cpu| Cpu { speed: cpu.capacity, cache: cpu.llc, ..*cpu };
            let expected: Vec<Cpu> = cpus(&machine).iter().map(told).collect();
            assert_eq!(back.cpus, expected, "{}", machine.name);
            assert_eq!(back.node_distances, machine.node_distances);
            assert_eq!(back.node_reclaim_distance, machine.node_reclaim_distance);
            assert_eq!(back.costs.hz, machine.costs.hz);
        }
    }

    #[test]
    fn the_host_is_written_with_its_own_vendor() {
        let host = load("host").unwrap();
        let topology = TraceTopology::of_host().unwrap();
        let back = from_trace("host", &topology).unwrap();
        assert_eq!(back.cpus, cpus(&host));
        assert_eq!(back.node_reclaim_distance, host.node_reclaim_distance);
        assert_eq!(back.costs, host.costs);
    }

    #[test]
    fn lines_of_others_are_left_alone() {
        let mut topology = TraceTopology::default();
        for line in ["# tracer: nop", "# cpu pmu capabilities: branches=32", "#", "cpu 0 core=0"] {
            assert_eq!(topology.line(line), Ok(false), "{line}");
        }
        assert_eq!(topology, TraceTopology::default());
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, expected) in [
            ("# cpu 0 llc=0 package=0", "cpu 0: core: missing"),
            ("# cpu 0 core=x package=0", "cpu 0: CPU list `x`"),
            ("# cpu 0 core=0 package=-1", "cpu 0: package: `-1` is not a number"),
            ("# cpu 0 core=0 package=0 size=1", "cpu 0: `size`: unknown, expected core, cluster"),
            ("# cpu 0 core=0 package=0 capacity=0", "capacity: is 0, expected 1 to 1024"),
            ("# cpu 0 core=0 core=0 package=0", "cpu 0: core: line: comes twice"),
            ("# cpu 0 core=1 package=0", "cpu 0 core: the list 1 lacks the CPU itself"),
            (
                "# cpu 0 core=0-1 package=0\n# cpu 1 core=1 package=0",
                "cpu 0 core: the list 0-1 has CPU 1, whose own list differs",
            ),
            ("# cpu 1024 core=0 package=0", "at most 1024 CPUs"),
            ("# cpu 0 core=0 package=0\n# cpu 0 core=0 package=0", "cpu 0: line: comes twice"),
            ("# cpu 0 core=0 package=0\n# node/node0 cpus=1 distance=10", "is in no `# node/node`"),
            ("# cpu 0 core=0 package=0\n# node/node0 cpus=0 distance=10,20", "has 2 distances"),
            ("# node/nodeX cpus=0 distance=10", "node: `X` is not a number"),
            ("# vendor: AMD", "vendor: expected a name and a number"),
            ("# hz: 0", "hz: is 0, expected 100 to 1000"),
            ("# hz: 4000000000", "hz: is 4000000000, expected 100 to 1000"),
            ("# hz: 250", "has no online CPU"),
        ] {
            let message = refused(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            line in "# (cpu |node/node|vendor:|hz:)[0-9a-z=, -]{0,30}",
            more in "# cpu [01] core=[01,-]{1,3} llc=[01,-]{1,3} package=[01]",
        ) {
            let mut topology = TraceTopology::default();
            let _ = topology.line(&line);
            let _ = topology.line(&more);
            let _ = from_trace("trace", &topology);
        }
    }
}
