//! The hint server on the running kernel: a real map of task storage, real callers, through the
//! Rust client and the C header. No scheduler is loaded, so this takes no sched_ext.
//!
//! Without root, or without BPF, a line that starts with SKIPPED says so.

mod attacks;
mod lab;

use std::fs;
use std::os::fd::AsFd;

use lab::{Lab, NOBODY, Sleeper, hint, hint_map};
use placewise_hint::{ClientError, Hint, Inheritance, MESSAGE_MAX};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send, socket,
};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use scx_placewise::hint::{HintServer, ServerError};

#[test]
fn a_hint_is_kept_replaced_shown_and_cleared() {
    let Some(lab) = Lab::new("kept") else { return };
    let mut client = lab.client();
    let task = Sleeper::of(0);
    let thread = task.pidfd();
    let (spread, hold) = (hint("fork_spread"), hint("wake_hold"));

    assert_eq!(client.get(thread.as_fd()).unwrap().hint, Hint::NONE);
    client.set(thread.as_fd(), spread, Inheritance::OnlySelf).unwrap();
    let kept = client.get(thread.as_fd()).unwrap();
    assert_eq!((kept.hint, kept.inheritance), (spread, Inheritance::OnlySelf));
    client.set(thread.as_fd(), hold, Inheritance::Children).unwrap();
    let shown = client.show().unwrap();
    let shown: Vec<_> = shown.iter().filter(|hinted| hinted.tid == task.tid() as u32).collect();
    assert_eq!(shown.len(), 1);
    assert_eq!((shown[0].hint, shown[0].inheritance), (hold, Inheritance::Children));
    client.set(thread.as_fd(), Hint::NONE, Inheritance::Children).unwrap();
    assert!(client.show().unwrap().is_empty());
}

#[test]
fn users_hint_their_own_tasks_and_no_others() {
    let Some(lab) = Lab::new("users") else { return };
    let program = lab.c_program();
    let (roots, nobodys) = (Sleeper::of(0), Sleeper::of(NOBODY));
    let (of_root, of_nobody) = (roots.tid().to_string(), nobodys.tid().to_string());

    assert_eq!(lab.errno_of(&program, NOBODY, &["wake_hold", &of_nobody]), 0);
    assert_eq!(lab.errno_of(&program, NOBODY, &["wake_hold"]), 0, "oneself");
    assert_eq!(lab.errno_of(&program, NOBODY, &["wake_hold", &of_root]), libc::EPERM);
    assert_eq!(lab.errno_of(&program, NOBODY - 1, &["wake_hold", &of_nobody]), libc::EPERM);
    assert_eq!(lab.errno_of(&program, 0, &["fork_affine", &of_nobody]), 0, "root may");

    let mut client = lab.client();
    assert_eq!(client.get(nobodys.pidfd().as_fd()).unwrap().hint, hint("fork_affine"));
    assert_eq!(client.get(roots.pidfd().as_fd()).unwrap().hint, Hint::NONE);
}

#[test]
fn a_server_with_fewer_capabilities_serves_root() {
    let weaker = || {
        let mut ours = capabilities(None).unwrap();
        for set in [&mut ours.effective, &mut ours.permitted] {
            set.remove(CapabilitySet::SYS_TIME);
        }
        set_capabilities(None, ours).unwrap();
        Lab::new("weaker")
    };
    let root = rustix::process::geteuid().is_root();
    let lab = if root { std::thread::spawn(weaker).join().unwrap() } else { Lab::new("weaker") };
    let Some(lab) = lab else { return };
    let task = Sleeper::of(NOBODY);
    lab.client().set(task.pidfd().as_fd(), hint("wake_hold"), Inheritance::Children).unwrap();
}

#[test]
fn a_message_that_is_too_long_is_not_cut() {
    let Some(lab) = Lab::new("long") else { return };
    let request = format!("set fork_spread+wake_affine{} children", "+none".repeat(44));
    assert_eq!(request.len(), MESSAGE_MAX);
    // To the first there is an answer, though no pidfd is with it.
    for (text, answered) in [(request.clone(), true), (request + "s", false)] {
        let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        connect(&socket, &SocketAddrUnix::new(&lab.socket).unwrap()).unwrap();
        send(&socket, text.as_bytes(), SendFlags::NOSIGNAL).unwrap();
        let mut answer = [0; MESSAGE_MAX];
        let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty()).unwrap();
        assert_eq!(length > 0, answered, "{text}");
    }
}

#[test]
fn what_is_no_hint_is_refused_by_errno() {
    let Some(lab) = Lab::new("refused") else { return };
    let program = lab.c_program();
    for no_hint in ["fork_affine+fork_spread", "wake_hold+wake_affine", "wake", "3", ""] {
        assert_eq!(lab.errno_of(&program, 0, &[no_hint]), libc::EINVAL, "{no_hint}");
    }
    let mut client = lab.client();
    let file = fs::File::open("/dev/null").unwrap();
    let refused = client.set(file.as_fd(), hint("wake_hold"), Inheritance::Children);
    assert!(matches!(refused, Err(ClientError::Refused { errno: libc::EBADF, .. })), "{refused:?}");

    let task = Sleeper::of(0);
    let thread = task.pidfd();
    drop(task);
    let refused = client.set(thread.as_fd(), hint("wake_hold"), Inheritance::Children);
    assert!(matches!(refused, Err(ClientError::Refused { errno: libc::ESRCH, .. })), "{refused:?}");
}

#[test]
fn a_second_server_is_refused_and_a_dead_ones_socket_taken_over() {
    let Some(lab) = Lab::new("second") else { return };
    let second = HintServer::start(&lab.socket, hint_map().unwrap());
    assert!(matches!(second, Err(ServerError::Taken { .. })));
    let left = lab.directory.join("left.sock");
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    assert!(HintServer::start(&left, hint_map().unwrap()).is_ok());
    let file = lab.directory.join("file");
    fs::write(&file, "of somebody else").unwrap();
    let refused = HintServer::start(&file, hint_map().unwrap());
    assert!(matches!(refused, Err(ServerError::Listen { .. })));
    assert_eq!(fs::read_to_string(&file).unwrap(), "of somebody else");
}
