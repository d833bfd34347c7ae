//! Knobs as data: what an administrator can set on a running kernel, under the kernel's own names.
//!
//! Those in capitals are features of the scheduler, 1 or 0; the others are numbers, or words, in debugfs or
//! /proc/sys/kernel. `set:NAME=VALUE` in a policy is a knob that was set once the machine had booted,
//! so that what kernels derive from one at boot stays what it was.
//!
//! Limits: `migration_cost_ns` has no -1 (always hot), which any second is as good as. Before v5.13
//! `min_granularity_ns` and `latency_ns` also said how many tasks share a period, which stays 8 here.
//! NEXT_BUDDY, LAST_BUDDY, CACHE_HOT_BUDDY, UTIL_EST and the rest of the features are as the kernel
//! boots with them, and so is what is no scheduler's: SMT and the tick.

use crate::kernel::{kernel_names, profile};
use crate::near::near;
use crate::state::*;

/// Why a knob could not be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KnobError {
    #[error("unknown knob '{name}'{}", near(.name, KNOBS.iter().map(|knob| knob.name), "knobs"))]
    Unknown { name: String },
    #[error("kernel {kernel} has no {name}: {kernels} have; {kernel} has {has}")]
    OfOthers { name: String, kernel: String, kernels: String, has: String },
    #[error("set:{assignment}: not a value of {name}, expected {expected}")]
    Value { assignment: String, name: String, expected: String },
}

struct Knob {
    name: &'static str,
    about: &'static str,
    /// Of the kernel's own profile: is it there?
    is_in: fn(&Profile) -> bool,
    setting: Setting,
}

enum Setting {
    /// 1 or 0.
    Feature(fn(&mut Profile) -> &mut bool),
    /// Up to the largest.
    Number { largest: u64, set: fn(&mut Profile, u64) },
    /// One of these.
    Word { words: &'static [(&'static str, u32)], field: fn(&mut Profile) -> &mut u32 },
}

use Setting::{Feature, Number, Word};

/// The kernel bounds its granularities so.
const SECOND: u64 = 1_000_000_000;

