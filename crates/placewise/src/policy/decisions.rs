//! What a policy of somebody's own decides otherwise: the built-in one and it are asked the same of
//! states drawn at random, under every kernel, patch and knob there is.
//!
//! Two machines are drawn from the same seed and asked in turn. They are the same until the first
//! answer that differs, and are left then for new ones; what one policy had noted otherwise before,
//! without answering otherwise, is counted with that answer.
//!
//! Limits: states are such as an engine could leave, but not as often as one leaves them, so that the
//! shares say where a change acts, not how much it matters: `placewise compare` says that.

use std::collections::BTreeMap;

use placewise_audit::{affine_reason, search_reason};
use placewise_machine::CpuSet;
use placewise_policy::drawn::{Drawn, Generator, STATES_PER_MACHINE};
use placewise_policy::{
    CPU_IDLE, CPU_NEWLY_IDLE, CPU_NOT_IDLE, Code, CpuId, Cpumask, WF_EXEC, WF_FORK, WF_SYNC,
    WF_TTWU,
};
use rand::RngExt;
use serde::Serialize;

const SEED: u128 = 1;
const EXAMPLES: usize = 3;

/// How often an entry point was asked, and how often the answers differ.
#[derive(Debug, PartialEq, Serialize)]
pub struct Asked {
    pub entry_point: &'static str,
    pub asked: u32,
    pub differ: u32,
}

/// A question that is answered otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Example {
    pub entry_point: &'static str,
    pub kernel_and_policy: String,
    pub cpus: u32,
    pub situation: String,
    pub question: String,
    pub built_in: String,
    pub own: String,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct Decisions {
    pub entry_points: Vec<Asked>,
    /// Those with fewest CPUs and tasks.
    pub examples: Vec<Example>,
}

/// What a state is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    Wakeup,
    Fork,
    Exec,
    WakeList,
    BalanceIdle,
    BalanceBusy,
    BalanceNewlyIdle,
    NohzKick,
}

impl Entry {
    const ALL: [Self; 8] = [
        Self::Wakeup,
        Self::Fork,
        Self::Exec,
        Self::WakeList,
        Self::BalanceIdle,
        Self::BalanceBusy,
        Self::BalanceNewlyIdle,
        Self::NohzKick,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Wakeup => "select_task_rq: wakeup",
            Self::Fork => "select_task_rq: fork",
            Self::Exec => "select_task_rq: exec",
            Self::WakeList => "ttwu_queue_wakelist",
            Self::BalanceIdle => "load_balance: idle",
            Self::BalanceBusy => "load_balance: busy",
            Self::BalanceNewlyIdle => "load_balance: newly idle",
            Self::NohzKick => "nohz_balancer_kick",
        }
    }
}

/// Asks both of `states` states.
pub fn differences(own: &'static Code, states: u32) -> Decisions {
    let [mut built_in, mut others] = [Generator::new(SEED), Generator::new(SEED)];
    let mut counts: BTreeMap<Entry, (u32, u32)> = BTreeMap::new();
    let mut examples: Vec<(u32, u32, Example)> = Vec::new();
    let mut entries = Entry::ALL.into_iter().cycle();
    let mut left = states;
    while left > 0 {
        let (mut here, mut there) = (built_in.machine(), others.machine());
        there.m.p.decide_by(own);
        for _ in 0..STATES_PER_MACHINE.min(left) {
            left -= 1;
            built_in.draw(&mut here);
            others.draw(&mut there);
            let entry = entries.next().expect("it has no end");
            let (cpus, tasks) = (here.m.nr_cpus(), here.nr_queued());
            let (policy, situation) = (here.policy.clone(), situation(&here));
            let question = Question::draw(entry, &mut built_in, &here);
            Question::draw(entry, &mut others, &there);
            let count = counts.entry(entry).or_default();
            count.0 += 1;
            let [one, other] = [&mut here, &mut there].map(|drawn| question.answer(drawn));
            if one.decided == other.decided {
                continue;
            }
            count.1 += 1;
            examples.push((
                cpus,
                tasks,
                Example {
                    entry_point: entry.name(),
                    kernel_and_policy: policy,
                    cpus,
                    situation,
                    question: question.told(),
                    built_in: one.told(),
                    own: other.told(),
                },
            ));
            examples.sort_by_key(|(cpus, tasks, _)| (*cpus, *tasks));
            examples.truncate(EXAMPLES);
            break;
        }
    }
    let asked = |(entry, (asked, differ)): (Entry, (u32, u32))| Asked {
        entry_point: entry.name(),
        asked,
        differ,
    };
    Decisions {
        entry_points: counts.into_iter().map(asked).collect(),
        examples: examples.into_iter().map(|(_, _, example)| example).collect(),
    }
}

/// What is asked of a state, all that chance has to say of it.
struct Question {
    entry: Entry,
    task: u32,
    prev: u32,
    cpu: u32,
    flags: u32,
    level: u32,
    now: u64,
}

/// What was decided, and by which rules.
struct Answer {
    decided: String,
    rules: String,
}

impl Answer {
    fn told(&self) -> String {
        match self.rules.as_str() {
            "" => self.decided.clone(),
            rules => format!("{} ({rules})", self.decided),
        }
    }
}

