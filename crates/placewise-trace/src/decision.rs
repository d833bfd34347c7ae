//! One placement decision as an event: what it read, and what it answered.
//!
//! The other tracepoints show which CPUs are idle and what runs where. A
//! decision also reads what no tracepoint shows: loads, the relation of waker
//! and wakee, the scan limit of an LLC. Scheduler developers print such things
//! with a trace_printk(); this is that line. It stands where the decision was
//! taken, with the readings from before it changed any of them. Whoever knows
//! the machine and the policy can take the decision again from it.
//!
//! ```text
//! placewise_select_task_rq: pid=43 waker_pid=42 ... placement=wakeup sync=1 ... result_cpu=7 ...
//! ```
//!
//! The structs below are the format: their fields in this order, each as
//! `key=value`; a struct within a struct puts its name in front of its keys
//! (`waker_wakee_flips`). Sets of CPUs are lists as of `%*pbl`. Times are in ns,
//! those called jiffies, or `_ts` and `wake_stamp`, in jiffies.
//!
//! Limits: no names of tasks, which may hold anything, blanks too; sched_waking
//! shows them. What does not change (topology, capacities) is not printed. Forks
//! on kernels before v5.10 compare loads of queued tasks that are not printed. Nor is what the patches
//! sis-filter, sis-node, sis-cache and cache-aware-rfc0 read of other LLCs, of sleepers and of processes.

use std::fmt;

use placewise_machine::CpuSet;

/// A struct whose fields are the keys of the text, in the same order.
macro_rules! fields {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$about])* pub $field: $kind,)* }

        impl Field for $name {
            fn write(&self, key: Key, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(self.$field.write(key.within(stringify!($field)), out)?;)*
                Ok(())
            }

            fn parse(key: Key, text: &mut Rest<'_>) -> Result<Self, DecisionError> {
                Ok($name { $($field: Field::parse(key.within(stringify!($field)), text)?,)* })
            }
        }
    };
}

/// An enum whose values are words, in the order of the policy's enum of the same name.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($variant,)* }

        impl $name {
            /// All values; the policy's number of one is its index.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl Field for $name {
            fn write(&self, key: Key, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, " {key}={}", self.word())
            }

            fn parse(key: Key, text: &mut Rest<'_>) -> Result<Self, DecisionError> {
                let named = |word: &str| Self::ALL.iter().copied().find(|each| each.word() == word);
                text.value(key, concat!("one of" $(, " ", $word)*), named)
            }
        }
    };
}

fields! {
    /// A decision of select_task_rq().
    Decision {
        /// The task that is placed: the wakee, the child, or who becomes another program.
        pid: u32,
        /// The current task of the waking CPU; 0 is the idle task.
        waker_pid: u32,
        waking_cpu: u16,
        prev_cpu: u16,
        jiffies: u64,
        /// The CPUs that may be looked at; the next two speak of these only.
        cpus: CpuSet,
        idle: CpuSet,
        /// CPUs with SCHED_IDLE tasks only.
        sched_idle: CpuSet,
        /// Where the task may run.
        allowed: CpuSet,
        /// The task's hint mask.
        hint: u32,
        /// The task is SCHED_IDLE.
        idle_policy: bool,
        placement: Readings,
        /// What the search started from.
        target_cpu: u16,
        result_cpu: u16,
        affine: AffineReason,
        search: SearchReason,
    }
}

/// What the kind of placement reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readings {
    Wakeup(WakeupReadings),
    Fork(SlowPathReadings),
    Exec(SlowPathReadings),
}

fields! {
    /// What a wakeup reads.
    WakeupReadings {
        /// The waker is about to sleep, and not exiting.
        sync: bool,
        /// The waker is an interrupt.
        interrupt: bool,
        waking: CpuReadings,
        prev: CpuReadings,
        /// Of the waking CPU, as is what follows: SIS_PROP.
        avg_idle: u64,
        wake_avg_idle: u64,
        wake_stamp: u64,
        avg_scan_cost: u64,
        waker_per_cpu_kthread: bool,
        waker: TaskReadings,
        wakee: TaskReadings,
        wakee_recent_used_cpu: u16,
        /// The largest of the wakee's utilisation and its estimates.
        wakee_util_est: u64,
        /// The current task of the previous CPU.
        prev_curr_pid: u32,
        prev_curr: TaskReadings,
    }
}

fields! {
    /// A CPU and its LLC, as a wakeup reads them.
    CpuReadings {
        nr_running: u32,
        h_nr_delayed: u32,
        /// Averaged, or on v3.10 the weight queued at this moment.
        load: u64,
        has_idle_cores: bool,
        nr_idle_scan: u32,
    }
}

fields! {
    /// A task, as a wakeup reads it.
    TaskReadings {
        wakee_flips: u32,
        wakee_flip_decay_ts: u64,
        /// A pid; 0 is none.
        last_wakee: u32,
        /// The load it adds to its CPU: of its cgroup's, what is its own part. On v3.10 its weight.
        load: u64,
        sum_exec_runtime: u64,
        nvcsw: u64,
        run_length_avg: u64,
    }
}

