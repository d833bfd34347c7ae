//! What cgroups could have less of: each of those that compute most and have no task of the goal a tenth of its
//! weight, or half of the CPU time that it computed.
//!
//! A weight decides who waits where both want a CPU; a quota also leaves caches and siblings of cores to others.
//!
//! Limits: cgroups of version 2; a quota that there is already is not recorded, and none is taken away. A path
//! becomes part of a command for root, so only those are taken that a shell takes as they are.

use std::cmp::Reverse;

use placewise_replay::{Group, RecordedCgroup, RecordedTask};
use placewise_workload::program::{Cgroup, Quota};

use super::candidate::{Allotted, Candidate, MOST_OF_A_KIND, Situation};
use super::step::Step;

/// Where cgroups of version 2 are.
const ROOT: &str = "/sys/fs/cgroup";
/// What is no cgroup, but the autogroup of a session.
const AUTOGROUP: &str = "/autogroup-";

/// In which a quota is used up and renewed, as the kernel has it if nobody says otherwise.
const PERIOD_NS: u64 = 100_000_000;
/// The kernel takes no less.
const LEAST_QUOTA_NS: u64 = 1_000_000;

impl Situation<'_> {
    pub(super) fn with_less_for_others(&self) -> Vec<Candidate> {
        let is_other = |path: &str| !self.is_meant(&self.group_in(path));
        let is_outermost = |path: &str| {
            let above = path.rsplit_once('/').map(|(above, _)| above);
            !above.is_some_and(|above| !above.is_empty() && is_other(above))
        };
        let is_candidate = |(cgroup, _): &(&RecordedCgroup, u32)| {
            let path = &cgroup.path;
            is_plain(path) && is_other(path) && is_outermost(path)
        };
        let cgroups = self.recording.cgroups.iter().zip(0..);
        let mut others: Vec<(&RecordedCgroup, u32)> = cgroups.filter(is_candidate).collect();
        others.sort_by_key(|(cgroup, _)| Reverse(self.group_in(&cgroup.path).computing));
        others.truncate(MOST_OF_A_KIND);
        let lighter = others.iter().filter_map(|(cgroup, index)| lighter(cgroup, *index));
        let limited = others.iter().filter_map(|(cgroup, index)| self.limited(cgroup, *index));
        lighter.chain(limited).collect()
    }

    /// `None` where that is next to nothing.
    fn limited(&self, cgroup: &RecordedCgroup, index: u32) -> Option<Candidate> {
        let cpus = self.group_in(&cgroup.path).computing as f64 / self.recording.length_ns as f64;
        let quota = (cpus / 2.0 * PERIOD_NS as f64) as u64;
        let path = &cgroup.path;
        let max = format!("{} {}", quota / 1000, PERIOD_NS / 1000);
        (quota >= LEAST_QUOTA_NS).then(|| Candidate {
            what: format!(
                "give cgroup {path} {:.2} of the {cpus:.2} CPUs that it kept busy",
                cpus / 2.0
            ),
            steps: vec![Step::Setting {
                file: format!("{ROOT}{path}/cpu.max").into(),
                then: Some(max),
                was: None,
            }],
            cgroups: vec![(index, Allotted::Quota(Quota { quota, period: PERIOD_NS }))],
            ..Candidate::default()
        })
    }

    /// The tasks of a cgroup, and of those below it.
    fn group_in(&self, path: &str) -> Group {
        let is_in = |task: &RecordedTask| {
            let cgroup = task.cgroup.and_then(|at| self.recording.cgroups.get(at as usize));
            let below = cgroup.and_then(|cgroup| cgroup.path.strip_prefix(path));
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let tasks = self.recording.tasks.iter().zip(0..).filter(|(task, _)| is_in(task));
        self.recording.group(tasks.map(|(_, index)| index).collect())
    }
}

