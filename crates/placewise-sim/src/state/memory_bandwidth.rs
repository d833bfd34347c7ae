//! Which streams run, and what each of them gets of the memory's bandwidth.

use placewise_machine::{BandwidthCurve, Machine, RemoteBandwidth};
use placewise_policy::{CpuId, Table};
use placewise_workload::program::Access;

/// A stream that runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    pub access: Access,
    /// The node whose memory it streams.
    pub node: u16,
}

/// Where a CPU is.
#[derive(Clone, Copy)]
pub struct Place {
    pub cache: u16,
    pub node: u16,
    package: u16,
}

pub struct MemoryBandwidth {
    /// What each of `k` streams of a node gets, in MB/s, by [`Access`] and `k - 1`.
    shares: [Vec<u64>; 4],
    llc_mbps: u64,
    remote: RemoteBandwidth,
    pub places: Table<CpuId, Place>,
    package_of_node: Vec<u16>,
    pub streams: Table<CpuId, Option<Stream>>,
    /// CPUs that stream over the link of each cache, and from the memory of each node.
    pub on_cache: Vec<Vec<CpuId>>,
    pub on_node: Vec<Vec<CpuId>>,
}

impl MemoryBandwidth {
    pub fn new(machine: &Machine) -> Self {
        let nr_cpus = machine.cpus.len();
        let place = |cpu: &placewise_machine::Cpu| Place {
            cache: cpu.cache,
            node: cpu.node,
            package: cpu.package,
        };
        let places: Table<CpuId, Place> = machine.cpus.iter().map(place).collect();
        let mut package_of_node = vec![0; machine.nr_nodes()];
        for cpu in machine.online().iter().map(CpuId::from) {
            package_of_node[usize::from(places[cpu].node)] = places[cpu].package;
        }
        let curves = &machine.costs.node_bandwidth_mbps;
        MemoryBandwidth {
            shares: [curves.copy, curves.scale, curves.add, curves.triad]
                .map(|curve| shares(curve, nr_cpus)),
            llc_mbps: machine.costs.llc_bandwidth_mbps,
            remote: machine.costs.remote_bandwidth_pct,
            places,
            package_of_node,
            streams: vec![None; nr_cpus].into(),
            on_cache: vec![Vec::new(); machine.nr_caches()],
            on_node: vec![Vec::new(); machine.nr_nodes()],
        }
    }

    /// What the stream on `cpu` gets, in MB/s.
    pub fn rate(&self, cpu: CpuId) -> u64 {
        let Some(stream) = self.streams[cpu] else { return 1 };
        let here = self.places[cpu];
        let of_node = self.on_node[usize::from(stream.node)].len();
        let of_cache = self.on_cache[usize::from(here.cache)].len() as u64;
        let share = self.shares[stream.access as usize][of_node - 1].min(self.llc_mbps / of_cache);
        let percent = if here.node == stream.node {
            100
        } else if here.package == self.package_of_node[usize::from(stream.node)] {
            self.remote.package
        } else {
            self.remote.remote
        };
        share * u64::from(percent) / 100
    }

    pub fn begin(&mut self, cpu: CpuId, stream: Stream) {
        self.streams[cpu] = Some(stream);
        self.on_cache[usize::from(self.places[cpu].cache)].push(cpu);
        self.on_node[usize::from(stream.node)].push(cpu);
    }

    pub fn end(&mut self, cpu: CpuId) -> Option<Stream> {
        let stream = self.streams[cpu].take()?;
        self.on_cache[usize::from(self.places[cpu].cache)].retain(|&other| other != cpu);
        self.on_node[usize::from(stream.node)].retain(|&other| other != cpu);
        Some(stream)
    }
}

/// Each one's share of [`BandwidthCurve`], for one to `most` streams.
fn shares(curve: BandwidthCurve, most: usize) -> Vec<u64> {
    let (one, peak) = (curve.one as f64, curve.peak as f64);
    let mut left = peak;
    let share = |streams: usize| {
        left *= 1.0 - one / peak;
        (((peak - left) / streams as f64) as u64).max(1)
    };
    (1..=most).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_curve_from_one_stream_to_the_peak() {
        let shares = shares(BandwidthCurve { one: 20_000, peak: 80_000 }, 64);
        assert_eq!(shares[..2], [20_000, 17_500]);
        assert!((79_000..=80_000).contains(&(shares[63] * 64)), "{}", shares[63] * 64);
    }

    #[test]
    fn one_stream_may_draw_the_peak() {
        let shares = shares(BandwidthCurve { one: 10, peak: 10 }, 20);
        assert_eq!((shares[0], shares[1], shares[19]), (10, 5, 1));
    }

    #[test]
    fn a_stream_gets_the_least_of_its_shares() {
        let machine = placewise_machine::load("zen3-2s-nps4").expect("a preset");
        let mut bandwidth = MemoryBandwidth::new(&machine);
        let cpu = CpuId::new;
        let stream = |node| Stream { access: Access::Copy, node };
        bandwidth.begin(cpu(0), stream(0));
        let alone = bandwidth.rate(cpu(0));
        assert_eq!(alone, machine.costs.node_bandwidth_mbps.copy.one);
        bandwidth.begin(cpu(64), stream(0));
        let halves = bandwidth.rate(cpu(0));
        assert!(halves < alone && bandwidth.rate(cpu(64)) == halves * 60 / 100, "remote is dearer");
        bandwidth.end(cpu(64));
        for (number, node) in [(1, 1), (2, 2), (3, 3)] {
            bandwidth.begin(cpu(number), stream(node));
        }
        assert_eq!(bandwidth.rate(cpu(0)), 51_200 / 4, "the link of the LLC binds");
        assert_eq!(bandwidth.rate(cpu(1)), 51_200 / 4 * 90 / 100);
    }
}