fields! {
    /// What the slow path reads.
    SlowPathReadings {
        /// The load it adds to its CPU, as in a wakeup.
        load: u64,
        runnable: u64,
        util: u64,
        /// The largest of the task's utilisation and its estimates.
        util_est: u64,
        /// Sched groups that affinity kept from being balanced, by their number.
        imbalanced_groups: Vec<u32>,
        /// Each online CPU.
        rq: Vec<RunQueueReadings>,
    }
}

/// A CPU, as the slow path reads it:
/// `cpu:nr_running/h_nr_queued/h_nr_delayed/load/runnable/util/util_est/idle_stamp/exit_latency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunQueueReadings {
    pub cpu: u16,
    pub nr_running: u32,
    pub h_nr_queued: u32,
    pub h_nr_delayed: u32,
    pub load: u64,
    pub runnable: u64,
    pub util: u64,
    pub util_est: u32,
    pub idle_stamp: u64,
    /// Of the idle state it is in; `-` if it is in none.
    pub idle_exit_latency: Option<u32>,
}

words! {
    /// Which clause of wake_affine() decided.
    AffineReason {
        NotTried = "not_tried",
        WakingCpuIdle = "waking_cpu_idle",
        PrevIdleShared = "prev_idle_shared",
        Sync = "sync",
        PrevIdle = "prev_idle",
        ShortWaker = "short_waker",
        Weight = "weight",
        Undecided = "undecided",
    }
}

words! {
    /// Which step of select_idle_sibling() decided.
    SearchReason {
        None = "none",
        Target = "target",
        Prev = "prev",
        Kthread = "kthread",
        RecentUsed = "recent_used",
        AsymCapacity = "asym_capacity",
        SmtSibling = "smt_sibling",
        Short = "short",
        IdleCore = "idle_core",
        IdleCpu = "idle_cpu",
        Fallback = "fallback",
        Failed = "failed",
    }
}

/// Text that is not a decision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: expected {expected}, found `{found}`", Decision::EVENT)]
pub struct DecisionError {
    expected: String,
    found: String,
}

impl DecisionError {
    /// Bad input is quoted, but not at any length.
    fn new(expected: String, found: &str) -> Self {
        DecisionError { expected, found: found.chars().take(40).collect() }
    }
}

impl Decision {
    /// The name of the event.
    pub const EVENT: &str = "placewise_select_task_rq";

    /// Reads what stands behind the event's name and colon.
    pub fn parse(text: &str) -> Result<Self, DecisionError> {
        let mut rest = Rest(text.trim());
        let decision = Field::parse(Key::TOP, &mut rest)?;
        match rest.0 {
            "" => Ok(decision),
            more => Err(DecisionError::new("no more keys".to_string(), more)),
        }
    }
}

/// The event with its name, as [`parse`](Decision::parse) takes it behind that.
impl fmt::Display for Decision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:", Self::EVENT)?;
        self.write(Key::TOP, out)
    }
}

/// A part of the text: one `key=value`, or several.
trait Field: Sized {
    /// Writes a blank and the text.
    fn write(&self, key: Key, out: &mut fmt::Formatter<'_>) -> fmt::Result;
    fn parse(key: Key, text: &mut Rest<'_>) -> Result<Self, DecisionError>;
}

/// A key, with the name of the struct within a struct that it belongs to.
#[derive(Clone, Copy)]
struct Key {
    within: &'static str,
    name: &'static str,
}

impl Key {
    const TOP: Key = Key { within: "", name: "" };

    fn within(self, name: &'static str) -> Self {
        Key { within: self.name, name }
    }

    /// What follows the key and its `=`.
    fn strip(self, text: &str) -> Option<&str> {
        let own = match self.within {
            "" => text,
            within => text.strip_prefix(within)?.strip_prefix('_')?,
        };
        own.strip_prefix(self.name)?.strip_prefix('=')
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joint = if self.within.is_empty() { "" } else { "_" };
        write!(out, "{}{joint}{}", self.within, self.name)
    }
}

/// What is still to be read; begins with a key.
struct Rest<'t>(&'t str);

impl<'t> Rest<'t> {
    /// The value of the next key, which must be `key`.
    fn value<T>(
        &mut self,
        key: Key,
        what: &str,
        read: impl FnOnce(&'t str) -> Option<T>,
    ) -> Result<T, DecisionError> {
        let wrong = |found| DecisionError::new(format!("`{key}=` and {what}"), found);
        let value = key.strip(self.0).ok_or_else(|| wrong(self.0))?;
        let (value, rest) = value.split_once(' ').unwrap_or((value, ""));
        self.0 = rest;
        read(value).ok_or_else(|| wrong(value))
    }
}

/// Digits only: `FromStr` would take a plus sign too.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.starts_with(|first: char| first.is_ascii_digit()))
}

fn cpu_number(text: &str) -> Option<u16> {
    number(text).filter(|&cpu| usize::from(cpu) < CpuSet::MAX_CPUS)
}

/// A CPU.
impl Field for u16 {
    fn write(&self, key: Key, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, " {key}={self}")
    }

