//! Whose post is answered, of a client and two servers that take turns on a CPU.

use placewise_machine::load;
use placewise_replay::{Begins, RecordedTask, Recording, Step};
use placewise_workload::program::{Op, Wake};

use crate::read::{US, read_on, task};

const ROUNDS: usize = 40;

/// The client wakes both servers and sleeps. They compute in this order, and the first of them, 11, wakes it.
fn rounds(name: &str, order: [u32; 2]) -> Recording {
    let task = |pid: u32| if pid == 10 { "c" } else { "s" };
    let switch = |at: usize, prev: u32, next: u32| {
        format!(
            "{0}-{prev} [000] d..2. 1.{at:06}: sched_switch: prev_comm={0} prev_pid={prev} prev_prio=120 \
             prev_state=S ==> next_comm={1} next_pid={next} next_prio=120",
            task(prev),
            task(next)
        )
    };
    let wake = |at: usize, waker: u32, wakee: u32| {
        ["sched_waking", "sched_wakeup"].map(|event| {
            format!(
                "{}-{waker} [000] d..2. 1.{at:06}: {event}: comm={} pid={wakee} prio=120 \
                 target_cpu=000",
                task(waker),
                task(wakee)
            )
        })
    };
    let round = |round: usize| {
        let at = |us: usize| 100 * round + us;
        let [first, second] = order;
        let answer = if first == 11 { 20 } else { 35 };
        let mut lines = [wake(at(5), 10, 11), wake(at(7), 10, 12)].concat();
        lines.push(switch(at(10), 10, first));
        let between = switch(at(25), first, second);
        match first {
            11 => lines.extend([&wake(at(answer), 11, 10)[..], &[between]].concat()),
            _ => lines.extend([&[between], &wake(at(answer), 11, 10)[..]].concat()),
        }
        lines.push(switch(at(40), second, 10));
        lines
    };
    let begin = "<idle>-0 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 \
                 prev_prio=120 prev_state=R ==> next_comm=c next_pid=10 next_prio=120";
    let lines: Vec<String> =
        std::iter::once(begin.to_owned()).chain((0..ROUNDS).flat_map(round)).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    read_on(name, "uma-8", &lines)
}

fn pid(recording: &Recording, pid: u32) -> (u32, &RecordedTask) {
    let at = recording.tasks.iter().position(|task| task.pid == pid).expect("it is there");
    (at as u32, &recording.tasks[at])
}

/// The second server computes while the client waits for its CPU: it has answered, too, and is called for that.
#[test]
fn who_is_called_again_has_answered_and_answers_go_to_whom_is_waiting() {
    let recording = rounds("in-turn", [11, 12]);
    let (c, client) = task(&recording, "c");
    let ((one, _), (other, second)) = (pid(&recording, 11), pid(&recording, 12));
    let answer = |to| Step::Answer(to, Wake::Plain);
    let round = [
        &[Step::Await(one), Step::Run(65 * US), answer(one), Step::Await(other)][..],
        &[Step::Run(2 * US), answer(other), Step::Run(3 * US)],
    ];
    let posts = |to| Step::Post(to, Wake::Plain);
    let calls = [Step::Run(5 * US), posts(one), Step::Run(2 * US), posts(other), Step::Run(3 * US)];
    let mut expected = [&calls[..], &round.concat().repeat(ROUNDS - 1)].concat();
    // What answers the last calls is left out.
    assert!(matches!(client.steps.last(), Some(Step::Run(_))));
    assert_eq!(client.steps[..expected.len() - 1], expected[..expected.len() - 1]);
    expected = [Step::Await(c), Step::Run(15 * US), Step::Post(c, Wake::Plain)].repeat(ROUNDS);
    assert_eq!(second.steps, expected[..expected.len() - 1]);
}

#[test]
fn posts_to_the_client_say_where_their_answer_is_awaited() {
    let recording = rounds("addresses", [11, 12]);
    let machine = load("uma-8").expect("the machine is known");
    let workload = recording.workload("w", &machine, Begins::Anywhere);
    let ops = |name: &str| {
        let programs = workload.programs.iter().filter(move |program| program.name == name);
        programs.map(|program| &program.ops).collect::<Vec<_>>()
    };
    let inbox = ops("c")[0].iter().find_map(|op| match *op {
        Op::Answer { inbox, .. } => Some(inbox),
        _ => None,
    });
    for server in ops("s") {
        let awaited = server.iter().find_map(|op| match *op {
            Op::Await { semaphore, .. } => Some(semaphore),
            _ => None,
        });
        let post = server.iter().find_map(|op| match *op {
            Op::Post { semaphore, answered_at, .. } => Some((Some(semaphore), answered_at)),
            _ => None,
        });
        assert_eq!(post, Some((inbox, awaited)));
    }
}

/// Nothing tells that the first server has answered: the client sleeps all the while.
#[test]
fn who_lets_its_caller_sleep_has_not_answered() {
    let recording = rounds("not-in-turn", [12, 11]);
    let steps = recording.tasks.iter().flat_map(|task| &task.steps);
    assert!(!steps.clone().any(|step| matches!(step, Step::Answer(..))));
    let (c, _) = task(&recording, "c");
    let (_, silent) = pid(&recording, 12);
    assert!(!silent.steps.contains(&Step::Post(c, Wake::Plain)));
}
