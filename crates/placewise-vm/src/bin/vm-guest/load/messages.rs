//! Loads of messages through pipes and sockets.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context;
use rustix::io::Errno;
use rustix::pipe::pipe;

use super::case::Case;
use super::team::{self, Body, Kind, Outcome};

const MESSAGE: [u8; 100] = [0; 100];

/// The receiver's end, and the senders'.
type Channel = (OwnedFd, OwnedFd);

pub fn hackbench(case: &mut Case) -> anyhow::Result<Outcome> {
    let kind = if case.is("tasks", "thread", "process")? { Kind::Process } else { Kind::Thread };
    let sockets = case.is("ipc", "pipe", "socket")?;
    let groups = case.number("groups", 10)?;
    let fds = case.number("fds", 20)?;
    let loops = case.number("loops", 100_000)?;
    case.ends_by_itself()?;
    let mut bodies: Vec<Body> = Vec::new();
    for _ in 0..groups {
        let channels = (0..fds).map(|_| channel(sockets)).collect::<anyhow::Result<Vec<_>>>()?;
        let (receivers, senders): (Vec<OwnedFd>, Vec<OwnedFd>) = channels.into_iter().unzip();
        for receiver in receivers {
            bodies.push(Box::new(move || receive(&receiver, fds * loops)));
        }
        let senders = Arc::new(senders);
        for _ in 0..fds {
            let senders = senders.clone();
            bodies.push(Box::new(move || send(&senders, loops)));
        }
    }
    team::run(kind, bodies, || {})
}

fn channel(socket: bool) -> anyhow::Result<Channel> {
    if socket {
        let (one, other) = UnixStream::pair().context("socketpair")?;
        return Ok((one.into(), other.into()));
    }
    pipe().context("pipe")
}

fn receive(from: &OwnedFd, messages: usize) -> io::Result<u64> {
    let mut message = MESSAGE;
    for _ in 0..messages {
        let mut got = 0;
        while got < message.len() {
            got += rustix::io::read(from, &mut message[got..])?;
        }
    }
    Ok(messages as u64)
}

fn send(to: &[OwnedFd], loops: usize) -> io::Result<u64> {
    for _ in 0..loops {
        for receiver in to {
            rustix::io::write(receiver, &MESSAGE)?;
        }
    }
    Ok(0)
}

/// Two tasks take turns: a message is a round trip.
pub fn schedpipe(case: &mut Case) -> anyhow::Result<Outcome> {
    let loops = case.number("loops", 1_000_000)?;
    case.ends_by_itself()?;
    let [one, other] = pair()?;
    let bodies: Vec<Body> = vec![
        Box::new(move || (0..loops).try_fold(0, |n, _| one.begin().map(|_| n + 1))),
        Box::new(move || (0..loops).try_fold(0, |n, _| other.answer().map(|_| n))),
    ];
    team::run(Kind::Thread, bodies, || {})
}

/// Pairs that take turns: a message is an iteration, of which a round trip has two.
pub fn context_switch1(case: &mut Case) -> anyhow::Result<Outcome> {
    let instances = case.number("instances", 1)?;
    let window = case.window(100, 200)?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut bodies: Vec<Body> = Vec::new();
    for _ in 0..instances {
        let [one, other] = pair()?;
        let stop = stop.clone();
        bodies.push(Box::new(move || {
            let mut iterations = 0;
            while !stop.load(Ordering::Relaxed) && one.begin()? {
                iterations += 2;
            }
            Ok(iterations)
        }));
        bodies.push(Box::new(move || {
            while other.answer()? {}
            Ok(0)
        }));
    }
    team::run(Kind::Thread, bodies, || {
        thread::sleep(window.warmup + window.measured);
        stop.store(true, Ordering::Relaxed);
    })
}

/// One of two that pass a byte to and fro. It says `false` once the other has gone.
struct Partner {
    from: OwnedFd,
    to: OwnedFd,
}

fn pair() -> anyhow::Result<[Partner; 2]> {
    let ((here, there), (hence, thence)) = (pipe().context("pipe")?, pipe().context("pipe")?);
    Ok([Partner { from: here, to: thence }, Partner { from: hence, to: there }])
}

impl Partner {
    fn begin(&self) -> io::Result<bool> {
        Ok(put(&self.to)? && take(&self.from)?)
    }

    fn answer(&self) -> io::Result<bool> {
        Ok(take(&self.from)? && put(&self.to)?)
    }
}

fn take(from: &OwnedFd) -> io::Result<bool> {
    Ok(rustix::io::read(from, &mut [0; 1])? == 1)
}

fn put(to: &OwnedFd) -> io::Result<bool> {
    match rustix::io::write(to, &[0]) {
        Err(Errno::PIPE) => Ok(false),
        written => Ok(written? == 1),
    }
}

/// Tasks in a ring, round which tokens go through pipes.
pub fn ring(case: &mut Case) -> anyhow::Result<Outcome> {
    let tasks = case.number("tasks", 16)?;
    let tokens = case.number("tokens", 1)?;
    let loops = case.number("loops", 1000)?;
    case.ends_by_itself()?;
    let pipes = (0..tasks).map(|_| pipe().context("pipe")).collect::<anyhow::Result<Vec<_>>>()?;
    let (mut readers, writers): (Vec<OwnedFd>, Vec<OwnedFd>) = pipes.into_iter().unzip();
    readers.rotate_left(1 % tasks.max(1));
    let bodies = readers.into_iter().zip(writers).enumerate().map(|(task, (to_next, writer))| {
        // Task i writes to its own pipe, which the next one reads.
        let (from, to) = (to_next, writer);
        let first = usize::from(task < tokens);
        let body: Body = Box::new(move || {
            for _ in 0..first {
                put(&to)?;
            }
            for pass in 0..loops {
                take(&from)?;
                if pass + first < loops {
                    put(&to)?;
                }
            }
            Ok(loops as u64)
        });
        body
    });
    let bodies = bodies.collect();
    team::run(Kind::Thread, bodies, || {})
}
