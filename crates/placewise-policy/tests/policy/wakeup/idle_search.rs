//! The search of an LLC by words against one that visits CPU by CPU.

use super::lab::{self, Lab, Seat};
use placewise_policy::kernel::profile;
use placewise_policy::*;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

const CASES: u32 = 20_000;

/// What a search leaves behind.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    cpu: u32,
    search: SearchReason,
    scanned: u32,
    has_idle_cores: bool,
}

/// The search of the kernels, written as they run it. The wakee is woken on the busy CPU it last
/// ran on, and none of the cheap candidates is usable.
struct Naive<'a> {
    lab: &'a Lab,
    target: u32,
    scanned: u32,
    fallback: Option<u32>,
    left: Option<u32>,
}

enum Scan {
    Found(u32),
    RanOut,
    Nothing,
}

impl Naive<'_> {
    fn run(lab: &Lab, target: u32, limit: Option<u32>) -> Outcome {
        // The target itself was looked at first.
        let mut naive = Naive { lab, target, scanned: 1, fallback: None, left: limit };
        let llc = lab.p.llc[lab.seats[target as usize].llc as usize];
        let hopeful = lab.p.root.smt_active != 0 && llc.has_idle_cores != 0;
        let (found, still_hopeful) = match lab.p.profile.scan_order {
            SCAN_CORE_SMT_OF_TARGET => (naive.core_smt(), true),
            SCAN_CORE_CPU_SMT_OF_TARGET => naive.core_cpu_smt(hopeful),
            _ => naive.merged(hopeful),
        };
        let (cpu, search) = found.unwrap_or((target, SEARCH_FAILED));
        let has_idle_cores = llc.has_idle_cores != 0 && (still_hopeful || !hopeful);
        Outcome { cpu, search, scanned: naive.scanned, has_idle_cores }
    }

    fn idle(&self, cpu: u32) -> bool {
        lab::test(&self.lab.p.root.idle, cpu)
    }

    fn wakee(&self) -> &Task {
        &self.lab.p.task[Lab::WAKEE as usize]
    }

    fn sched_idle(&self, cpu: u32) -> bool {
        let profile = &self.lab.p.profile;
        profile.sched_idle_usable
            && (profile.sched_idle_wakee_usable || self.wakee().idle_policy == 0)
            && lab::test(&self.lab.p.root.sched_idle, cpu)
    }

    fn usable(&mut self, cpu: u32) -> bool {
        self.scanned += 1;
        self.idle(cpu) || self.sched_idle(cpu)
    }

    fn allowed(&self, cpu: u32) -> bool {
        lab::test(&self.wakee().cpus_allowed, cpu)
    }

    /// CPUs of the LLC, from the target or the one after it on, wrapping.
    fn wrapped(&self) -> Vec<u32> {
        let start = self.target + u32::from(self.lab.p.profile.scan_starts_after_target);
        let mut cpus = self.lab.neighbours(self.target, |seat| seat.llc);
        let before = cpus.iter().filter(|&&cpu| cpu < start).count();
        cpus.rotate_left(before);
        cpus
    }

    fn smt(&mut self, skip_own: bool) -> Option<u32> {
        let mut siblings = self.lab.neighbours(self.target, |seat| seat.core);
        siblings.retain(|&cpu| !(skip_own && cpu == self.target));
        siblings.into_iter().find(|&cpu| self.allowed(cpu) && self.usable(cpu))
    }

    fn core(&mut self, cpu: u32, keeps_fallback: bool) -> bool {
        let mut core_idle = true;
        for sibling in self.lab.neighbours(cpu, |seat| seat.core) {
            self.scanned += 1;
            if self.idle(sibling) {
                if self.fallback.is_none() && self.allowed(sibling) {
                    self.fallback = Some(sibling);
                }
                continue;
            }
            core_idle = false;
            if self.fallback.is_some() || !keeps_fallback {
                break;
            }
            if self.sched_idle(sibling) && self.allowed(sibling) {
                self.fallback = Some(sibling);
                break;
            }
        }
        core_idle
    }

    fn scan_cores(&mut self, mut cpus: Vec<u32>, keeps_fallback: bool) -> Scan {
        while let Some(&cpu) = cpus.first() {
            if self.core(cpu, keeps_fallback) {
                return Scan::Found(cpu);
            }
            let core = self.lab.neighbours(cpu, |seat| seat.core);
            cpus.retain(|cpu| !core.contains(cpu));
        }
        Scan::Nothing
    }

    fn scan_cpus(&mut self, cpus: Vec<u32>) -> Scan {
        for cpu in cpus {
            match &mut self.left {
                Some(0) => return Scan::RanOut,
                Some(left) => *left -= 1,
                None => (),
            }
            if !self.allowed(cpu) {
                self.scanned += 1;
            } else if self.usable(cpu) {
                return Scan::Found(cpu);
            }
        }
        Scan::Nothing
    }

    fn merged(&mut self, hopeful: bool) -> (Option<(u32, SearchReason)>, bool) {
        let profile = self.lab.p.profile;
        if self.lab.p.root.smt_active != 0
            && !hopeful
            && let Some(cpu) = self.smt(profile.smt_scan_skips_prev)
        {
            return (Some((cpu, SEARCH_SMT_SIBLING)), hopeful);
        }
        if self.left == Some(0) {
            return (None, hopeful);
        }
        let mut cpus = self.wrapped();
        cpus.retain(|&cpu| self.allowed(cpu));
        let clustered = profile.scan_cluster_first && self.lab.p.root.cluster_active != 0;
        let cluster = match clustered {
            true => self.lab.neighbours(self.target, |seat| seat.cluster),
            false => vec![],
        };
        let (near, far) = cpus.into_iter().partition(|cpu| cluster.contains(cpu));
        for part in [near, far] {
            let (scan, reason) = match hopeful {
                true => (self.scan_cores(part, true), SEARCH_IDLE_CORE),
                false => (self.scan_cpus(part), SEARCH_IDLE_CPU),
            };
            match scan {
                Scan::Found(cpu) => return (Some((cpu, reason)), hopeful),
                Scan::RanOut => return (None, hopeful),
                Scan::Nothing => (),
            }
        }
        (self.fallback.filter(|_| hopeful).map(|cpu| (cpu, SEARCH_IDLE_CPU)), false)
    }

    fn core_smt(&mut self) -> Option<(u32, SearchReason)> {
        let mut cpus = self.wrapped();
        cpus.retain(|&cpu| self.allowed(cpu));
        if let Scan::Found(cpu) = self.scan_cores(cpus, false) {
            let mut core = self.lab.neighbours(cpu, |seat| seat.core);
            core.retain(|&cpu| self.allowed(cpu));
            return Some((core[0], SEARCH_IDLE_CORE));
        }
        if self.lab.p.root.smt_active == 0 {
            return None;
        }
        self.smt(false).map(|cpu| (cpu, SEARCH_SMT_SIBLING))
    }

    fn core_cpu_smt(&mut self, mut hopeful: bool) -> (Option<(u32, SearchReason)>, bool) {
        let cpus = self.wrapped();
        let allowed: Vec<u32> = cpus.iter().copied().filter(|&cpu| self.allowed(cpu)).collect();
        if hopeful {
            match self.scan_cores(allowed.clone(), false) {
                Scan::Found(cpu) => return (Some((cpu, SEARCH_IDLE_CORE)), true),
                _ => hopeful = false,
            }
        }
        let cpus = if self.lab.p.profile.scan_allowed_only { allowed } else { cpus };
        if let Scan::Found(cpu) = self.scan_cpus(cpus) {
            return (Some((cpu, SEARCH_IDLE_CPU)), hopeful);
        }
        if self.lab.p.root.smt_active == 0 {
            return (None, hopeful);
        }
        (self.smt(false).map(|cpu| (cpu, SEARCH_SMT_SIBLING)), hopeful)
    }
}

