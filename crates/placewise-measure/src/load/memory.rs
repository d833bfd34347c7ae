//! Streams through memory: the loops of STREAM on one core and on more.

use std::cell::RefCell;
use std::fs;
use std::hint::black_box;
use std::io;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Barrier};
use std::thread;

use rustix::mm::{Advice, madvise};
use rustix::time::ClockId;

use super::clock::cpu_time;
use crate::batches::Load;
use crate::place::{Places, stay_on};
use crate::quantity::{Access, Quantity};

/// More streams than these draw hardly more from one node.
const MOST_STREAMS: usize = 32;
/// Where the kernel does not say how large an LLC is.
const USUAL_LLC: usize = 32 << 20;
/// Elements of each array that a batch passes over, at most. Batches go on where others ended, so that an LLC
/// holds nothing of what they come to, however large it is.
const MOST_OF_A_BATCH: usize = (32 << 20) / size_of::<f64>();

pub fn loads(places: &Places, nr_llcs: usize) -> io::Result<Vec<Load>> {
    let most = places.cores.len().min(MOST_STREAMS);
    let length = array_length(places.home, most);
    let start = |cpus: &[usize]| -> io::Result<Streams> {
        let streams = cpus.iter().take(MOST_STREAMS).map(|&cpu| Stream::start(cpu, cpu, length));
        let streams: Vec<Stream> = streams.collect::<io::Result<_>>()?;
        wait_until_ready(&streams)?;
        Ok(Rc::new(RefCell::new(streams)))
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
        wait_until_ready(std::slice::from_ref(&remote))?;
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
    /// Of each batch the bytes that count, and the ns of CPU time that it took.
    done: Receiver<(f64, f64)>,
}

impl Stream {
    /// `memory` is a CPU of the node whose memory it streams through.
    fn start(cpu: usize, memory: usize, length: usize) -> io::Result<Self> {
        let (order, orders) = sync_channel::<(Access, Arc<Barrier>)>(1);
        let (tell, done) = sync_channel(1);
        thread::Builder::new().spawn(move || -> io::Result<()> {
            stay_on(memory)?;
            let mut arrays = Arrays::new(length)?;
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

/// Until their first batch they make their arrays, which takes time of their CPUs.
fn wait_until_ready(streams: &[Stream]) -> io::Result<()> {
    together(streams, Access::Copy).map(drop)
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
    /// Where the next batch begins.
    at: usize,
}

impl Arrays {
    /// Touched by who calls, so that they are in that CPU's node.
    fn new(length: usize) -> io::Result<Self> {
        let [a, b, c] = [1.0, 2.0, 0.5].map(|value| vec![value; length]);
        [&a, &b, &c].into_iter().try_for_each(|array| leave_out_of_forks(array))?;
        Ok(Self { a, b, c, at: 0 })
    }

    /// One batch; bytes as STREAM counts them.
    fn pass(&mut self, access: Access) -> f64 {
        let batches = self.a.len().div_ceil(MOST_OF_A_BATCH);
        let end = (self.at + self.a.len().div_ceil(batches)).min(self.a.len());
        let part = self.at..end;
        self.at = end % self.a.len();
        let [a, b, c] = [&mut self.a, &mut self.b, &mut self.c].map(|it| &mut it[part.clone()]);
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
        (arrays * part.len() * size_of::<f64>()) as f64
    }
}

/// Forks are measured in this process, and take time for each page that a child shares.
fn leave_out_of_forks(array: &[f64]) -> io::Result<()> {
    let page = rustix::param::page_size();
    let bytes = array.as_ptr_range();
    let (from, to) = (bytes.start.addr().next_multiple_of(page), bytes.end.addr() / page * page);
    let Some(length) = to.checked_sub(from) else { return Ok(()) };
    let pages = array.as_ptr().with_addr(from).cast_mut().cast();
    // SAFETY: the pages are the array's alone, and this process keeps them.
    Ok(unsafe { madvise(pages, length, Advice::LinuxDontFork) }?)
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
        let mut arrays = Arrays::new(10).unwrap();
        assert_eq!(Access::ALL.map(|access| arrays.pass(access)), [160.0, 160.0, 240.0, 240.0]);
        assert_eq!((arrays.c[0], arrays.b[0], arrays.a[0]), (4.0, 3.0, 15.0));
    }

    /// Fails if a batch begins anew: all that it comes to would be in the LLC.
    #[test]
    fn a_batch_goes_on_where_the_last_one_ended() {
        let mut arrays = Arrays::new(MOST_OF_A_BATCH + 2).unwrap();
        let half = MOST_OF_A_BATCH / 2 + 1;
        assert_eq!(arrays.pass(Access::Copy), (2 * half * size_of::<f64>()) as f64);
        assert_eq!([arrays.c[half - 1], arrays.c[half]], [1.0, 0.5]);
        arrays.pass(Access::Copy);
        assert_eq!((arrays.c.last(), arrays.at), (Some(&1.0), 0));
    }

    #[test]
    fn a_child_has_nothing_of_the_arrays() {
        let arrays = Arrays::new(1 << 20).unwrap();
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let middle = (&raw const arrays.b[1 << 19]).addr();
        let mut lines = maps.lines().skip_while(|line| !contains(line, middle));
        let flags = lines.find(|line| line.starts_with("VmFlags")).unwrap();
        assert!(flags.contains(" dc"), "{flags}");
    }

    /// Whether a line is the head of the mapping that an address is in.
    fn contains(line: &str, address: usize) -> bool {
        let ends = line.split(' ').next().and_then(|ends| ends.split_once('-'));
        let hex = |text| usize::from_str_radix(text, 16).ok();
        ends.is_some_and(|(from, to)| {
            hex(from).zip(hex(to)).is_some_and(|(from, to)| (from..to).contains(&address))
        })
    }
}
