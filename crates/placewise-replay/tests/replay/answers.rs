//! Whose post is answered, of a client and two servers that take turns on a CPU.

use placewise_machine::load;
use placewise_policy::Policy;
use placewise_replay::{Begins, RecordedTask, Recording, Step};
use placewise_sim::{Scenario, simulate};
use placewise_workload::program::{Op, Wake};

use crate::read::{US, read_on, task, try_read};

const ROUNDS: usize = 40;

/// Who has this pid; the client is 10, and 20 if there are two.
fn comm(pid: u32) -> &'static str {
    match pid {
        0 => "swapper/0",
        10 | 20 => "c",
        _ => "s",
    }
}

fn line(at: usize, by: u32, context: char, event: &str) -> String {
    let comm = if by == 0 { "<idle>" } else { comm(by) };
    format!("{comm}-{by} [000] d.{context}2. 1.{at:06}: {event}")
}

fn switch(at: usize, prev: u32, next: u32) -> String {
    let state = if prev == 0 { 'R' } else { 'S' };
    let event = format!(
        "sched_switch: prev_comm={} prev_pid={prev} prev_prio=120 prev_state={state} ==> \
         next_comm={} next_pid={next} next_prio=120",
        comm(prev),
        comm(next)
    );
    line(at, prev, '.', &event)
}

/// By a task, or by an interrupt of the idle CPU.
fn wake(at: usize, waker: u32, wakee: u32) -> [String; 2] {
    let context = if waker == 0 { 'h' } else { '.' };
    ["sched_waking", "sched_wakeup"].map(|event| {
        let comm = comm(wakee);
        let event = format!("{event}: comm={comm} pid={wakee} prio=120 target_cpu=000");
        line(at, waker, context, &event)
    })
}

/// Of a trace in which the client begins.
fn recorded(name: &str, rounds: impl Iterator<Item = Vec<String>>) -> Recording {
    let lines: Vec<String> = std::iter::once(switch(0, 0, 10)).chain(rounds.flatten()).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    read_on(name, "uma-8", &lines)
}

/// Servers whom interrupts begin, in turns, call two clients. The first wakes its caller, the second computes
/// while that waits for the CPU, for twice as long in each tenth round.
fn two_clients(name: &str, servers: &[u32], longer: u64) -> Recording {
    let half = |round: usize| {
        let at = |us: usize| 1_000 * round + us;
        let server = servers[round % servers.len()];
        let takes = if round.is_multiple_of(10) { 20 * longer as usize } else { 20 };
        let done = switch(at(95 + takes), server, 0);
        let begins = [&wake(at(1), 0, server)[..], &[switch(at(2), 0, server)]].concat();
        let calls = [wake(at(5), server, 20), wake(at(60), server, 10)].concat();
        let first = [&[switch(at(65), server, 10)], &wake(at(80), 10, server)[..]].concat();
        let second = [switch(at(85), 10, 20), switch(at(85 + takes), 20, server), done];
        [begins, calls, first, second.to_vec()].concat()
    };
    with_messages(name, (0..8 * ROUNDS).flat_map(half)).expect("they take turns")
}

fn with_messages(name: &str, lines: impl Iterator<Item = String>) -> Option<Recording> {
    let text = lines.collect::<Vec<_>>().join("\n") + "\n";
    let both = try_read(name, &text, &load("uma-8").expect("it is known"));
    both.expect("it can be read").with_messages
}

