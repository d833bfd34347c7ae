//! One decision step by step: each rule of the policy, what it saw and what it answered.
//!
//! The answers are those of the decision itself. What the rules saw is read from the state beside
//! it: most of it as the decision left it, but the idle CPUs and recent_used_cpu as it found them,
//! for it changes them ([`Sight`]).
//!
//! Limits: the groups that the slow path compared are not kept, so a fork shows the idle CPUs of
//! each LLC instead. Where a decision was delayed until the wakee had been switched out, idle CPUs
//! are those after it.

use placewise_policy::*;
use serde::Serialize;

use super::agreement::search_reason;
use crate::steps::step::{Action, Step};
use crate::steps::task::{TaskNumber, Tasks};
use crate::verdict::{Flips, Kind, Placed};

/// LLCs whose idle CPUs a fork lists.
const LLCS_LISTED: u32 = 16;

/// One rule of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    pub rule: &'static str,
    pub saw: String,
    pub answer: String,
}

/// What a decision overwrites.
#[derive(Clone, Copy)]
pub struct Sight {
    idle: Cpumask,
    recent_used_cpu: u16,
}

impl Sight {
    /// Before a step that may decide at once; `None` for one that only ends a decision.
    pub fn before(step: &Step, state: &State) -> Option<Self> {
        match step.action {
            Action::Waking { task, .. } | Action::WakeupNew { task, .. } => {
                Some(Self::of(task, state))
            }
            _ => None,
        }
    }

    pub fn of(task: TaskNumber, state: &State) -> Self {
        let recent_used_cpu = state.task[task as usize].recent_used_cpu;
        Sight { idle: state.root.idle, recent_used_cpu }
    }

    fn is_idle(&self, cpu: u32) -> bool {
        self.idle.bits[cpu as usize / 64] >> (cpu % 64) & 1 != 0
    }

    fn idle_cpus(&self, cpus: &Cpumask) -> u32 {
        self.idle.bits.iter().zip(&cpus.bits).map(|(idle, cpus)| (idle & cpus).count_ones()).sum()
    }
}

/// How the policy came to its answer, in the order of the code.
pub fn explain(placed: &Placed, sight: &Sight, state: &State, tasks: &Tasks) -> Vec<Rule> {
    let view = View { placed, sight, state, tasks };
    let mut rules = match placed.kind {
        Kind::Wakeup => view.wakeup(),
        Kind::Fork => view.fork(),
    };
    rules.push(view.kernel());
    rules
}

struct View<'a> {
    placed: &'a Placed,
    sight: &'a Sight,
    state: &'a State,
    tasks: &'a Tasks,
}

fn rule(rule: &'static str, saw: impl Into<String>, answer: impl Into<String>) -> Rule {
    Rule { rule, saw: saw.into(), answer: answer.into() }
}

fn or_next(holds: bool, answer: &str) -> String {
    if holds { answer.to_owned() } else { "no: the next rule".to_owned() }
}

