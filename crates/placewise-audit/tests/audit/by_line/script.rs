//! A trace that is written line by line, as ftrace prints it, and what the audit makes of it.
//!
//! The machine has 16 CPUs: two nodes of two LLCs of two cores of two CPUs. LLC 0 has CPUs 0 to 3.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Cursor;

use placewise_audit::{
    Audit, Decided, Kind, NoPlacement, Observer, Options, Placed, Reconstruction, Stated, Timeline,
    audit,
};
use placewise_machine::load;
use placewise_policy::Policy;
use placewise_trace::TraceReader;

pub const MACHINE: &str = "numa:2 l3:2 core:2 pu:2";

/// A task in the kernel, interrupts off.
const TASK: &str = "d..2.";
pub const SOFT_INTERRUPT: &str = "d.s4.";

#[derive(Default)]
pub struct Script {
    text: String,
    us: u64,
    /// What runs on each CPU; 0 where nothing does.
    current: BTreeMap<u32, u32>,
    names: BTreeMap<u32, &'static str>,
    prios: BTreeMap<u32, i32>,
    flags: Option<&'static str>,
}

/// One decision of the kernel's policy.
#[derive(Debug)]
pub struct Seen {
    pub us: u64,
    pub pid: u32,
    pub placed: Placed,
}

#[derive(Default)]
struct Watch(Vec<Seen>);

impl Observer for Watch {
    fn decided(&mut self, decision: &Decided<'_>) {
        self.0.push(Seen {
            us: decision.time_ns / 1_000,
            pid: decision.tasks.get(decision.placed.task).pid,
            placed: *decision.placed,
        });
    }
}

pub struct Audited {
    pub audit: Audit,
    pub decisions: Vec<Seen>,
}

impl Audited {
    pub fn no_placement(&self, why: NoPlacement) -> u64 {
        self.audit.no_placement.get(&why).copied().unwrap_or(0)
    }

    /// The only decision about this task.
    pub fn decision(&self, pid: u32) -> &Placed {
        let mut about = self.decisions.iter().filter(|seen| seen.pid == pid);
        let first = about.next().unwrap_or_else(|| panic!("no decision about {pid}"));
        assert!(about.next().is_none(), "one decision about {pid}");
        &first.placed
    }

    pub fn wakeups_of(&self, pid: u32) -> usize {
        let is = |seen: &&Seen| seen.pid == pid && seen.placed.kind == Kind::Wakeup;
        self.decisions.iter().filter(is).count()
    }
}

impl Script {
    /// Nobody runs; the time is 1 s.
    pub fn new() -> Self {
        Script { us: 1_000_000, ..Script::default() }
    }

    pub fn at(&mut self, us: u64) -> &mut Self {
        self.us = 1_000_000 + us;
        self
    }

    pub fn after(&mut self, us: u64) -> &mut Self {
        self.us += us;
        self
    }

    pub fn named(&mut self, pid: u32, name: &'static str) -> &mut Self {
        self.names.insert(pid, name);
        self
    }

    pub fn prio(&mut self, pid: u32, prio: i32) -> &mut Self {
        self.prios.insert(pid, prio);
        self
    }

    /// The flags of the next line.
    pub fn with_flags(&mut self, flags: &'static str) -> &mut Self {
        self.flags = Some(flags);
        self
    }

    /// Before any event of its own, `pid` runs on `cpu`.
    pub fn runs(&mut self, cpu: u32, pid: u32) -> &mut Self {
        self.current.insert(cpu, pid);
        self
    }

    pub fn raw(&mut self, line: &str) -> &mut Self {
        self.text.push_str(line);
        self.text.push('\n');
        self
    }

    fn comm(&self, pid: u32) -> String {
        self.names.get(&pid).map_or(format!("task{pid}"), |name| (*name).to_owned())
    }

    fn who(&self, pid: u32) -> String {
        let prio = self.prios.get(&pid).copied().unwrap_or(120);
        format!("comm={} pid={pid} prio={prio}", self.comm(pid))
    }

    pub fn event(&mut self, cpu: u32, event: &str) -> &mut Self {
        let pid = self.current.get(&cpu).copied().unwrap_or(0);
        let comm = if pid == 0 { "<idle>".to_owned() } else { self.comm(pid) };
        let flags = self.flags.take().unwrap_or(TASK);
        let (s, us) = (self.us / 1_000_000, self.us % 1_000_000);
        writeln!(self.text, "{comm:>16}-{pid:<7} [{cpu:03}] {flags} {s:5}.{us:06}: {event}")
            .unwrap();
        self
    }