/// The client wakes both servers and sleeps. They compute in this order, and the first of them, 11, wakes it.
fn rounds(name: &str, order: [u32; 2]) -> Recording {
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
    recorded(name, (0..ROUNDS).map(round))
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

/// The switch to the first server is lost once, and with it that it computed between two calls. This does not tell that
/// servers do not answer.
#[test]
fn who_is_not_seen_to_run_may_have_answered() {
    let round = |round: usize| {
        let at = |us: usize| 100 * round + us;
        let mut lost = Vec::new();
        if round == ROUNDS / 2 {
            lost = [&wake(at(1), 10, 11)[..], &[switch(at(3), 11, 10)]].concat();
        }
        let calls = [wake(at(5), 10, 11), wake(at(7), 10, 12)].concat();
        let turn = [vec![switch(at(10), 10, 11)], wake(at(20), 11, 10).to_vec()].concat();
        [lost, calls, turn, vec![switch(at(25), 11, 12), switch(at(40), 12, 10)]].concat()
    };
    let recording = recorded("lost-turn", (0..ROUNDS).map(round));
    let (_, client) = task(&recording, "c");
    let answers = client.steps.iter().filter(|step| matches!(step, Step::Answer(..))).count();
    assert!(answers >= 2 * (ROUNDS - 2), "{answers}");
}

/// Who has two calls of each under way at a time begins with an answer to each, where both have several partners, and
/// where one of them does.
#[test]
fn as_many_calls_are_under_way_as_messages_tell() {
    for (name, servers, longer, under_way) in [
        ("two-of-two", &[11, 21][..], 1, 1),
        ("two-of-two-at-a-time", &[11, 21], 2, 2),
        ("two-of-one-at-a-time", &[11], 2, 2),
    ] {
        let recording = two_clients(name, servers, longer);
        let of = |pids: &[u32]| pids.iter().map(|it| pid(&recording, *it)).collect::<Vec<_>>();
        let (servers, clients) = (of(servers), of(&[10, 20]));
        // Who has one partner answers none but that.
        let of_several = if servers.len() > 1 { &clients[..] } else { &[] };
        for (_, task) in servers.iter().chain(of_several) {
            let posts = task.steps.iter().filter(|step| matches!(step, Step::Post(..))).count();
            let answers = task.steps.iter().filter(|step| matches!(step, Step::Answer(..))).count();
            assert!(answers > 30 * posts, "{posts} and {answers} of {}", task.name);
        }
        for (_, client) in clients {
            let begins = client.steps.iter().map_while(|step| match *step {
                Step::Post(to, Wake::Plain) => Some(to),
                _ => None,
            });
            let mut begins: Vec<u32> = begins.collect();
            begins.sort_unstable();
            let expected = servers.iter().flat_map(|(to, _)| vec![*to; under_way - 1]);
            assert_eq!(begins, expected.collect::<Vec<_>>(), "{name}");
        }
    }
}

/// Whoever is done first keeps posts that others would wait for.
#[test]
fn a_replay_with_several_calls_under_way_comes_to_its_end() {
    let recording = two_clients("ends", &[11, 21], 2);
    let machine = load("uma-8").expect("the machine is known");
    let policy = Policy::parse("v6.12", "baseline").expect("the kernel is known");
    let workload = recording.workload("w", &machine, Begins::AsRecorded);
    let scenario = Scenario { machine: &machine, policy: &policy, workload: &workload, seed: 1 };
    simulate(&scenario, None).expect("nobody waits for ever");
}

/// Two of a name call another, which computes on a CPU of its own meanwhile, and in one round of so many a second one, which
/// wakes its caller.
fn answers_seen_in_one_of(rounds: usize) -> Option<Recording> {
    let round = |round: usize| {
        let at = |us: usize| 100 * round + us;
        let server = if (round / rounds).is_multiple_of(2) { 11 } else { 21 };
        let begins = [&wake(at(1), 0, server)[..], &[switch(at(2), 0, server)]].concat();
        let called = [&wake(at(5), server, 20)[..], &[switch(at(7), 0, 20), switch(at(27), 20, 0)]];
        let called = called
            .concat()
            .iter()
            .map(|line| {
                let line = line.replace("target_cpu=000", "target_cpu=001");
                if line.contains("switch") { line.replace("[000]", "[001]") } else { line }
            })
            .collect();
        let woken = [&wake(at(35), server, 10)[..], &[switch(at(40), server, 10)]].concat();
        let answer = [&wake(at(50), 10, server)[..], &[switch(at(60), 10, server)]].concat();
        let seen = if round.is_multiple_of(rounds) { [woken, answer].concat() } else { vec![] };
        [begins, called, seen, vec![switch(at(80), server, 0)]].concat()
    };
    with_messages(&format!("seen-{rounds}"), (0..40 * rounds).flat_map(round))
}

/// Writers to pipes are woken so: they wait for room.
#[test]
fn who_is_seldom_seen_to_answer_is_not_taken_to() {
    assert!(answers_seen_in_one_of(10).is_some());
    assert!(answers_seen_in_one_of(100).is_none());
}

/// A server calls two clients in turns, twice in 2 ms; the first client wakes two servers in turns, one in each of these.
#[test]
fn a_task_begins_with_the_flips_of_a_second() {
    let recording = two_clients("flips", &[11, 21], 1);
    for (pid_of, expected) in [(11, 1_000), (21, 1_000), (10, 1_000), (20, 0)] {
        let (_, task) = pid(&recording, pid_of);
        assert!(task.wakee_flips.abs_diff(expected) <= 10, "{} of {pid_of}", task.wakee_flips);
    }
    let machine = load("uma-8").expect("the machine is known");
    let mut workload = recording.workload("w", &machine, Begins::Anywhere);
    for (task, index) in recording.tasks.iter().zip(0..) {
        assert_eq!(recording.program(&mut workload, index).wakee_flips, task.wakee_flips);
    }
}

/// The client hands out work to both in each round, after a timer; one of them asks for more in each fourth. It has
/// been given some each time before it asks again, and yet what it is given is no answer.
#[test]
fn who_wakes_more_often_does_not_answer() {
    const ROUNDS: usize = 100;
    let round = |round: usize| {
        let at = |us: usize| 100 * round + us;
        let mut lines = [wake(at(5), 10, 11), wake(at(7), 10, 12)].concat();
        lines.push(switch(at(10), 10, 11));
        if round % 4 == 3 {
            lines.extend(wake(at(15), 11, 10));
            lines.extend([switch(at(20), 11, 12), switch(at(30), 12, 10)]);
        } else {
            lines.extend([switch(at(20), 11, 12), switch(at(30), 12, 0)]);
            lines.extend(wake(at(60), 0, 10));
            lines.push(switch(at(62), 0, 10));
        }
        lines
    };
    let recording = recorded("dispatcher", (0..ROUNDS).map(round));
    let (_, client) = task(&recording, "c");
    let posts = client.steps.iter().filter(|step| matches!(step, Step::Post(..))).count();
    assert_eq!(posts, 2 * ROUNDS);
}
