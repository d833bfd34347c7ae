//! What is drawn of a model: as the recording was, longer, with more clients.

use std::collections::BTreeSet;

use placewise_replay::{AtEnd, Draw, Model, RecordedTask, Recording, Step, validate};
use placewise_workload::program::{Nanos, Wake};

use crate::common::{CASES, Lab, are_like_the_recordings};

const US: u64 = 1_000;

fn task(name: &str, steps: Vec<Step>) -> RecordedTask {
    RecordedTask { name: name.into(), steps, runs_at_once: true, ..RecordedTask::default() }
}

/// Each client calls a server: one of its own, or the first.
fn calls(clients: u32, share: bool) -> Recording {
    let server_of = |client: u32| if share { clients } else { clients + client };
    let client = |at: u32| {
        let call =
            [Step::Run(10 * US), Step::Post(server_of(at), Wake::Sync), Step::Await(server_of(at))];
        task("client", call.repeat(100))
    };
    let server = |of: Vec<u32>| {
        let answer =
            |client: u32| [Step::Await(client), Step::Run(5 * US), Step::Post(client, Wake::Sync)];
        let round: Vec<Step> = of.into_iter().flat_map(answer).collect();
        RecordedTask { runs_at_once: false, ..task("server", round.repeat(100)) }
    };
    let servers: Vec<Vec<u32>> = match share {
        true => vec![(0..clients).collect()],
        false => (0..clients).map(|client| vec![client]).collect(),
    };
    let tasks = (0..clients).map(client).chain(servers.into_iter().map(server)).collect();
    Recording { length_ns: 1_500 * US, cgroups: Vec::new(), tasks }
}

fn count(recording: &Recording, name: &str, is_it: fn(&Step) -> bool) -> usize {
    let tasks = recording.tasks.iter().filter(|task| task.name == name);
    tasks.flat_map(|task| &task.steps).filter(|step| is_it(step)).count()
}

fn tasks(recording: &Recording, name: &str) -> usize {
    recording.tasks.iter().filter(|task| task.name == name).count()
}

fn is_post(step: &Step) -> bool {
    matches!(step, Step::Post(..))
}

/// Nobody is woken twice for one call, and no call is lost: a hundred times longer there are a hundred
/// times as many.
#[test]
fn closed_loops_stay_closed_however_long_they_are() {
    for share in [false, true] {
        let recording = calls(3, share);
        let model = Model::of(&recording, 8);
        let long = Draw { length_ns: 100 * recording.length_ns, scale: Vec::new() };
        let drawn = model.draw(&long, 8);
        let [calls, answers] = ["client", "server"].map(|name| count(&drawn, name, is_post));
        assert!((29_000..=31_000).contains(&calls), "{calls}");
        assert!(calls.abs_diff(answers) <= 3, "{calls} calls, {answers} answers");
    }
}

/// Whom a server answers is left to the replay, but what it has not answered as the draw ends, which nobody waits for.
#[test]
fn who_answers_in_turn_does_so_in_a_draw() {
    let mut recording = calls(3, true);
    for step in recording.tasks.iter_mut().flat_map(|task| &mut task.steps) {
        if let Step::Post(to @ 0..3, wake) = *step {
            *step = Step::Answer(to, wake);
        }
    }
    let draw = Draw { length_ns: 10 * recording.length_ns, scale: Vec::new() };
    let drawn = Model::of(&recording, 8).draw(&draw, 8);
    let [calls, posts] = ["client", "server"].map(|name| count(&drawn, name, is_post));
    let answers = count(&drawn, "server", |step| matches!(step, Step::Answer(..)));
    assert_eq!((posts, answers), (0, calls));
}