const KNOBS: &[Knob] = &[
    Knob {
        name: "WA_IDLE",
        about: "wake_affine goes by which CPUs are idle",
        is_in: compares_loads,
        setting: Feature(|profile| &mut profile.wa_idle),
    },
    Knob {
        name: "WA_WEIGHT",
        about: "wake_affine compares loads where that is undecided",
        is_in: compares_loads,
        setting: Feature(|profile| &mut profile.wa_weight),
    },
    Knob {
        name: "WA_BIAS",
        about: "in that comparison the previous CPU has a bonus",
        is_in: compares_loads,
        setting: Feature(|profile| &mut profile.wa_bias),
    },
    Knob {
        name: "SIS_UTIL",
        about: "the utilisation of an LLC limits the search for an idle CPU; else nothing does",
        is_in: |kernel| kernel.sis_util,
        setting: Feature(|profile| &mut profile.sis_util),
    },
    Knob {
        name: "SIS_PROP",
        about: "without SIS_UTIL, expected idle time limits that search",
        is_in: |kernel| compares_loads(kernel) && !kernel.delayed_dequeue,
        setting: Feature(|profile| &mut profile.sis_prop),
    },
    Knob {
        name: "TTWU_QUEUE",
        about: "some wakees are enqueued by the CPU that they go to",
        is_in: always,
        setting: Feature(|profile| &mut profile.ttwu_queue),
    },
    Knob {
        name: "WAKEUP_PREEMPTION",
        about: "a task that is enqueued may preempt the one that runs",
        is_in: always,
        setting: Feature(|profile| &mut profile.wakeup_preemption),
    },
    Knob {
        name: "preempt",
        about: "full, none: it is told by an interrupt, at once or when its call is over; lazy: as it returns to user space, or at a tick",
        is_in: |kernel| kernel.preempt != PREEMPT_NONE,
        setting: Word {
            words: &[("full", PREEMPT_FULL), ("lazy", PREEMPT_LAZY), ("none", PREEMPT_NONE)],
            field: |profile| &mut profile.preempt,
        },
    },
    Knob {
        name: "cgroup_mode",
        about: "what a cgroup weighs on all CPUs together: concur: its weight for each task it can run; smp: once",
        is_in: |kernel| kernel.cgroup_mode != CGROUP_SMP,
        setting: Word {
            words: &[
                ("smp", CGROUP_SMP),
                ("concur", CGROUP_CONCUR),
                ("tasks", CGROUP_TASKS),
                ("max", CGROUP_MAX),
                ("up", CGROUP_UP),
            ],
            field: |profile| &mut profile.cgroup_mode,
        },
    },
    Knob {
        name: "PLACE_LAG",
        about: "a task comes back with the lag it left with",
        is_in: is_eevdf,
        setting: Feature(|profile| &mut profile.place_lag),
    },
    Knob {
        name: "RUN_TO_PARITY",
        about: "an eligible task that runs is not preempted before its slice is over",
        is_in: is_eevdf,
        setting: Feature(|profile| &mut profile.run_to_parity),
    },
    Knob {
        name: "DELAY_DEQUEUE",
        about: "a task that sleeps ahead of its share stays queued for a while",
        is_in: |kernel| kernel.delayed_dequeue,
        setting: Feature(|profile| &mut profile.delayed_dequeue),
    },
    Knob {
        name: "migration_cost_ns",
        about: "a task that ran so recently is cache hot, and stays",
        is_in: always,
        setting: Number {
            largest: u32::MAX as u64,
            set: |profile, ns| profile.migration_cost = ns,
        },
    },
    Knob {
        name: "numa_balancing",
        about: "memory goes to the NUMA node from which it is used, and tasks to their memory",
        is_in: always,
        setting: Feature(|profile| &mut profile.numa_balancing),
    },
    Knob {
        name: "nr_migrate",
        about: "tasks that one attempt to balance looks at, 32 at most",
        is_in: always,
        setting: Number {
            largest: SCHED_NR_MIGRATE as u64,
            set: |profile, tasks| profile.nr_migrate = tasks as u32,
        },
    },
    Knob {
        name: "llc_enabled",
        about: "threads of a process gather on an LLC",
        is_in: is_cache_aware,
        setting: Feature(|profile| &mut profile.llc_enabled),
    },
    Knob {
        name: "llc_aggr_tolerance",
        about: "how large processes may be that gather: from 0, none, to 100, any",
        is_in: is_cache_aware,
        setting: Number {
            largest: 100,
            set: |profile, tolerance| profile.llc_aggr_tolerance = tolerance as u32,
        },
    },
    Knob {
        name: "llc_overaggr_pct",
        about: "up to this utilisation an LLC takes threads in",
        is_in: is_cache_aware,
        setting: Number { largest: 100, set: |profile, pct| profile.llc_overaggr_pct = pct as u32 },
    },
    Knob {
        name: "llc_imb_pct",
        about: "beyond that, while it is used by no more than this above theirs",
        is_in: is_cache_aware,
        setting: Number { largest: 100, set: |profile, pct| profile.llc_imb_pct = pct as u32 },
    },
    Knob {
        name: "base_slice_ns",
        about: "slice of a task, whatever the number of CPUs",
        is_in: is_eevdf,
        setting: Number { largest: SECOND, set: |profile, ns| profile.base_slice = fixed(ns) },
    },
    Knob {
        name: "latency_ns",
        about: "time in which each of up to 8 tasks runs once, whatever the number of CPUs",
        is_in: is_cfs,
        setting: Number { largest: SECOND, set: |profile, ns| profile.latency = fixed(ns) },
    },
    Knob {
        name: "min_granularity_ns",
        about: "slice of each task if there are more, whatever the number of CPUs",
        is_in: is_cfs,
        setting: Number { largest: SECOND, set: |profile, ns| profile.min_gran = fixed(ns) },
    },
    Knob {
        name: "wakeup_granularity_ns",
        about: "a wakee preempts a task that is so much ahead, whatever the number of CPUs",
        is_in: is_cfs,
        setting: Number { largest: SECOND, set: |profile, ns| profile.wakeup_gran = fixed(ns) },
    },
];

