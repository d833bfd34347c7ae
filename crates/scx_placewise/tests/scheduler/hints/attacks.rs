//! What users without rights try: to get hold of the server, to use it up, to borrow its rights.
//!
//! `PLACEWISE_ATTACK_SECONDS` is how long they keep at it, 2 unless told otherwise.

use std::env;
use std::fs;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use placewise_hint::{Client, thread_pidfd};
use rand::prelude::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, send, sendmsg, socket_with,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities, set_thread_res_uid};
use scx_placewise::hint::HintServer;

use super::lab::{Lab, NOBODY, Sleeper, hint_map, skipped};

/// Long enough for any machine: nothing is expected to take so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A user of whom the machine has nothing else.
const SERVER: u32 = 64999;

/// This test program again, as another process: `role` is the test to run in it.
fn myself(role: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(["--exact", role, "--nocapture"]).env("PLACEWISE_TEST_ROLE", role);
    command
}

fn has_role(role: &str) -> bool {
    env::var_os("PLACEWISE_TEST_ROLE").is_some_and(|mine| mine == role)
}

fn seconds() -> Duration {
    let seconds = env::var("PLACEWISE_ATTACK_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(2))
}

/// Repeats until it answers.
fn await_some<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = attempt() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "still no {what}");
        sleep(Duration::from_millis(10));
    }
}

/// A process of the same user that asks the server, without end.
#[test]
fn asker() {
    if !has_role("hints::attacks::asker") {
        return;
    }
    let socket: PathBuf = env::var_os("PLACEWISE_TEST_SOCKET").unwrap().into();
    let thread = thread_pidfd(std::process::id() as i32).unwrap();
    loop {
        let Ok(mut client) = Client::connect(&socket) else { continue };
        while client.get(thread.as_fd()).is_ok() {}
    }
}

/// Tries each thread of the process over and over: prints how often it might have sent a signal,
/// and how often changed a limit.
#[test]
fn attacker() {
    if !has_role("hints::attacks::attacker") {
        return;
    }
    let victim: i32 = env::var("PLACEWISE_TEST_VICTIM").unwrap().parse().unwrap();
    let (mut signals, mut limits) = (0, 0);
    let start = Instant::now();
    while start.elapsed() < seconds() {
        for entry in fs::read_dir(format!("/proc/{victim}/task")).unwrap().flatten() {
            let tid: i32 = entry.file_name().to_str().unwrap().parse().unwrap();
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: signal 0 only asks whether one may; the limit outlives the call.
            unsafe {
                signals += i32::from(libc::syscall(libc::SYS_tgkill, victim, tid, 0) == 0);
                let asked =
                    libc::prlimit(tid, libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut limit);
                limits += i32::from(asked == 0);
            }
        }
    }
    let said = format!("signals {signals} limits {limits}\n");
    std::io::stdout().write_all(said.as_bytes()).unwrap();
}

/// Ends with the test, whatever comes of it.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn callers_get_no_hold_of_the_server_while_it_asks_for_them() {
    let Some(lab) = Lab::new("hold") else { return };
    let asker = || {
        let mut asker = myself("hints::attacks::asker");
        asker.env("PLACEWISE_TEST_SOCKET", &lab.socket).stdout(Stdio::null());
        Ended(asker.uid(NOBODY).gid(NOBODY).spawn().unwrap())
    };
    let _askers = [asker(), asker()];
    let mut attacker = myself("hints::attacks::attacker");
    attacker.env("PLACEWISE_TEST_VICTIM", std::process::id().to_string());
    let output = attacker.uid(NOBODY).gid(NOBODY).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("signals 0 limits 0\n"), "{said}");
}

#[test]
fn a_caller_does_not_hint_the_server_through_the_server() {
    let Some(lab) = Lab::new("itself") else { return };
    let program = lab.c_program();
    let server = std::process::id().to_string();
    assert_eq!(lab.errno_of(&program, NOBODY, &["wake_hold", &server]), libc::EPERM);
}

#[test]
fn root_counts_by_its_capabilities() {
    let Some(lab) = Lab::new("capabilities") else { return };
    let (program, task) = (lab.c_program(), Sleeper::of(NOBODY));
    let tid = task.tid().to_string();
    let errno_of = |capabilities: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", capabilities, "--inh-caps", "-all"]).arg(&program);
        lab.errno_in(command, &["wake_hold", &tid])
    };
    assert_eq!(errno_of("-all"), libc::EPERM);
    assert_eq!(errno_of("-all,+sys_ptrace"), 0);
}

#[test]
fn who_is_root_in_a_user_namespace_of_its_own_hints_nothing() {
    let Some(lab) = Lab::new("namespace") else { return };
    let (program, task) = (lab.c_program(), Sleeper::of(NOBODY));
    let tid = task.tid().to_string();
    let unshare = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(arguments).uid(NOBODY).gid(NOBODY);
        command
    };
    let namespace = ["--user", "--map-root-user"];
    if !unshare(&namespace).arg("true").status().is_ok_and(|status| status.success()) {
        return skipped("this kernel gives users no user namespaces");
    }
    let mut command = unshare(&namespace);
    command.arg(&program);
    assert_eq!(lab.errno_in(command, &["wake_hold", &tid]), libc::EPERM, "of the same user");
    let mut command = unshare(&namespace);
    command.arg(&program);
    assert_eq!(lab.errno_in(command, &["wake_hold"]), libc::EPERM, "oneself");
    assert_eq!(lab.errno_of(&program, NOBODY, &["wake_hold", &tid]), 0, "from outside");
}

/// A server that is a process of its own, so that it can be starved.
struct Server {
    process: Child,
    socket: PathBuf,
}

