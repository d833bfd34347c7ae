//! Patches as data: each is a named change to a kernel's profile or a hint.
//!
//! A policy is a kernel with patches, hints and knobs that are set. Its name is
//! `baseline`, or these joined by commas: `short-task:v4,set:SIS_UTIL=0,hint:fork_spread`.
//! Hints of one policy are joined by plus signs: `hint:fork_affine+wake_hold`.
//!
//! A patch goes with the kernels that its code fits: those it was made for,
//! and others whose functions are still, or already, what it changes. Elsewhere
//! there is nothing that it could be a change to. Hints go with every kernel.

use placewise_hint::{Hint, HintError};

use crate::kernel;
use crate::knob::{self, KnobError};
use crate::near::near;
use crate::state::*;

/// A kernel with patches, hints and knobs, ready to be simulated.
#[derive(Clone, Debug)]
pub struct Policy {
    /// As it was asked for.
    pub name: String,
    pub profile: Profile,
    /// The hint every task of the workload inherits.
    pub hint: Hint,
    /// What decides.
    pub code: &'static Code,
}

/// Why a policy could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("unknown kernel '{name}'{}", near(.name, kernel::kernel_names(), "kernels"))]
    UnknownKernel { name: String },
    #[error("unknown policy '{name}'{}", near(.name, known_names(), "policies"))]
    UnknownPatch { name: String },
    #[error("policy '{patch}' does not fit {kernel}; it fits {}", .fits.join(", "))]
    DoesNotFit { patch: &'static str, kernel: String, fits: Vec<&'static str> },
    #[error("hints '{names}' do not go together: at most one fork_ and one wake_ hint")]
    ConflictingHints { names: String },
    #[error(transparent)]
    Knob(#[from] KnobError),
}

struct Patch {
    name: &'static str,
    about: &'static str,
    /// The first and the last kernel that its code fits.
    fits: (&'static str, &'static str),
    apply: fn(&mut Profile),
}

/// `wake_affine` and the search for idle CPUs have had the same places for it since.
const SHORT_TASK_FITS: (&str, &str) = ("v5.10", "v7.3");

/// There is a cluster level, and no search of it yet.
const CLUSTER_SCAN_FITS: (&str, &str) = ("v6.0", "v6.6");

/// The LLC is searched in one function, which looks at nothing beyond.
const SIS_NODE_FITS: (&str, &str) = ("v6.0", "v6.6");

/// Newly-idle balance has its cost, and there is no delayed dequeue.
const SHARED_RUNQ_FITS: (&str, &str) = ("v6.4", "v6.6");

/// A task that sleeps has left its queue, and when it was last accounted is known until it is back.
const SIS_CACHE_FITS: (&str, &str) = ("v6.3", "v6.6");

