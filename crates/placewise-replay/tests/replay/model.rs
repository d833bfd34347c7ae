//! What is drawn of a model: as the recording was, longer, with more clients.

use std::collections::BTreeSet;

use placewise_replay::{Draw, Model, RecordedTask, Recording, Step, validate};
use placewise_workload::program::Wake;

use crate::common::{CASES, Lab, is_like_the_recording};

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

/// Of three in a ring one posts once or twice: how often it does and how often that is waited for are drawn
/// apart. Somebody else always has something to do.
#[test]
fn a_ring_goes_on_however_its_posts_and_waits_are_drawn() {
    let mut random = 1u32;
    let mut once_or_twice = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        1 + (random >> 31) as usize
    };
    let mut tasks = ["client", "proxy", "server", "tick"].map(|name| task(name, Vec::new()));
    for round in 0..1_000 {
        let times = once_or_twice();
        let answer = [Step::Run(5 * US), Step::Post(0, Wake::Plain)].repeat(times);
        let steps = [
            &[
                &[Step::Run(10 * US), Step::Post(1, Wake::Plain)],
                &[Step::Await(2)].repeat(times)[..],
            ]
            .concat()[..],
            &[Step::Await(0), Step::Run(5 * US), Step::Post(2, Wake::Plain)],
            &[&[Step::Await(1)], &answer[..]].concat(),
            &[Step::Until(round * 30 * US), Step::Run(US)],
        ];
        tasks.iter_mut().zip(steps).for_each(|(task, steps)| task.steps.extend(steps));
    }
    let tasks = tasks.to_vec();
    let recording = Recording { length_ns: 30_000 * US, cgroups: Vec::new(), tasks };
    let draw = Draw { length_ns: 10 * recording.length_ns, scale: Vec::new() };
    let drawn = Model::of(&recording, 4).draw(&draw, 4);
    let calls = count(&drawn, "client", is_post);
    assert!((8_000..=12_000).contains(&calls), "{calls}");
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

/// As fast, as far, and as soon answered.
#[test]
fn the_model_of_a_simulated_run_is_like_the_run() {
    for (name, case) in CASES {
        let lab = Lab::new("zen3-2s-nps1", "v6.0", name, case);
        let (recording, recorded) = lab.read(&format!("model-{name}"));
        let cpus = lab.machine.online().len();
        let model = Model::of(&recording, cpus);
        let draw = Draw { length_ns: model.length_ns(), scale: Vec::new() };
        let mut drawn = model.draw(&draw, cpus);
        let recorded = recorded.stretched(model.share(&drawn));
        let validation = validate(&mut drawn, &recorded, &lab.machine, &lab.kernel);
        is_like_the_recording(name, &validation.expect("the replay ends well"));
    }
}
