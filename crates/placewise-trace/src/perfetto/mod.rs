//! Writes a trace for Perfetto: its protocol-buffer format, which `ui.perfetto.dev` and the trace
//! processor read.
//!
//! ```text
//!   tracepoints ──────── ftrace.rs ─── bundles per CPU: the tables `sched` and `thread_state`
//!   run queues ─────────┐
//!   waits ──── waits.rs ┼─ packets.rs ─ per LLC: counters; per CPU: decisions; per thread: waits
//!   decisions ──────────┘
//! ```
//!
//! An arrow (flow) leads from a decision, on the track of the CPU that decided, to the wait of the
//! task that was placed. Decisions may come later than the events around them: readers sort by time.
//! What is kept does not grow with the length of the trace, but with the number of its tasks.
//!
//! Limits: text has microseconds, too few to order what readers sort by time: each event is put a
//! nanosecond behind the one before it, where its own time is not later. Of a task whose process the
//! trace does not tell, the process is the task itself. A wait that outlasts the trace is left out.

mod ftrace;
mod packets;
mod waits;
mod wire;

use std::io::{self, Write};

use placewise_machine::Machine;

use self::ftrace::StateBits;
use self::packets::{TrackId, Type};
use self::waits::Tasks;
use self::wire::Message;
use crate::decision::{Decision, Readings};
use crate::event::{Event, Record, Sink};
use crate::header::Header;
use crate::run_queues::{LlcLoad, RunQueues};

/// So much of a CPU is written at once.
const BUNDLE_BYTES: usize = 1 << 14;

/// A placement decision, as an event with arguments.
#[derive(Clone, Copy, Debug)]
pub struct Placement<'a> {
    /// Of the wakeup, as the trace has it.
    pub time_ns: u64,
    /// `wakeup`, `fork` or `exec`.
    pub kind: &'a str,
    pub cpu: u32,
    pub task: &'a str,
    pub pid: u32,
    pub from_cpu: u32,
    pub to_cpu: u32,
    /// What chose it: names, and what is said under them.
    pub reasons: &'a [(&'a str, &'a str)],
}

/// A [`Sink`] that writes for Perfetto. The first error is kept for [`finish`](Self::finish).
pub struct PerfettoWriter<W: Write> {
    out: W,
    status: io::Result<()>,
    packet: Message,
    states: StateBits,
    bundles: Vec<Bundle>,
    queues: RunQueues,
    /// As they were told last.
    told: Vec<LlcLoad>,
    tasks: Tasks,
    tracks: Tracks,
    /// Of the last event, as readers are to sort it.
    now: u64,
}

/// Events of a CPU that are not written yet.
#[derive(Default)]
struct Bundle {
    events: Message,
    lost: bool,
}

/// The numbers of tracks: of each LLC three, then one for each CPU, then threads as they come.
struct Tracks {
    nr_llcs: u64,
    next: TrackId,
}

impl Tracks {
    fn llc(llc: usize) -> TrackId {
        1 + 3 * llc as u64
    }

    fn idle_cpus(llc: usize) -> TrackId {
        Self::llc(llc) + 1
    }

    fn queued(llc: usize) -> TrackId {
        Self::llc(llc) + 2
    }

    fn cpu(&self, cpu: u32) -> TrackId {
        1 + 3 * self.nr_llcs + u64::from(cpu)
    }

    fn thread(&mut self) -> TrackId {
        self.next += 1;
        self.next
    }
}

impl<W: Write> PerfettoWriter<W> {
    /// For a trace of this machine; the header names its kernel.
    pub fn new(out: W, header: &Header, machine: &Machine) -> Self {
        let (nr_llcs, nr_cpus) = (machine.nr_llcs() as u64, machine.cpus.len());
        let tracks = Tracks { nr_llcs, next: 1 + 3 * nr_llcs + nr_cpus as u64 };
        let mut writer = PerfettoWriter {
            out,
            status: Ok(()),
            packet: Message::default(),
            states: StateBits::of(header.kernel.as_deref()),
            bundles: (0..nr_cpus).map(|_| Bundle::default()).collect(),
            queues: RunQueues::new(machine),
            told: Vec::new(),
            tasks: Tasks::default(),
            tracks,
            now: 0,
        };
        packets::system_info(&mut writer.packet, header.kernel.as_deref());
        writer.describe_machine(machine);
        writer.write_packets();
        writer
    }

