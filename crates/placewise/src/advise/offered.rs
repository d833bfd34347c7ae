//! What the recorded kernel offers: its knobs turned, one at a time, and, where `scx_placewise` runs, its
//! patches loaded, or a hint for a group.
//!
//! Limits: knobs at a few values; `scx_placewise` is taken to cost nothing by itself.

use std::path::PathBuf;

use placewise_hint::{Fork, Hint, Wake};
use placewise_policy::{Policy, patch_names, with_knobs};
use placewise_replay::{Group, Step as Recorded};

use super::candidate::{Candidate, Changed, MOST_OF_A_KIND, Situation};
use super::step::{Step, Treatment};

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

/// Whether threads of a process gather on an LLC, and how large processes may be that do. Their file in
/// debugfs has no `llc_` before its name.
const GATHERING: [(&str, [&str; 2]); 2] =
    [("llc_enabled", ["0", "1"]), ("llc_aggr_tolerance", ["0", "100"])];

/// The first kernel that `scx_placewise` runs under.
const LIVE_FROM: (u32, u32) = (6, 12);

/// The policy with which `scx_placewise` decides as the kernel does, but for hints.
const BASELINE: &str = "baseline";

impl Situation<'_> {
    pub(super) fn offered(&self) -> Vec<Candidate> {
        let mut all = self.knobs();
        if self.is_live() {
            all.extend(self.patches());
            all.extend(self.hints());
        }
        all
    }

    fn knobs(&self) -> Vec<Candidate> {
        let features = FEATURES.iter().flat_map(|name| ["0", "1"].map(|value| (*name, value)));
        let numbers = NUMBERS.iter().chain(&GATHERING);
        let numbers = numbers.flat_map(|(name, values)| values.map(|value| (*name, value)));
        features.chain(numbers).filter_map(|(name, value)| self.knob(name, value)).collect()
    }

    /// `None` where the kernel has no such knob, or has it so.
    fn knob(&self, name: &str, value: &str) -> Option<Candidate> {
        let policy =
            self.policy(&with_knobs(&self.kernel.policy.name, &[format!("{name}={value}")]))?;
        let is_feature = name.starts_with(|first: char| first.is_ascii_uppercase());
        let turned = |on: bool| Some(format!("{}{name}", if on { "" } else { "NO_" }));
        let file = self.file(name, is_feature);
        let step = match is_feature {
            true => Step::Setting { file, then: turned(value == "1"), was: turned(value == "0") },
            // What it was depends on the machine.
            false => Step::Setting { file, then: Some(value.into()), was: None },
        };
        let what = format!("set {name} to {value}");
        Some(Candidate { what, steps: vec![step], policy: Some(policy), ..Candidate::default() })
    }

    /// Since v5.13 the scheduler's knobs have a directory of their own.
    fn file(&self, name: &str, is_feature: bool) -> PathBuf {
        let has_directory = version(&self.kernel.name) >= (5, 13);
        match (has_directory, is_feature, name.strip_prefix("llc_")) {
            (true, true, _) => "/sys/kernel/debug/sched/features".into(),
            (false, true, _) => "/sys/kernel/debug/sched_features".into(),
            (true, false, Some(of_llc)) => {
                format!("/sys/kernel/debug/sched/llc_balancing/{of_llc}").into()
            }
            (true, false, None) => format!("/sys/kernel/debug/sched/{name}").into(),
            (false, false, _) => format!("/proc/sys/kernel/sched_{name}").into(),
        }
    }

    /// Does `scx_placewise` place as this kernel does, but for what it is told?
    fn is_live(&self) -> bool {
        self.kernel.policy.name == BASELINE && version(&self.kernel.name) >= LIVE_FROM
    }

    fn patches(&self) -> Vec<Candidate> {
        let names = patch_names().into_iter().map(|(name, _)| name);
        let mut loaded: Vec<Candidate> = Vec::new();
        for name in names.filter(|name| !name.starts_with("hint:")) {
            let is_live = |policy: &Policy| policy.simulated_only().is_none();
            let Some(policy) = self.policy(&name).filter(is_live) else { continue };
            let decides = |other: &Candidate| is_alike(other.policy(&self.kernel.policy), &policy);
            // Some have two names.
            if !loaded.iter().any(decides) {
                loaded.push(Candidate {
                    what: format!("load scx_placewise with {name}"),
                    steps: vec![Step::Scheduler { policy: name, loads: true }],
                    policy: Some(policy),
                    ..Candidate::default()
                });
            }
        }
        loaded
    }

    /// Each hint for each group that it says something to: wakeups over LLCs, where there are several;
    /// forks, where it forks.
    fn hints(&self) -> Vec<Candidate> {
        let fork = |fork| Hint { fork: Some(fork), ..Hint::NONE };
        let wake = |wake| Hint { wake: Some(wake), ..Hint::NONE };
        let of_group = |(name, group): &(String, Group)| {
            let forks = self.forks(group).then(|| [Fork::Affine, Fork::Spread].map(fork));
            let wakes = (self.machine.nr_llcs() > 1).then(|| [Wake::Affine, Wake::Hold].map(wake));
            let hints = wakes.into_iter().chain(forks).flatten();
            hints.map(|hint| self.hinted(hint, name, group)).collect::<Vec<_>>()
        };
        self.groups.iter().take(MOST_OF_A_KIND).flat_map(of_group).collect()
    }

    fn forks(&self, group: &Group) -> bool {
        let tasks = group.tasks.iter().map(|task| &self.recording.tasks[*task as usize]);
        tasks.flat_map(|task| &task.steps).any(|step| matches!(step, Recorded::Fork(_)))
    }

    fn hinted(&self, hint: Hint, name: &str, group: &Group) -> Candidate {
        let changes = group.tasks.iter().map(|task| (*task, Changed::Hint(hint))).collect();
        let what = format!("hint {hint} to {name}");
        let mut hinted = self.treated(what, changes, |_| Treatment::hint(Hint::NONE));
        if !hinted.steps.is_empty() {
            hinted.steps.insert(0, Step::Scheduler { policy: BASELINE.into(), loads: true });
        }
        hinted
    }

    /// `None` where the kernel has no place for it, or decides so already.
    fn policy(&self, spec: &str) -> Option<Policy> {
        let mut policy = Policy::parse(&self.kernel.name, spec).ok()?;
        // That is as recorded, and no knob of these.
        policy.profile.preempt = self.kernel.policy.profile.preempt;
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
    use placewise_replay::Recording;

    use super::*;
    use crate::advise::goal::Goal;
    use crate::audit::origin::Kernel;

    fn on(kernel: &str, look: impl Fn(&[Candidate])) {
        offered(kernel, Policy::parse(kernel, "baseline").unwrap(), look);
    }

    fn offered(kernel: &str, policy: Policy, look: impl Fn(&[Candidate])) {
        let (recording, machine) =
            (Recording::default(), placewise_machine::load("uma-8").unwrap());
        let kernel = Kernel { name: kernel.to_owned(), release: None, policy };
        let (recording, machine, kernel) = (&recording, &machine, &kernel);
        let goal = Goal::default();
        look(&Situation { recording, machine, kernel, groups: &[], goal: &goal }.candidates());
    }

    fn commands(all: &[Candidate], what: &str) -> Option<(Vec<String>, Vec<String>)> {
        let one = all.iter().find(|one| one.what == what)?;
        Some((one.commands(), one.undo()))
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
    fn whatever_is_turned_the_kernel_preempts_as_recorded() {
        let recorded = Policy::parse("v6.18.32", "baseline").unwrap().preempting(Some("none"));
        let mode = recorded.profile.preempt;
        offered("v6.18.32", recorded.clone(), |all| {
            let modes = all.iter().map(|one| one.policy(&recorded).profile.preempt);
            assert!(modes.clone().count() > 20 && modes.clone().all(|it| it == mode));
        });
    }

    #[test]
    fn patches_are_loaded_where_the_live_scheduler_runs() {
        let loads = |one: &Candidate| one.what.starts_with("load ");
        on("v6.6", |all| assert!(!all.iter().any(loads)));
        on("v7.3", |all| assert!(all.iter().any(loads)));
        on("v6.18", |all| {
            assert!(commands(all, "load scx_placewise with short-task:v4").is_some());
            assert!(
                commands(all, "load scx_placewise with next-buddy").is_none(),
                "simulated only"
            );
            assert!(!all.iter().any(|one| one.what.contains("hint:")));
        });
    }
}