/// A client calls servers, answers each as it has come, and so has a call under way with each; if they are
/// forked, the servers before it, they begin with answers to calls that woke nobody.
fn with_calls_under_way(servers: u32, are_forked: bool) -> Recording {
    const ROUNDS: usize = 400;
    let first = u32::from(are_forked);
    let (client, servers) = (first + servers, first..first + servers);
    let answer =
        |server| [Step::Await(server), Step::Run(12 * US), Step::Answer(server, Wake::Sync)];
    let round = servers.clone().flat_map(answer);
    let calls = |server| [Step::Run(40 * US), Step::Post(server, Wake::Sync)];
    let calls = servers.clone().flat_map(calls).filter(|_| !are_forked);
    let steps = calls.chain(round.collect::<Vec<_>>().repeat(ROUNDS)).collect();
    let forked_ns = Nanos::from(client) * 40 * US;
    let client_task = RecordedTask { is_forked: are_forked, forked_ns, ..task("client", steps) };
    let serve = [Step::Await(client), Step::Run(16 * US), Step::Post(client, Wake::Sync)];
    let begin: &[Step] = if are_forked { &serve[1..] } else { &[] };
    let steps = [begin, &serve.repeat(ROUNDS)].concat();
    let server = |at: u32| RecordedTask {
        is_forked: are_forked,
        forked_ns: Nanos::from(at) * 40 * US,
        runs_at_once: are_forked,
        ..task("server", steps.clone())
    };
    let forks = (1..=client).flat_map(|child| [Step::Run(40 * US), Step::Fork(child)]);
    let parent = are_forked.then(|| task("parent", forks.collect()));
    let tasks = parent.into_iter().chain(servers.map(server)).chain([client_task]).collect();
    Recording { length_ns: 25_000 * US, cgroups: Vec::new(), tasks }
}

/// None of them calls one twice at a time and another never, nor before it is there.
#[test]
fn as_many_calls_are_under_way_with_each_as_in_the_recording() {
    for (nr_servers, are_forked) in [(6, false), (8, false), (4, true)] {
        let recording = with_calls_under_way(nr_servers, are_forked);
        let draw = Draw { length_ns: recording.length_ns, scale: Vec::new() };
        let drawn = Model::of(&recording, 2).draw(&draw, 2);
        let servers = drawn.tasks.iter().filter(|task| task.name == "server");
        let served: Vec<usize> = servers
            .map(|task| task.steps.iter().filter(|step| matches!(step, Step::Await(_))).count())
            .collect();
        let [least, most] = [served.iter().min(), served.iter().max()].map(|it| *it.unwrap());
        assert!(
            served.len() == nr_servers as usize && least > 100 && most <= least + 8,
            "{are_forked}: {served:?}"
        );
    }
}

/// Of three in a ring one posts once or twice: how often it does and how often that is waited for are drawn
/// apart. Somebody else always has something to do, and now and then wakes the first.
fn ring(tick_wakes: bool) -> Recording {
    let mut random = 1u32;
    let mut once_or_twice = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        1 + (random >> 31) as usize
    };
    let mut tasks = ["client", "proxy", "server", "tick"].map(|name| task(name, Vec::new()));
    for round in 0..1_000 {
        let times = once_or_twice();
        let answer = [Step::Run(5 * US), Step::Post(0, Wake::Plain)].repeat(times);
        let is_woken = usize::from(tick_wakes && round % 100 == 99);
        let steps = [
            &[
                &[Step::Run(10 * US), Step::Post(1, Wake::Plain)],
                &[Step::Await(2)].repeat(times)[..],
                &[Step::Await(3)].repeat(is_woken)[..],
            ]
            .concat()[..],
            &[Step::Await(0), Step::Run(5 * US), Step::Post(2, Wake::Plain)],
            &[&[Step::Await(1)], &answer[..]].concat(),
            &[
                &[Step::Until(round * 30 * US), Step::Run(US)],
                &[Step::Post(0, Wake::Plain)].repeat(is_woken)[..],
            ]
            .concat(),
        ];
        tasks.iter_mut().zip(steps).for_each(|(task, steps)| task.steps.extend(steps));
    }
    Recording { length_ns: 30_000 * US, cgroups: Vec::new(), tasks: tasks.to_vec() }
}

/// Fails for `tick_wakes` if who waits for the server were taken to wait for the one with the timer, too.
#[test]
fn a_ring_goes_on_however_its_posts_and_waits_are_drawn() {
    for tick_wakes in [false, true] {
        let recording = ring(tick_wakes);
        let draw = Draw { length_ns: 10 * recording.length_ns, scale: Vec::new() };
        let drawn = Model::of(&recording, 4).draw(&draw, 4);
        let calls = count(&drawn, "client", is_post);
        assert!((8_000..=12_000).contains(&calls), "{calls}");
    }
}

#[test]
fn twins_get_servers_of_their_own_or_share_the_one() {
    // One server answers one call in five microseconds.
    for (share, servers, most) in [(false, 6, 600), (true, 1, 300)] {
        let recording = calls(3, share);
        let twice = Draw { length_ns: recording.length_ns, scale: vec![("client".into(), 2)] };
        let drawn = Model::of(&recording, 64).draw(&twice, 64);
        assert_eq!([tasks(&drawn, "client"), tasks(&drawn, "server")], [6, servers]);
        let calls = count(&drawn, "client", is_post);
        assert!(calls.abs_diff(most) <= 30, "{calls} calls of six clients");
    }
}