    fn describe_machine(&mut self, machine: &Machine) {
        let out = &mut self.packet;
        for llc in 0..machine.nr_llcs() {
            let (group, name) = (Tracks::llc(llc), format!("LLC {llc}"));
            packets::group_track(out, group, &name, llc as u64);
            packets::child_track(out, Tracks::idle_cpus(llc), group, "idle CPUs", 0, true);
            packets::child_track(out, Tracks::queued(llc), group, "queued tasks", 1, true);
        }
        for (cpu, at) in machine.cpus.iter().enumerate().filter(|(_, at)| at.online) {
            let (track, group) = (self.tracks.cpu(cpu as u32), Tracks::llc(at.llc.into()));
            let name = format!("CPU {cpu} decides");
            packets::child_track(out, track, group, &name, 2 + cpu as u64, false);
        }
    }

    /// A decision, after the events up to its time or later.
    pub fn placed(&mut self, placement: &Placement<'_>) {
        self.place(placement, placement.time_ns);
        self.write_packets();
    }

    fn place(&mut self, placement: &Placement<'_>, timestamp: u64) {
        let track = self.tracks.cpu(placement.cpu);
        packets::track_event(&mut self.packet, timestamp, track, Type::Instant, |event| {
            packets::name(event, placement.kind, &format!("place {}", placement.task));
            packets::flow(event, flow(placement.pid, placement.time_ns));
            packets::number_argument(event, "pid", placement.pid.into());
            packets::number_argument(event, "from CPU", placement.from_cpu.into());
            packets::number_argument(event, "to CPU", placement.to_cpu.into());
            for (name, value) in placement.reasons {
                packets::text_argument(event, name, value);
            }
        });
    }

    /// One that the trace itself recorded.
    fn decided(&mut self, record: &Record<'_>, decision: &Decision) {
        let kind = match decision.placement {
            Readings::Wakeup(_) => "wakeup",
            Readings::Fork(_) => "fork",
            Readings::Exec(_) => "exec",
        };
        let task = self.tasks.name(decision.pid).to_owned();
        let reasons = [
            ("waker", format!("{}-{}", record.comm, decision.waker_pid)),
            ("wake_affine", decision.affine.word().to_owned()),
            ("target", format!("CPU {}", decision.target_cpu)),
            ("search", decision.search.word().to_owned()),
            ("idle CPUs", decision.idle.to_string()),
        ];
        let reasons: Vec<(&str, &str)> =
            reasons.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let placement = Placement {
            time_ns: record.time_ns,
            kind,
            cpu: record.cpu,
            task: &task,
            pid: decision.pid,
            from_cpu: decision.prev_cpu.into(),
            to_cpu: decision.result_cpu.into(),
            reasons: &reasons,
        };
        self.place(&placement, self.now);
    }

    fn bundle(&mut self, record: &Record<'_>) {
        let Bundle { events, .. } = &mut self.bundles[record.cpu as usize];
        let (timestamp, states) = (self.now, self.states);
        events.message(2, |event| ftrace::write(event, record, timestamp, states));
        if events.len() >= BUNDLE_BYTES {
            self.write_bundle(record.cpu);
        }
    }

    fn write_bundle(&mut self, cpu: u32) {
        let bundle = &mut self.bundles[cpu as usize];
        if bundle.events.len() > 0 {
            packets::ftrace_events(&mut self.packet, cpu, &bundle.events, bundle.lost);
            bundle.events.clear();
            bundle.lost = false;
        }
    }

    /// What ran, where the record says so: its process, and that its wait is over.
    fn follow_current(&mut self, record: &Record<'_>) {
        let pid = record.pid;
        if pid == 0 {
            return;
        }
        let task = self.tasks.named(pid, record.comm);
        if let Some(tgid) = record.tgid
            && task.tgid.replace(tgid) != Some(tgid)
        {
            let comm = task.comm.clone();
            let leader = self.tasks.name(tgid);
            let name = if leader.is_empty() { &comm } else { leader };
            packets::process_tree(&mut self.packet, pid, tgid, name);
        }
        self.tell_wait(pid);
    }

