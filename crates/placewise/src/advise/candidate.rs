//! What could be done otherwise, with the steps that do it: a list that does not grow with the trace.
//!
//! Groups are bound to the LLC or node where most of them began, and all of them apart, over LLCs by
//! load; only where they fit. What is bound more narrowly than the machine is set free. What is not
//! the load in question gives way to it: off its LLC, or SCHED_IDLE. Cores are left to one thread each.
//! What cgroups could have less of is in [`super::cgroup`], what the kernel offers in [`super::offered`].
//! Limits: one thing at a time.

use std::collections::{BTreeMap, BTreeSet};

use placewise_hint::Hint;
use placewise_machine::{Cpu, CpuSet, Machine};
use placewise_policy::Policy;
use placewise_replay::{Group, RecordedTask, Recording, TaskIndex};
use placewise_workload::program::{Quota, SchedPolicy, Workload};

use super::goal::Goal;
use super::step::{Step, Thread, Treatment};
use crate::audit::origin::Kernel;

/// Groups, and names of bound tasks, that have candidates of their own.
pub const MOST_OF_A_KIND: usize = 4;

/// One thing to do.
#[derive(Default)]
pub struct Candidate {
    pub what: String,
    pub steps: Vec<Step>,
    pub policy: Option<Policy>,
    /// Tasks by their place in the recording.
    pub changes: Vec<(TaskIndex, Changed)>,
    /// What cgroups have then, by their place in the recording.
    pub cgroups: Vec<(u32, Allotted)>,
}

/// What a cgroup has of the CPUs.
#[derive(Clone, Copy)]
pub enum Allotted {
    Shares(u32),
    Quota(Quota),
}

/// How a task is treated then.
#[derive(Clone, Copy)]
pub enum Changed {
    Cpus(Option<CpuSet>),
    Idle,
    Hint(Hint),
}

impl Candidate {
    pub fn policy<'a>(&'a self, recorded: &'a Policy) -> &'a Policy {
        self.policy.as_ref().unwrap_or(recorded)
    }

    /// The recording's workload as it is then.
    pub fn apply(&self, recording: &Recording, workload: &mut Workload) {
        for (task, changed) in &self.changes {
            let program = recording.program(workload, *task);
            match *changed {
                Changed::Cpus(cpus) => program.cpus = cpus,
                Changed::Idle => program.policy = SchedPolicy::Idle,
                Changed::Hint(hint) => program.hint = Some(hint),
            }
        }
        for (cgroup, allotted) in &self.cgroups {
            let cgroup = &mut workload.cgroups[*cgroup as usize];
            match *allotted {
                Allotted::Shares(shares) => cgroup.shares = shares,
                Allotted::Quota(quota) => cgroup.quota = Some(quota),
            }
        }
    }

    pub fn commands(&self) -> Vec<String> {
        self.steps.iter().flat_map(Step::commands).collect()
    }

    pub fn undo(&self) -> Vec<String> {
        self.steps.iter().rev().flat_map(|step| step.undo().commands()).collect()
    }
}