/// A child is forked as often as in the recording, does what children did, and tells its parent.
#[test]
fn children_are_forked_and_exit() {
    let fork =
        |child| [Step::Run(10 * US), Step::Fork(child), Step::Await(child), Step::Sleep(90 * US)];
    let parent = task("make", (1..=50).flat_map(fork).collect());
    let child = RecordedTask {
        is_forked: true,
        exits: true,
        runs_at_once: false,
        ..task("cc", vec![Step::Run(400 * US), Step::Post(0, Wake::Plain)])
    };
    let tasks: Vec<_> = std::iter::once(parent).chain(vec![child; 50]).collect();
    let recording = Recording { length_ns: 25_000 * US, cgroups: Vec::new(), tasks };
    let draw = Draw { length_ns: 2 * recording.length_ns, scale: Vec::new() };
    let drawn = Model::of(&recording, 2).draw(&draw, 2);
    let children: Vec<_> = drawn.tasks.iter().filter(|task| task.name == "cc").collect();
    assert!((95..=105).contains(&children.len()), "{}", children.len());
    let whole = [Step::Run(400 * US), Step::Post(0, Wake::Plain)];
    let exited: Vec<_> = children.iter().filter(|task| task.exits).collect();
    assert!(exited.len() >= 95 && exited.iter().all(|task| task.steps == whole));
}

/// Each child sleeps until 300 us after it was forked, whenever that is.
#[test]
fn arrivals_of_who_is_forked_count_from_then() {
    let forked_at = |at: u64| at * 500 * US;
    let fork = |at: u32| [Step::Until(forked_at(at.into())), Step::Run(US), Step::Fork(at)];
    let parent = task("parent", (1..=40).flat_map(fork).collect());
    let child = |at: u32| RecordedTask {
        is_forked: true,
        forked_ns: forked_at(at.into()),
        exits: true,
        runs_at_once: false,
        ..task("child", vec![Step::Until(forked_at(at.into()) + 300 * US), Step::Run(100 * US)])
    };
    let tasks = std::iter::once(parent).chain((1..=40).map(child)).collect();
    let recording = Recording { length_ns: 20_500 * US, cgroups: Vec::new(), tasks };
    let draw = Draw { length_ns: recording.length_ns, scale: Vec::new() };
    let drawn = Model::of(&recording, 2).draw(&draw, 2);
    let exited = drawn.tasks.iter().filter(|task| task.name == "child" && task.exits).count();
    assert!(exited >= 38, "{exited}");
}

/// One holds a lock at a time, whoever wants it next.
#[test]
fn locks_are_waited_for_as_often_as_recorded() {
    let mut random = 7u32;
    let mut tasks: Vec<RecordedTask> = (0..4).map(|_| task("db", Vec::new())).collect();
    let mut holder = 0;
    for _ in 0..2_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let next = (holder + 1 + (random >> 30) % 3) % 4;
        tasks[holder as usize].steps.extend([Step::Run(10 * US), Step::Post(next, Wake::Plain)]);
        tasks[next as usize].steps.push(Step::Await(holder));
        holder = next;
    }
    let recording = Recording { length_ns: 20_000 * US, cgroups: Vec::new(), tasks };
    let draw = Draw { length_ns: 10 * recording.length_ns, scale: Vec::new() };
    let drawn = Model::of(&recording, 4).draw(&draw, 4);
    let waits = count(&drawn, "db", |step| matches!(step, Step::Await(_)));
    assert!((15_000..=25_000).contains(&waits), "{waits} waits for the lock");
}

