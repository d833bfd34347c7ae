//! The tasks of the host while it is recorded: which may not run everywhere, or have another policy than most, and in
//! which cgroups and autogroups they are, with what these weigh.
//!
//! Those that were there at first are as they were then. Those that come later are as they were when last looked at,
//! for many are bound, or begin a session, soon after they are forked. Limits: who is gone before it is looked at is
//! not known, and nothing is told of the latest once [`ROOM`] is full: no user can fill the recorder's memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use placewise_machine::CpuSet;
use placewise_policy::weight::weight_of;
use placewise_trace::{Header, SchedPolicy, TaskLine, with_above};
use placewise_workload::program::Cgroup;

use super::environment::read;

/// `/proc/PID/stat`: the policy's place among the fields behind the name.
const POLICY_FIELD: usize = 38;

/// Bytes, about, for tasks that come later and for the groups that these are in.
const ROOM: usize = 64 << 20;
/// Beside its path, of a task or a group.
const EACH: usize = 256;

/// They are looked at again after as long as it is recorded, or after this,
const OFTEN: Duration = Duration::from_secs(1);
/// and for no more of the time than one of so many parts, nor for longer at a time, while nobody reads the buffers.
const SELDOM: u32 = 50;
const LONGEST: Duration = Duration::from_millis(100);

pub struct Residents {
    online: CpuSet,
    controllers: Controllers,
    has_autogroups: bool,
    first: BTreeSet<u32>,
    told: BTreeMap<u32, Told>,
    /// Those that tasks were in, and the ones above them, as they were when first met.
    cgroups: BTreeMap<String, Controlled>,
    /// What each weighs.
    autogroups: BTreeMap<String, u32>,
    since: Instant,
    due: Duration,
    room: usize,
}

/// What sets a task apart from those that may run anywhere, and are in no group.
#[derive(Default, PartialEq, Eq)]
struct Told {
    line: Option<TaskLine>,
    cgroup: Option<String>,
    autogroup: Option<String>,
}

impl Residents {
    pub fn of_host(online: CpuSet) -> Self {
        let mounts = read("/proc/self/mounts").unwrap_or_default();
        Self::new(online, Controllers { root: hierarchy(&mounts).map(Path::to_owned) })
    }

    fn new(online: CpuSet, controllers: Controllers) -> Self {
        let mut residents = Residents {
            online,
            controllers,
            has_autogroups: read("/proc/sys/kernel/sched_autogroup_enabled")
                .is_some_and(|on| on != "0"),
            first: BTreeSet::new(),
            told: BTreeMap::new(),
            cgroups: BTreeMap::new(),
            autogroups: BTreeMap::new(),
            since: Instant::now(),
            due: Duration::ZERO,
            room: usize::MAX,
        };
        residents.first = residents.look();
        residents.room = ROOM;
        residents
    }

    /// Often while the recording is young.
    pub fn look_if_due(&mut self) {
        let elapsed = self.since.elapsed();
        if elapsed >= self.due {
            self.look_until(Some(Instant::now() + LONGEST));
            let took = self.since.elapsed() - elapsed;
            self.due = elapsed + elapsed.min(OFTEN).max(took * SELDOM);
        }
    }

    /// At those that were not there at first; returns who is there.
    pub fn look(&mut self) -> BTreeSet<u32> {
        self.look_until(None)
    }

    fn look_until(&mut self, end: Option<Instant>) -> BTreeSet<u32> {
        let is_over = || end.is_some_and(|end| Instant::now() >= end);
        let mut there = BTreeSet::new();
        for (_, process) in numbered_dirs(Path::new("/proc")) {
            if is_over() {
                break;
            }
            let threads = numbered_dirs(&process.join("task"));
            there.extend(threads.iter().map(|(tid, _)| *tid));
            let is_later = |(tid, _): &(u32, PathBuf)| !self.first.contains(tid);
            let later: Vec<(u32, PathBuf)> = threads.into_iter().filter(is_later).collect();
            let has_autogroup = self.has_autogroups && !later.is_empty();
            let autogroup = has_autogroup.then(|| read(process.join("autogroup"))).flatten();
            for (tid, dir) in later.into_iter().take_while(|_| !is_over()) {
                self.look_at(tid, &dir, autogroup.as_deref().and_then(autogroup_of));
            }
        }
        there
    }

    fn look_at(&mut self, tid: u32, dir: &Path, autogroup: Option<(&str, u32)>) {
        if self.room == 0 {
            return;
        }
        // A task may end while we read.
        let [Some(stat), Some(status)] = ["stat", "status"].map(|file| read(dir.join(file))) else {
            return;
        };
        let special =
            |task: &TaskLine| task.policy != SchedPolicy::Other || task.cpus != self.online;
        let line = task(&stat, &status, &self.online).filter(special);
        // A kernel without cgroups has no such file.
        let path = read(dir.join("cgroup")).unwrap_or_default();
        let cgroup = cgroup(&path).map(str::to_owned);
        let is_in_root = !cgroup.as_deref().is_some_and(|path| self.meet_cgroup(path));
        let autogroup = autogroup.filter(|_| is_in_root).map(|(name, shares)| {
            if self.autogroups.insert(name.to_owned(), shares).is_none() {
                self.keep(name);
            }
            name.to_owned()
        });
        let told = Told { line, cgroup, autogroup };
        if told == Told::default() {
            self.told.remove(&tid);
        } else if self.told.insert(tid, told).is_none() {
            self.keep(&path);
        }
    }

