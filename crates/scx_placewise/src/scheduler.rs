//! The sched_ext scheduler in the running kernel: loading, watching, unloading.

use std::borrow::Cow;
use std::mem::offset_of;
use std::path::Path;
use std::sync::Arc;

use libbpf_rs::{Link, MapCore, MapMut, Object, OpenMapMut, OpenObject, Program};
use placewise_machine::{Level, Machine, MachineError};
use placewise_policy::own::OwnError;
use placewise_policy::{
    CACHE_AWARE_NONE, GroupRq, NR_CPUS, NR_TASK_GROUPS, Policy, Profile, RUN_QUEUE_EEVDF, State,
    topology,
};

use crate::arena;
use crate::exit::Exit;
use crate::figures::Figures;
use crate::object::{self, LoadError};
use crate::own;
use crate::pins::{MAPS, Pins};
use crate::shared::{SchedExtOps, Shadow};

/// Only tasks of the class SCHED_EXT.
const SCX_OPS_SWITCH_PARTIAL: u64 = 1 << 3;

/// How long the kernel lets a runnable task wait at the most, and unless told otherwise.
pub const LONGEST_TIMEOUT_MS: u32 = 30_000;

const SYSFS: &str = "/sys/kernel/sched_ext";

/// How the scheduler is to be loaded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Leave all tasks to the kernel but those that ask for SCHED_EXT.
    pub only_hinted: bool,
    /// How long the kernel lets a runnable task wait before it unloads the scheduler.
    pub timeout_ms: Option<u32>,
}

/// Why the scheduler cannot run here.
#[derive(Debug, thiserror::Error)]
pub enum SchedulerError {
    #[error("loading a scheduler takes root: run it with sudo")]
    NotRoot,
    #[error(
        "this kernel has no sched_ext ({SYSFS} is missing): it takes Linux 6.12 or newer with CONFIG_SCHED_CLASS_EXT"
    )]
    NoSchedExt,
    #[error("the sched_ext scheduler '{0}' is loaded already: stop it first")]
    Occupied(String),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Own(#[from] OwnError),
    #[error("the kernel does not accept the scheduler: {0}")]
    Attach(String),
}

/// The scheduler, loaded; dropping it gives the tasks back to the kernel's own.
pub struct Scheduler {
    _link: Link,
    loaded: Arc<Loaded>,
}

/// What is read of it.
struct Loaded {
    object: Object,
    /// Of each span of the state.
    levels: Vec<Level>,
}

/// The object to load: as it is built in, or with the policy in `directory`.
pub fn object(directory: Option<&Path>) -> Result<Cow<'static, [u8]>, SchedulerError> {
    match directory {
        Some(directory) => Ok(Cow::Owned(own::compile(directory)?)),
        None => Ok(Cow::Borrowed(object::built()?.scheduler)),
    }
}

/// May a scheduler be loaded here, by us, now?
pub fn check() -> Result<(), SchedulerError> {
    if !rustix::process::geteuid().is_root() {
        return Err(SchedulerError::NotRoot);
    }
    let state = sysfs("state").ok_or(SchedulerError::NoSchedExt)?;
    if state != "disabled" {
        return Err(SchedulerError::Occupied(sysfs("root/ops").unwrap_or(state)));
    }
    Ok(object::check_kernel()?)
}

fn sysfs(file: &str) -> Option<String> {
    let text = std::fs::read_to_string(Path::new(SYSFS).join(file)).ok()?;
    Some(text.trim().to_string())
}

impl Scheduler {
    /// Loads `scheduler` with the topology of the running machine; what is pinned already stays.
    pub fn load(
        scheduler: &[u8],
        policy: &Policy,
        options: Options,
        pins: &Pins,
    ) -> Result<Self, SchedulerError> {
        check()?;
        // Read before the machine: a CPU that comes or goes meanwhile makes the kernel refuse.
        let hotplug_seq = sysfs("hotplug_seq").and_then(|seq| seq.parse().ok()).unwrap_or(0);
        let machine = placewise_machine::load("host")?;

        let mut open = object::open(scheduler)?;
        configure(&mut open, options, hotplug_seq);
        for map in MAPS {
            open_map(&mut open, map).set_pin_path(pins.path(map)).map_err(object::refused)?;
        }
        let mut object = object::load(open)?;
        let levels = fill(&object, &machine, policy, options)?;
        let link = operations(&mut object)
            .attach_struct_ops()
            .map_err(|error| SchedulerError::Attach(error.to_string()))?;
        Ok(Scheduler { _link: link, loaded: Arc::new(Loaded { object, levels }) })
    }