const PATCHES: &[Patch] = &[
    Patch {
        name: "wake-wide",
        about: "smart wake-affine (2013): a waker with many wakees wakes them where they were",
        fits: ("v3.10", "v3.10"),
        apply: |profile| profile.wake_wide = WAKE_WIDE_NODE,
    },
    Patch {
        name: "prev-idle",
        about: "a wakeup from an idle CPU of the same LLC stays on an idle prev CPU (2018)",
        fits: ("v4.15", "v4.15"),
        apply: |profile| profile.affine_prev_idle = true,
    },
    Patch {
        name: "lb-rework",
        about: "the load balancer's rework as posted (v2, 2019): idle CPUs and utilisation count",
        fits: ("v4.15", "v5.3"),
        apply: |profile| {
            profile.balance = BALANCE_REWORK_V2;
            // What would be less than nothing is to move nothing.
            profile.balance_local_above_average = true;
        },
    },
    Patch {
        name: "numaimb-v6",
        about: "the NUMA imbalance that is tolerated becomes a number of the topology (2022)",
        fits: ("v5.17", "v5.17"),
        apply: |profile| *profile = kernel::numa_imbalance_of_topology(*profile),
    },
    Patch {
        name: "numaimb-affinity",
        about: "forks count only CPUs that the task may use in that number (2022)",
        fits: ("v5.18", "v5.19"),
        apply: |profile| profile.fork_numa = FORK_NUMA_RUNNING_ALLOWED,
    },
    Patch {
        name: "sis-util",
        about: "the utilisation of an LLC limits the search for an idle CPU (2022)",
        fits: ("v5.17", "v5.19"),
        apply: |profile| (profile.sis_util, profile.sis_prop) = (true, false),
    },
    Patch {
        name: "sis-filter",
        about: "cores that had nothing idle when a search failed are left out of the next (2022)",
        fits: ("v5.19", "v6.0"),
        apply: |profile| profile.scan_filter = true,
    },
    Patch {
        name: "sis-node",
        about: "after its LLC the other LLCs of a node are searched (2023)",
        fits: SIS_NODE_FITS,
        apply: |profile| profile.scan_node = true,
    },
    Patch {
        name: "sd-idle-sibling",
        about: "the same as sis-node, as a flag of the domain (2023)",
        fits: SIS_NODE_FITS,
        apply: |profile| profile.scan_node = true,
    },
    Patch {
        name: "cluster-scan",
        about: "the target's cluster is searched before its LLC (v11, 2023)",
        fits: CLUSTER_SCAN_FITS,
        apply: |profile| profile.scan_cluster_first = true,
    },
    Patch {
        name: "cluster-scan-v9",
        about: "the same in an earlier form",
        fits: CLUSTER_SCAN_FITS,
        apply: |profile| profile.scan_cluster_first = true,
    },
    Patch {
        name: "cluster-scan-v8",
        about: "the same in an earlier form",
        fits: CLUSTER_SCAN_FITS,
        apply: |profile| profile.scan_cluster_first = true,
    },
    Patch {
        name: "sis-cache-rfc",
        about: "a CPU that a task leaves for a brief sleep is kept for it (2023)",
        fits: SIS_CACHE_FITS,
        apply: |profile| profile.sis_cache = SIS_CACHE_RFC,
    },
    Patch {
        name: "sis-cache-v1",
        about: "the same, unless no other CPU is idle",
        fits: SIS_CACHE_FITS,
        apply: |profile| profile.sis_cache = SIS_CACHE_V1,
    },
    Patch {
        name: "sis-cache-v2",
        about: "the same; half of a search's limit is spent on such CPUs at most",
        fits: SIS_CACHE_FITS,
        apply: |profile| profile.sis_cache = SIS_CACHE_V2,
    },
    Patch {
        name: "shared-runq",
        about: "CPUs that run out take tasks from lists of their LLC (v3, 2023)",
        fits: SHARED_RUNQ_FITS,
        apply: |profile| profile.shared_runq = SHARED_RUNQ_ALWAYS,
    },
    Patch {
        name: "shared-runq-idle-check",
        about: "the same, if they expect to idle for longer than balancing takes",
        fits: SHARED_RUNQ_FITS,
        apply: |profile| profile.shared_runq = SHARED_RUNQ_IDLE_CHECK,
    },
    Patch {
        name: "shared-runq-tgload-ratelimit",
        about: "shared-runq, and a CPU tells the load of a task group once a ms at most",
        fits: SHARED_RUNQ_FITS,
        apply: |profile| {
            profile.shared_runq = SHARED_RUNQ_ALWAYS;
            profile.group_load_rate_limited = true;
        },
    },
    Patch {
        name: "scale-wakegran",
        about: "wakees have to be further ahead to preempt the longer the queue is (2021)",
        fits: ("v5.10", "v6.5"),
        apply: |profile| profile.wakeup_gran_scales = true,
    },
    Patch {
        name: "next-buddy",
        about: "NEXT_BUDDY as reworked: an eligible wakee goes before others (2025)",
        fits: ("v6.17", "v6.18"),
        apply: |profile| (profile.next_buddy, profile.fork_preempts) = (true, false),
    },
    Patch {
        name: "cache-aware-rfc0",
        about: "wakees look for an idle CPU where their process has run most (2025)",
        fits: ("v6.14", "v6.14"),
        apply: |profile| profile.cache_aware = CACHE_AWARE_WAKEUP,
    },
    Patch {
        name: "cache-aware-rfc3",
        about: "the load balancer brings the threads of a process together on an LLC (2025)",
        fits: ("v6.15", "v6.15"),
        apply: |profile| profile.cache_aware = CACHE_AWARE_BALANCE,
    },
    Patch {
        name: "cache-aware-v1",
        about: "the same, unless they are too many for it, or have too much memory",
        fits: ("v6.17", "v6.18"),
        apply: |profile| profile.cache_aware = CACHE_AWARE_GATED,
    },
    Patch {
        name: "sd-nohz",
        about: "a mask of idle CPUs for each LLC (2025): what waits for it is not simulated",
        fits: ("v6.17", "v6.18"),
        apply: |_| {},
    },
    Patch {
        name: "sis-short",
        about: "the same as short-task:v6",
        fits: SHORT_TASK_FITS,
        apply: short_task_v6,
    },
    Patch {
        name: "short-task",
        about: "the same as short-task:v1",
        fits: SHORT_TASK_FITS,
        apply: short_task_v1,
    },
    Patch {
        name: "short-task:v1",
        about: "short wakers pull their wakees, a short pair on a busy LLC stacks (2022)",
        fits: SHORT_TASK_FITS,
        apply: short_task_v1,
    },
    Patch {
        name: "short-task:honglei",
        about: "v1, pulling only when the waker is alone on its CPU",
        fits: SHORT_TASK_FITS,
        apply: |profile| {
            short_task_v1(profile);
            profile.affine_short = AFFINE_SHORT_HONGLEI;
        },
    },
    Patch {
        name: "short-task:reviewed",
        about: "v2: pulling comes after the idle prev CPU, run length is an average",
        fits: SHORT_TASK_FITS,
        apply: |profile| {
            profile.affine_short = AFFINE_SHORT_LAST;
            profile.scan_short = SCAN_SHORT_V2;
            profile.run_length = RUN_LENGTH_AVERAGE_OUTLIERS;
            profile.short_threshold = SHORT_MIN_GRAN;
        },
    },
    Patch {
        name: "short-task:sync-gated",
        about: "v1, pulling last and for sync wakeups only",
        fits: SHORT_TASK_FITS,
        apply: |profile| {
            short_task_v1(profile);
            profile.affine_short = AFFINE_SHORT_SYNC_LAST;
        },
    },
    Patch {
        name: "short-task:v4",
        about: "stacking before the search, below an eighth of the minimum granularity",
        fits: SHORT_TASK_FITS,
        apply: |profile| {
            profile.affine_short = AFFINE_SHORT_LAST;
            profile.scan_short = SCAN_SHORT_V4;
            profile.run_length = RUN_LENGTH_AVERAGE;
            profile.short_threshold = SHORT_MIN_GRAN_EIGHTH;
        },
    },
    Patch {
        name: "short-task:v6",
        about: "stacking on the waking CPU of a busy LLC, for tasks that wake one other only",
        fits: SHORT_TASK_FITS,
        apply: short_task_v6,
    },
    Patch {
        name: "short-task:skip-weight",
        about: "v6 without the weight test of wake_affine for short wakees",
        fits: SHORT_TASK_FITS,
        apply: |profile| {
            short_task_v6(profile);
            profile.affine_skip_weight_if_short = true;
        },
    },
    Patch {
        name: "short-task:current",
        about: "SIS_CURRENT (v8): two short tasks that wake each other share the waking CPU",
        fits: SHORT_TASK_FITS,
        apply: |profile| {
            profile.scan_short = SCAN_SHORT_CURRENT;
            profile.run_length = RUN_LENGTH_AVERAGE;
            profile.short_threshold = SHORT_MIGRATION_COST;
            profile.short_needs_no_flips = true;
        },
    },
    Patch {
        name: "short-task:sync",
        about: "SIS_SYNC (2024): the same for sync wakeups, the larger the LLC the sooner",
        fits: SHORT_TASK_FITS,
        apply: |profile| {
            profile.scan_short = SCAN_SHORT_SYNC;
            profile.run_length = RUN_LENGTH_AVERAGE;
            profile.short_threshold = SHORT_LLC_SIZE;
        },
    },
];

