//! What could be done otherwise, with the commands that do it and that undo it: a list that does not
//! grow with the trace.
//!
//! Groups are bound to the LLC or node where most of them began, and all of them apart, over LLCs by
//! load; only where they fit. What is bound more narrowly than the machine is set free. Knobs of the
//! recorded kernel are turned, one at a time. Where `scx_placewise` runs, its patches are loaded.
//! Limits: one thing at a time; no cgroup's weight or quota; no hint, for the simulator gives one to all
//! tasks or none.

use std::collections::BTreeMap;

use placewise_machine::{Cpu, CpuSet, Machine};
use placewise_policy::{Policy, patch_names, with_knobs};
use placewise_replay::{Group, RecordedTask, Recording};

use crate::audit::origin::Kernel;

/// Groups, and names of bound tasks, that have candidates of their own.
const MOST_OF_A_KIND: usize = 4;

/// Those of the kernel that an administrator can turn, and that every build has.
const FEATURES: [&str; 10] = [
    "WA_IDLE",
    "WA_WEIGHT",
    "WA_BIAS",
    "SIS_UTIL",
    "SIS_PROP",
    "TTWU_QUEUE",
    "WAKEUP_PREEMPTION",
    "PLACE_LAG",
    "RUN_TO_PARITY",
    "DELAY_DEQUEUE",
];

/// A tenth, and ten times, of what kernels come with.
const NUMBERS: [(&str, [&str; 2]); 3] = [
    ("migration_cost_ns", ["50000", "5000000"]),
    ("base_slice_ns", ["300000", "30000000"]),
    ("wakeup_granularity_ns", ["400000", "40000000"]),
];

/// Kernels that `scx_placewise` runs under as they place tasks themselves.
const LIVE_FROM: (u32, u32) = (6, 12);
const LIVE_BEFORE: (u32, u32) = (7, 3);

/// Patches that are simulated only.
const SIMULATED_ONLY: [&str; 2] = ["shared-runq", "next-buddy"];

/// One thing to do.
pub struct Candidate {
    pub what: String,
    pub commands: Vec<String>,
    pub undo: Vec<String>,
    policy: Option<Policy>,
    /// Tasks by their place in the recording, and the CPUs they may use then.
    binds: Vec<(u32, Option<CpuSet>)>,
}

impl Candidate {
    pub fn policy<'a>(&'a self, recorded: &'a Policy) -> &'a Policy {
        self.policy.as_ref().unwrap_or(recorded)
    }

    /// The recording as it is then.
    pub fn apply(&self, recording: &Recording) -> Recording {
        let mut changed = recording.clone();
        for (task, cpus) in &self.binds {
            changed.tasks[*task as usize].cpus = *cpus;
        }
        changed
    }
}

/// What candidates are made from.
pub struct Situation<'a> {
    pub recording: &'a Recording,
    pub machine: &'a Machine,
    pub kernel: &'a Kernel,
    /// Each with its name.
    pub groups: &'a [(String, Group)],
    /// Names of tasks that are not to be set free.
    pub left_out: &'a [String],
}