/// What candidates are made from.
pub struct Situation<'a> {
    pub recording: &'a Recording,
    pub machine: &'a Machine,
    pub kernel: &'a Kernel,
    /// Each with its name.
    pub groups: &'a [(String, Group)],
    pub goal: &'a Goal,
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
        let units = self.units();
        all.extend(self.one_thread_of_each_core(&units));
        all.extend(self.giving_way(&units));
        all.extend(self.with_less_for_others());
        all.extend(self.offered());
        // Of a group that has exited there is nobody to bind.
        all.retain(|one| !one.steps.is_empty());
        all
    }

    /// All tasks that may not run everywhere, and those of each name, as if they might.
    fn freed(&self) -> Vec<Candidate> {
        let online = self.machine.online();
        let is_bound = |task: &RecordedTask| {
            let is_narrow = task.cpus.is_some_and(|cpus| cpus & online != online);
            is_narrow && !task.is_immovable() && !self.goal.is_unlike(&task.name)
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
        let everywhere = self.machine.online();
        let changes: Vec<_> = binds.map(|(task, cpus)| (task, Changed::Cpus(cpus))).collect();
        let was = |task: &RecordedTask| task.cpus.unwrap_or(everywhere);
        self.treated(what, changes, |task| Treatment::Cpus(was(task).to_string()))
    }

    /// With the steps that it takes: one for all threads that are treated alike, and were.
    pub(super) fn treated(
        &self,
        what: String,
        changes: Vec<(TaskIndex, Changed)>,
        was: impl Fn(&RecordedTask) -> Treatment,
    ) -> Candidate {
        let mut alike = BTreeMap::<(Treatment, Treatment), Vec<Thread>>::new();
        for (task, changed) in &changes {
            let task = &self.recording.tasks[*task as usize];
            // Whoever has exited needs no command.
            if task.exits || task.pid == 0 {
                continue;
            }
            let then = match changed {
                Changed::Cpus(cpus) => {
                    Treatment::Cpus(cpus.unwrap_or(self.machine.online()).to_string())
                }
                Changed::Idle => Treatment::Idle,
                Changed::Hint(hint) => Treatment::hint(*hint),
            };
            let thread = Thread { tid: task.pid, name: task.name.clone(), started: None };
            alike.entry((then, was(task))).or_default().push(thread);
        }
        let step = |((then, was), threads)| Step::Threads { threads, then, was };
        let steps = alike.into_iter().map(step).collect();
        Candidate { what, steps, changes, ..Candidate::default() }
    }

    /// What may be treated as one: the groups, and of who is in none all of a name. Those that computed
    /// most.
    fn units(&self) -> Vec<(String, Group)> {
        let grouped: BTreeSet<TaskIndex> =
            self.groups.iter().flat_map(|(_, group)| &group.tasks).copied().collect();
        let mut alone = BTreeMap::<&str, Vec<TaskIndex>>::new();
        for (task, index) in self.recording.tasks.iter().zip(0..) {
            let may_move = !task.is_immovable() && !self.goal.is_unlike(&task.name);
            if may_move && !grouped.contains(&index) {
                alone.entry(&task.name).or_default().push(index);
            }
        }
        let alone =
            alone.into_iter().map(|(name, tasks)| (name.to_owned(), self.recording.group(tasks)));
        let mut units: Vec<(String, Group)> = self.groups.iter().cloned().chain(alone).collect();
        units.sort_by_key(|(_, unit)| std::cmp::Reverse(unit.computing));
        units.truncate(MOST_OF_A_KIND);
        units
    }

    /// What the goal is about stays; each of the others leaves its LLC, or runs where nobody else would.
    fn giving_way(&self, units: &[(String, Group)]) -> Vec<Candidate> {
        let meant = units.iter().find(|(_, unit)| self.is_meant(unit));
        let Some((service, meant)) = meant else { return Vec::new() };
        let llc = self.home(meant, |cpu| cpu.llc);
        let elsewhere = self.machine.cpus_where(|cpu| cpu.online && cpu.llc != llc);
        let others = units.iter().filter(|(_, unit)| unit != meant);
        others
            .flat_map(|(name, unit)| {
                let fits = self.load(unit) <= elsewhere.len() as f64 && !elsewhere.is_empty();
                let what = format!("keep {name} off LLC {llc}, where {service} is");
                let binds = unit.tasks.iter().map(|task| (*task, Some(elsewhere)));
                let off = fits.then(|| self.bound(what, binds));
                off.into_iter().chain([self.idle(name, unit)])
            })
            .collect()
    }

    /// Has it a task of the goal?
    pub(super) fn is_meant(&self, unit: &Group) -> bool {
        let name = |task: &TaskIndex| &self.recording.tasks[*task as usize].name;
        unit.tasks.iter().any(|task| self.goal.names.contains(name(task)))
    }

    fn idle(&self, name: &str, unit: &Group) -> Candidate {
        let tasks = &self.recording.tasks;
        let is_other = |task: &&TaskIndex| tasks[**task as usize].policy == SchedPolicy::Other;
        let changes = unit.tasks.iter().filter(is_other).map(|task| (*task, Changed::Idle));
        let what = format!("let {name} run only where nobody else would (SCHED_IDLE)");
        self.treated(what, changes.collect(), |_| Treatment::Other)
    }

    /// Siblings stay free: of the load in most need of that, and of all.
    fn one_thread_of_each_core(&self, units: &[(String, Group)]) -> Vec<Candidate> {
        let mut cores = BTreeSet::new();
        let cpus = self.machine.cpus.iter().zip(0..).filter(|(cpu, _)| cpu.online);
        let first: CpuSet =
            cpus.filter(|(cpu, _)| cores.insert(cpu.core)).map(|(_, id)| id).collect();
        if first == self.machine.online() {
            return Vec::new();
        }
        let bound = |name: &str, units: &[(String, Group)]| {
            let load: f64 = units.iter().map(|(_, unit)| self.load(unit)).sum();
            let binds = units.iter().flat_map(|(_, unit)| &unit.tasks);
            let what = format!("keep {name} on one CPU of each core (CPUs {first})");
            (load <= first.len() as f64)
                .then(|| self.bound(what, binds.map(|task| (*task, Some(first)))))
        };
        let all = (units.len() > 1).then(|| bound("all that computes much", units)).flatten();
        let most = units.first().and_then(|unit| bound(&unit.0, std::slice::from_ref(unit)));
        all.into_iter().chain(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use placewise_replay::Begins;

    use super::*;

    /// Three tasks of which two are hinted.
    #[test]
    fn a_group_is_hinted_and_nobody_else() {
        let machine = placewise_machine::load("uma-8").unwrap();
        let task = |name: &str| RecordedTask { name: name.into(), ..RecordedTask::default() };
        let tasks = ["a", "b", "c"].map(task).into_iter().collect();
        let recording = Recording { length_ns: 1, cgroups: Vec::new(), tasks };
        let hint: Hint = "wake_hold".parse().unwrap();
        let candidate = Candidate {
            changes: [0, 2].map(|task| (task, Changed::Hint(hint))).into(),
            ..Candidate::default()
        };
        let mut workload = recording.workload("replay", &machine, Begins::AsRecorded);
        candidate.apply(&recording, &mut workload);
        let hinted = workload.programs.iter().filter(|program| program.hint == Some(hint));
        assert_eq!(hinted.map(|program| program.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(workload.programs.iter().filter(|it| it.hint.is_some()).count(), 2);
    }
}