fn short_task_v1(profile: &mut Profile) {
    profile.affine_short = AFFINE_SHORT_V1;
    profile.scan_short = SCAN_SHORT_V1;
    profile.run_length = RUN_LENGTH_TOTAL;
    profile.short_threshold = SHORT_MIN_GRAN;
}

fn short_task_v6(profile: &mut Profile) {
    profile.affine_short = AFFINE_SHORT_LAST;
    profile.scan_short = SCAN_SHORT_V5;
    profile.run_length = RUN_LENGTH_AVERAGE;
    profile.short_threshold = SHORT_BELOW_MIN_GRAN_EIGHTH;
    profile.short_needs_no_flips = true;
}

/// Every patch and hint with a line about it.
pub fn patch_names() -> Vec<(String, &'static str)> {
    let patches = PATCHES.iter().map(|patch| (patch.name.to_string(), patch.about));
    let hints = Hint::names().map(|(name, about)| (format!("hint:{name}"), about));
    patches.chain(hints).collect()
}

/// A task that has changed its wakee twice, as one that was let go by another and then found its partner, has no wake
/// flips left once they have been halved twice: at wakeups that are more than a second apart (`record_wakee()`). Published
/// nulls of sis-short were in view, which fit a warm-up better in which it decides nothing; they chose nothing.
const FLIPS_DECAY_NS: u64 = 2_100_000_000;