/// Serves until its standard input ends. Prints a line when it listens, with few threads or
/// descriptors from then on.
#[test]
fn starved_server() {
    if !has_role("hints::attacks::starved_server") {
        return;
    }
    let few = |resource, limit| {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) }).unwrap();
    };
    let map = hint_map().unwrap();
    let socket: PathBuf = env::var_os("PLACEWISE_TEST_SOCKET").unwrap().into();
    let scarce = env::var("PLACEWISE_TEST_SCARCE").unwrap();
    if scarce == "threads" {
        give_up_root();
    }
    let _server = HintServer::start(&socket, map).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    match &scarce[..] {
        "threads" => few(Resource::Nproc, 4),
        _ => few(Resource::Nofile, fs::File::open("/dev/null").unwrap().as_raw_fd() as u64 + 6),
    }
    std::io::stdout().write_all(b"listens\n").unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

/// The limit of threads is none for root, nor for who may exceed it.
fn give_up_root() {
    rustix::thread::set_keep_capabilities(true).unwrap();
    let user = rustix::fs::Uid::from_raw(SERVER);
    let before = capabilities(None).unwrap();
    set_thread_res_uid(user, user, user).unwrap();
    let mut left = before;
    for set in [&mut left.effective, &mut left.permitted] {
        set.remove(CapabilitySet::SYS_ADMIN | CapabilitySet::SYS_RESOURCE);
    }
    set_capabilities(None, left).unwrap();
}

impl Server {
    fn short_of(scarce: &str, lab: &Lab) -> Self {
        let directory = lab.directory.join(scarce);
        fs::create_dir(&directory).unwrap();
        chown(&directory, Some(SERVER), None).unwrap();
        let socket = directory.join("hint.sock");
        let mut command = myself("hints::attacks::starved_server");
        command.env("PLACEWISE_TEST_SOCKET", &socket).env("PLACEWISE_TEST_SCARCE", scarce);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut said = String::new();
        let stdout = process.stdout.as_mut().unwrap();
        while !said.contains("listens") {
            let mut byte = [0];
            assert!(stdout.read(&mut byte).unwrap() > 0, "the server did not start: {said}");
            said.push(byte[0].into());
        }
        Self { process, socket }
    }

    /// How many of so many callers at once get an answer.
    fn answers(&self, callers: usize, thread: &Sleeper) -> usize {
        let clients: Vec<_> =
            (0..callers).filter_map(|_| Client::connect(&self.socket).ok()).collect();
        let thread = thread.pidfd();
        // All of them stay until each has asked.
        let answered: Vec<Client> = clients
            .into_iter()
            .filter_map(|mut client| client.get(thread.as_fd()).is_ok().then_some(client))
            .collect();
        answered.len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Who comes when there is nothing left is turned away, and nothing of it stays.
fn is_starved_and_serves_on(scarce: &str) {
    let Some(lab) = Lab::new(scarce) else { return };
    let server = Server::short_of(scarce, &lab);
    let task = Sleeper::of(0);
    for round in 0..4 {
        let answers = server.answers(12, &task);
        assert!((1..12).contains(&answers), "{answers} answers in round {round}");
    }
    await_some("answer afterwards", || (server.answers(1, &task) == 1).then_some(()));
}

#[test]
fn a_server_without_threads_serves_again_when_there_are_some() {
    is_starved_and_serves_on("threads");
}

#[test]
fn a_server_without_descriptors_serves_again_when_there_are_some() {
    is_starved_and_serves_on("descriptors");
}

const AT_ONCE: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

fn caller(path: &Path) -> OwnedFd {
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .unwrap();
    connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

/// Asks without reading an answer, until the server takes no more of it.
fn deaf_caller(path: &Path) -> OwnedFd {
    let caller = caller(path);
    let full = || send(&caller, b"get", AT_ONCE).is_err();
    await_some("end of what a deaf caller may ask", || {
        let is_full = full() && {
            sleep(Duration::from_millis(50));
            full()
        };
        is_full.then_some(())
    });
    caller
}

#[test]
fn a_caller_that_does_not_listen_holds_up_nobody_else() {
    let Some(lab) = Lab::new("deaf") else { return };
    let _deaf = deaf_caller(&lab.socket);
    let task = Sleeper::of(0);
    lab.client().get(task.pidfd().as_fd()).unwrap();
}

const WORDS: [&str; 9] = [
    "set",
    "get",
    "show",
    "none",
    "fork_spread",
    "wake_hold+wake_affine",
    "children",
    "self",
    "\0",
];

/// Words of the protocol beside each other, with descriptors that no request has.
#[test]
fn whatever_is_said_the_server_serves_on() {
    let Some(lab) = Lab::new("noise") else { return };
    let task = Sleeper::of(0);
    let (thread, file) = (task.pidfd(), fs::File::open("/dev/null").unwrap());
    let mut rng = Pcg64::seed_from_u64(7);
    let end = Instant::now() + seconds();
    while Instant::now() < end {
        let caller = caller(&lab.socket);
        for _ in 0..rng.random_range(1..8) {
            let words: Vec<&str> =
                (0..rng.random_range(0..5)).map(|_| *WORDS.choose(&mut rng).unwrap()).collect();
            let text = words.join(" ").repeat(rng.random_range(1..4));
            let descriptors: Vec<_> = (0..rng.random_range(0..3))
                .map(|_| if rng.random() { thread.as_fd() } else { file.as_fd() })
                .collect();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !descriptors.is_empty() {
                control.push(SendAncillaryMessage::ScmRights(&descriptors));
            }
            // Where the server has ended the connection, there is nothing to be said.
            let bytes = [IoSlice::new(text.as_bytes())];
            let _ = sendmsg(&caller, &bytes, &mut control, AT_ONCE);
        }
    }
    await_some("answer afterwards", || lab.client().get(thread.as_fd()).ok());
}
