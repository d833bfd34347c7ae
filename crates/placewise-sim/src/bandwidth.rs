//! Memory bandwidth: what each of the running streams gets of it, and when that changes.
//!
//! A stream draws on the memory of one NUMA node, the one where its task streamed
//! first, over the link of the LLC that its CPU is on. The streams of a node share
//! what its memory carries for their number, those of an LLC what its link carries;
//! a stream gets the less of its two shares, and less again if its memory is remote.
//! When a stream begins or ends, those it shared with go on at another rate from
//! there: the rest of their segments is timed anew.
//!
//! Limits: streams of different kinds count alike where they share; what one stream
//! leaves of its share because another limit binds it, no other gets; links between
//! packages have no capacity of their own; caches hold nothing of what is streamed.

use placewise_machine::{BandwidthCurve, Machine, RemoteBandwidth};
use placewise_workload::program::{Access, Op};

use crate::cpu::{FULL_SPEED, Speed};
use crate::engine::Engine;
use crate::event_queue::Time;

/// A stream that runs.
#[derive(Clone, Copy)]
struct Stream {
    access: Access,
    /// The node whose memory it streams.
    node: u16,
}

/// Where a CPU is.
#[derive(Clone, Copy)]
struct Place {
    llc: u16,
    node: u16,
    package: u16,
}

pub struct Bandwidth {
    /// What each of `k` streams of a node gets, in MB/s, by [`Access`] and `k - 1`.
    shares: [Vec<u64>; 4],
    llc_mbps: u64,
    remote: RemoteBandwidth,
    places: Vec<Place>,
    package_of_node: Vec<u16>,
    /// By CPU.
    streams: Vec<Option<Stream>>,
    /// CPUs that stream over the link of each LLC, and from the memory of each node.
    on_llc: Vec<Vec<u32>>,
    on_node: Vec<Vec<u32>>,
}

impl Bandwidth {
    pub fn new(machine: &Machine) -> Self {
        let nr_cpus = machine.cpus.len();
        let place = |cpu: &placewise_machine::Cpu| Place {
            llc: cpu.llc,
            node: cpu.node,
            package: cpu.package,
        };
        let places: Vec<Place> = machine.cpus.iter().map(place).collect();
        let mut package_of_node = vec![0; machine.nr_nodes()];
        for cpu in machine.online().iter() {
            package_of_node[usize::from(places[cpu].node)] = places[cpu].package;
        }
        let curves = &machine.costs.node_bandwidth_mbps;
        Bandwidth {
            shares: [curves.copy, curves.scale, curves.add, curves.triad]
                .map(|curve| shares(curve, nr_cpus)),
            llc_mbps: machine.costs.llc_bandwidth_mbps,
            remote: machine.costs.remote_bandwidth_pct,
            places,
            package_of_node,
            streams: vec![None; nr_cpus],
            on_llc: vec![Vec::new(); machine.nr_llcs()],
            on_node: vec![Vec::new(); machine.nr_nodes()],
        }
    }

    /// What the stream on `cpu` gets, in MB/s.
    fn rate(&self, cpu: u32) -> u64 {
        let Some(stream) = self.streams[cpu as usize] else { return 1 };
        let here = self.places[cpu as usize];
        let of_node = self.on_node[usize::from(stream.node)].len();
        let of_llc = self.on_llc[usize::from(here.llc)].len() as u64;
        let share = self.shares[stream.access as usize][of_node - 1].min(self.llc_mbps / of_llc);
        let percent = if here.node == stream.node {
            100
        } else if here.package == self.package_of_node[usize::from(stream.node)] {
            self.remote.package
        } else {
            self.remote.remote
        };
        share * u64::from(percent) / 100
    }

    fn begin(&mut self, cpu: u32, stream: Stream) {
        self.streams[cpu as usize] = Some(stream);
        self.on_llc[usize::from(self.places[cpu as usize].llc)].push(cpu);
        self.on_node[usize::from(stream.node)].push(cpu);
    }

    fn end(&mut self, cpu: u32) -> Option<Stream> {
        let stream = self.streams[cpu as usize].take()?;
        self.on_llc[usize::from(self.places[cpu as usize].llc)].retain(|&other| other != cpu);
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

impl Engine<'_> {
    /// The stream of the current task begins, or goes on.
    pub fn begin_stream(&mut self, cpu: u32, task: u32) {
        let Op::Stream { access, .. } = self.op(task) else { return };
        let here = self.bandwidth.places[cpu as usize].node;
        let node = *self.tasks[task as usize].memory_node.get_or_insert(here);
        let stream = Stream { access, node };
        self.bandwidth.begin(cpu, stream);
        self.retime_sharers(cpu, stream);
    }

    /// The stream on `cpu` is over, or interrupted.
    pub fn end_stream(&mut self, cpu: u32) {
        if let Some(stream) = self.bandwidth.end(cpu) {
            self.retime_sharers(cpu, stream);
        }
    }

    /// Those that share with a stream that began or ended on `cpu` go on at another rate.
    fn retime_sharers(&mut self, cpu: u32, stream: Stream) {
        let llc = usize::from(self.bandwidth.places[cpu as usize].llc);
        let node = usize::from(stream.node);
        for at in 0..self.bandwidth.on_node[node].len() {
            let other = self.bandwidth.on_node[node][at];
            if other != cpu {
                self.change_speed(other);
            }
        }
        for at in 0..self.bandwidth.on_llc[llc].len() {
            let other = self.bandwidth.on_llc[llc][at];
            let elsewhere = self.bandwidth.streams[other as usize]
                .is_some_and(|stream| usize::from(stream.node) != node);
            if other != cpu && elsewhere {
                self.change_speed(other);
            }
        }
    }

    /// The rate of the stream on `cpu`, in MB/s: busy siblings share a core's misses too, and a
    /// slow core has as many fewer.
    pub fn stream_rate(&self, cpu: u32, speed: Speed) -> u64 {
        (self.bandwidth.rate(cpu) * speed / FULL_SPEED).max(1)
    }

    /// How long what is left of the stream on `cpu` takes at the rate it was timed with.
    #[inline]
    pub fn stream_time(&self, cpu: u32) -> Time {
        match self.tasks[self.scheduler.current(cpu) as usize].stream_left {
            0 => 0,
            bytes => bytes * 1000 / self.cpus[cpu as usize].stream_mbps,
        }
    }

    /// The stream on `cpu` was to end after `left`: that is what is left of it.
    pub fn keep_stream(&mut self, cpu: u32, left: Time) {
        let task = self.scheduler.current(cpu);
        let bytes = left * self.cpus[cpu as usize].stream_mbps / 1000;
        self.tasks[task as usize].stream_left = bytes.max(1);
    }
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
        let mut bandwidth = Bandwidth::new(&machine);
        let stream = |node| Stream { access: Access::Copy, node };
        bandwidth.begin(0, stream(0));
        let alone = bandwidth.rate(0);
        assert_eq!(alone, machine.costs.node_bandwidth_mbps.copy.one);
        bandwidth.begin(64, stream(0));
        let halves = bandwidth.rate(0);
        assert!(halves < alone && bandwidth.rate(64) == halves * 60 / 100, "remote is dearer");
        bandwidth.end(64);
        for (cpu, node) in [(1, 1), (2, 2), (3, 3)] {
            bandwidth.begin(cpu, stream(node));
        }
        assert_eq!(bandwidth.rate(0), 51_200 / 4, "the link of the LLC binds");
        assert_eq!(bandwidth.rate(1), 51_200 / 4 * 90 / 100);
    }
}