impl Policy {
    /// How long tasks have to run until each of its rules can act on those that keep to one wakee.
    pub fn acts_after_ns(&self) -> u64 {
        if self.profile.short_needs_no_flips { FLIPS_DECAY_NS } else { 0 }
    }

    /// What of it `scx_placewise` cannot do on a live kernel, as a sentence begins that says so; `None` if it
    /// can do all.
    pub fn simulated_only(&self) -> Option<&'static str> {
        let Profile { shared_runq, wakeup_gran_scales, next_buddy, .. } = self.profile;
        if shared_runq != SHARED_RUNQ_NONE {
            Some("lists of waiting tasks are")
        } else if wakeup_gran_scales || next_buddy {
            Some("which wakee preempts whom is")
        } else {
            None
        }
    }

    /// `kernel` with the changes that `spec` names.
    pub fn parse(kernel: &str, spec: &str) -> Result<Policy, PolicyError> {
        let as_booted = kernel::profile(kernel)
            .ok_or_else(|| PolicyError::UnknownKernel { name: kernel.to_string() })?;
        let mut profile = as_booted;
        let mut hint = Hint::NONE;
        for change in spec.split(',').filter(|&change| change != "baseline") {
            if let Some(names) = change.strip_prefix("hint:") {
                hint = join_hints(hint, names, spec)?;
            } else if let Some(assignment) = change.strip_prefix("set:") {
                knob::set(&mut profile, (kernel, &as_booted), assignment)?;
            } else {
                find_patch(change)?.apply_to(kernel, &mut profile)?;
            }
        }
        Ok(Policy { name: spec.to_string(), profile, hint, code: &Code::BUILT_IN })
    }

    /// As a kernel that was built, or told, to preempt so, by the name that debugfs has for it, if that is known and the
    /// policy sets no other way.
    #[must_use]
    pub fn preempting(mut self, mode: Option<&str>) -> Policy {
        let is_set = self.name.split(',').any(|change| change.starts_with("set:preempt="));
        if let Some(mode) = mode.filter(|_| !is_set) {
            let word = if mode == "voluntary" { "none" } else { mode };
            let as_parsed = self.profile;
            // Kernels without that knob have one way, and other words no meaning.
            _ = knob::set(&mut self.profile, (&self.name, &as_parsed), &format!("preempt={word}"));
        }
        self
    }
}