fn always(_: &Profile) -> bool {
    true
}

fn compares_loads(kernel: &Profile) -> bool {
    kernel.affine == AFFINE_LOADS
}

fn is_cache_aware(kernel: &Profile) -> bool {
    kernel.cache_aware != CACHE_AWARE_NONE
}

fn is_cfs(kernel: &Profile) -> bool {
    kernel.run_queue == RUN_QUEUE_CFS
}

fn is_eevdf(kernel: &Profile) -> bool {
    kernel.run_queue == RUN_QUEUE_EEVDF
}

fn fixed(ns: u64) -> Tunable {
    Tunable { ns, grows: false }
}

/// Every knob with a line about it, and the kernels that have it.
pub fn knob_names() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    KNOBS.iter().map(|knob| (knob.name, knob.about, kernels(knob))).collect()
}

/// Two values that a knob may have; `None` if there is no such knob.
pub fn two_values_of(name: &str) -> Option<[&'static str; 2]> {
    let knob = KNOBS.iter().find(|knob| knob.name == name)?;
    Some(match knob.setting {
        Feature(_) | Number { .. } => ["0", "1"],
        Word { words, .. } => [words[0].0, words[1].0],
    })
}

fn kernels(knob: &Knob) -> Vec<&'static str> {
    let has = |name: &&str| profile(name).is_some_and(|kernel| (knob.is_in)(&kernel));
    kernel_names().into_iter().filter(has).collect()
}

/// Sets what `NAME=VALUE` says in `changed`, which was `kernel`.
pub(crate) fn set(
    changed: &mut Profile,
    kernel: (&str, &Profile),
    assignment: &str,
) -> Result<(), KnobError> {
    let (name, value) = assignment.split_once('=').unwrap_or((assignment, ""));
    let knob = find(name, kernel)?;
    let bad_value = |expected: String| KnobError::Value {
        assignment: assignment.to_owned(),
        name: name.to_owned(),
        expected,
    };
    match &knob.setting {
        Feature(field) => {
            *field(changed) = match value {
                "0" => false,
                "1" => true,
                _ => return Err(bad_value("1 or 0".to_owned())),
            }
        }
        Number { largest, set } => {
            let number = value.parse().ok().filter(|number| number <= largest);
            let number = number.ok_or_else(|| bad_value(format!("0 to {largest}")))?;
            set(changed, number);
        }
        Word { words, field } => {
            let word = words.iter().find(|(word, _)| *word == value);
            let expected = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" or ");
            *field(changed) = word.ok_or_else(|| bad_value(expected()))?.1;
        }
    }
    Ok(())
}

