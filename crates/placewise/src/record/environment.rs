//! What a trace says about the host it is recorded on: machine, kernel settings that placement
//! depends on, the tasks that may not run everywhere, and the cgroups and autogroups of all, with what
//! these weigh.
//!
//! What the kernel does not show is left out: the tick rate without a readable configuration,
//! sched features and base slice without debugfs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use placewise_machine::{CpuSet, MachineError, TraceTopology};
use placewise_policy::running_release;
use placewise_policy::weight::weight_of;
use placewise_trace::{Header, SchedPolicy, TaskLine, with_above};
use placewise_workload::program::Cgroup;

/// `/proc/PID/stat`: the policy's place among the fields behind the name.
const POLICY_FIELD: usize = 38;

pub fn header() -> Result<Header, MachineError> {
    let topology = TraceTopology { hz: hz(), ..TraceTopology::of_host()? };
    let online: CpuSet = topology.cpus.keys().copied().collect();
    let mounts = read("/proc/self/mounts").unwrap_or_default();
    let controllers = Controllers { root: hierarchy(&mounts) };
    let Tasks { special, cgroups, autogroups, mut shares } = tasks(&online, &controllers);
    let with_above: BTreeSet<&str> = cgroups.keys().flat_map(|path| with_above(path)).collect();
    let shares_of = |path: &&str| Some(((*path).to_owned(), controllers.shares(path)?));
    shares.extend(with_above.iter().filter_map(shares_of));
    shares.retain(|_, shares| *shares != Cgroup::DEFAULT_SHARES);
    let is_ungrouped = |path: &&str| !controllers.has_task_group(path);
    let ungrouped = with_above.iter().copied().filter(is_ungrouped).map(str::to_owned).collect();
    Ok(Header {
        kernel: Some(running_release()),
        topology,
        base_slice_ns: read("/sys/kernel/debug/sched/base_slice_ns").and_then(|ns| ns.parse().ok()),
        features: features(),
        recorder: Some(std::process::id()),
        tasks: special,
        cgroups,
        autogroups,
        ungrouped,
        shares,
        ..Header::default()
    })
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn features() -> Vec<String> {
    // The second is the place before v5.13.
    let text = read("/sys/kernel/debug/sched/features")
        .or_else(|| read("/sys/kernel/debug/sched_features"));
    text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn hz() -> Option<u32> {
    let boot = || {
        let uname = rustix::system::uname();
        read(format!("/boot/config-{}", uname.release().to_string_lossy()))
    };
    let config = read_gzip("/proc/config.gz").or_else(boot);
    hz_of(&config?)
}

fn hz_of(config: &str) -> Option<u32> {
    config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ="))?.parse().ok()
}

fn read_gzip(path: &str) -> Option<String> {
    let mut text = String::new();
    GzDecoder::new(File::open(path).ok()?).read_to_string(&mut text).ok()?;
    Some(text)
}

/// What the header says of tasks.
#[derive(Default)]
struct Tasks {
    /// Those that may not run on all online CPUs or are not SCHED_OTHER, by thread id.
    special: BTreeMap<u32, TaskLine>,
    /// Those that are not in the root cgroup.
    cgroups: BTreeMap<String, BTreeSet<u32>>,
    /// Those in the root's task group, where each session is a group of its own.
    autogroups: BTreeMap<String, BTreeSet<u32>>,
    /// What each autogroup weighs.
    shares: BTreeMap<String, u32>,
}

fn tasks(online: &CpuSet, controllers: &Controllers<'_>) -> Tasks {
    let mut tasks = Tasks::default();
    let has_autogroups =
        read("/proc/sys/kernel/sched_autogroup_enabled").is_some_and(|on| on != "0");
    let processes = numbered_dirs(Path::new("/proc"));
    let threads = |process: &Path| numbered_dirs(&process.join("task"));
    let of_process = |(_, process): (u32, PathBuf)| {
        let autogroup = has_autogroups.then(|| read(process.join("autogroup"))).flatten();
        threads(&process).into_iter().map(move |(tid, dir)| (tid, dir, autogroup.clone()))
    };
    for (tid, dir, autogroup) in processes.into_iter().flat_map(of_process) {
        // A task may end while we read.
        let [Some(stat), Some(status)] = ["stat", "status"].map(|file| read(dir.join(file))) else {
            continue;
        };
        let special = |task: &TaskLine| task.policy != SchedPolicy::Other || task.cpus != *online;
        if let Some(task) = task(&stat, &status, online).filter(special) {
            tasks.special.insert(tid, task);
        }
        // A kernel without cgroups has no such file.
        let path = read(dir.join("cgroup")).unwrap_or_default();
        let path = cgroup(&path);
        if let Some(path) = path {
            tasks.cgroups.entry(path.to_owned()).or_default().insert(tid);
        }
        let is_in_root = |path| !with_above(path).any(|path| controllers.has_task_group(path));
        if path.is_none_or(is_in_root)
            && let Some((name, shares)) = autogroup.as_deref().and_then(autogroup_of)
        {
            tasks.autogroups.entry(name.to_owned()).or_default().insert(tid);
            tasks.shares.insert(name.to_owned(), shares);
        }
    }
    tasks
}

/// The path in the hierarchy whose cgroups the scheduler knows; None for the root.
fn cgroup(text: &str) -> Option<&str> {
    let hierarchies = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let with_cpu = |&(controllers, _): &(&str, &str)| controllers.split(',').any(|of| of == "cpu");
    let unified = |&(controllers, _): &(&str, &str)| controllers.is_empty();
    let (_, path) = hierarchies().find(with_cpu).or_else(|| hierarchies().find(unified))?;
    Some(path).filter(|path| *path != "/")
}

/// Of `/autogroup-7 nice 0` the name, and what a nice level weighs.
fn autogroup_of(text: &str) -> Option<(&str, u32)> {
    let (name, nice) = text.split_once(" nice ")?;
    let nice = nice.parse().ok().filter(|nice| (-20..=19).contains(nice))?;
    Some((name, weight_of(nice, false)))
}

/// What the kernel says of the cgroups that the scheduler knows.
struct Controllers<'m> {
    /// Where they are mounted, if they are.
    root: Option<&'m Path>,
}

impl Controllers<'_> {
    fn dir(&self, path: &str) -> Option<PathBuf> {
        Some(self.root?.join(path.strip_prefix('/')?))
    }

    /// What it weighs.
    fn shares(&self, path: &str) -> Option<u32> {
        let dir = self.dir(path)?;
        let number = |file: &str| read(dir.join(file))?.parse::<u32>().ok();
        let weight = || number("cpu.weight").map(Cgroup::shares_of);
        // Of `cpu.idle` the weight is 0: the kernel takes no less than 2.
        Some(number("cpu.shares").or_else(weight)?.max(2))
    }

    /// Whether its `cpu` controller is on; where nobody can tell it is taken to be.
    fn has_task_group(&self, path: &str) -> bool {
        let has = |dir: PathBuf| {
            !dir.is_dir() || ["cpu.shares", "cpu.weight"].iter().any(|file| dir.join(file).exists())
        };
        self.dir(path).is_none_or(has)
    }
}