impl Question {
    fn draw(entry: Entry, generator: &mut Generator, drawn: &Drawn) -> Self {
        let (task, cpu, now) = (generator.task(drawn), generator.cpu(drawn), generator.now());
        let sync = generator.pick(&[0, WF_SYNC]);
        let at = usize::try_from(task).expect("a number of a task");
        let prev = u32::from(drawn.m.p.task[at].cpu);
        let nr_levels = u32::from(drawn.m.p.cpu[cpu as usize].nr_domains);
        let level = generator.rng.random_range(0..nr_levels.max(1));
        let (cpu, flags) = match entry {
            Entry::Wakeup | Entry::WakeList => (cpu, WF_TTWU | sync),
            Entry::Fork => (cpu, WF_FORK),
            Entry::Exec => (prev, WF_EXEC),
            _ => (cpu, 0),
        };
        Self { entry, task, prev, cpu, flags, level, now }
    }

    fn told(&self) -> String {
        let Self { task, prev, cpu, level, flags, .. } = self;
        let sync = if flags & WF_SYNC != 0 { ", sync" } else { "" };
        match self.entry {
            Entry::Wakeup => {
                format!("task {task}, last on CPU {prev}, is woken on CPU {cpu}{sync}")
            }
            Entry::Fork => format!("task {task} is created on CPU {cpu}"),
            Entry::Exec => format!("task {task} executes on CPU {cpu}"),
            Entry::WakeList => format!("a wakee goes from CPU {cpu} to CPU {prev}: over its list?"),
            Entry::BalanceIdle => format!("CPU {cpu}, idle, balances level {level}"),
            Entry::BalanceBusy => format!("CPU {cpu}, busy, balances level {level}"),
            Entry::BalanceNewlyIdle => format!("CPU {cpu}, newly idle, balances level {level}"),
            Entry::NohzKick => format!("CPU {cpu} ticks: whom does it send to balance?"),
        }
    }

    fn answer(&self, drawn: &mut Drawn) -> Answer {
        let Self { task, prev, cpu, flags, level, now, .. } = *self;
        let policy = &mut drawn.m.p;
        let plain = |decided: String| Answer { decided, rules: String::new() };
        match self.entry {
            Entry::Wakeup | Entry::Fork | Entry::Exec => {
                let prev = if self.entry == Entry::Fork { cpu } else { prev };
                let chosen = policy.select_task_rq(task, prev, cpu, flags, now);
                let rules = if self.entry == Entry::Wakeup { rules(drawn) } else { String::new() };
                Answer { decided: format!("CPU {chosen}"), rules }
            }
            Entry::WakeList => plain(yes_or_no(policy.ttwu_queue_wakelist(task, cpu, prev, false))),
            Entry::BalanceIdle => self.balance(drawn, level, CPU_IDLE),
            Entry::BalanceBusy => self.balance(drawn, level, CPU_NOT_IDLE),
            Entry::BalanceNewlyIdle => self.balance(drawn, level, CPU_NEWLY_IDLE),
            Entry::NohzKick => match policy.nohz_balancer_kick(cpu, now) {
                placewise_policy::NO_CPU => plain("nobody".into()),
                kicked => plain(format!("CPU {kicked}")),
            },
        }
    }

    fn balance(&self, drawn: &mut Drawn, level: u32, idle: u32) -> Answer {
        if drawn.m.p.cpu[self.cpu as usize].nr_domains == 0 {
            return Answer { decided: "no level".into(), rules: String::new() };
        }
        drawn.m.p.load_balance(self.cpu, level, idle, self.now);
        let balance = &drawn.m.p.balance;
        let moves = (0..balance.nr as usize)
            .map(|at| format!("task {} to CPU {}", balance.task[at], balance.dst[at]));
        let pushed = (balance.active_balance != 0)
            .then(|| format!("CPU {} pushes to CPU {}", balance.active_src, balance.active_dst));
        let done: Vec<String> = moves.chain(pushed).collect();
        let decided = if done.is_empty() { "nothing moves".to_owned() } else { done.join(", ") };
        Answer { decided, rules: String::new() }
    }
}

fn yes_or_no(answer: bool) -> String {
    if answer { "yes" } else { "no" }.to_owned()
}

/// Of the last wakeup.
fn rules(drawn: &Drawn) -> String {
    let decision = &drawn.m.p.decision;
    let (affine, search) = (affine_reason(decision.affine), search_reason(decision.search));
    let target = decision.target_cpu;
    format!("wake_affine: {}; target CPU {target}; search: {}", affine.word(), search.word())
}

/// `2 LLCs, 1 node; idle: CPUs 1,3; queued: 2 on CPU 0, 1 on CPU 2`
fn situation(drawn: &Drawn) -> String {
    let state = &drawn.m.p;
    let shape = drawn.m.shape;
    let llcs = shape.packages * shape.nodes * shape.llcs;
    let nodes = shape.packages * shape.nodes;
    let queued = drawn.m.cpus().filter_map(|cpu| {
        let nr_running = state.rq[cpu as usize].nr_running;
        (nr_running > 0).then(|| format!("{nr_running} on CPU {cpu}"))
    });
    let queued: Vec<String> = queued.collect();
    let queued = if queued.is_empty() { "nothing".to_owned() } else { queued.join(", ") };
    let threads = shape.threads;
    format!(
        "LLCs: {llcs}, nodes: {nodes}, threads of a core: {threads}; idle: {}; queued: {queued}",
        cpus(&state.root.idle)
    )
}

fn cpus(mask: &Cpumask) -> String {
    let cpus: CpuSet = mask.iter().map(CpuId::into).collect();
    if cpus.is_empty() { "none".to_owned() } else { format!("CPUs {cpus}") }
}
