//! A recording as a file for rt-app, where rt-app can say it: tasks that compute, sleep, keep times and
//! fork, and wait for nobody.
//!
//! A wait for another task cannot be said: rt-app forgets a `resume` that comes before its `suspend`, and
//! in a replay elsewhere any post may. So such a recording is refused.
//! Lost: cgroups, where tasks begin, what a sleep of less than a microsecond is.

use placewise_workload::program::{Nanos, SchedPolicy};
use serde_json::{Map, Value, json};

use crate::recording::{RecordedTask, Recording, Step, TaskIndex};

const US: Nanos = 1_000;

impl Recording {
    /// Or why not, in one line.
    pub fn rt_app(&self) -> Result<Value, String> {
        let names: Vec<String> =
            self.tasks.iter().zip(0..).map(|(task, index)| name(task, index)).collect();
        let mut tasks = Map::new();
        for (task, index) in self.tasks.iter().zip(0..) {
            let phases = phases(task, index, &names)?;
            if !phases.is_empty() {
                tasks.insert(names[index as usize].clone(), entry(task, phases));
            }
        }
        if tasks.is_empty() {
            return Err("no task of it does anything that rt-app could do".into());
        }
        Ok(json!({ "global": { "default_policy": "SCHED_OTHER" }, "tasks": tasks }))
    }
}

/// Its comm, and what tells it from others.
fn name(task: &RecordedTask, index: TaskIndex) -> String {
    format!("{}-{index}", task.name)
}

fn entry(task: &RecordedTask, phases: Map<String, Value>) -> Value {
    let (policy, priority) = match task.policy {
        SchedPolicy::Other => ("SCHED_OTHER", i32::from(task.nice)),
        SchedPolicy::Idle => ("SCHED_IDLE", i32::from(task.nice)),
        SchedPolicy::Fifo(priority) => ("SCHED_FIFO", priority.into()),
        SchedPolicy::RoundRobin(priority) => ("SCHED_RR", priority.into()),
    };
    let mut entry = Map::new();
    entry.insert("instance".into(), if task.is_forked { 0 } else { 1 }.into());
    entry.insert("loop".into(), 1.into());
    entry.insert("policy".into(), policy.into());
    entry.insert("priority".into(), priority.into());
    if let Some(cpus) = task.cpus {
        entry.insert("cpus".into(), cpus.iter().collect::<Vec<usize>>().into());
    }
    entry.insert("phases".into(), phases.into());
    entry.into()
}

/// A phase for each step: keys of one object would have to differ.
fn phases(
    task: &RecordedTask,
    index: TaskIndex,
    names: &[String],
) -> Result<Map<String, Value>, String> {
    let mut phases = Map::new();
    // Of whole microseconds, what has not been said yet.
    let (mut computing, mut sleeping) = (0, 0);
    let mut passed = 0;
    for step in &task.steps {
        let event = match *step {
            Step::Run(ns) => whole(&mut computing, ns).map(|us| json!({ "run": us })),
            Step::Sleep(ns) => whole(&mut sleeping, ns).map(|us| json!({ "sleep": us })),
            Step::Until(time) => {
                let period = (time.saturating_sub(passed) / US).max(1);
                passed += period * US;
                let timer = format!("timer-{index}");
                Some(json!({ "timer": { "ref": timer, "period": period, "mode": "absolute" } }))
            }
            Step::Fork(child) => Some(json!({ "fork": names[child as usize] })),
            Step::Post(other, _) | Step::Answer(other, _) | Step::Await(other) => {
                let (one, other) = (&names[index as usize], &names[other as usize]);
                return Err(format!(
                    "`{one}` and `{other}` wait for each other, which rt-app cannot say: it forgets \
                     a resume that comes before the suspend; write it with -o"
                ));
            }
        };
        if let Some(event) = event {
            phases.insert(format!("p{:07}", phases.len()), event);
        }
    }
    Ok(phases)
}

/// Whole microseconds of what is left over and `ns`.
fn whole(left: &mut Nanos, ns: Nanos) -> Option<Nanos> {
    *left += ns;
    let us = *left / US;
    *left %= US;
    (us > 0).then_some(us)
}

#[cfg(test)]
mod tests {
    use placewise_machine::CpuSet;
    use placewise_workload::from_rt_app_text;
    use placewise_workload::program::{Op, Wake};

    use super::*;

    fn task(name: &str, steps: &[Step]) -> RecordedTask {
        RecordedTask { name: name.into(), steps: steps.to_vec(), ..RecordedTask::default() }
    }

    fn recording(tasks: Vec<RecordedTask>) -> Recording {
        Recording { length_ns: 1, cgroups: Vec::new(), tasks }
    }

    #[test]
    fn what_rt_app_can_say_is_read_back_from_its_file() {
        let steps = [
            Step::Run(1_500),
            Step::Until(10_000),
            Step::Run(1_500),
            Step::Until(30_000),
            Step::Sleep(7_000),
            Step::Fork(1),
        ];
        let parent = RecordedTask {
            policy: SchedPolicy::Fifo(7),
            cpus: Some(CpuSet::single(3)),
            ..task("a", &steps)
        };
        let child = RecordedTask { is_forked: true, nice: 5, ..task("b", &[Step::Run(4_000)]) };
        let text = recording(vec![parent, child]).rt_app().unwrap().to_string();
        let workload = from_rt_app_text("x", &text).expect("our reader takes it");
        let of = |name: &str| {
            workload.programs.iter().rfind(|program| program.name == name).expect("it is there")
        };
        let (parent, child) = (of("a-0"), of("b-1"));
        let takes_time = |op: &&Op| {
            matches!(op, Op::Run { .. } | Op::Sleep { .. } | Op::Timer { .. } | Op::Fork { .. })
        };
        let ops: Vec<Op> = parent.ops.iter().filter(takes_time).copied().collect();
        let Op::Timer { timer, period: 10_000, absolute: true } = ops[1] else { panic!("{ops:?}") };
        assert_eq!(ops[0], Op::Run { ns: 1_000 });
        assert_eq!(ops[2], Op::Run { ns: 2_000 }, "what was left of the first is in it");
        assert_eq!(ops[3], Op::Timer { timer, period: 20_000, absolute: true });
        assert_eq!(ops[4], Op::Sleep { ns: 7_000, random_pct: 0 });
        assert!(matches!(ops[5], Op::Fork { .. }) && ops.len() == 6);
        assert_eq!((parent.policy, parent.cpus), (SchedPolicy::Fifo(7), Some(CpuSet::single(3))));
        assert_eq!(child.nice, 5);
        assert!(child.ops.contains(&Op::Run { ns: 4_000 }));
    }

    #[test]
    fn waits_for_others_are_refused_by_name() {
        let waker = task("a", &[Step::Run(1_000), Step::Post(1, Wake::Plain)]);
        let wakee = task("b", &[Step::Await(0)]);
        let error = recording(vec![waker, wakee]).rt_app().unwrap_err();
        assert!(error.contains("`a-0` and `b-1`") && error.contains("-o"), "{error}");
        assert!(recording(vec![task("a", &[])]).rt_app().is_err(), "nothing to do");
    }
}
