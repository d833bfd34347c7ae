//! Streams through memory: the loops of STREAM on one core and on more.

use std::cell::RefCell;
use std::fs;
use std::hint::black_box;
use std::io;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Barrier};
use std::thread;

use rustix::time::ClockId;

use super::clock::cpu_time;
use crate::batches::Load;
use crate::place::{Places, stay_on};
use crate::quantity::{Access, Quantity};

/// More streams than these draw hardly more from one node.
const MOST_STREAMS: usize = 32;
/// Where the kernel does not say how large an LLC is.
const USUAL_LLC: usize = 32 << 20;

pub fn loads(places: &Places, nr_llcs: usize) -> io::Result<Vec<Load>> {
    let most = places.cores.len().min(MOST_STREAMS);
    let length = array_length(places.home, most);
    let start = |cpus: &[usize]| -> io::Result<Streams> {
        let streams = cpus.iter().take(MOST_STREAMS).map(|&cpu| Stream::start(cpu, cpu, length));
        Ok(Rc::new(RefCell::new(streams.collect::<io::Result<_>>()?)))
    };
    let of_node = start(&places.cores)?;
    let mut loads = Vec::new();
    for access in Access::ALL {
        for nr_streams in steps(most) {
            let streams = of_node.clone();
            let quantity = Quantity::Bandwidth(access, nr_streams as u32);
            loads.push(Load::new(quantity, move || {
                together(&streams.borrow()[..nr_streams], access)
            }));
        }
    }
    if nr_llcs > 1 {
        let of_llc = start(&places.llc_cores)?;
        loads.push(Load::new(Quantity::LlcBandwidth, move || {
            together(&of_llc.borrow(), Access::Copy)
        }));
    }
    for &(distance, cpu) in &places.other_nodes {
        let remote = Stream::start(cpu, places.home, length)?;
        let local = of_node.clone();
        loads.push(Load::new(Quantity::RemoteBandwidth(distance), move || {
            let local = together(&local.borrow()[..1], Access::Copy)?;
            Ok(100.0 * together(std::slice::from_ref(&remote), Access::Copy)? / local)
        }));
    }
    Ok(loads)
}

type Streams = Rc<RefCell<Vec<Stream>>>;

/// 1, 2, 4 and so on, and all.
fn steps(most: usize) -> Vec<usize> {
    let doubling = (0..).map(|step| 1 << step).take_while(|streams| *streams < most);
    doubling.chain([most]).collect()
}

/// Three arrays are four LLCs, and all together a quarter of the memory that is free, at most.
fn array_length(cpu: usize, nr_streams: usize) -> usize {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index3/size");
    let kib =
        fs::read_to_string(path).ok().and_then(|text| text.trim().strip_suffix('K')?.parse().ok());
    let llc = kib.map_or(USUAL_LLC, |kib: usize| kib << 10);
    let free = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemAvailable"))?;
        line.split_whitespace().nth(1)?.parse::<usize>().ok()
    });
    let free = free.map_or(usize::MAX, |kib| kib << 10);
    (4 * llc).min(free / 4 / nr_streams) / 3 / size_of::<f64>()
}

/// A thread on a CPU, with arrays of its own.
struct Stream {
    order: SyncSender<(Access, Arc<Barrier>)>,
    /// Bytes that a pass over the arrays counts, and the ns of CPU time that it took.
    done: Receiver<(f64, f64)>,
}

impl Stream {
    /// `memory` is a CPU of the node whose memory it streams through.
    fn start(cpu: usize, memory: usize, length: usize) -> io::Result<Self> {
        let (order, orders) = sync_channel::<(Access, Arc<Barrier>)>(1);
        let (tell, done) = sync_channel(1);
        thread::Builder::new().spawn(move || -> io::Result<()> {
            stay_on(memory)?;
            let mut arrays = Arrays::new(length);
            stay_on(cpu)?;
            while let Ok((access, barrier)) = orders.recv() {
                barrier.wait();
                let start = cpu_time(ClockId::ThreadCPUTime);
                let bytes = arrays.pass(access);
                let time = cpu_time(ClockId::ThreadCPUTime) - start;
                if tell.send((bytes, time)).is_err() {
                    break;
                }
            }
            Ok(())
        })?;
        Ok(Self { order, done })
    }
}

/// What streams that begin together get, in MB/s.
fn together(streams: &[Stream], access: Access) -> io::Result<f64> {
    let gone = || io::Error::other("a stream has ended");
    let barrier = Arc::new(Barrier::new(streams.len()));
    for stream in streams {
        stream.order.send((access, barrier.clone())).map_err(|_| gone())?;
    }
    let mut rate = 0.0;
    for stream in streams {
        let (bytes, ns) = stream.done.recv().map_err(|_| gone())?;
        rate += 1_000.0 * bytes / ns;
    }
    Ok(rate)
}

struct Arrays {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl Arrays {
    /// Touched by who calls, so that they are in that CPU's node.
    fn new(length: usize) -> Self {
        Self { a: vec![1.0; length], b: vec![2.0; length], c: vec![0.5; length] }
    }

    /// Bytes as STREAM counts them.
    fn pass(&mut self, access: Access) -> f64 {
        let Self { a, b, c } = self;
        let arrays = match access {
            Access::Copy => {
                c.iter_mut().zip(&*a).for_each(|(c, a)| *c = *a);
                2
            }
            Access::Scale => {
                b.iter_mut().zip(&*c).for_each(|(b, c)| *b = 3.0 * c);
                2
            }
            Access::Add => {
                c.iter_mut().zip(a.iter().zip(&*b)).for_each(|(c, (a, b))| *c = a + b);
                3
            }
            Access::Triad => {
                a.iter_mut().zip(b.iter().zip(&*c)).for_each(|(a, (b, c))| *a = b + 3.0 * c);
                3
            }
        };
        black_box((&*a, &*b, &*c));
        (arrays * a.len() * size_of::<f64>()) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_is_measured_at_doubling_numbers_and_at_all() {
        assert_eq!(steps(1), [1]);
        assert_eq!(steps(2), [1, 2]);
        assert_eq!(steps(6), [1, 2, 4, 6]);
    }

    #[test]
    fn a_pass_counts_the_bytes_that_stream_counts() {
        let mut arrays = Arrays::new(10);
        assert_eq!(Access::ALL.map(|access| arrays.pass(access)), [160.0, 160.0, 240.0, 240.0]);
        assert_eq!((arrays.c[0], arrays.b[0], arrays.a[0]), (4.0, 3.0, 15.0));
    }
}