fn below(random: &mut Pcg64, end: u32) -> u32 {
    random.next_u32() % end
}

fn chance(random: &mut Pcg64, percent: u32) -> bool {
    below(random, 100) < percent
}

const KERNELS: [&str; 8] = ["v3.10", "v4.15", "v5.3", "v5.10", "v5.19", "v6.0", "v6.12", "v7.3"];

/// Sets the limit of the kernel at hand; answers with what it will be, None = no limit.
fn set_limit(lab: &mut Lab, target: u32, random: &mut Pcg64) -> Option<u32> {
    let size = lab.llc(target).size;
    let scans = below(random, size + 2);
    match (lab.p.profile.sis_util, lab.p.profile.sis_prop) {
        (true, _) => {
            lab.llc(target).nr_idle_scan = scans;
            Some(scans)
        }
        (false, true) => {
            let cost = u64::from(below(random, 1000)) + 1;
            let idle = (u64::from(scans) + 1) * cost / u64::from(size);
            lab.rq(target).avg_idle = idle * 512;
            lab.rq(target).wake_avg_idle = idle;
            lab.rq(target).wake_stamp = u64::MAX;
            lab.llc_domain(target).avg_scan_cost = cost - 1;
            let span = idle * u64::from(size);
            Some(if span > 4 * cost { span / cost } else { 4 } as u32 - 1)
        }
        (false, false) => None,
    }
}