impl Situation<'_> {
    pub fn candidates(&self) -> Vec<Candidate> {
        let mut all = self.freed();
        if self.machine.nr_llcs() > 1 {
            all.extend(self.apart());
            all.extend(self.together("LLC", |cpu| cpu.llc));
        }
        if self.machine.nr_nodes() > 1 && self.machine.nr_nodes() != self.machine.nr_llcs() {
            all.extend(self.together("node", |cpu| cpu.node));
        }
        all.extend(self.knobs());
        all.extend(self.patches());
        // Of a group that has exited there is nobody to bind.
        all.retain(|one| !one.commands.is_empty());
        all
    }

    /// All tasks that may not run everywhere, and those of each name, as if they might.
    fn freed(&self) -> Vec<Candidate> {
        let online = self.machine.online();
        let is_bound = |task: &RecordedTask| {
            let is_narrow = task.cpus.is_some_and(|cpus| cpus & online != online);
            is_narrow && !task.is_immovable() && !self.left_out.contains(&task.name)
        };
        let tasks = self.recording.tasks.iter().zip(0..);
        let bound: Vec<(&RecordedTask, u32)> = tasks.filter(|(task, _)| is_bound(task)).collect();
        let freed = |whose: &str, is_meant: &dyn Fn(&str) -> bool| {
            let meant = bound.iter().filter(|(task, _)| is_meant(&task.name));
            let binds = meant.map(|(_, index)| (*index, None));
            self.bound(format!("let {whose} run on all CPUs"), binds)
        };
        let names = self.recording.names().into_iter().map(|(name, _)| name);
        let names = names.filter(|name| bound.iter().any(|(task, _)| task.name == *name));
        let names: Vec<String> = names.take(MOST_OF_A_KIND).collect();
        let mut all = Vec::new();
        all.extend((names.len() > 1).then(|| freed("all bound tasks", &|_| true)));
        all.extend(names.iter().map(|name| freed(name, &|of| of == name)));
        all
    }

    /// Each group on the unit of the machine where most of its tasks began.
    fn together(&self, unit: &str, number: fn(&Cpu) -> u16) -> Vec<Candidate> {
        let bound = |(name, group): &(String, Group)| {
            let home = self.home(group, number);
            let cpus = self.machine.cpus_where(|cpu| number(cpu) == home);
            let fits = self.load(group) <= cpus.len() as f64;
            let what = format!("keep {name} on {unit} {home} (CPUs {cpus})");
            let binds = group.tasks.iter().map(|task| (*task, Some(cpus)));
            fits.then(|| self.bound(what, binds))
        };
        self.groups.iter().take(MOST_OF_A_KIND).filter_map(bound).collect()
    }

    /// All groups over the LLCs, those with most load first, each where least is; `None` where one does
    /// not fit.
    fn apart(&self) -> Option<Candidate> {
        let mut loads = vec![0.0_f64; self.machine.nr_llcs()];
        let (mut binds, mut places) = (Vec::new(), Vec::new());
        for (name, group) in self.groups {
            let least = (0..loads.len()).min_by(|a, b| loads[*a].total_cmp(&loads[*b]))?;
            let cpus = self.machine.cpus_where(|cpu| usize::from(cpu.llc) == least);
            loads[least] += self.load(group);
            if loads[least] > cpus.len() as f64 {
                return None;
            }
            binds.extend(group.tasks.iter().map(|task| (*task, Some(cpus))));
            places.push(format!("{name} on LLC {least}"));
        }
        let rest = places.len().saturating_sub(MOST_OF_A_KIND);
        places.truncate(MOST_OF_A_KIND);
        places.extend((rest > 0).then(|| format!("{rest} more groups")));
        let what = format!("keep groups apart: {}", places.join(", "));
        (self.groups.len() > 1).then(|| self.bound(what, binds.into_iter()))
    }

    fn home(&self, group: &Group, number: fn(&Cpu) -> u16) -> u16 {
        let mut began = BTreeMap::<u16, usize>::new();
        for task in &group.tasks {
            let cpu = self.recording.tasks[*task as usize].begins_on as usize;
            if let Some(cpu) = self.machine.cpus.get(cpu).filter(|cpu| cpu.online) {
                *began.entry(number(cpu)).or_default() += 1;
            }
        }
        let most =
            began.iter().max_by_key(|(number, tasks)| (**tasks, std::cmp::Reverse(**number)));
        most.map_or(0, |(number, _)| *number)
    }

    /// How many CPUs it kept busy.
    fn load(&self, group: &Group) -> f64 {
        group.computing as f64 / self.recording.length_ns.max(1) as f64
    }

    fn bound(&self, what: String, binds: impl Iterator<Item = (u32, Option<CpuSet>)>) -> Candidate {
        let binds: Vec<_> = binds.collect();
        let everywhere = self.machine.online();
        let then = binds.iter().map(|(task, cpus)| (*task, cpus.unwrap_or(everywhere)));
        let tasks = &self.recording.tasks;
        let was =
            binds.iter().map(|(task, _)| (*task, tasks[*task as usize].cpus.unwrap_or(everywhere)));
        let (commands, undo) = (self.taskset(then), self.taskset(was));
        Candidate { what, commands, undo, policy: None, binds }
    }

    /// A command for all threads that get the same CPUs. Whoever has exited needs none.
    fn taskset(&self, binds: impl Iterator<Item = (u32, CpuSet)>) -> Vec<String> {
        let mut by_cpus = BTreeMap::<String, Vec<String>>::new();
        for (task, cpus) in binds {
            let task = &self.recording.tasks[task as usize];
            if !task.exits && task.pid != 0 {
                by_cpus.entry(cpus.to_string()).or_default().push(task.pid.to_string());
            }
        }
        let command = |(cpus, threads): (String, Vec<String>)| match &threads[..] {
            [only] => format!("taskset -pc {cpus} {only}"),
            all => format!("for t in {}; do taskset -pc {cpus} $t; done", all.join(" ")),
        };
        by_cpus.into_iter().map(command).collect()
    }

    fn knobs(&self) -> Vec<Candidate> {
        let features = FEATURES.iter().flat_map(|name| ["0", "1"].map(|value| (*name, value)));
        let numbers = NUMBERS.iter().flat_map(|(name, values)| values.map(|value| (*name, value)));
        features.chain(numbers).filter_map(|(name, value)| self.knob(name, value)).collect()
    }

    /// `None` where the kernel has no such knob, or has it so.
    fn knob(&self, name: &str, value: &str) -> Option<Candidate> {
        let policy =
            self.policy(&with_knobs(&self.kernel.policy.name, &[format!("{name}={value}")]))?;
        let (commands, undo) = match name.starts_with(|first: char| first.is_ascii_uppercase()) {
            true => self.turn_feature(name, value == "1"),
            false => self.set_number(name, value),
        };
        let what = format!("set {name} to {value}");
        Some(Candidate { what, commands, undo, policy: Some(policy), binds: Vec::new() })
    }

    fn turn_feature(&self, name: &str, on: bool) -> (Vec<String>, Vec<String>) {
        let file = match self.has_debugfs_directory() {
            true => "/sys/kernel/debug/sched/features",
            false => "/sys/kernel/debug/sched_features",
        };
        let turn = |on: bool| vec![format!("echo {}{name} > {file}", if on { "" } else { "NO_" })];
        (turn(on), turn(!on))
    }

    /// What it was depends on the machine: the command keeps it.
    fn set_number(&self, name: &str, value: &str) -> (Vec<String>, Vec<String>) {
        let file = match self.has_debugfs_directory() {
            true => format!("/sys/kernel/debug/sched/{name}"),
            false => format!("/proc/sys/kernel/sched_{name}"),
        };
        let set = vec![format!("was=$(cat {file})"), format!("echo {value} > {file}")];
        (set, vec![format!("echo $was > {file}")])
    }

    /// Since v5.13 the scheduler's knobs have a directory of their own.
    fn has_debugfs_directory(&self) -> bool {
        version(&self.kernel.name) >= (5, 13)
    }

    fn patches(&self) -> Vec<Candidate> {
        let version = version(&self.kernel.name);
        if self.kernel.policy.name != "baseline" || version < LIVE_FROM || version >= LIVE_BEFORE {
            return Vec::new();
        }
        let is_live = |name: &String| {
            let simulated = SIMULATED_ONLY.iter().any(|patch| name.starts_with(patch));
            !name.starts_with("hint:") && !simulated
        };
        let mut loaded: Vec<Candidate> = Vec::new();
        for name in patch_names().into_iter().map(|(name, _)| name).filter(is_live) {
            let Some(policy) = self.policy(&name) else { continue };
            let decides = |other: &Candidate| is_alike(other.policy(&self.kernel.policy), &policy);
            // Some have two names.
            if !loaded.iter().any(decides) {
                loaded.push(Candidate {
                    what: format!("load scx_placewise with {name}"),
                    commands: vec![format!("scx_placewise --policy {name} &")],
                    undo: vec!["kill -INT $(pidof scx_placewise)".into()],
                    policy: Some(policy),
                    binds: Vec::new(),
                });
            }
        }
        loaded
    }

    /// `None` where the kernel has no place for it, or decides so already.
    fn policy(&self, spec: &str) -> Option<Policy> {
        let policy = Policy::parse(&self.kernel.name, spec).ok()?;
        (!is_alike(&policy, &self.kernel.policy)).then_some(policy)
    }
}

