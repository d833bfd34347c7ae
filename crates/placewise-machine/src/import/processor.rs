//! What Linux makes of a processor: how it cuts caches at the borders of NUMA nodes, up to which
//! distance nodes share work, and, for machines without cost figures of their own, which preset is
//! nearest.
//!
//! Limits: powerpc, s390 and other architectures with topology code of their own are taken as arm64.

/// `vendor_id` and `cpu family` of /proc/cpuinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuVendor {
    pub id: String,
    pub family: u32,
}

/// The CPU vendor, as far as Linux treats it differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vendor {
    /// Hygon's are AMD's Zen with another name.
    Amd {
        zen: bool,
    },
    Intel,
    /// Centaur, Zhaoxin.
    OtherX86,
    /// An architecture whose sched domains come from drivers/base/arch_topology.c.
    NotX86,
    Unknown,
}

/// The first AMD Zen family.
pub(crate) const ZEN_FAMILY: u32 = 0x17;

const RECLAIM_DISTANCE: u32 = 30;
pub(crate) const RECLAIM_DISTANCE_ZEN: u32 = 32;

impl Vendor {
    pub(crate) fn of(vendor: Option<&CpuVendor>) -> Self {
        vendor.map_or(Vendor::Unknown, |CpuVendor { id, family }| Vendor::new(id, *family))
    }

    /// By the vendor's name for itself in the CPUID instruction.
    pub(crate) fn new(vendor_id: &str, family: u32) -> Self {
        match vendor_id.trim() {
            "AuthenticAMD" => Vendor::Amd { zen: family >= ZEN_FAMILY },
            "HygonGenuine" => Vendor::Amd { zen: true },
            "GenuineIntel" => Vendor::Intel,
            "CentaurHauls" | "Shanghai" => Vendor::OtherX86,
            _ => Vendor::Unknown,
        }
    }

    /// By what the processor is called, which many dumps say that do not say the vendor.
    pub(crate) fn of_model(model: &str) -> Self {
        let has = |word: &str| model.contains(word);
        if has("Hygon") || has("EPYC") || has("Ryzen") {
            Vendor::Amd { zen: true }
        } else if has("AMD") {
            Vendor::Amd { zen: false }
        } else if has("Intel") && !has("Itanium") {
            Vendor::Intel
        } else {
            Vendor::Unknown
        }
    }

    /// By `uname -m`, which tells x86 from the others at least.
    pub(crate) fn of_architecture(architecture: &str) -> Self {
        match architecture {
            "" | "x86_64" | "i386" | "i486" | "i586" | "i686" => Vendor::Unknown,
            _ => Vendor::NotX86,
        }
    }

    /// `init_amd_zn` and `init_hygon` raise the limit so that two sockets at distance 32 still share
    /// work.
    pub(crate) fn node_reclaim_distance(&self) -> u32 {
        match self {
            Vendor::Amd { zen: true } => RECLAIM_DISTANCE_ZEN,
            _ => RECLAIM_DISTANCE,
        }
    }

    /// The preset whose costs a machine borrows: by its size if it may be a desktop or less, as the
    /// presets of such; then by its vendor; and by whether its nodes have one LLC or several.
    pub(crate) fn cost_preset(&self, size: &Size) -> &'static str {
        match self {
            _ if size.may_be_a_desktop() => "uma-8",
            Vendor::Amd { .. } => "zen3-2s-nps1",
            Vendor::Intel => "icx-2s",
            _ if size.llcs > size.nodes => "zen3-2s-nps1",
            _ => "icx-2s",
        }
    }
}

/// How large a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub cpus: usize,
    pub llcs: usize,
    pub nodes: usize,
    pub packages: usize,
}

impl Size {
    fn may_be_a_desktop(&self) -> bool {
        self.packages == 1 && self.nodes == 1 && self.llcs <= 2 && self.cpus <= 32
    }
}
