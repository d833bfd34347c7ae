//! hwloc XML dumps of version 2 and 3 (`lstopo --of xml`).
//!
//! The LLC of a CPU is the cache of the highest level above it. The NUMA node of a CPU is the one with the smallest CPU set that holds it, of
//! equal ones the lowest: nodes of memory only are attached to CPUs of another node. Distances are
//! those of kind "latency"; a dump without them gets 10 and 20. A single NUMA node over several
//! packages is believed only if an operating system reported it: hwloc makes one up where it read
//! nothing but the CPUID instruction or a synthetic string, and then each package is a node.
//!
//! A CPU of the complete set that has no PU object is offline or was not allowed to lstopo, which asks
//! for a dump of all. It was not allowed if an object below the machine still counts it, since hwloc
//! knows nothing of where an offline CPU is, or if its node is missing too.

use std::collections::BTreeMap;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::cpu_kinds::{self, CpuKind};
use super::processor::Vendor;
use super::shape::{CAPACITY_SCALE, Distances, Identity, Place, Shape};
use crate::cpuset::CpuSet;
use crate::error::MachineError;
use crate::machine::Machine;

/// Reads an hwloc dump.
pub(crate) fn parse(name: &str, text: &str) -> Result<Machine, MachineError> {
    let dump = Dump::read(text)?;
    dump.check_allowed()?;
    let vendor = dump.vendor();
    let mut shape = dump.shape()?;
    let mut description = match dump.model.is_empty() {
        true => "hwloc dump: unknown CPU model".to_string(),
        false => format!("hwloc dump: {}", dump.model),
    };
    let remarks = [
        cpu_kinds::apply(&dump.kinds, vendor, &mut shape),
        dump.missing_nodes(),
        dump.missing_distances(&shape),
        dump.missing_cpus(),
    ];
    for remark in remarks.into_iter().flatten() {
        description += &format!("; {remark}");
    }
    shape.assemble(Identity::borrowing_costs(name, &description, vendor))
}

/// What a dump says, as far as it matters here.
#[derive(Default)]
struct Dump {
    /// The CPUs of the machine, online or not, and its NUMA nodes.
    complete: CpuSet,
    complete_nodes: CpuSet,
    /// The CPUs of the objects in the machine, online or not.
    known: CpuSet,
    /// What lstopo was allowed to use; None: the dump does not say.
    allowed: Option<CpuSet>,
    pus: BTreeMap<usize, Ancestors>,
    nodes: Vec<(u32, CpuSet)>,
    distances: Distances,
    kinds: Vec<CpuKind>,
    backends: Vec<String>,
    architecture: String,
    vendor_id: String,
    vendor_family: u32,
    model: String,
}

/// The objects around one object, by serial number in the dump.
#[derive(Clone, Copy, Default)]
struct Ancestors {
    package: Option<u32>,
    /// An arm64 cluster.
    cluster: Option<u32>,
    core: Option<u32>,
    /// Indexed by cache level.
    caches: [Option<u32>; 6],
}

/// A `distances2` element while it is read.
#[derive(Default)]
struct DistanceElement {
    wanted: bool,
    indexes: Vec<u32>,
    values: Vec<u32>,
}

/// hwloc's HWLOC_DISTANCES_KIND_VALUE_LATENCY (HWLOC_DISTANCES_KIND_MEANS_LATENCY before 3.0).
const KIND_LATENCY: u32 = 4;

impl Dump {
    fn read(text: &str) -> Result<Self, MachineError> {
        let mut reader = DumpReader::default();
        let mut xml = Reader::from_str(text);
        loop {
            let at = xml.buffer_position();
            let event = xml.read_event().map_err(|error| {
                MachineError::new(line_of(text, at), format!("is not XML: {error}"))
            })?;
            let read = match &event {
                Event::Start(element) => reader.start(element, false),
                Event::Empty(element) => reader.start(element, true),
                Event::End(element) => reader.end(element.local_name().as_ref()),
                Event::Text(text) => reader.text(text),
                Event::Eof => break,
                _ => Ok(()),
            };
            read.map_err(|problem| MachineError::new(line_of(text, at), problem))?;
        }
        if reader.depth > 0 {
            let problem = "the dump ends before </topology>, it is truncated; make it again with \
                           `lstopo --of xml FILE.xml`";
            return Err(MachineError::new(line_of(text, text.len() as u64), problem));
        }
        match reader.is_topology {
            true => Ok(reader.dump),
            false => Err(MachineError::new(
                "hwloc dump",
                "has no <topology> element; make one with `lstopo --of xml FILE.xml`",
            )),
        }
    }

