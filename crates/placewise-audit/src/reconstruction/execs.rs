//! Where real kernels had tasks exec, beside the policy's answer: when they have woken the stopper to be
//! taken elsewhere, or if they stay, when their program is loaded, which is a while after the decision.

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

/// The policy's answer and the kernel's CPU for each exec: of those that took their task elsewhere, and of
/// those that did not.
#[derive(Default)]
struct Execs {
    moved: Vec<(u32, u32)>,
    stayed: Vec<(u32, u32)>,
}

impl Execs {
    fn follow(&mut self, trace: &str) {
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
        let mut asked = BTreeMap::new();
        while let Some(step) = timeline.pop() {
            self.step(&step, &mut reconstruction, timeline.tasks(), &mut asked);
            reconstruction.step(&step, timeline.tasks());
        }
    }

    /// `asked`: the answers about tasks on their way to load a program elsewhere.
    fn step(
        &mut self,
        step: &Step,
        reconstruction: &mut Reconstruction,
        tasks: &Tasks,
        asked: &mut BTreeMap<TaskNumber, u32>,
    ) {
        if let Some(task) = asks_to_be_moved(step, reconstruction, tasks) {
            asked.insert(task, ask(&mut reconstruction.world, task, step.cpu, step.time_ns));
        }
        match step.action {
            Action::Migrate { task, to, by: Mover::Itself, .. } => {
                self.moved.push((asked[&task], to));
            }
            Action::Exec { task } if asked.remove(&task).is_none() => {
                let answer = ask(&mut reconstruction.world, task, step.cpu, step.time_ns);
                self.stayed.push((answer, step.cpu));
            }
            _ => {}
        }
    }
}

/// Fails if the task that execs counted as queued or running on its CPU: then it would leave that for CPUs
/// that are no idler.
#[test]
fn the_policy_of_a_kernel_takes_execs_where_that_kernel_did() {
    let mut execs = Execs::default();
    TRACES.into_iter().for_each(|trace| execs.follow(trace));
    for (all, few) in [(execs.moved, 80), (execs.stayed, 200)] {
        let exact = all.iter().filter(|(answer, cpu)| answer == cpu).count();
        println!("{exact} of {}", all.len());
        assert!(all.len() >= few);
        assert!(exact * 100 >= all.len() * 85, "{exact} of {}: {all:?}", all.len());
    }
}