    fn parse(key: Key, text: &mut Rest<'_>) -> Result<Self, DecisionError> {
        text.value(key, "a CPU from 0 to 1023", cpu_number)
    }
}

impl Field for u32 {
    fn write(&self, key: Key, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, " {key}={self}")
    }

    fn parse(key: Key, text: &mut Rest<'_>) -> Result<Self, DecisionError> {
        text.value(key, "a number of 32 bits", number)
    }
}

impl Field for u64 {
    fn write(&self, key: Key, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, " {key}={self}")
    }

    fn parse(key: Key, text: &mut Rest<'_>) -> Result<Self, DecisionError> {
        text.value(key, "a number of 64 bits", number)
    }
}

impl Field for bool {
    fn write(&self, key: Key, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, " {key}={}", u8::from(*self))
    }

    fn parse(key: Key, text: &mut Rest<'_>) -> Result<Self, DecisionError> {
        text.value(key, "0 or 1", |value| match value {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        })
    }
}

impl Field for CpuSet {
    fn write(&self, key: Key, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, " {key}={self}")
    }

    fn parse(key: Key, text: &mut Rest<'_>) -> Result<Self, DecisionError> {
        text.value(key, "a CPU list", |value| CpuSet::parse_list(value).ok())
    }
}

impl Field for Vec<u32> {
    fn write(&self, key: Key, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, " {key}=")?;
        write_list(self, out)
    }

    fn parse(key: Key, text: &mut Rest<'_>) -> Result<Self, DecisionError> {
        text.value(key, "numbers joined by commas", |value| list(value).map(number).collect())
    }
}

impl Field for Vec<RunQueueReadings> {
    fn write(&self, key: Key, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, " {key}=")?;
        write_list(self, out)
    }

    fn parse(key: Key, text: &mut Rest<'_>) -> Result<Self, DecisionError> {
        let what = "the readings of CPUs joined by commas";
        text.value(key, what, |value| list(value).map(RunQueueReadings::parse).collect())
    }
}

fn write_list<T: fmt::Display>(items: &[T], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    items.iter().enumerate().try_for_each(|(at, item)| {
        let comma = if at == 0 { "" } else { "," };
        write!(out, "{comma}{item}")
    })
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    // The empty text is the empty list, not a list of one empty item.
    text.split(',').filter(move |_| !text.is_empty())
}

impl Field for Readings {
    fn write(&self, key: Key, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, readings): (_, &dyn Fn(&mut fmt::Formatter<'_>) -> fmt::Result) = match self {
            Readings::Wakeup(wakeup) => ("wakeup", &|out| wakeup.write(Key::TOP, out)),
            Readings::Fork(fork) => ("fork", &|out| fork.write(Key::TOP, out)),
            Readings::Exec(exec) => ("exec", &|out| exec.write(Key::TOP, out)),
        };
        write!(out, " {key}={word}")?;
        readings(out)
    }

    fn parse(key: Key, text: &mut Rest<'_>) -> Result<Self, DecisionError> {
        type Read = fn(&mut Rest<'_>) -> Result<Readings, DecisionError>;
        let read: Read = text.value(key, "wakeup, fork or exec", |value| match value {
            "wakeup" => Some((|rest| Field::parse(Key::TOP, rest).map(Self::Wakeup)) as Read),
            "fork" => Some(|rest| Field::parse(Key::TOP, rest).map(Self::Fork)),
            "exec" => Some(|rest| Field::parse(Key::TOP, rest).map(Self::Exec)),
            _ => None,
        })?;
        read(text)
    }
}

impl fmt::Display for RunQueueReadings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}/{}", self.cpu, self.nr_running, self.h_nr_queued)?;
        write!(out, "/{}/{}/{}", self.h_nr_delayed, self.load, self.runnable)?;
        write!(out, "/{}/{}/{}", self.util, self.util_est, self.idle_stamp)?;
        match self.idle_exit_latency {
            Some(latency) => write!(out, "/{latency}"),
            None => write!(out, "/-"),
        }
    }
}

impl RunQueueReadings {
    fn parse(text: &str) -> Option<Self> {
        let (cpu, readings) = text.split_once(':')?;
        let mut readings = readings.split('/');
        let parsed = RunQueueReadings {
            cpu: cpu_number(cpu)?,
            nr_running: number(readings.next()?)?,
            h_nr_queued: number(readings.next()?)?,
            h_nr_delayed: number(readings.next()?)?,
            load: number(readings.next()?)?,
            runnable: number(readings.next()?)?,
            util: number(readings.next()?)?,
            util_est: number(readings.next()?)?,
            idle_stamp: number(readings.next()?)?,
            idle_exit_latency: match readings.next()? {
                "-" => None,
                latency => Some(number(latency)?),
            },
        };
        readings.next().is_none().then_some(parsed)
    }
}
