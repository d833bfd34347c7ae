//! Knobs of wakeups: a state in which each makes a difference, and one in which it must not.

use super::lab::Lab;
use super::{HERE, THERE, searched, undecided, weighed};
use placewise_policy::*;

/// v6.0 without any knob, and with some.
fn both(knobs: &str) -> [Profile; 2] {
    ["baseline", knobs].map(|spec| Policy::parse("v6.0", spec).unwrap().profile)
}

fn reasons(profiles: [Profile; 2], wake: impl Fn(Profile) -> Lab) -> [AffineReason; 2] {
    profiles.map(|profile| wake(profile).affine())
}

#[test]
fn wa_idle() {
    let sync = |profile| {
        let mut lab = undecided(profile);
        lab.wake_with(THERE, HERE, WF_SYNC);
        lab
    };
    assert_eq!(reasons(both("set:WA_IDLE=0"), sync), [AFFINE_SYNC, AFFINE_UNDECIDED]);
    let by_weight = |profile| {
        let mut lab = weighed(profile);
        lab.wake_with(HERE + 1, HERE, WF_SYNC);
        lab
    };
    assert_eq!(reasons(both("set:WA_IDLE=0"), by_weight), [AFFINE_WEIGHT; 2]);
}

#[test]
fn wa_weight() {
    let by_weight = |profile| {
        let mut lab = weighed(profile);
        lab.wake_with(HERE + 1, HERE, WF_SYNC);
        lab
    };
    let knob = "set:WA_WEIGHT=0";
    assert_eq!(reasons(both(knob), by_weight), [AFFINE_WEIGHT, AFFINE_UNDECIDED]);
    let idle_prev = |profile| {
        let mut lab = by_weight(profile);
        lab.idle(HERE + 1);
        lab.wake_with(HERE + 1, HERE, WF_SYNC);
        lab
    };
    assert_eq!(reasons(both(knob), idle_prev), [AFFINE_PREV_IDLE; 2]);
}

/// The bonus of prev is 8 % in an LLC: its 1024 count as 1105.
#[test]
fn wa_bias() {
    let this_load = |load: u64| {
        move |profile| {
            let mut lab = weighed(profile);
            lab.rq(HERE).cfs.avg.load_avg = load - 1024;
            lab.wake(HERE + 1, HERE);
            lab
        }
    };
    let knob = "set:WA_BIAS=0";
    for (load, expected) in
        [(1105, [AFFINE_WEIGHT, AFFINE_UNDECIDED]), (1106, [AFFINE_UNDECIDED; 2])]
    {
        assert_eq!(reasons(both(knob), this_load(load)), expected, "{load}");
    }
    let lighter = |profile| {
        let mut lab = weighed(profile);
        lab.wakee().avg.load_avg = 512;
        lab.rq(HERE).cfs.avg.load_avg = 511;
        lab.wake(HERE + 1, HERE);
        lab
    };
    assert_eq!(reasons(both(knob), lighter), [AFFINE_WEIGHT; 2]);
}

#[test]
fn sis_util() {
    let [as_booted, without] = both("set:SIS_UTIL=0");
    for (scans, found) in [(2, [0, 3]), (3, [3, 3])] {
        for (profile, found) in [as_booted, without].into_iter().zip(found) {
            let mut lab = searched(profile, &[1, 2]);
            lab.p.llc[0].nr_idle_scan = scans;
            assert_eq!(lab.wake(0, 0), found, "{scans}");
        }
    }
}

/// It limits the search where SIS_UTIL does not.
#[test]
fn sis_prop() {
    for (spec, limit) in
        [("set:SIS_PROP=1", 16), ("set:SIS_PROP=1,set:SIS_UTIL=0", 9), ("set:SIS_UTIL=0", u32::MAX)]
    {
        let mut lab = searched(both(spec)[1], &[]);
        lab.rq(0).wake_avg_idle = 400;
        lab.rq(0).wake_stamp = u64::MAX;
        lab.llc_domain(0).avg_scan_cost = 639;
        lab.wake(0, 0);
        assert_eq!(lab.p.decision.scan_limit, limit, "{spec}");
    }
}

#[test]
fn ttwu_queue() {
    let queued = |cpu: u32| {
        both("set:TTWU_QUEUE=0").map(|profile| {
            let mut lab = Lab::zen3(profile);
            lab.p.ttwu_queue_wakelist(Lab::WAKEE, HERE, cpu, false)
        })
    };
    assert_eq!(queued(THERE), [true, false]);
    assert_eq!(queued(HERE + 1), [true, false]);
    assert_eq!(queued(HERE), [false; 2], "never over its own");
}