    /// With those above it; true if one of them is one of the scheduler's.
    fn meet_cgroup(&mut self, path: &str) -> bool {
        let mut has_task_group = false;
        for path in with_above(path) {
            if !self.cgroups.contains_key(path) {
                self.cgroups.insert(path.to_owned(), self.controllers.of(path));
                self.keep(path);
            }
            has_task_group |= self.cgroups[path].has_task_group;
        }
        has_task_group
    }

    fn keep(&mut self, path: &str) {
        self.room = self.room.saturating_sub(path.len() + EACH);
    }

    pub fn tell(self, header: &mut Header) {
        for (tid, Told { line, cgroup, autogroup }) in self.told {
            header.tasks.extend(line.map(|line| (tid, line)));
            for (groups, path) in
                [(&mut header.cgroups, cgroup), (&mut header.autogroups, autogroup)]
            {
                path.map(|path| groups.entry(path).or_default().insert(tid));
            }
        }
        let ungrouped = self.cgroups.iter().filter(|(_, cgroup)| !cgroup.has_task_group);
        header.ungrouped.extend(ungrouped.map(|(path, _)| path.clone()));
        let shares = self.cgroups.into_iter().filter_map(|(path, it)| Some((path, it.shares?)));
        let shares = shares.chain(self.autogroups);
        header.shares.extend(shares.filter(|(_, shares)| *shares != Cgroup::DEFAULT_SHARES));
    }
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
struct Controllers {
    /// Where they are mounted, if they are.
    root: Option<PathBuf>,
}

/// A cgroup's `cpu` controller.
struct Controlled {
    shares: Option<u32>,
    has_task_group: bool,
}

impl Controllers {
    fn of(&self, path: &str) -> Controlled {
        Controlled { shares: self.shares(path), has_task_group: self.has_task_group(path) }
    }

    fn dir(&self, path: &str) -> Option<PathBuf> {
        Some(self.root.as_ref()?.join(path.strip_prefix('/')?))
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
    use std::process::{Child, Command};

    use placewise_machine::TraceTopology;

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
        let mut header = Header::default();
        Residents::of_host(online()).tell(&mut header);
        let stopper = header.tasks.values().find(|task| task.comm == "migration/0").unwrap();
        assert_eq!((stopper.policy, stopper.cpus), (SchedPolicy::Fifo, CpuSet::single(0)));
        assert!(!header.tasks.contains_key(&2));
    }

    fn online() -> CpuSet {
        TraceTopology::of_host().unwrap().cpus.keys().copied().collect()
    }

    /// A task, and its end.
    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Self {
            Sleeper(Command::new("sleep").arg("60").spawn().unwrap())
        }

        fn bind(&self) {
            let pid = self.0.id().to_string();
            let bound = Command::new("taskset").args(["-p", "1", &pid]).output().unwrap();
            assert!(bound.status.success(), "{bound:?}");
        }

        fn is_bound(&self, residents: Residents) -> bool {
            let mut header = Header::default();
            residents.tell(&mut header);
            let task = header.tasks.get(&self.0.id());
            task.is_some_and(|task| task.cpus == CpuSet::single(0))
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn residents() -> Option<Residents> {
        (online().len() > 1).then(|| Residents::of_host(online()))
    }

    const ONE_CPU: &str = "skipped: nobody can be bound to one of one CPUs";

    /// It is bound once it has been seen, and told of though it is gone.
    #[test]
    fn who_comes_later_is_as_it_was_seen_last() {
        let Some(mut residents) = residents() else { return println!("{ONE_CPU}") };
        let mut later = Sleeper::start();
        residents.look();
        later.bind();
        residents.look();
        later.0.kill().unwrap();
        later.0.wait().unwrap();
        residents.look();
        assert!(later.is_bound(residents));
    }

    #[test]
    fn who_was_there_is_as_it_was_at_first() {
        let first = Sleeper::start();
        let Some(mut residents) = residents() else { return println!("{ONE_CPU}") };
        first.bind();
        residents.look();
        assert!(!first.is_bound(residents));
    }

    #[test]
    fn nobody_is_looked_at_when_time_is_up() {
        for (end, is_told) in [(None, true), (Some(Instant::now()), false)] {
            let Some(mut residents) = residents() else { return println!("{ONE_CPU}") };
            let later = Sleeper::start();
            later.bind();
            residents.look_until(end);
            assert_eq!(later.is_bound(residents), is_told);
        }
    }

    #[test]
    fn nobody_is_told_of_for_whom_there_is_no_room() {
        let Some(mut residents) = residents() else { return println!("{ONE_CPU}") };
        residents.room = 1;
        let tasks = [(); 2].map(|()| Sleeper::start());
        tasks[0].bind();
        residents.look();
        assert_eq!(residents.room, 0, "one, its group, or others of this host");
        tasks[1].bind();
        residents.look();
        assert!(!tasks[1].is_bound(residents));
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
        let controllers = Controllers { root: Some(root.path().to_owned()) };
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
}