/// Where the cgroups are mounted that the scheduler knows.
fn hierarchy<'a>(mounts: &'a str) -> Option<&'a Path> {
    let mount = |line: &'a str| {
        let mut words = line.split(' ').skip(1);
        Some([words.next()?, words.next()?, words.next()?])
    };
    let mounts = || mounts.lines().filter_map(mount);
    let with_cpu = |[_, kind, options]: &[&str; 3]| {
        *kind == "cgroup" && options.split(',').any(|option| option == "cpu")
    };
    let unified = |[_, kind, _]: &[&str; 3]| *kind == "cgroup2";
    let [path, ..] = mounts().find(with_cpu).or_else(|| mounts().find(unified))?;
    Some(Path::new(path))
}

fn numbered_dirs(parent: &Path) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let number =
        |entry: fs::DirEntry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path()));
    entries.filter_map(number).collect()
}

/// None for a task that has no online CPU, such as the helpers of an offline one.
fn task(stat: &str, status: &str, online: &CpuSet) -> Option<TaskLine> {
    let (_, named) = stat.split_once('(')?;
    let (comm, fields) = named.rsplit_once(')')?;
    let policy = fields.split_whitespace().nth(POLICY_FIELD)?.parse().ok()?;
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let cpus = CpuSet::parse_list(cpus).ok()? & *online;
    let policy = SchedPolicy::from_number(policy)?;
    (!cpus.is_empty()).then(|| TaskLine { comm: comm.to_owned(), policy, cpus })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread of migration/1, with a name made harder.
    const STAT: &str = "22 (mig) (1) S 2 0 0 0 -1 69238848 0 0 0 0 0 1 0 0 -100 0 1 0 8 0 0 \
        18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 1 99 1 0 0 0 0 0 0 0 0 0 0 0";

    #[test]
    fn policy_and_affinity_of_a_task() {
        let online = CpuSet::first_n(4);
        let found = task(STAT, "Name:\tmig\nCpus_allowed_list:\t1,4-7\n", &online).unwrap();
        assert_eq!(found.comm, "mig) (1");
        assert_eq!(found.policy, SchedPolicy::Fifo);
        assert_eq!(found.cpus.to_string(), "1");
        assert_eq!(task(STAT, "Cpus_allowed_list:\t4-7\n", &online), None);
    }

    #[test]
    fn the_stopper_of_a_cpu_is_listed_and_the_parent_of_kernel_threads_is_not() {
        if read("/proc/2/comm").as_deref() != Some("kthreadd") {
            return println!("skipped: kernel threads cannot be seen here");
        }
        let online: CpuSet = TraceTopology::of_host().unwrap().cpus.keys().copied().collect();
        let tasks = tasks(&online, &Controllers { root: None }).special;
        let stopper = tasks.values().find(|task| task.comm == "migration/0").unwrap();
        assert_eq!((stopper.policy, stopper.cpus), (SchedPolicy::Fifo, CpuSet::single(0)));
        assert!(!tasks.contains_key(&2));
    }

    #[test]
    fn the_cgroup_is_that_of_the_cpu_controller() {
        assert_eq!(cgroup("0::/system.slice/web.service\n"), Some("/system.slice/web.service"));
        assert_eq!(cgroup("3:cpuset:/a\n1:cpu,cpuacct:/b:c\n0::/d\n"), Some("/b:c"));
        assert_eq!(cgroup("1:name=systemd:/a\n0::/\n"), None, "of the root there is no line");
        assert_eq!(cgroup(""), None);
    }

    #[test]
    fn a_group_weighs_what_its_nice_level_does() {
        assert_eq!(autogroup_of("/autogroup-7 nice 0"), Some(("/autogroup-7", 1024)));
        assert_eq!(autogroup_of("/autogroup-7 nice -19"), Some(("/autogroup-7", 71755)));
        assert_eq!(autogroup_of("/autogroup-7 nice 99"), None);
    }

    /// Those of a directory that stands for the mounted hierarchy.
    #[test]
    fn a_cgroup_without_a_controller_has_no_task_group() {
        let root = tempfile::tempdir().unwrap();
        for (path, file) in [("a", "cpu.weight"), ("a/b", "memory.max")] {
            let dir = root.path().join(path);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join(file), "200\n").unwrap();
        }
        let controllers = Controllers { root: Some(root.path()) };
        assert_eq!(["/a", "/a/b"].map(|path| controllers.has_task_group(path)), [true, false]);
        assert_eq!(["/a", "/a/b"].map(|path| controllers.shares(path)), [Some(2048), None]);
        assert!(
            controllers.has_task_group("/gone")
                && Controllers { root: None }.has_task_group("/a/b")
        );
        assert_eq!(with_above("/a/b").collect::<Vec<_>>(), ["/a/b", "/a"]);
    }

    #[test]
    fn the_hierarchy_is_that_of_the_cpu_controller() {
        let unified = "none /sys tmpfs rw 0 0\ncgroup2 /sys/c cgroup2 rw,cpu 0 0\n";
        assert_eq!(hierarchy(unified), Some(Path::new("/sys/c")));
        let both = format!("{unified}cgroup /sys/c/cpu cgroup rw,cpu,cpuacct 0 0\n");
        assert_eq!(hierarchy(&both), Some(Path::new("/sys/c/cpu")));
        assert_eq!(hierarchy("cgroup /sys/c/cpuset cgroup rw,cpuset 0 0"), None);
    }

    #[test]
    fn the_tick_rate_is_not_the_choice_of_it() {
        assert_eq!(hz_of("CONFIG_HZ_250=y\nCONFIG_HZ=250\n"), Some(250));
        assert_eq!(hz_of("# CONFIG_HZ is not set\n"), None);
    }
}
