//! What the tasks of a workload run in: the cgroup of a session, or what an environment file says, the cgroups that
//! they are in and what changes while they run.
//!
//! Such a file is TOML, with the names and formats of cgroup v2's own files: `cpu.max = "20000 100000"`. It is
//! read without a workload, and then applied to one, whose tasks and cgroups it names.
//!
//! An entry says all there is to say of a cgroup, and a task is in one: what is named twice in a
//! file is refused.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use placewise_machine::CpuSet;
use serde::Deserialize;
use toml::Spanned;

use crate::error::{WorkloadError, quoted, suggestion};
use crate::file::read_text;
use crate::program::{Cgroup, CgroupId, Change, Nanos, Quota, Setting, Workload};

/// What a workload runs in.
#[derive(Debug)]
pub enum Environment {
    /// [`Workload::in_session`].
    Session,
    File(EnvironmentOfFile),
}

/// What an environment file says.
#[derive(Debug)]
pub struct EnvironmentOfFile {
    file: String,
    cgroups: Vec<At<CgroupEntry>>,
    changes: Vec<At<ChangeEntry>>,
}

/// An entry, and where it begins.
#[derive(Debug)]
struct At<T> {
    line: usize,
    entry: T,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvironmentFile {
    #[serde(default)]
    cgroup: Vec<Spanned<CgroupEntry>>,
    #[serde(default)]
    change: Vec<Spanned<ChangeEntry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CgroupEntry {
    name: String,
    parent: Option<String>,
    /// By name.
    #[serde(default)]
    tasks: Vec<String>,
    #[serde(default)]
    cpu: CpuController,
    #[serde(default)]
    cpuset: CpusetController,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CpuController {
    weight: Option<u32>,
    max: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CpusetController {
    cpus: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeEntry {
    at: String,
    cpu_offline: Option<String>,
    cpu_online: Option<String>,
    cgroup: Option<String>,
    #[serde(default)]
    cpu: CpuBandwidth,
    #[serde(default)]
    cpuset: CpusetController,
    task: Option<String>,
    cpus: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CpuBandwidth {
    max: Option<String>,
}

const MICROSECOND: Nanos = 1_000;
/// The kernel's limits of a period, and the least quota, in us.
const LEAST_US: u64 = 1_000;
const LONGEST_PERIOD_US: u64 = 1_000_000;
/// More would run over a thousand CPUs at once.
const LARGEST_QUOTA_US: u64 = 1024 * LONGEST_PERIOD_US;
const DEFAULT_PERIOD_US: u64 = 100_000;
/// Like the duration of an rt-app file.
const LATEST: Duration = Duration::from_secs(3_600);

impl Environment {
    /// What a workload runs in that is in none.
    pub const NONE: &str = "none";

    /// `none`, `session`, or the path of an environment file.
    pub fn load(name: &str) -> Result<Option<Self>, WorkloadError> {
        let path = Path::new(name);
        Ok(match name {
            Self::NONE => None,
            "session" => Some(Self::Session),
            _ => Some(Self::from_text(name, &read_text(path)?)?),
        })
    }

    /// Reads the text of an environment file, which is called `file` in messages.
    pub fn from_text(file: &str, text: &str) -> Result<Self, WorkloadError> {
        EnvironmentOfFile::from_text(file, text).map(Self::File)
    }

    /// What `workload` is in it.
    pub fn around(&self, mut workload: Workload) -> Result<Workload, WorkloadError> {
        match self {
            Self::Session => return Ok(workload.in_session()),
            Self::File(file) => file.apply(&mut workload)?,
        }
        Ok(workload)
    }
}

impl EnvironmentOfFile {
    fn from_text(file: &str, text: &str) -> Result<Self, WorkloadError> {
        let read: EnvironmentFile =
            toml::from_str(text).map_err(|error| syntax_error(text, &error).within(file))?;
        let environment = Self {
            file: file.to_owned(),
            cgroups: read.cgroup.into_iter().map(|entry| At::new(text, entry)).collect(),
            changes: read.change.into_iter().map(|entry| At::new(text, entry)).collect(),
        };
        environment.check_distinct().map_err(|error| error.within(file))?;
        Ok(environment)
    }

    fn check_distinct(&self) -> Result<(), WorkloadError> {
        let (mut cgroups, mut tasks) = (BTreeMap::new(), BTreeMap::new());
        for At { line, entry } in &self.cgroups {
            let wrong = |problem: String| Err(WorkloadError::new(format!("line {line}"), problem));
            let name = quoted(&entry.name);
            if let Some(first) = cgroups.insert(&entry.name, line) {
                return wrong(format!("cgroup {name} is in line {first} already; join the two"));
            }
            for task in &entry.tasks {
                if let Some(first) = tasks.insert(task, line) {
                    return wrong(format!(
                        "task {} is in the cgroup of line {first} already; name it once",
                        quoted(task)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Puts the tasks of `workload` into the cgroups, and has the changes happen.
    fn apply(&self, workload: &mut Workload) -> Result<(), WorkloadError> {
        let wrong = |line: usize| {
            move |problem: String| WorkloadError::new(format!("line {line}"), problem)
        };
        for At { line, entry } in &self.cgroups {
            entry
                .apply(workload)
                .map_err(wrong(*line))
                .map_err(|error| error.within(&self.file))?;
        }
        for At { line, entry } in &self.changes {
            let changes = entry
                .changes(workload)
                .map_err(wrong(*line))
                .map_err(|error| error.within(&self.file))?;
            workload.changes.extend(changes);
        }
        workload.changes.sort_by_key(|change| change.at);
        Ok(())
    }
}

impl<T> At<T> {
    fn new(text: &str, entry: Spanned<T>) -> Self {
        Self { line: line_at(text, entry.span().start), entry: entry.into_inner() }
    }
}

fn line_at(text: &str, start: usize) -> usize {
    text.get(..start).unwrap_or(text).matches('\n').count() + 1
}

/// toml's own message, on one line and with the line of the file it is about.
fn syntax_error(text: &str, error: &toml::de::Error) -> WorkloadError {
    let problem = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    match error.span() {
        Some(span) => WorkloadError::new(format!("line {}", line_at(text, span.start)), problem),
        None => WorkloadError::new("environment file", problem),
    }
}

impl CgroupEntry {
    fn apply(&self, workload: &mut Workload) -> Result<(), String> {
        check_name(&self.name)?;
        let id = self.find_or_add(workload)?;
        for task in &self.tasks {
            check_task(workload, task)?;
            let named = workload.programs.iter_mut().filter(|program| program.name == *task);
            named.for_each(|program| program.cgroup = Some(id));
        }
        let cgroup = &mut workload.cgroups[id as usize];
        if let Some(weight) = self.cpu.weight {
            cgroup.shares = shares(weight)?;
        }
        if let Some(max) = &self.cpu.max {
            cgroup.quota = quota(max)?;
        }
        if let Some(cpus) = &self.cpuset.cpus {
            cgroup.cpus = cpuset(cpus)?;
        }
        Ok(())
    }

    /// The workload may have the cgroup already.
    fn find_or_add(&self, workload: &mut Workload) -> Result<CgroupId, String> {
        if workload.cgroups.iter().any(|cgroup| cgroup.name == self.name) {
            return match self.parent {
                Some(_) => Err(format!(
                    "cgroup {} is there already; leave `parent` out",
                    quoted(&self.name)
                )),
                None => find_cgroup(workload, &self.name),
            };
        }
        let parent =
            self.parent.as_ref().map(|parent| find_cgroup(workload, parent)).transpose()?;
        workload.cgroups.push(Cgroup::new(&self.name, parent, Cgroup::DEFAULT_SHARES));
        Ok(workload.cgroups.len() as CgroupId - 1)
    }
}

impl ChangeEntry {
    fn changes(&self, workload: &Workload) -> Result<Vec<Change>, String> {
        let at = time(&self.at)?;
        let settings = self.settings(workload)?;
        Ok(settings.into_iter().map(|to| Change { at, to }).collect())
    }

    fn settings(&self, workload: &Workload) -> Result<Vec<Setting>, String> {
        let of_cgroup = self.cpu.max.is_some() || self.cpuset.cpus.is_some();
        match self {
            Self {
                cpu_offline: Some(list),
                cpu_online: None,
                cgroup: None,
                task: None,
                cpus: None,
                ..
            } if !of_cgroup => {
                Ok(cpus(list)?.iter().map(|cpu| Setting::Offline { cpu: cpu as u32 }).collect())
            }
            Self {
                cpu_offline: None,
                cpu_online: Some(list),
                cgroup: None,
                task: None,
                cpus: None,
                ..
            } if !of_cgroup => {
                Ok(cpus(list)?.iter().map(|cpu| Setting::Online { cpu: cpu as u32 }).collect())
            }
            Self {
                cpu_offline: None,
                cpu_online: None,
                cgroup: Some(name),
                task: None,
                cpus: None,
                ..
            } if of_cgroup => self.cgroup_settings(find_cgroup(workload, name)?),
            Self {
                cpu_offline: None,
                cpu_online: None,
                cgroup: None,
                task: Some(task),
                cpus: Some(list),
                ..
            } if !of_cgroup => {
                check_task(workload, task)?;
                Ok(vec![Setting::Affinity { task: task.clone(), cpus: cpus(list)? }])
            }
            _ => {
                Err("a change has one of `cpu_offline`, `cpu_online`, `cgroup` with `cpu.max` or \
                      `cpuset.cpus`, and `task` with `cpus`"
                    .to_owned())
            }
        }
    }

    fn cgroup_settings(&self, cgroup: CgroupId) -> Result<Vec<Setting>, String> {
        let mut settings = Vec::new();
        if let Some(max) = &self.cpu.max {
            settings.push(Setting::Quota { cgroup, quota: quota(max)? });
        }
        if let Some(cpus) = &self.cpuset.cpus {
            settings.push(Setting::Cpuset { cgroup, cpus: cpuset(cpus)? });
        }
        Ok(settings)
    }
}

/// As cgroup v2 has them, and fit to be printed.
fn check_name(name: &str) -> Result<(), String> {
    match !name.is_empty() && !name.contains(|c: char| c == '/' || c.is_control()) {
        true => Ok(()),
        false => Err(format!(
            "a cgroup cannot be called {}; expected a name without `/`, and `parent` for the rest",
            quoted(name)
        )),
    }
}

fn find_cgroup(workload: &Workload, name: &str) -> Result<CgroupId, String> {
    let names: Vec<&str> = workload.cgroups.iter().map(|cgroup| cgroup.name.as_str()).collect();
    let mut places = names.iter().zip(0..).filter(|(known, _)| **known == name);
    match places.next().map(|(_, id)| id) {
        Some(_) if places.next().is_some() => {
            Err(format!("there are several cgroups {}, which cannot be told apart", quoted(name)))
        }
        Some(id) => Ok(id),
        None if names.is_empty() => {
            Err(format!("there is no cgroup {}; add a [[cgroup]] before", quoted(name)))
        }
        None => Err(format!("there is no cgroup {}; {}", quoted(name), suggestion(name, &names))),
    }
}

fn check_task(workload: &Workload, name: &str) -> Result<(), String> {
    let mut names: Vec<&str> = workload.programs.iter().map(|it| it.name.as_str()).collect();
    if names.contains(&name) {
        return Ok(());
    }
    names.sort_unstable();
    names.dedup();
    Err(format!("the workload has no task {}; {}", quoted(name), suggestion(name, &names)))
}

/// The time that a change happens at.
fn time(text: &str) -> Result<Nanos, String> {
    let time = humantime::parse_duration(text).ok().filter(|time| *time <= LATEST);
    let wrong = || format!("`at` is {}; expected a time up to 1h, such as `100ms`", quoted(text));
    time.map(|time| time.as_nanos() as Nanos).ok_or_else(wrong)
}

fn shares(weight: u32) -> Result<u32, String> {
    if !Cgroup::WEIGHTS.contains(&weight) {
        let (least, most) = (Cgroup::WEIGHTS.start(), Cgroup::WEIGHTS.end());
        return Err(format!("cpu.weight is {weight}; expected {least} to {most}"));
    }
    Ok(Cgroup::shares_of(weight))
}

/// cpu.max: `max` or the quota, and perhaps the period, in us.
fn quota(text: &str) -> Result<Option<Quota>, String> {
    let wrong = || {
        format!(
            "cpu.max is {}; expected `max`, or a quota of {LEAST_US} us or more and a period of \
             {LEAST_US} to {LONGEST_PERIOD_US} us, such as `20000 100000`",
            quoted(text)
        )
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let (quota, period) = match words[..] {
        [quota] => (quota, DEFAULT_PERIOD_US),
        [quota, period] => (quota, period.parse().map_err(|_| wrong())?),
        _ => return Err(wrong()),
    };
    if !(LEAST_US..=LONGEST_PERIOD_US).contains(&period) {
        return Err(wrong());
    }
    if quota == "max" {
        return Ok(None);
    }
    let quota: u64 = quota.parse().map_err(|_| wrong())?;
    if !(LEAST_US..=LARGEST_QUOTA_US).contains(&quota) {
        return Err(wrong());
    }
    Ok(Some(Quota { quota: quota * MICROSECOND, period: period * MICROSECOND }))
}

fn cpus(list: &str) -> Result<CpuSet, String> {
    let cpus = CpuSet::parse_list(list).map_err(|error| error.to_string())?;
    if cpus.is_empty() { Err("the list of CPUs is empty; name some".to_owned()) } else { Ok(cpus) }
}

/// cpuset.cpus: empty means the parent's.
fn cpuset(list: &str) -> Result<Option<CpuSet>, String> {
    if list.trim().is_empty() { Ok(None) } else { cpus(list).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;

    fn applied(text: &str) -> Result<Workload, String> {
        let environment = Environment::from_text("a.toml", text).map_err(|it| it.to_string())?;
        environment.around(plain("lu")).map_err(|it| it.to_string())
    }

    fn plain(name: &str) -> Workload {
        crate::build(name, &Case::default()).expect("it is a workload")
    }

    /// Fails if only what is named were in it, or if the cgroups of a workload were put into another one.
    #[test]
    fn a_session_is_one_cgroup_for_what_brings_none_along() {
        let load = |name| Environment::load(name).expect("it is known");
        assert!(load("none").is_none());
        let session = load("session").expect("it changes something");
        let netperf = session.around(plain("netperf")).expect("it has tasks");
        let first = netperf.programs.iter().map(|it| it.cgroup).position(|it| it == Some(0));
        assert_eq!((netperf.cgroups.len(), first), (1, Some(0)));
        assert!(
            netperf.programs[1..].iter().all(|it| it.cgroup.is_none()),
            "who is forked inherits it"
        );
        let lu = session.around(plain("lu")).expect("it has tasks");
        assert_eq!(lu.cgroups, plain("lu").cgroups);
    }

    #[test]
    fn cgroups_take_tasks_and_limits() {
        let workload = applied(
            "[[cgroup]]\nname = \"all\"\ncpu.weight = 50\ncpuset.cpus = \"0-3,8\"\n\
             [[cgroup]]\nname = \"in\"\nparent = \"all\"\ntasks = [\"stress\"]\n\
             cpu.max = \"20000 50000\"\n\
             [[cgroup]]\nname = \"lu\"\ncpu.max = \"150000\"\n",
        )
        .expect("it is valid");
        let [lu, stress, _, all, inner] = &workload.cgroups[..] else { panic!("five cgroups") };
        let quota = |quota, period| Some(Quota { quota, period });
        assert_eq!((all.shares, all.cpus.map(|it| it.len())), (512, Some(5)));
        assert_eq!((inner.parent, inner.quota), (Some(3), quota(20_000_000, 50_000_000)));
        assert_eq!((lu.quota, stress.quota), (quota(150_000_000, 100_000_000), None));
        let stress = workload.programs.iter().find(|program| program.name == "stress");
        assert_eq!(stress.expect("lu has burners").cgroup, Some(4));
    }

    #[test]
    fn changes_are_ordered_by_time() {
        let workload = applied(
            "[[change]]\nat = \"2s\"\ncpu_online = \"4-5\"\n\
             [[change]]\nat = \"20ms\"\ncpu_offline = \"4-5\"\n\
             [[change]]\nat = \"1s\"\ncgroup = \"lu\"\ncpu.max = \"max\"\ncpuset.cpus = \"\"\n\
             [[change]]\nat = \"1s\"\ntask = \"stress\"\ncpus = \"3\"\n",
        )
        .expect("it is valid");
        let expected = [
            (20, Setting::Offline { cpu: 4 }),
            (20, Setting::Offline { cpu: 5 }),
            (1_000, Setting::Quota { cgroup: 0, quota: None }),
            (1_000, Setting::Cpuset { cgroup: 0, cpus: None }),
            (1_000, Setting::Affinity { task: "stress".to_owned(), cpus: CpuSet::single(3) }),
            (2_000, Setting::Online { cpu: 4 }),
            (2_000, Setting::Online { cpu: 5 }),
        ];
        let expected = expected.map(|(ms, to)| Change { at: ms * 1_000_000, to });
        assert_eq!(workload.changes, expected);
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line_with_its_place() {
        for (text, problem) in [
            ("x = 1", "a.toml: line 1: unknown field `x`"),
            ("[[cgroup]]\nname = 1", "a.toml: line 2: invalid type"),
            ("[[change]]\nat = \"1s\"\ncpu_offline = 3", "a.toml: line 3: invalid type"),
            (
                "\n[[cgroup]]\nname = \"a\"\ntasks = [\"stres\"]",
                "a.toml: line 2: the workload has no task `stres`; did you mean `stress`?",
            ),
            ("[[cgroup]]\nname = \"a\"\nparent = \"b\"", "a.toml: line 1: there is no cgroup `b`"),
            (
                "[[cgroup]]\nname = \"a\"\n[[cgroup]]\nname = \"b\"\n[[cgroup]]\nname = \"a\"",
                "a.toml: line 5: cgroup `a` is in line 1 already",
            ),
            (
                "[[cgroup]]\nname = \"lu\"\n[[cgroup]]\nname = \"lu\"",
                "a.toml: line 3: cgroup `lu` is in line 1 already",
            ),
            (
                "[[cgroup]]\nname = \"a\"\ntasks = [\"stress\", \"stress\"]",
                "a.toml: line 1: task `stress` is in the cgroup of line 1 already",
            ),
            (
                "[[cgroup]]\nname = \"a\"\ntasks = [\"stress\"]\n\
                 [[cgroup]]\nname = \"b\"\ntasks = [\"stress\"]",
                "a.toml: line 4: task `stress` is in the cgroup of line 1 already",
            ),
            ("[[cgroup]]\nname = \"\"", "a.toml: line 1: a cgroup cannot be called ``"),
            ("[[cgroup]]\nname = \"a/b\"", "a.toml: line 1: a cgroup cannot be called `a/b`"),
            ("[[cgroup]]\nname = \"a\\n\"", "a.toml: line 1: a cgroup cannot be called `a\\n`"),
            (
                "[[cgroup]]\nname = \"lu\"\nparent = \"stress-1\"",
                "a.toml: line 1: cgroup `lu` is there already",
            ),
            ("[[cgroup]]\nname = \"a\"\ncpu.weight = 0", "a.toml: line 1: cpu.weight is 0"),
            ("[[cgroup]]\nname = \"a\"\ncpu.max = \"5\"", "a.toml: line 1: cpu.max is `5`"),
            ("[[cgroup]]\nname = \"a\"\ncpu.max = \"5000 5000000\"", "a.toml: line 1: cpu.max is"),
            (
                "[[cgroup]]\nname = \"a\"\ncpu.max = \"99999999999999999999\"",
                "a.toml: line 1: cpu.max is",
            ),
            ("[[cgroup]]\nname = \"a\"\ncpuset.cpus = \"x\"", "a.toml: line 1: CPU list `x`"),
            ("[[change]]\nat = \"soon\"\ncpu_offline = \"1\"", "a.toml: line 1: `at` is `soon`"),
            ("[[change]]\nat = \"2h\"\ncpu_offline = \"1\"", "a.toml: line 1: `at` is `2h`"),
            ("[[change]]\nat = \"1s\"\ncpu_offline = \"\"", "a.toml: line 1: the list of CPUs"),
            ("[[change]]\nat = \"1s\"", "a.toml: line 1: a change has one of"),
            (
                "[[change]]\nat = \"1s\"\ntask = \"stress\"\ncpu.max = \"max\"",
                "a.toml: line 1: a change has one of",
            ),
            (
                "[[change]]\nat = \"1s\"\ncgroup = \"nothing\"\ncpu.max = \"max\"",
                "a.toml: line 1: there is no cgroup `nothing`",
            ),
        ] {
            let error = applied(text).expect_err(text);
            assert!(error.starts_with(problem) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