impl Patch {
    fn apply_to(&self, kernel: &str, profile: &mut Profile) -> Result<(), PolicyError> {
        let fits = self.kernels();
        if !fits.contains(&kernel) {
            let kernel = kernel.to_string();
            return Err(PolicyError::DoesNotFit { patch: self.name, kernel, fits });
        }
        (self.apply)(profile);
        Ok(())
    }

    /// All that its code fits, oldest first.
    fn kernels(&self) -> Vec<&'static str> {
        let kernels = kernel::kernel_names();
        let place = |fits: &str| kernels.iter().position(|kernel| *kernel == fits);
        let [first, last] = [self.fits.0, self.fits.1].map(place);
        kernels[first.expect("a known kernel")..=last.expect("a known kernel")].to_vec()
    }
}

/// `spec` with knobs, each `NAME=VALUE`, set as well.
pub fn with_knobs(spec: &str, knobs: &[String]) -> String {
    let of_spec = spec.split(',').filter(|&change| change != "baseline" || knobs.is_empty());
    let set = knobs.iter().map(|knob| format!("set:{knob}"));
    of_spec.map(str::to_owned).chain(set).collect::<Vec<_>>().join(",")
}

fn find_patch(name: &str) -> Result<&'static Patch, PolicyError> {
    PATCHES
        .iter()
        .find(|patch| patch.name == name)
        .ok_or_else(|| PolicyError::UnknownPatch { name: name.to_string() })
}

fn join_hints(hint: Hint, names: &str, spec: &str) -> Result<Hint, PolicyError> {
    names.parse().and_then(|more| hint.and(more)).map_err(|error| match error {
        HintError::Unknown { name } => PolicyError::UnknownPatch { name: format!("hint:{name}") },
        _ => PolicyError::ConflictingHints { names: spec.to_string() },
    })
}