impl View<'_> {
    fn decision(&self) -> &Decision {
        &self.placed.decision
    }

    fn task(&self, task: TaskNumber) -> &Task {
        &self.state.task[task as usize]
    }

    fn llc(&self, cpu: u32) -> u16 {
        self.state.cpu[cpu as usize].llc
    }

    fn share_llc(&self, one: u32, other: u32) -> bool {
        self.llc(one) == self.llc(other)
    }

    /// `CPU 3 (LLC 0)`
    fn cpu(&self, cpu: u32) -> String {
        format!("CPU {cpu} (LLC {})", self.llc(cpu))
    }

    /// `CPU 3 (LLC 0) idle`
    fn busy(&self, cpu: u32) -> String {
        format!("{} {}", self.cpu(cpu), if self.sight.is_idle(cpu) { "idle" } else { "busy" })
    }

    fn name(&self, task: TaskNumber) -> String {
        format!("{}-{}", self.tasks.name_of(task), self.tasks.get(task).pid)
    }

    fn wakeup(&self) -> Vec<Rule> {
        let mut rules = vec![self.hint(HINT_WAKE_AFFINE | HINT_WAKE_HOLD), self.wake_wide()];
        rules.extend(self.wake_affine());
        let target = u32::from(self.decision().target_cpu);
        rules.push(rule("target", "", self.cpu(target)));
        rules.extend(self.select_idle_sibling(target));
        rules
    }

    fn hint(&self, of_kind: u32) -> Rule {
        let hints = u32::from(self.task(self.placed.task).hint) & of_kind;
        let names: Vec<&str> = [
            (HINT_FORK_AFFINE, "fork_affine"),
            (HINT_FORK_SPREAD, "fork_spread"),
            (HINT_WAKE_AFFINE, "wake_affine"),
            (HINT_WAKE_HOLD, "wake_hold"),
        ]
        .iter()
        .filter(|(bit, _)| hints & bit != 0)
        .map(|&(_, name)| name)
        .collect();
        let saw = if names.is_empty() { "none".to_owned() } else { names.join(" and ") };
        let used = self.decision().hint_used != 0;
        rule("hint", saw, if used { "chooses the target" } else { "has no say" })
    }

    fn wake_wide(&self) -> Rule {
        let wide = self.state.profile.wake_wide;
        if wide == WAKE_WIDE_NONE {
            return rule("wake_wide", "not in this kernel", "not wide");
        }
        let waking = self.placed.waking_cpu as usize;
        let (what, factor) = match wide {
            WAKE_WIDE_NODE => ("node", u32::from(self.state.cpu[waking].node_cpus)),
            _ => ("LLC", self.state.llc[usize::from(self.state.cpu[waking].llc)].size),
        };
        let flips = |task| self.task(task).wakee_flips;
        let (waker, wakee) = (flips(self.placed.waker), flips(self.placed.task));
        let inferred = match self.placed.believed.flips {
            Flips::Counted => "",
            Flips::Wide | Flips::Narrow => " (more before the trace: inferred)",
        };
        let saw =
            format!("flips: waker {waker}, wakee {wakee}{inferred}; CPUs in the {what}: {factor}");
        rule("wake_wide", saw, if self.decision().wide != 0 { "wide" } else { "not wide" })
    }

    fn wake_affine(&self) -> Vec<Rule> {
        let decided = u32::from(self.decision().affine);
        if decided == AFFINE_NOT_TRIED {
            return vec![rule("wake_affine", self.why_not_tried(), "not asked")];
        }
        let profile = &self.state.profile;
        if profile.affine == AFFINE_QUEUES {
            return vec![self.weight()];
        }
        let mut clauses = vec![(AFFINE_WAKING_CPU_IDLE, self.waking_cpu_idle())];
        clauses.push((AFFINE_SYNC, self.sync_clause()));
        let short_joins_sync =
            matches!(profile.affine_short, AFFINE_SHORT_V1 | AFFINE_SHORT_HONGLEI);
        let prev_idle = profile.affine_prev_idle_last;
        if short_joins_sync {
            clauses.push((AFFINE_SHORT_WAKER, self.short_waker()));
        }
        if prev_idle {
            clauses.push((AFFINE_PREV_IDLE, self.prev_idle()));
        }
        if !short_joins_sync && profile.affine_short != AFFINE_SHORT_NONE {
            clauses.push((AFFINE_SHORT_WAKER, self.short_waker()));
        }
        clauses.push((AFFINE_WEIGHT, self.weight()));
        // The clause that keeps the previous CPU is part of the first one.
        let decided =
            if decided == AFFINE_PREV_IDLE_SHARED { AFFINE_WAKING_CPU_IDLE } else { decided };
        let last = clauses.iter().position(|&(reason, _)| reason == decided);
        clauses.truncate(last.map_or(clauses.len(), |last| last + 1));
        clauses.into_iter().map(|(_, rule)| rule).collect()
    }

    fn why_not_tried(&self) -> &'static str {
        let waking = self.placed.waking_cpu;
        let allowed = &self.task(self.placed.task).cpus_allowed.bits;
        if self.decision().hint_used != 0 {
            "the hint decided"
        } else if self.decision().wide != 0 {
            "the wakeup is wide"
        } else if allowed[waking as usize / 64] >> (waking % 64) & 1 == 0 {
            "the wakee may not run on the waking CPU"
        } else if waking == self.placed.prev_cpu {
            "the waking CPU is the previous one"
        } else {
            "no domain of both CPUs allows affine wakeups"
        }
    }

    fn waking_cpu_idle(&self) -> Rule {
        let (waking, prev) = (self.placed.waking_cpu, self.placed.prev_cpu);
        let saw = format!("waking {}; previous {}", self.busy(waking), self.busy(prev));
        let answer = match u32::from(self.decision().affine) {
            AFFINE_WAKING_CPU_IDLE => "the waking CPU",
            AFFINE_PREV_IDLE_SHARED => "the previous CPU",
            _ => "no: the next rule",
        };
        rule("wake_affine: waking CPU idle", saw, answer)
    }

    fn sync_clause(&self) -> Rule {
        let sync = self.decision().sync != 0;
        let queue = &self.state.rq[self.placed.waking_cpu as usize];
        let delayed = match self.state.profile.affine_counts_delayed {
            true => 0,
            false => queue.cfs.h_nr_delayed,
        };
        let running = queue.nr_running.saturating_sub(delayed);
        let kind = if sync { "sync" } else { "not sync" };
        let saw = format!("{kind} (inferred); {running} runnable on the waking CPU");
        let holds = u32::from(self.decision().affine) == AFFINE_SYNC;
        rule("wake_affine: sync", saw, or_next(holds, "the waking CPU"))
    }

    fn short_waker(&self) -> Rule {
        let saw = format!("waker {}", self.run_length(self.placed.waker));
        let holds = u32::from(self.decision().affine) == AFFINE_SHORT_WAKER;
        rule("wake_affine: short waker", saw, or_next(holds, "the waking CPU"))
    }

    fn run_length(&self, task: TaskNumber) -> String {
        let task = self.task(task);
        let average = match self.state.profile.run_length {
            RUN_LENGTH_TOTAL => task.sum_exec_runtime.checked_div(task.nvcsw).unwrap_or(0),
            _ => task.run_length_avg,
        };
        format!("runs {} us at a time", average / 1_000)
    }

    fn prev_idle(&self) -> Rule {
        let holds = u32::from(self.decision().affine) == AFFINE_PREV_IDLE;
        let saw = self.busy(self.placed.prev_cpu);
        rule("wake_affine: previous CPU idle", saw, or_next(holds, "the previous CPU"))
    }

    /// The two sides in units of load, as scaled by capacity and bonus.
    fn weight(&self) -> Rule {
        let side = |load: i64| load as f64 / (100.0 * f64::from(SCHED_CAPACITY_SCALE));
        let (waking, prev) = (self.decision().waker_load, self.decision().prev_load);
        let sync_waker_only = self.decision().sync != 0 && (waking, prev) == (0, 0);
        let saw = match sync_waker_only {
            true => "the sync waker is all the load of its CPU".to_owned(),
            false => {
                format!("load: waking CPU {:.0}, previous CPU {:.0}", side(waking), side(prev))
            }
        };
        let holds = u32::from(self.decision().affine) == AFFINE_WEIGHT;
        rule("wake_affine: weight", saw, if holds { "the waking CPU" } else { "the previous CPU" })
    }

    fn select_idle_sibling(&self, target: u32) -> Vec<Rule> {
        let found = u32::from(self.decision().search);
        let answer = self.cpu(u32::from(self.decision().result_cpu));
        let step = |reason: u32, name, saw: String| {
            (reason, rule(name, saw, or_next(found == reason, &answer)))
        };
        let prev = self.placed.prev_cpu;
        let mut steps = vec![step(SEARCH_TARGET, "target usable", self.busy(target))];
        if prev != target {
            let name = "previous CPU in the target's LLC, usable";
            steps.push(step(SEARCH_PREV, name, self.busy(prev)));
        }
        if found == SEARCH_KTHREAD {
            let saw = format!("waker {}", self.name(self.placed.waker));
            steps.push(step(SEARCH_KTHREAD, "per-CPU kthread wakes who waits for it", saw));
        }
        let recent = u32::from(self.sight.recent_used_cpu);
        let is_candidate = recent != prev && recent != target && self.share_llc(recent, target);
        if self.state.profile.recent_used != RECENT_USED_NONE && is_candidate {
            steps.push(step(SEARCH_RECENT_USED, "recent_used_cpu usable", self.busy(recent)));
        }
        let done = steps.iter().position(|&(reason, _)| reason == found);
        steps.truncate(done.map_or(steps.len(), |done| done + 1));
        let mut rules: Vec<Rule> = steps.into_iter().map(|(_, rule)| rule).collect();
        if done.is_none() {
            rules.push(self.search(target, answer));
        }
        rules
    }

    /// The walk over the target's LLC, however it ended.
    fn search(&self, target: u32, answer: String) -> Rule {
        let decision = self.decision();
        let llc = &self.state.llc[usize::from(self.llc(target))];
        let limit = match decision.scan_limit {
            u32::MAX => "none".to_owned(),
            limit => limit.to_string(),
        };
        let saw = format!(
            "LLC {}: {} of {} CPUs idle; has_idle_cores {}; limit {limit}; {} CPUs looked at",
            self.llc(target),
            self.sight.idle_cpus(&llc.cpus),
            llc.size,
            decision.has_idle_cores,
            decision.scanned,
        );
        let ended = match u32::from(decision.search) {
            SEARCH_FAILED | SEARCH_NONE => "nothing found: the target",
            SEARCH_SHORT => "a rule for short tasks: the target",
            SEARCH_IDLE_CORE => "an idle core",
            SEARCH_IDLE_CPU => "an idle CPU",
            SEARCH_SMT_SIBLING => "an idle SMT sibling",
            SEARCH_ASYM_CAPACITY => "the best of unequal CPUs",
            _ => search_reason(decision.search).word(),
        };
        rule("search of the LLC", saw, format!("{ended}: {answer}"))
    }

    fn fork(&self) -> Vec<Rule> {
        let answer = self.cpu(u32::from(self.decision().result_cpu));
        let saw = format!("{}; {} CPUs looked at", self.idle_by_llc(), self.decision().scanned);
        vec![self.hint(HINT_FORK_AFFINE | HINT_FORK_SPREAD), rule("find_idlest_cpu", saw, answer)]
    }

    /// `idle by LLC: 2/4 4/4`
    fn idle_by_llc(&self) -> String {
        let nr_llcs = self.state.root.nr_llcs;
        let listed = self.state.llc[..nr_llcs.min(LLCS_LISTED) as usize].iter();
        let counts: Vec<String> =
            listed.map(|llc| format!("{}/{}", self.sight.idle_cpus(&llc.cpus), llc.size)).collect();
        let more = if nr_llcs > LLCS_LISTED { " ..." } else { "" };
        format!("idle CPUs by LLC: {}{more}", counts.join(" "))
    }

    fn kernel(&self) -> Rule {
        let (predicted, actual) = (self.placed.predicted, self.placed.actual);
        let verdict = if predicted == actual {
            "as the policy"
        } else if self.share_llc(predicted, actual) {
            "another CPU of the same LLC"
        } else if actual == self.placed.prev_cpu {
            "another LLC: the previous CPU"
        } else {
            "another LLC"
        };
        rule("the kernel", verdict, self.cpu(actual))
    }
}
