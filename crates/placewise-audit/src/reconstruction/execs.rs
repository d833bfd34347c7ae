//! Where real kernels took tasks that execed, beside the policy's answer when they had woken the stopper
//! to be taken there. Who stays at an exec leaves no trace of when that was decided.

use std::path::Path;

use placewise_machine::from_trace;
use placewise_policy::{FIRST_TASK, WF_EXEC};
use placewise_trace::TraceReader;

use super::*;
use crate::steps::step::{Action, Mover};
use crate::steps::timeline::Timeline;

const TRACES: [&str; 2] = ["vm16-k618-forkloop", "vm16-k618-nps2-forkpar"];

/// A shell in these traces execs and does nothing else that has it moved.
fn asks_to_be_moved(step: &Step, reconstruction: &Reconstruction, tasks: &Tasks) -> Option<u32> {
    let Action::Waking { task, .. } = step.action else { return None };
    let current = u32::from(reconstruction.world.scheduler.current(step.cpu.into()));
    let stopper = tasks.name_of(task).starts_with("migration/") && !step.context.is_interrupt();
    (stopper && current >= FIRST_TASK).then_some(current)
}

fn ask(world: &mut World, task: TaskNumber, cpu: u32, now: u64) -> u32 {
    world.clock.advance(now);
    for each in 0..world.scheduler.policy.root.nr_cpu_ids {
        world.catch_up_loads(each);
    }
    world.scheduler.policy.select_task_rq(task, cpu, cpu, WF_EXEC, world.clock.now)
}

/// The policy's answer and the kernel's, of each exec that took its task elsewhere.
fn execs(trace: &str) -> Vec<(u32, u32)> {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut reader = TraceReader::open(&traces.join(format!("{trace}.txt.zst"))).unwrap();
    let machine = from_trace("trace", &reader.header().topology).unwrap();
    let policy = Policy::parse("v6.18", "baseline").unwrap();
    let mut reconstruction = Reconstruction::new(&machine, &policy, &BTreeMap::new()).unwrap();
    let mut timeline = Timeline::new(machine.cpus.len() as u32, 4_000_000, false);
    while let Some(record) = reader.next_record().unwrap() {
        timeline.push(&record);
    }
    timeline.end();
    let (mut asked, mut seen) = (BTreeMap::new(), Vec::new());
    while let Some(step) = timeline.pop() {
        if let Some(task) = asks_to_be_moved(&step, &reconstruction, timeline.tasks()) {
            let answer = ask(&mut reconstruction.world, task, step.cpu, step.time_ns);
            asked.insert(task, answer);
        }
        if let Action::Migrate { task, to, by: Mover::Itself, .. } = step.action {
            seen.push((asked[&task], to));
        }
        reconstruction.step(&step, timeline.tasks());
    }
    seen
}

/// Fails if the task that execs were counted as queued or running on its CPU: then it left that for CPUs that
/// are no idler.
#[test]
fn the_policy_of_a_kernel_takes_execs_where_that_kernel_did() {
    let seen: Vec<(u32, u32)> = TRACES.into_iter().flat_map(execs).collect();
    let exact = seen.iter().filter(|(answer, to)| answer == to).count();
    println!("{exact} of {}", seen.len());
    assert!(seen.len() >= 80);
    assert!(exact * 100 >= seen.len() * 85, "{exact} of {}: {seen:?}", seen.len());
}