/// In half of the rounds a worker waits until the helper has done what it is told; once all rest, the helper longer
/// than one that waits could. Fails if a worker waited for answers that are not drawn, or for the helper to wake up.
#[test]
fn who_waits_for_an_answer_now_and_then_has_it() {
    const WORKERS: u32 = 4;
    const ROUNDS: u32 = 400;
    let rests = |round: u32| round == ROUNDS / 2;
    let round = |round: u32| {
        let rest = Step::Sleep(if rests(round) { 20_000 * US } else { 50 * US });
        let told = [rest, Step::Run(20 * US), Step::Post(WORKERS, Wake::Plain)];
        let waits = round.is_multiple_of(2).then_some(Step::Await(WORKERS));
        told.into_iter().chain(waits).chain([Step::Run(10 * US)])
    };
    let workers = (0..WORKERS).map(|_| task("db", (0..ROUNDS).flat_map(round).collect()));
    let does = |at: u32| {
        let (round, worker) = (at / WORKERS, at % WORKERS);
        let rest = (rests(round) && worker == 0).then_some(Step::Sleep(20_000 * US));
        let done = round.is_multiple_of(2).then_some(Step::Post(worker, Wake::Plain));
        let told = rest.into_iter().chain([Step::Await(worker), Step::Run(5 * US)]);
        told.chain(done).collect::<Vec<_>>()
    };
    let helper = (0..ROUNDS * WORKERS).flat_map(does).collect();
    let helper = RecordedTask { runs_at_once: false, ..task("db", helper) };
    let tasks = workers.chain([helper]).collect();
    let recording = Recording { length_ns: 54_500 * US, cgroups: Vec::new(), tasks };
    let draw = Draw { length_ns: 20 * recording.length_ns, scale: Vec::new() };
    let drawn = Model::of(&recording, 8).draw(&draw, 8);
    let rounds = count(&drawn, "db", |step| matches!(step, Step::Post(4, _)));
    let expected = (20 * ROUNDS * WORKERS) as usize;
    assert!(rounds.abs_diff(expected) < expected / 10, "{rounds} of {expected} rounds");
}

/// Once in a while one task has several messages from another. Fails if those that drew a wait for it waited.
#[test]
fn what_happens_once_in_a_while_is_not_waited_for() {
    let busy = |_| task("db", [Step::Sleep(50 * US), Step::Run(50 * US)].repeat(500));
    let mut tasks: Vec<RecordedTask> = (0..4).map(busy).collect();
    let messages = [Step::Await(4), Step::Run(US)].repeat(5);
    tasks[0].steps.splice(600..600, messages);
    let mut writes = vec![Step::Until(30_000 * US)];
    writes.extend([Step::Run(US), Step::Post(0, Wake::Plain)].repeat(5));
    tasks.push(RecordedTask { runs_at_once: false, ..task("writer", writes) });
    let recording = Recording { length_ns: 50_000 * US, cgroups: Vec::new(), tasks };
    let draw = Draw { length_ns: 20 * recording.length_ns, scale: Vec::new() };
    let drawn = Model::of(&recording, 8).draw(&draw, 8);
    let sleeps = count(&drawn, "db", |step| matches!(step, Step::Sleep(_)));
    assert!((36_000..=44_000).contains(&sleeps), "{sleeps}");
}

/// Fifty in 100 ms, and none in the 900 ms to the end. Fails if that were no sleep for not being over: there were ten
/// times as many.
#[test]
fn who_sleeps_for_long_as_the_trace_ends_has_slept_for_long() {
    for (sleep, at_end) in [(Step::Sleep(2_000 * US), 900_000 * US), (Step::Until(0), 900_000 * US)]
    {
        let nth = |at: u64| match sleep {
            Step::Until(_) => Step::Until(at * 2_000 * US),
            other => other,
        };
        let steps = (1..=50).flat_map(|at| [nth(at), Step::Run(10 * US)]).collect();
        let flusher = RecordedTask { at_end: AtEnd::Sleeps(at_end), ..task("flusher", steps) };
        let busy = task("busy", [Step::Run(90 * US), Step::Sleep(910 * US)].repeat(1_000));
        let tasks = vec![flusher, busy];
        let recording = Recording { length_ns: 1_000_000 * US, cgroups: Vec::new(), tasks };
        let draw = Draw { length_ns: 40 * recording.length_ns, scale: Vec::new() };
        let drawn = Model::of(&recording, 2).draw(&draw, 2);
        let sleeps = count(&drawn, "flusher", |step| step.sleeps());
        assert!((1_000..=4_000).contains(&sleeps), "{sleeps}");
    }
}