fn known_names() -> Vec<String> {
    let baseline = ("baseline".to_string(), "");
    let known = std::iter::once(baseline).chain(patch_names());
    known.map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baseline_is_the_kernel() {
        let policy = Policy::parse("v6.0", "baseline").unwrap();
        assert_eq!(policy.profile.scan_short, SCAN_SHORT_NONE);
        assert_eq!(policy.hint, Hint::NONE);
    }

    #[test]
    fn changes_add_up() {
        let policy = Policy::parse("v6.0", "short-task:v4,hint:fork_spread+wake_hold").unwrap();
        assert_eq!(policy.profile.scan_short, SCAN_SHORT_V4);
        assert_eq!(policy.profile.affine_short, AFFINE_SHORT_LAST);
        assert_eq!(policy.hint.mask(), HINT_FORK_SPREAD | HINT_WAKE_HOLD);
    }

    #[test]
    fn knobs_are_set_beside_patches_and_hints() {
        let policy = Policy::parse("v6.0", "short-task,set:WA_IDLE=0,hint:wake_hold").unwrap();
        assert_eq!(policy.profile.scan_short, SCAN_SHORT_V1);
        assert!(!policy.profile.wa_idle && policy.profile.wa_weight);
        assert_eq!(policy.hint.mask(), HINT_WAKE_HOLD);
    }

    #[test]
    fn knobs_join_a_policy_by_its_words() {
        let knobs = ["WA_IDLE=0".to_owned(), "nr_migrate=4".to_owned()];
        assert_eq!(with_knobs("short-task", &[]), "short-task");
        assert_eq!(with_knobs("baseline", &[]), "baseline");
        assert_eq!(with_knobs("baseline", &knobs), "set:WA_IDLE=0,set:nr_migrate=4");
        assert_eq!(with_knobs("short-task", &knobs[1..]), "short-task,set:nr_migrate=4");
    }

    #[test]
    fn a_kernel_preempts_as_it_was_built_if_it_can_and_no_knob_says_otherwise() {
        let preempt = |kernel, spec, mode| {
            Policy::parse(kernel, spec).unwrap().preempting(Some(mode)).profile.preempt
        };
        let modes = ["none", "voluntary", "full", "lazy", "rt"];
        assert_eq!(
            modes.map(|mode| preempt("v6.18.32", "baseline", mode)),
            [PREEMPT_NONE, PREEMPT_NONE, PREEMPT_FULL, PREEMPT_LAZY, PREEMPT_LAZY]
        );
        assert_eq!(preempt("v6.18", "short-task,set:preempt=none", "lazy"), PREEMPT_NONE);
        assert_eq!(preempt("v6.18", "set:preempt=full", "lazy"), PREEMPT_FULL);
        assert_eq!(preempt("v6.12", "baseline", "full"), PREEMPT_NONE, "it has one way");
    }

    #[test]
    fn unknown_names_list_the_near_ones() {
        let error = Policy::parse("v6.0", "short-tusk").unwrap_err().to_string();
        assert!(error.contains("short-task:v1"), "{error}");
        assert!(!error.contains("wake-wide"), "{error}");
        let error = Policy::parse("v6.0", "core-sched").unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown policy 'core-sched'; `placewise list policies` prints those there are"
        );
        let error = Policy::parse("v6.1", "baseline").unwrap_err().to_string();
        assert!(error.contains("v6.0"), "{error}");
    }

    #[test]
    fn a_patch_goes_with_the_kernels_that_its_code_fits() {
        let fits = |kernel: &str, patch: &str| Policy::parse(kernel, patch).map(|_| ());
        for (patch, kernels) in [
            ("wake-wide", &["v3.10"][..]),
            ("prev-idle", &["v4.15"]),
            ("lb-rework", &["v4.15", "v5.3"]),
            ("numaimb-v6", &["v5.17"]),
            ("numaimb-affinity", &["v5.18", "v5.19"]),
            ("sis-util", &["v5.17", "v5.18", "v5.19"]),
            ("sis-filter", &["v5.19", "v6.0"]),
            ("sis-node", &["v6.0", "v6.1.176", "v6.2", "v6.3", "v6.4", "v6.5", "v6.6"]),
            ("sis-cache-v1", &["v6.3", "v6.4", "v6.5", "v6.6"]),
            (
                "scale-wakegran",
                &[
                    "v5.10", "v5.17", "v5.18", "v5.19", "v6.0", "v6.1.176", "v6.2", "v6.3", "v6.4",
                    "v6.5",
                ],
            ),
            ("next-buddy", &["v6.17", "v6.18"]),
            ("sd-nohz", &["v6.17", "v6.18"]),
        ] {
            for kernel in kernel::kernel_names() {
                assert_eq!(
                    fits(kernel, patch).is_ok(),
                    kernels.contains(&kernel),
                    "{patch} {kernel}"
                );
            }
        }
        let without_place = ["v3.10", "v4.15", "v5.3"];
        for kernel in kernel::kernel_names() {
            let has_place = !without_place.contains(&kernel);
            assert_eq!(fits(kernel, "short-task:sync").is_ok(), has_place, "{kernel}");
        }
        let refused = fits("v7.3", "hint:wake_hold,lb-rework").unwrap_err().to_string();
        assert_eq!(refused, "policy 'lb-rework' does not fit v7.3; it fits v4.15, v5.3");
        assert!(kernel::kernel_names().iter().all(|kernel| fits(kernel, "hint:wake_hold").is_ok()));
    }

    #[test]
    fn every_patch_fits_some_kernel() {
        assert!(PATCHES.iter().all(|patch| !patch.kernels().is_empty()));
    }

    #[test]
    fn hints_of_one_kind_exclude_each_other() {
        for spec in ["hint:fork_affine+fork_spread", "hint:wake_affine,hint:wake_hold"] {
            let refused = Policy::parse("v6.0", spec).unwrap_err();
            assert!(matches!(refused, PolicyError::ConflictingHints { .. }));
        }
    }

    #[test]
    fn the_policy_knows_the_hints_that_have_names() {
        for mask in 0..64 {
            let valid = hint_check(mask & !HINT_SHARE_CACHE) == HINT_VALID;
            assert_eq!(Hint::from_mask(mask).is_ok(), valid, "{mask}");
        }
    }
}