    fn vendor(&self) -> Vendor {
        let sources = [
            Vendor::of_architecture(&self.architecture),
            Vendor::new(&self.vendor_id, self.vendor_family),
            Vendor::of_model(&self.model),
        ];
        let mut known = sources.into_iter().filter(|vendor| *vendor != Vendor::Unknown);
        known.next().unwrap_or(Vendor::Unknown)
    }

    fn online(&self) -> CpuSet {
        self.pus.keys().copied().collect()
    }

    /// CPUs that lstopo was not allowed to use are online, but the dump does not say where they are.
    fn check_allowed(&self) -> Result<(), MachineError> {
        let online = self.online();
        let shows_all = self.allowed.is_some_and(|allowed| !online.is_subset(&allowed));
        let nodes: CpuSet = self.nodes.iter().map(|(node, _)| *node as usize).collect();
        let lacks_nodes = !self.complete_nodes.is_subset(&nodes);
        let missing = match lacks_nodes {
            true => self.complete - online,
            false => self.known - online,
        };
        if missing.is_empty() || shows_all {
            return Ok(());
        }
        let problem =
            format!("lacks CPUs {missing}, which lstopo was not allowed to use; {REMEDY}");
        Err(MachineError::new("hwloc dump", problem))
    }

    fn missing_cpus(&self) -> Option<String> {
        let missing = self.complete - self.online();
        let shows_all = self.allowed.is_some_and(|allowed| !self.online().is_subset(&allowed));
        let hint = match shows_all {
            true => String::new(),
            false => format!(" (if they are not, {REMEDY})"),
        };
        (!missing.is_empty()).then(|| format!("CPUs {missing} taken as offline{hint}"))
    }

    fn missing_nodes(&self) -> Option<String> {
        let remark = "the dump tells no NUMA nodes, taken as one per package";
        self.has_made_up_node().then(|| remark.to_string())
    }

    fn missing_distances(&self, shape: &Shape) -> Option<String> {
        let missing = self.distances.is_empty() && shape.places().any(|place| place.node > 0);
        missing.then(|| "the dump tells no NUMA distances, taken as 20".to_string())
    }

    fn shape(&self) -> Result<Shape, MachineError> {
        let highest_pu = self.pus.keys().next_back().copied();
        let highest = self.complete.last().max(highest_pu);
        let mut cpus = vec![None; highest.map_or(0, |cpu| cpu + 1)];
        for (cpu, ancestors) in &self.pus {
            cpus[*cpu] = Some(self.place(*cpu, ancestors)?);
        }
        Ok(Shape { cpus, distances: self.distances.clone() })
    }

    fn place(&self, cpu: usize, ancestors: &Ancestors) -> Result<Place, MachineError> {
        let package = ancestors.package.unwrap_or(0);
        // Object numbers start at 1, CPUs without an object get numbers of their own above.
        let alone = u32::MAX - cpu as u32;
        let core = ancestors.core.unwrap_or(alone);
        let llc = ancestors.caches.iter().rev().find_map(|cache| *cache);
        let cluster = ancestors.cluster.or(ancestors.caches[2]);
        Ok(Place {
            core,
            cluster,
            llc,
            cache: None,
            node: match self.has_made_up_node() {
                true => package,
                false => self.node_of(cpu)?,
            },
            package,
            capacity: CAPACITY_SCALE,
            speed: None,
            priority: None,
        })
    }

    /// A kernel without NUMA support has no nodes, one with it has one for each CPU.
    fn node_of(&self, cpu: usize) -> Result<u32, MachineError> {
        let around = self.nodes.iter().filter(|(_, cpus)| cpus.contains(cpu));
        let smallest = around.min_by_key(|(node, cpus)| (cpus.len(), *node));
        match smallest {
            Some((node, _)) => Ok(*node),
            None if self.nodes.is_empty() => Ok(0),
            None => {
                let problem = format!("is in no NUMA node of the dump; {REMEDY}");
                Err(MachineError::new(format!("CPU {cpu}"), problem))
            }
        }
    }