    fn tell_wait(&mut self, pid: u32) {
        let task = self.tasks.of(pid);
        let Some(wait) = task.take_wait() else { return };
        let tgid = task.tgid.unwrap_or(pid);
        if task.tgid.is_none() {
            task.tgid = Some(pid);
            packets::process_tree(&mut self.packet, pid, pid, &task.comm);
        }
        let track = *task.track.get_or_insert_with(|| {
            let track = self.tracks.thread();
            packets::thread_track(&mut self.packet, track, pid, tgid);
            track
        });
        packets::track_event(&mut self.packet, wait.since, track, Type::SliceBegin, |event| {
            packets::name(event, "wait", "wakeup to run");
            packets::terminating_flow(event, flow(pid, wait.woken_ns));
        });
        let until = wait.until.expect("it is over");
        packets::track_event(&mut self.packet, until, track, Type::SliceEnd, |_| ());
    }

    fn follow_tasks(&mut self, record: &Record<'_>) {
        let (time_ns, now) = (record.time_ns, self.now);
        match record.event {
            Event::Waking { comm, pid, .. } | Event::WakeupNew { comm, pid, .. } => {
                self.tell_wait(pid);
                self.tasks.named(pid, comm).woken(time_ns, now);
            }
            Event::Switch { prev_pid, prev_state, next_comm, next_pid, .. } => {
                if prev_pid != 0 && prev_state.starts_with(['X', 'Z']) {
                    self.tasks.forget(prev_pid);
                }
                if next_pid != 0 {
                    self.tasks.named(next_pid, next_comm).runs(now);
                }
            }
            Event::Fork { child_comm, child_pid, .. } => {
                self.tell_wait(child_pid);
                self.tasks.forget(child_pid);
                self.tasks.named(child_pid, child_comm);
            }
            _ => {}
        }
    }

    fn count(&mut self, record: &Record<'_>) {
        self.queues.follow(record);
        let loads = self.queues.llcs();
        let is_first = self.told.is_empty();
        self.told.resize(loads.len(), LlcLoad::default());
        for (llc, (told, load)) in self.told.iter_mut().zip(loads).enumerate() {
            if is_first || told.idle_cpus != load.idle_cpus {
                let track = Tracks::idle_cpus(llc);
                packets::counter(&mut self.packet, self.now, track, load.idle_cpus);
            }
            if is_first || told.queued != load.queued {
                packets::counter(&mut self.packet, self.now, Tracks::queued(llc), load.queued);
            }
            *told = *load;
        }
    }

    fn write_packets(&mut self) {
        if self.status.is_ok() {
            self.status = self.out.write_all(self.packet.as_bytes());
        }
        self.packet.clear();
    }

    /// Writes what is left. The writer back, or the first error.
    pub fn finish(mut self) -> io::Result<W> {
        for pid in self.tasks.waiting() {
            self.tell_wait(pid);
        }
        for cpu in 0..self.bundles.len() as u32 {
            self.write_bundle(cpu);
        }
        self.write_packets();
        self.status?;
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write> Sink for PerfettoWriter<W> {
    /// Records of CPUs that the machine does not have are left out.
    fn record(&mut self, record: &Record<'_>) {
        if record.cpu as usize >= self.bundles.len() {
            return;
        }
        if let Event::LostEvents { .. } = record.event {
            self.write_bundle(record.cpu);
            self.bundles[record.cpu as usize].lost = true;
            return self.write_packets();
        }
        self.now = record.time_ns.max(self.now + 1);
        match &record.event {
            Event::Decision(decision) => self.decided(record, decision),
            _ => {
                self.follow_current(record);
                self.bundle(record);
                self.follow_tasks(record);
                self.count(record);
            }
        }
        self.write_packets();
    }

    fn takes_decisions(&self) -> bool {
        true
    }
}

/// The number of the arrow to a wait, which both its ends know.
fn flow(pid: u32, woken_ns: u64) -> u64 {
    woken_ns.wrapping_mul(1 << 22) ^ u64::from(pid)
}