    pub fn waking(&mut self, cpu: u32, pid: u32, prev: u32) -> &mut Self {
        let event = format!("sched_waking: {} target_cpu={prev:03}", self.who(pid));
        self.event(cpu, &event)
    }

    pub fn migrate(&mut self, cpu: u32, pid: u32, from: u32, to: u32) -> &mut Self {
        let event = format!("sched_migrate_task: {} orig_cpu={from} dest_cpu={to}", self.who(pid));
        self.event(cpu, &event)
    }

    /// Printed by `cpu`.
    pub fn wakeup(&mut self, cpu: u32, pid: u32, target: u32) -> &mut Self {
        let event = format!("sched_wakeup: {} target_cpu={target:03}", self.who(pid));
        self.event(cpu, &event)
    }

    /// A whole wakeup, enqueued by the CPU it is for.
    pub fn wake(&mut self, cpu: u32, pid: u32, prev: u32, target: u32) -> &mut Self {
        self.waking(cpu, pid, prev);
        if prev != target {
            self.migrate(cpu, pid, prev, target);
        }
        self.wakeup(target, pid, target)
    }

    pub fn switch(&mut self, cpu: u32, state: &str, next: u32) -> &mut Self {
        let prev = self.current.get(&cpu).copied().unwrap_or(0);
        let side = |pid: u32, side: &str| {
            let comm = if pid == 0 { format!("swapper/{cpu}") } else { self.comm(pid) };
            let prio = self.prios.get(&pid).copied().unwrap_or(120);
            format!("{side}_comm={comm} {side}_pid={pid} {side}_prio={prio}")
        };
        let (prev, next_side) = (side(prev, "prev"), side(next, "next"));
        let event = format!("sched_switch: {prev} prev_state={state} ==> {next_side}");
        self.event(cpu, &event);
        self.runs(cpu, next)
    }

    pub fn sleeps(&mut self, cpu: u32) -> &mut Self {
        self.switch(cpu, "S", 0)
    }

    pub fn fork(&mut self, cpu: u32, child: u32) -> &mut Self {
        let parent = self.current[&cpu];
        let event = format!(
            "sched_process_fork: comm={} pid={parent} child_comm={} child_pid={child}",
            self.comm(parent),
            self.comm(child)
        );
        self.event(cpu, &event)
    }

    pub fn wakeup_new(&mut self, cpu: u32, pid: u32, target: u32) -> &mut Self {
        let event = format!("sched_wakeup_new: {} target_cpu={target:03}", self.who(pid));
        self.event(cpu, &event)
    }

    pub fn reader(&self) -> TraceReader {
        TraceReader::from_reader("trace", Cursor::new(self.text.clone().into_bytes())).unwrap()
    }

    pub fn audit(&self, kernel: &str) -> Audited {
        self.audit_on(MACHINE, kernel)
    }

    pub fn audit_on(&self, machine: &str, kernel: &str) -> Audited {
        let machine = load(machine).unwrap();
        let policy = Policy::parse(kernel, "baseline").unwrap();
        let options = Options { machine: &machine, kernel: &policy, others: &[], task: None };
        let mut watch = Watch::default();
        let audit = audit(&mut self.reader(), &options, &mut watch).unwrap();
        Audited { audit, decisions: watch.0 }
    }

    /// What the trace has led to.
    pub fn reconstruct(&self, kernel: &str) -> (Reconstruction, Timeline) {
        let policy = Policy::parse(kernel, "baseline").unwrap();
        let machine = load(MACHINE).unwrap();
        let mut reconstruction =
            Reconstruction::new(&machine, &policy, &Stated::default()).unwrap();
        let mut timeline = Timeline::new(machine.cpus.len() as u32, 4_000_000, false);
        let mut reader = self.reader();
        while let Some(record) = reader.next_record().unwrap() {
            timeline.push(&record);
        }
        timeline.end();
        while let Some(step) = timeline.pop() {
            reconstruction.step(&step, timeline.tasks());
        }
        (reconstruction, timeline)
    }
}