    fn has_made_up_node(&self) -> bool {
        let blind = |backend: &String| backend == "x86" || backend == "Synthetic";
        let from_system = !self.backends.iter().any(blind) || !self.backends.iter().all(blind);
        !from_system && self.nodes.len() <= 1 && self.distances.is_empty()
    }
}

#[derive(Default)]
struct DumpReader {
    dump: Dump,
    is_topology: bool,
    /// How many elements are open.
    depth: usize,
    /// One entry per open `object`.
    open: Vec<Ancestors>,
    nr_objects: u32,
    in_cpukind: bool,
    distances: Option<DistanceElement>,
    /// The `indexes` or `u64values` element whose text is awaited.
    numbers: Option<Numbers>,
}

#[derive(Clone, Copy)]
enum Numbers {
    Indexes,
    Values,
}

impl DumpReader {
    fn start(&mut self, element: &BytesStart, is_empty: bool) -> Result<(), String> {
        let attributes = Attributes::read(element)?;
        self.depth += usize::from(!is_empty);
        match element.local_name().as_ref() {
            "topology" => self.topology(&attributes)?,
            "object" => self.object(&attributes, is_empty)?,
            "info" => self.info(&attributes)?,
            "cpukind" if !is_empty => {
                let cpus = attributes.cpuset("cpuset")?.unwrap_or_default();
                self.dump.kinds.push(CpuKind { cpus, ..CpuKind::default() });
                self.in_cpukind = true;
            }
            "distances2" if !is_empty => self.distances = Some(DistanceElement::new(&attributes)),
            "indexes" if !is_empty => self.numbers = Some(Numbers::Indexes),
            "u64values" if !is_empty => self.numbers = Some(Numbers::Values),
            _ => {}
        }
        Ok(())
    }

    fn topology(&mut self, attributes: &Attributes) -> Result<(), String> {
        let version = attributes.get("version").unwrap_or("1");
        if !version.starts_with("2.") && !version.starts_with("3.") {
            return Err(format!(
                "is an hwloc dump of version {version}, expected 2 or 3; export it again with a \
                 newer lstopo"
            ));
        }
        self.is_topology = true;
        Ok(())
    }

    fn object(&mut self, attributes: &Attributes, is_empty: bool) -> Result<(), String> {
        self.nr_objects += 1;
        let mut ancestors = self.open.last().copied().unwrap_or_default();
        let number = Some(self.nr_objects);
        let complete = attributes.cpuset("complete_cpuset")?.unwrap_or_default();
        let kind = attributes.get("type").unwrap_or_default();
        if kind != "Machine" {
            self.dump.known |= complete;
        }
        match kind {
            "Machine" => {
                self.dump.complete = complete;
                self.dump.allowed = attributes.cpuset("allowed_cpuset")?;
                let nodes = attributes.cpuset("complete_nodeset")?;
                self.dump.complete_nodes = nodes.unwrap_or_default();
            }
            "Package" => ancestors.package = number,
            "Core" => ancestors.core = number,
            "Group" if attributes.get("subtype") == Some("Cluster") => ancestors.cluster = number,
            "L1Cache" => ancestors.caches[1] = number,
            "L2Cache" => ancestors.caches[2] = number,
            "L3Cache" => ancestors.caches[3] = number,
            "L4Cache" => ancestors.caches[4] = number,
            "L5Cache" => ancestors.caches[5] = number,
            "NUMANode" => {
                let cpus = attributes.cpuset("cpuset")?.unwrap_or_default();
                self.dump.nodes.push((attributes.number("os_index")?, cpus));
            }
            "PU" => self.pu(attributes, &ancestors)?,
            _ => {}
        }
        if !is_empty {
            self.open.push(ancestors);
        }
        Ok(())
    }

    fn pu(&mut self, attributes: &Attributes, ancestors: &Ancestors) -> Result<(), String> {
        let cpu = attributes.number("os_index")? as usize;
        if cpu >= CpuSet::MAX_CPUS {
            let highest = CpuSet::MAX_CPUS - 1;
            return Err(format!("names CPU {cpu}, at most {highest} can be modelled"));
        }
        match self.dump.pus.insert(cpu, *ancestors) {
            None => Ok(()),
            Some(_) => Err(format!("names CPU {cpu} a second time")),
        }
    }