fn is_plain(path: &str) -> bool {
    let is_harmless = |c: char| c.is_ascii_alphanumeric() || "/_.@:+-".contains(c);
    path.chars().all(is_harmless) && !path.contains("..") && !path.starts_with(AUTOGROUP)
}

/// `None` where it weighs next to nothing already.
fn lighter(cgroup: &RecordedCgroup, index: u32) -> Option<Candidate> {
    let weight = Cgroup::weight_of(cgroup.shares);
    let less = (weight / 10).max(1);
    let path = &cgroup.path;
    (less < weight).then(|| Candidate {
        what: format!("let cgroup {path} weigh {less} instead of {weight}"),
        steps: vec![Step::Setting {
            file: format!("{ROOT}{path}/cpu.weight").into(),
            then: Some(less.to_string()),
            was: Some(weight.to_string()),
        }],
        cgroups: vec![(index, Allotted::Shares(Cgroup::shares_of(less)))],
        ..Candidate::default()
    })
}

#[cfg(test)]
mod tests {
    use placewise_policy::Policy;
    use placewise_replay::{Begins, Recording};

    use super::*;
    use crate::advise::goal::Goal;
    use crate::audit::origin::Kernel;

    /// Of web's own cgroup, one beside it with one below, one that a shell would trip over, and a session's.
    #[test]
    fn cgroups_beside_the_goals_have_less() {
        let cgroup = |path: &str| RecordedCgroup { path: path.into(), shares: 1024 };
        let cgroups = ["/autogroup-7", "/batch", "/batch/night", "/no;reboot", "/web"].map(cgroup);
        let task = |(name, cgroup): (&str, u32)| RecordedTask {
            name: name.into(),
            cgroup: Some(cgroup),
            steps: vec![placewise_replay::Step::Run(3_000_000)],
            ..RecordedTask::default()
        };
        let tasks = [("bash", 0), ("dump", 2), ("worm", 3), ("web", 4)].map(task);
        let recording = Recording {
            length_ns: 2_000_000,
            cgroups: cgroups.into(),
            tasks: tasks.into_iter().collect(),
        };
        let machine = placewise_machine::load("uma-8").unwrap();
        let policy = Policy::parse("v6.18", "baseline").unwrap();
        let kernel = Kernel { name: "v6.18".to_owned(), release: None, policy };
        let mut goal = Goal::default();
        goal.names.push("web".to_owned());
        let situation = Situation {
            recording: &recording,
            machine: &machine,
            kernel: &kernel,
            groups: &[],
            goal: &goal,
        };

        let [batch, limited] = &situation.with_less_for_others()[..] else {
            panic!("one cgroup is beside it")
        };
        assert_eq!(batch.what, "let cgroup /batch weigh 10 instead of 100");
        assert_eq!(batch.commands(), ["echo 10 > /sys/fs/cgroup/batch/cpu.weight"]);
        assert_eq!(batch.undo(), ["echo 100 > /sys/fs/cgroup/batch/cpu.weight"]);
        let mut workload = recording.workload("replay", &machine, Begins::AsRecorded);
        batch.apply(&recording, &mut workload);
        let shares: Vec<u32> = workload.cgroups.iter().map(|cgroup| cgroup.shares).collect();
        assert_eq!(shares, [1024, 102, 1024, 1024, 1024]);

        assert_eq!(limited.what, "give cgroup /batch 0.75 of the 1.50 CPUs that it kept busy");
        let file = "/sys/fs/cgroup/batch/cpu.max";
        assert_eq!(
            limited.commands(),
            [format!("was=$(cat {file})"), format!("echo 75000 100000 > {file}")]
        );
        assert_eq!(limited.undo(), [format!("echo $was > {file}")]);
        limited.apply(&recording, &mut workload);
        let quotas: Vec<bool> = workload.cgroups.iter().map(|it| it.quota.is_some()).collect();
        assert_eq!(quotas, [false, true, false, false, false]);
    }
}
