//! What is measured, and what the batches of it say.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// How far a CPU is from the one that all is measured from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    Smt,
    Cluster,
    Llc,
    Package,
    Remote,
}

impl Distance {
    pub const ALL: [Self; 5] = [Self::Smt, Self::Cluster, Self::Llc, Self::Package, Self::Remote];

    pub fn name(self) -> &'static str {
        match self {
            Self::Smt => "smt",
            Self::Cluster => "cluster",
            Self::Llc => "llc",
            Self::Package => "package",
            Self::Remote => "remote",
        }
    }
}

/// The four loops of the STREAM benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    Copy,
    Scale,
    Add,
    Triad,
}

impl Access {
    pub const ALL: [Self; 4] = [Self::Copy, Self::Scale, Self::Add, Self::Triad];

    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Scale => "scale",
            Self::Add => "add",
            Self::Triad => "triad",
        }
    }
}

/// A time in ns, but for bandwidths (MB/s), shares (percent) and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// A system call that does nothing.
    Syscall,
    /// 100 bytes through a pipe, a socket or loopback and out again, by one task: nobody is woken.
    PipePair,
    SocketPair,
    TcpPair,
    UdpPair,
    /// The same with 4 KiB through a socket.
    LongSocketPair,
    /// A futex wake that wakes nobody.
    FutexWake,
    /// Arming a timer and disarming it again.
    TimerPair,
    /// The longest that the CPU was taken away in a tenth of a second, ticks left out.
    Absence,
    /// A yield to another task on the CPU.
    Yield,
    /// Forking a process, until the parent goes on.
    Fork,
    /// Creating a thread, until the creator goes on.
    ThreadCreate,
    /// Creating a thread that ends at once, and joining it, on one CPU.
    ThreadLife,
    /// The call that wakes one of many who sleep on the same CPU and do not preempt.
    WakeCallHere,
    /// What one of those takes: switched to from another, it reads a message, finds no second one, and sleeps.
    Sleeper,
    /// A byte to a partner on a CPU so far away and back, both CPUs idle but for the two.
    RoundTrip(Distance),
    /// The call that wakes a partner on an idle CPU, until the waker goes on.
    WakeCall(Distance),
    /// The call that wakes a partner on a busy CPU, where it has to wait.
    BusyWakeCall(Distance),
    /// An interrupt to a busy CPU and its acknowledgement.
    Interrupt(Distance),
    /// A cache line from the one CPU to the other.
    CacheLine(Distance),
    /// What a KiB takes longer to touch for a task that has just moved.
    Refill(Distance),
    /// From the waker's call to the wakee's first instruction, the wakee's CPU having been idle for so
    /// many us.
    WakeAfter(u32),
    /// The speed of one of two busy siblings, in percent of a thread alone.
    SmtShare,
    /// So many streams, each on a core of its own, in the memory of their node.
    Bandwidth(Access, u32),
    /// Copying, on as many cores of one LLC as have room for their arrays.
    LlcBandwidth,
    /// Copying from another node's memory, in percent of the own node's.
    RemoteBandwidth(Distance),
}

impl Quantity {
    pub fn unit(self) -> &'static str {
        match self {
            Self::Bandwidth(..) | Self::LlcBandwidth => "MB/s",
            Self::SmtShare | Self::RemoteBandwidth(_) => "%",
            _ => "ns",
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = match self {
            Self::Syscall => "system call",
            Self::PipePair => "pipe, write and read",
            Self::SocketPair => "unix socket, send and receive",
            Self::TcpPair => "loopback TCP, send and receive",
            Self::UdpPair => "loopback UDP, send and receive",
            Self::LongSocketPair => "unix socket, 4 KiB",
            Self::FutexWake => "futex wake of nobody",
            Self::TimerPair => "timer, armed and disarmed",
            Self::Absence => "longest absence of a CPU in 100 ms",
            Self::Yield => "yield",
            Self::Fork => "process, forked",
            Self::ThreadCreate => "thread, created",
            Self::ThreadLife => "thread, created and joined",
            Self::WakeCallHere => "waking call, same CPU",
            Self::Sleeper => "wakee, until it sleeps again",
            Self::RoundTrip(distance) => return write!(f, "round trip, {}", distance.name()),
            Self::WakeCall(distance) => return write!(f, "waking call, {}", distance.name()),
            Self::BusyWakeCall(distance) => {
                return write!(f, "waking call, busy CPU, {}", distance.name());
            }
            Self::Interrupt(distance) => return write!(f, "interrupt, {}", distance.name()),
            Self::CacheLine(distance) => return write!(f, "cache line, {}", distance.name()),
            Self::Refill(distance) => return write!(f, "refill of 1 KiB, {}", distance.name()),
            Self::WakeAfter(us) => return write!(f, "wakeup after {us} us of idling"),
            Self::SmtShare => "speed of a busy sibling",
            Self::Bandwidth(access, streams) => {
                return write!(f, "bandwidth, {}, {streams} CPUs", access.name());
            }
            Self::LlcBandwidth => "bandwidth of an LLC",
            Self::RemoteBandwidth(distance) => {
                return write!(f, "bandwidth of memory, {}", distance.name());
            }
        };
        f.write_str(name)
    }
}

/// What the batches say of a quantity: half of those that count are from `lower` to `upper`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    pub median: f64,
    pub lower: f64,
    pub upper: f64,
    /// Batches that count, of how many, and whether others ran beside those that count.
    pub counted: usize,
    pub batches: usize,
    pub disturbed: bool,
}

/// The median.
pub(crate) fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

pub type Measurements = BTreeMap<Quantity, Sample>;