    fn info(&mut self, attributes: &Attributes) -> Result<(), String> {
        let value = attributes.get("value").unwrap_or_default().trim();
        let name = attributes.get("name").unwrap_or_default();
        let dump = &mut self.dump;
        if let Some(kind) = dump.kinds.last_mut().filter(|_| self.in_cpukind) {
            match name {
                "CoreType" => kind.core_type = value.to_string(),
                "LinuxCapacity" => kind.capacity = Some(number(name, value, CAPACITY_SCALE)?),
                "FrequencyMaxMHz" => kind.max_mhz = Some(number(name, value, MAX_MHZ)?),
                _ => {}
            }
            return Ok(());
        }
        match name {
            "Backend" => dump.backends.push(value.to_string()),
            "Architecture" => dump.architecture = value.to_string(),
            "CPUVendor" => dump.vendor_id = value.to_string(),
            "CPUFamilyNumber" => dump.vendor_family = value.parse().unwrap_or(0),
            "CPUModel" => dump.model = value.to_string(),
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        let (Some(numbers), Some(distances)) = (self.numbers, &mut self.distances) else {
            return Ok(());
        };
        let list = match numbers {
            Numbers::Indexes => &mut distances.indexes,
            Numbers::Values => &mut distances.values,
        };
        for word in text.split_whitespace().filter(|_| distances.wanted) {
            let number = word.parse().map_err(|_| format!("`{word}` is not a number"))?;
            list.push(number);
        }
        Ok(())
    }

    fn end(&mut self, element: &str) -> Result<(), String> {
        self.depth = self.depth.saturating_sub(1);
        match element {
            "object" => drop(self.open.pop()),
            "cpukind" => self.in_cpukind = false,
            "indexes" | "u64values" => self.numbers = None,
            "distances2" => {
                let distances = self.distances.take().unwrap_or_default();
                self.dump.distances.extend(distances.cells()?);
            }
            _ => {}
        }
        Ok(())
    }
}

impl DistanceElement {
    fn new(attributes: &Attributes) -> Self {
        let kind: u32 = attributes.number("kind").unwrap_or(0);
        let of_nodes = attributes.get("type") == Some("NUMANode");
        Self { wanted: of_nodes && kind & KIND_LATENCY != 0, ..Self::default() }
    }

    fn cells(&self) -> Result<Distances, String> {
        let size = self.indexes.len();
        if Some(self.values.len()) != size.checked_mul(size) {
            let found = self.values.len();
            return Err(format!("has {found} distances for {size} NUMA nodes"));
        }
        let pairs = self.indexes.iter().flat_map(|from| {
            let row = self.indexes.iter();
            row.map(move |to| (*from, *to))
        });
        Ok(pairs.zip(self.values.iter().copied()).collect())
    }
}

/// The attributes of an element.
struct Attributes {
    values: BTreeMap<String, String>,
}

impl Attributes {
    fn read(element: &BytesStart) -> Result<Self, String> {
        let mut values = BTreeMap::new();
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|error| format!("is not XML: {error}"))?;
            let key = attribute.key.as_ref().to_string();
            let value = attribute.value.into_owned();
            values.insert(key, value);
        }
        Ok(Self { values })
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> Result<u32, String> {
        let text = self.get(name).unwrap_or_default();
        let wrong = |_| format!("{name}=\"{text}\" is not a number");
        text.parse().map_err(wrong)
    }

    fn cpuset(&self, name: &str) -> Result<Option<CpuSet>, String> {
        let parse = |mask| CpuSet::parse_mask(mask).map_err(|error| error.to_string());
        self.get(name).map(parse).transpose()
    }
}

/// What to do about a dump of part of a machine.
const REMEDY: &str = "make a dump of all with `lstopo --disallowed --of xml FILE.xml`";

const MAX_MHZ: u32 = 100_000;

fn number(name: &str, text: &str, most: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("{name} is `{text}`, expected 1 to {most}"))
}

fn line_of(text: &str, position: u64) -> String {
    let before = text.as_bytes().iter().take(position as usize);
    let line = before.filter(|byte| **byte == b'\n').count() + 1;
    format!("line {line}")
}