fn find(name: &str, (kernel, profile): (&str, &Profile)) -> Result<&'static Knob, KnobError> {
    let knob = KNOBS.iter().find(|knob| knob.name == name);
    let knob = knob.ok_or_else(|| KnobError::Unknown { name: name.to_owned() })?;
    if (knob.is_in)(profile) {
        return Ok(knob);
    }
    let has = KNOBS.iter().filter(|knob| (knob.is_in)(profile)).map(|knob| knob.name);
    Err(KnobError::OfOthers {
        name: name.to_owned(),
        kernel: kernel.to_owned(),
        kernels: kernels(knob).join(", "),
        has: has.collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(kernel: &str, assignments: &[&str]) -> Result<Profile, KnobError> {
        let as_booted = profile(kernel).unwrap();
        let mut changed = as_booted;
        for assignment in assignments {
            set(&mut changed, (kernel, &as_booted), assignment)?;
        }
        Ok(changed)
    }

    fn refusal(kernel: &str, assignment: &str) -> String {
        changed(kernel, &[assignment]).err().unwrap().to_string()
    }

    #[test]
    fn a_kernel_without_the_knob_says_which_have_it_and_what_it_has_itself() {
        let error = refusal("v5.3", "SIS_UTIL=0");
        assert!(error.starts_with("kernel v5.3 has no SIS_UTIL: v6.0, v6.1.176, "), "{error}");
        assert!(error.contains("v5.3 has WA_IDLE, ") && error.contains("latency_ns"), "{error}");
        for (kernel, knob) in [
            ("v3.10", "WA_IDLE=0"),
            ("v6.12", "SIS_PROP=1"),
            ("v6.0", "RUN_TO_PARITY=0"),
            ("v6.0", "DELAY_DEQUEUE=0"),
            ("v6.0", "base_slice_ns=1000000"),
            ("v6.12", "latency_ns=1000000"),
            ("v6.12", "preempt=lazy"),
        ] {
            let error = refusal(kernel, knob);
            assert!(error.contains("has no"), "{error}");
        }
    }

    #[test]
    fn an_unknown_knob_lists_the_near_ones() {
        let error = refusal("v6.18", "SIS_UTL=0");
        assert!(error.contains("SIS_UTIL") && !error.contains("base_slice_ns"), "{error}");
    }

    #[test]
    fn a_wrong_value_says_what_was_expected() {
        for (knob, expected) in [
            ("SIS_UTIL=2", "1 or 0"),
            ("SIS_UTIL", "1 or 0"),
            ("nr_migrate=33", "0 to 32"),
            ("migration_cost_ns=-1", "0 to 4294967295"),
            ("base_slice_ns=3ms", "0 to 1000000000"),
            ("preempt=voluntary", "full or lazy or none"),
        ] {
            let error = refusal("v6.18", knob);
            assert!(error.ends_with(&format!("expected {expected}")), "{error}");
        }
    }

    #[test]
    fn kernels_preempt_as_they_are_told_or_as_they_were_built() {
        let mode = |kernel, knobs: &[&str]| changed(kernel, knobs).unwrap().preempt;
        assert_eq!(["v6.18", "v7.3"].map(|kernel| mode(kernel, &[])), [PREEMPT_FULL, PREEMPT_LAZY]);
        assert_eq!(mode("v6.18", &["preempt=lazy"]), PREEMPT_LAZY);
        assert_eq!(mode("v7.3", &["preempt=full"]), PREEMPT_FULL);
        assert_eq!(mode("v7.3", &["preempt=none"]), PREEMPT_NONE);
    }

    #[test]
    fn each_feature_turns_a_field_of_its_own() {
        for kernel in kernel_names() {
            let mut as_booted = profile(kernel).unwrap();
            let features = KNOBS.iter().filter_map(|knob| match knob.setting {
                Feature(field) if (knob.is_in)(&as_booted) => Some((knob.name, field)),
                _ => None,
            });
            let features: Vec<_> = features.collect();
            for (name, field) in &features {
                let other = !*field(&mut as_booted);
                let mut turned =
                    changed(kernel, &[&format!("{name}={}", u8::from(other))]).unwrap();
                for (of, field) in &features {
                    let differs = *field(&mut turned) != *field(&mut as_booted);
                    assert_eq!(differs, of == name, "{kernel}: {name} turns {of}");
                }
            }
        }
    }

    #[test]
    fn the_order_of_knobs_does_not_matter() {
        for knobs in [["SIS_UTIL=0", "SIS_PROP=1"], ["SIS_PROP=1", "SIS_UTIL=0"]] {
            let Profile { sis_util, sis_prop, .. } = changed("v6.0", &knobs).unwrap();
            assert_eq!((sis_util, sis_prop), (false, true));
        }
    }
}