fn shuffle(lab: &mut Lab, random: &mut Pcg64) -> (u32, Option<u32>) {
    let nr_cpus = lab.len();
    let target = below(random, nr_cpus);
    let llc = lab.neighbours(target, |seat| seat.llc);
    let (idle, sched_idle) = (below(random, 101), below(random, 20));
    for &cpu in &llc {
        if cpu != target && chance(random, idle) {
            lab.idle(cpu);
        } else if cpu != target && chance(random, sched_idle) {
            lab.sched_idle(cpu);
        } else {
            lab.busy(cpu);
        }
    }
    let allowed = [5, 50, 95, 100][below(random, 4) as usize];
    let mut cpus: Vec<u32> = llc.into_iter().filter(|_| chance(random, allowed)).collect();
    cpus.extend([target, (target + 1) % nr_cpus]);
    cpus.sort_unstable();
    cpus.dedup();
    lab.allow(cpus);
    lab.wakee().recent_used_cpu = target as u16;
    lab.wakee().idle_policy = chance(random, 20).into();
    lab.llc(target).has_idle_cores = chance(random, 50).into();

    let min_gran = lab.p.profile.min_gran;
    let kernel = KERNELS[below(random, KERNELS.len() as u32) as usize];
    lab.p.profile = Profile {
        min_gran,
        sched_idle_wakee_usable: chance(random, 80),
        ..profile(kernel).unwrap()
    };
    (target, set_limit(lab, target, random))
}

fn searches_agree(seats: Vec<Seat>) {
    let mut lab = Lab::new(profile("v6.0").unwrap(), seats);
    let mut random = Pcg64::seed_from_u64(1);
    for case in 0..CASES {
        let (target, mut limit) = shuffle(&mut lab, &mut random);
        let merged = lab.p.profile.scan_order == SCAN_SMT_OF_PREV_THEN_MERGED;
        let hopeful = lab.p.root.smt_active != 0 && lab.llc(target).has_idle_cores != 0;
        if merged && hopeful && !lab.p.profile.sis_util {
            limit = None;
        }
        let expected = Naive::run(&lab, target, limit);
        let cpu = lab.wake(target, target);
        let outcome = Outcome {
            cpu,
            search: lab.search(),
            scanned: lab.p.decision.scanned,
            has_idle_cores: lab.llc(target).has_idle_cores != 0,
        };
        assert_eq!(outcome, expected, "case {case}, target {target}, limit {limit:?}");
    }
}

fn seats(nr_cpus: u32, seat: impl Fn(u32) -> Seat) -> Vec<Seat> {
    (0..nr_cpus).map(seat).collect()
}

#[test]
fn small_llcs_with_siblings_far_apart() {
    searches_agree(seats(256, |cpu| {
        let core = cpu % 128;
        Seat { core, cluster: core, llc: core / 8, node: core / 64 }
    }));
}

#[test]
fn one_llc_whose_last_word_is_not_full() {
    searches_agree(seats(112, |cpu| {
        let core = cpu % 56;
        Seat { core, cluster: core, llc: 0, node: 0 }
    }));
}

#[test]
fn four_threads_a_core_with_neighbouring_numbers() {
    searches_agree(seats(160, |cpu| Seat {
        core: cpu / 4,
        cluster: cpu / 4,
        llc: cpu / 80,
        node: cpu / 80,
    }));
}

#[test]
fn no_smt() {
    searches_agree(seats(40, |cpu| Seat { core: cpu, cluster: cpu, llc: cpu / 20, node: 0 }));
}

#[test]
fn clusters_of_four_cores() {
    searches_agree(seats(96, |cpu| Seat {
        core: cpu,
        cluster: cpu / 4,
        llc: cpu / 24,
        node: cpu / 48,
    }));
}

#[test]
fn clusters_of_cores_with_two_threads() {
    searches_agree(seats(128, |cpu| {
        let core = cpu % 64;
        Seat { core, cluster: core / 4, llc: core / 32, node: core / 32 }
    }));
}