    /// Has the kernel verify the programs, and schedules nothing: how many instructions of each
    /// it followed.
    pub fn verify(scheduler: &[u8]) -> Result<Vec<(String, u32)>, SchedulerError> {
        check()?;
        let object = object::load(object::open(scheduler)?)?;
        let counted = |program: Program<'_>| {
            let name = program.name().to_string_lossy().into_owned();
            (name, object::verified_instructions(program))
        };
        Ok(object.progs().map(counted).collect())
    }

    /// Reads what it has done since it was loaded; none once it is unloaded.
    pub fn figures(&self) -> impl Fn() -> Figures + Send + use<> {
        let loaded = Arc::downgrade(&self.loaded);
        let read = |loaded: Arc<Loaded>| Figures::read(&loaded.object, &loaded.levels);
        move || loaded.upgrade().map(read).unwrap_or_default()
    }

    /// Why the kernel has unloaded it, if it has.
    pub fn exited(&self) -> Option<Exit> {
        Exit::read(&self.loaded.object)
    }
}

fn operations(object: &mut Object) -> MapMut<'_> {
    object.maps_mut().find(|map| map.name() == "placewise").expect("the object has operations")
}

fn open_map<'a>(object: &'a mut OpenObject, name: &str) -> OpenMapMut<'a> {
    object.maps_mut().find(|map| map.name() == name).expect("the object has these maps")
}

fn configure(object: &mut OpenObject, options: Options, hotplug_seq: u64) {
    let mut map = open_map(object, "placewise");
    let operations = map.initial_value_mut().expect("operations have a value");
    assert!(operations.len() >= size_of::<SchedExtOps>());
    let operations = operations.as_mut_ptr().cast::<SchedExtOps>();
    // SAFETY: it is that struct, and ours until the object is loaded.
    let operations = unsafe { &mut *operations };
    operations.hotplug_seq = hotplug_seq;
    if options.only_hinted {
        operations.flags |= SCX_OPS_SWITCH_PARTIAL;
    }
    if let Some(timeout) = options.timeout_ms {
        operations.timeout_ms = timeout;
    }
}

/// Lays the machine out in the arena. Every page that the programs may use is to be there: the
/// kernel adds none. Of task groups and processes those are the parts of the CPUs that there are.
/// Returns the levels of the sched domains, span by span.
fn fill(
    object: &Object,
    machine: &Machine,
    policy: &Policy,
    options: Options,
) -> Result<Vec<Level>, MachineError> {
    let shadow = arena::mapping::<Shadow>(object);
    let (start, shadow) = (shadow.cast::<u8>(), shadow.as_ptr());
    let (state, domains) = topology::boot(machine, &policy.profile)?;
    let slice = slice_ns(&state.profile);
    let group_rqs = offset_of!(State, group_rq);
    // SAFETY: the arena is mapped, large enough, and nobody else's before the scheduler is attached.
    // Bytes of the state are bytes, whatever fields they belong to.
    unsafe {
        start.as_ptr().copy_from_nonoverlapping((&raw const *state).cast(), group_rqs);
        for group in 0..NR_TASK_GROUPS as usize {
            let row = group_rqs + group * size_of::<[GroupRq; NR_CPUS as usize]>();
            let used = state.root.nr_cpu_ids as usize * size_of::<GroupRq>();
            arena::populate(start, row..row + used);
        }
        if state.profile.cache_aware != CACHE_AWARE_NONE {
            let rows = state.root.nr_cpu_ids as usize * size_of_val(&state.process_rq[0]);
            let processes = offset_of!(State, process);
            arena::populate(start, processes..offset_of!(State, process_rq) + rows);
        }
        arena::populate(start, size_of::<State>()..size_of::<Shadow>());
        (&raw mut (*shadow).slice_ns).write(slice);
        (&raw mut (*shadow).hint).write(policy.hint.mask().into());
        (&raw mut (*shadow).longest_wait_ns).write(longest_wait_ns(options));
    }
    Ok(domains.spans.iter().map(|span| span.level).collect())
}

/// Far from when the kernel's watchdog would take it for lost.
fn longest_wait_ns(options: Options) -> u64 {
    u64::from(options.timeout_ms.unwrap_or(LONGEST_TIMEOUT_MS)) * 1_000_000 / 4
}

/// The time between two tasks' turns: EEVDF's base slice, or CFS's minimum granularity.
fn slice_ns(profile: &Profile) -> u64 {
    if profile.run_queue == RUN_QUEUE_EEVDF { profile.base_slice.ns } else { profile.min_gran.ns }
}
