//! How many tasks of each name are on each LLC and node, on average over the window. A task that
//! sleeps counts where it ran last, as ps shows it.
//!
//! The state is looked at once in a millisecond of simulated time. Nothing changes between two
//! events, so one look before an event stands for all that have become due since the last.

use placewise_machine::Machine;
use placewise_policy::{CpuId, Table};
use placewise_workload::program::Workload;

use crate::outcome::Figure;
use crate::state::event_queue::Time;

const PERIOD: Time = 1_000_000;

pub struct Occupancy {
    /// The different names of programs, and the name of each program.
    names: Vec<String>,
    name_of_program: Vec<usize>,
    llc_of_cpu: Table<CpuId, u16>,
    node_of_llc: Vec<u16>,
    nr_nodes: usize,
    /// Tasks found, by name and LLC.
    found: Vec<Vec<u64>>,
    looks: u64,
    next: Time,
}

impl Occupancy {
    pub fn new(machine: &Machine, workload: &Workload) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut number = |name: &String| {
            names.iter().position(|known| known == name).unwrap_or_else(|| {
                names.push(name.clone());
                names.len() - 1
            })
        };
        let name_of_program = workload.programs.iter().map(|it| number(&it.name)).collect();
        let mut node_of_llc = vec![0; machine.nr_llcs()];
        for cpu in machine.online().iter() {
            node_of_llc[usize::from(machine.cpus[cpu].llc)] = machine.cpus[cpu].node;
        }
        Occupancy {
            found: vec![vec![0; machine.nr_llcs()]; names.len()],
            names,
            name_of_program,
            llc_of_cpu: machine.cpus.iter().map(|cpu| cpu.llc).collect(),
            node_of_llc,
            nr_nodes: machine.nr_nodes(),
            looks: 0,
            next: Time::MAX,
        }
    }

    /// The window begins; one before it was too early.
    pub fn start(&mut self, now: Time) {
        self.found.iter_mut().for_each(|on_llc| on_llc.fill(0));
        self.looks = 0;
        self.next = now;
    }

    #[inline]
    pub fn is_due(&self, time: Time) -> bool {
        time >= self.next
    }

    /// How many looks are due by `time`, which may be none; they are taken now.
    pub fn take_looks(&mut self, time: Time) -> u64 {
        let Some(since) = time.checked_sub(self.next) else { return 0 };
        let looks = since / PERIOD + 1;
        self.next += looks * PERIOD;
        self.looks += looks;
        looks
    }

    /// A task of `program` was on `cpu` whenever it was looked for.
    pub fn found(&mut self, program: u32, cpu: CpuId, looks: u64) {
        let name = self.name_of_program[program as usize];
        let llc = self.llc_of_cpu[cpu];
        self.found[name][usize::from(llc)] += looks;
    }

    /// The means, by name; by LLC only where that says more than by node.
    pub fn figures(&self) -> impl Iterator<Item = Figure> {
        let looks = self.looks.max(1) as f64;
        let figure = move |metric, found: u64| Figure {
            metric,
            value: found as f64 / looks,
            unit: "tasks",
            better: None,
        };
        self.names.iter().zip(&self.found).flat_map(move |(name, on_llc)| {
            let on_node = (0..self.nr_nodes).map(move |node| {
                let llcs = self.node_of_llc.iter().zip(on_llc);
                let here = llcs.filter(|(of, _)| usize::from(**of) == node);
                figure(format!("{name}_on_node_{node}"), here.map(|(_, found)| found).sum())
            });
            let told = if on_llc.len() == self.nr_nodes { &[] } else { &on_llc[..] };
            let on_llc = told.iter().enumerate();
            let on_llc =
                on_llc.map(move |(llc, &found)| figure(format!("{name}_on_llc_{llc}"), found));
            on_node.chain(on_llc)
        })
    }
}