/// One that weighed little had a tenth of the CPU beside another that never sleeps for long.
#[test]
fn who_computed_to_the_end_has_its_part_of_the_computing() {
    let busy = task("busy", [Step::Run(90 * US), Step::Sleep(10 * US)].repeat(100));
    let light = RecordedTask { at_end: AtEnd::Runs, ..task("light", vec![Step::Run(1_000 * US)]) };
    let tasks = vec![busy, light];
    let recording = Recording { length_ns: 10_000 * US, cgroups: Vec::new(), tasks };
    let draw = Draw { length_ns: 2 * recording.length_ns, scale: Vec::new() };
    let drawn = Model::of(&recording, 1).draw(&draw, 1);
    let ms = |name: &str| {
        let tasks = drawn.tasks.iter().filter(|task| task.name == name);
        tasks.map(RecordedTask::computing).sum::<u64>() / (1_000 * US)
    };
    assert!((16..=19).contains(&ms("busy")), "{}", ms("busy"));
    assert!((1..=3).contains(&ms("light")), "{}", ms("light"));
}

#[test]
fn arrivals_keep_their_rate_however_fast_the_tasks_are() {
    let turn = |at: u64| [Step::Until(at * 100 * US), Step::Run(20 * US)];
    let recording = Recording {
        length_ns: 10_000 * US,
        cgroups: Vec::new(),
        tasks: vec![task("tick", (1..100).flat_map(turn).collect())],
    };
    let draw = Draw { length_ns: 10 * recording.length_ns, scale: Vec::new() };
    let drawn = Model::of(&recording, 1).draw(&draw, 1);
    let times: Vec<Step> = drawn.tasks[0].steps.iter().copied().filter(|it| it.sleeps()).collect();
    let expected: Vec<Step> = (1..1_000).map(|at| Step::Until(at * 100 * US)).collect();
    assert_eq!(times[..900], expected[..900]);
}

/// The first that is forked calls the last.
#[test]
fn clients_that_are_forked_call_the_servers_that_theirs_were() {
    const PAIRS: u32 = 3;
    let clients = 2..2 + PAIRS;
    let servers = clients.end..clients.end + PAIRS;
    let forks = |children: std::ops::Range<u32>| {
        children.flat_map(|child| [Step::Run(US), Step::Fork(child)]).collect::<Vec<_>>()
    };
    let child = |name: &str, turn: [Step; 3]| RecordedTask {
        is_forked: true,
        runs_at_once: false,
        ..task(name, turn.repeat(1_000))
    };
    let call = |to| [Step::Run(10 * US), Step::Post(to, Wake::Sync), Step::Await(to)];
    let answer = |to| [Step::Await(to), Step::Run(5 * US), Step::Post(to, Wake::Sync)];
    let mut tasks =
        vec![task("clients", forks(clients.clone())), task("servers", forks(servers.clone()))];
    tasks.extend(servers.clone().rev().map(|server| child("client", call(server))));
    tasks.extend(clients.rev().map(|client| child("server", answer(client))));
    let recording = Recording { length_ns: 15_000 * US, cgroups: Vec::new(), tasks };
    let draw = Draw { length_ns: 2 * recording.length_ns, scale: Vec::new() };
    let drawn = Model::of(&recording, 16).draw(&draw, 16);
    let whom = |client: &RecordedTask| -> BTreeSet<u32> {
        let post = |step: &Step| match *step {
            Step::Post(to, _) => Some(to),
            _ => None,
        };
        client.steps.iter().filter_map(post).collect()
    };
    let called: Vec<BTreeSet<u32>> =
        drawn.tasks.iter().filter(|task| task.name == "client").map(whom).collect();
    assert!(count(&drawn, "client", is_post) > 5_500);
    assert!(called.iter().all(|servers| servers.len() == 1), "{called:?}");
    assert_eq!(called.iter().flatten().collect::<BTreeSet<_>>().len(), PAIRS as usize);
}

/// As fast, as far, and as soon answered. Models of single runs as short as these are some percent off by chance, to
/// either side: what counts is the mean of six.
#[test]
fn models_of_simulated_runs_are_like_the_runs() {
    for (name, case) in CASES {
        let of_seed = |seed| {
            let lab = Lab { seed, ..Lab::new("zen3-2s-nps1", "v6.0", name, case) };
            let (recording, recorded) = lab.read(&format!("model-{name}"));
            let cpus = lab.machine.online().len();
            let model = Model::of(&recording, cpus);
            let draw = Draw { length_ns: model.length_ns(), scale: Vec::new() };
            let mut drawn = model.draw(&draw, cpus);
            let recorded = recorded.stretched(&model.shares(&drawn));
            let validation = validate(&mut drawn, &recorded, &lab.machine, &lab.kernel);
            validation.expect("the replay ends well")
        };
        are_like_the_recordings(name, &[1, 2, 3, 4, 5, 6].map(of_seed));
    }
}