fn is_alike(one: &Policy, other: &Policy) -> bool {
    format!("{:?}", one.profile) == format!("{:?}", other.profile)
}

/// `v6.12.117` is (6, 12).
fn version(kernel: &str) -> (u32, u32) {
    let mut numbers = kernel.trim_start_matches('v').split('.').map_while(|it| it.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(kernel: &str, look: impl Fn(&[Candidate])) {
        let (recording, machine) =
            (Recording::default(), placewise_machine::load("uma-8").unwrap());
        let policy = Policy::parse(kernel, "baseline").unwrap();
        let kernel = Kernel { name: kernel.to_owned(), release: None, policy };
        let (recording, machine, kernel) = (&recording, &machine, &kernel);
        look(&Situation { recording, machine, kernel, groups: &[], left_out: &[] }.candidates());
    }

    fn commands<'a>(all: &'a [Candidate], what: &str) -> Option<(&'a [String], &'a [String])> {
        let one = all.iter().find(|one| one.what == what)?;
        Some((&one.commands, &one.undo))
    }

    #[test]
    fn knobs_are_the_kernels_own_and_stand_where_it_has_them() {
        on("v5.3", |all| {
            assert!(commands(all, "set SIS_UTIL to 0").is_none());
            assert!(commands(all, "set WA_IDLE to 1").is_none(), "it is 1");
            let (set, undo) = commands(all, "set WA_IDLE to 0").unwrap();
            assert_eq!(set, ["echo NO_WA_IDLE > /sys/kernel/debug/sched_features"]);
            assert_eq!(undo, ["echo WA_IDLE > /sys/kernel/debug/sched_features"]);
            let (_, undo) = commands(all, "set migration_cost_ns to 50000").unwrap();
            assert_eq!(undo, ["echo $was > /proc/sys/kernel/sched_migration_cost_ns"]);
        });
        on("v6.12", |all| {
            let (set, _) = commands(all, "set SIS_UTIL to 0").unwrap();
            assert_eq!(set, ["echo NO_SIS_UTIL > /sys/kernel/debug/sched/features"]);
            assert!(commands(all, "set SIS_PROP to 1").is_none());
        });
    }

    #[test]
    fn patches_are_loaded_where_the_live_scheduler_runs() {
        let loads = |one: &Candidate| one.what.starts_with("load ");
        on("v6.6", |all| assert!(!all.iter().any(loads)));
        on("v7.3", |all| assert!(!all.iter().any(loads)));
        on("v6.18", |all| {
            assert!(commands(all, "load scx_placewise with short-task:v4").is_some());
            assert!(!all.iter().any(|one| one.what.contains("hint:")));
        });
    }
}
