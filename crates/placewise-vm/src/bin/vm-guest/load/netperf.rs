//! netperf: pairs of processes that pass a byte to and fro over loopback. Each netperf connects to netserver, which
//! forks a server for it that speaks first, over TCP also under UDP_RR. Nobody waits for others: a pair goes on at
//! once, and the whole of it is counted.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context;
use rustix::net::{RecvFlags, SendFlags};

use super::case::Case;
use super::team::{self, Body, Outcome};

/// A message is a transaction.
pub fn run(case: &mut Case) -> anyhow::Result<Outcome> {
    let udp = case.is("proto", "TCP_RR", "UDP_RR")?;
    let threads = case.number("threads", 1)?;
    let window = case.window(300, 200)?;
    let stop = team::shared(AtomicBool::new(false))?;
    // Connections are queued before netserver runs.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("a server's socket")?;
    let address = listener.local_addr().context("a server's socket")?;
    let mut bodies: Vec<Body> = vec![Box::new(move || netserver(&listener, threads, udp))];
    for _ in 0..threads {
        bodies.push(Box::new(move || netperf(address, udp, stop)));
    }
    team::run_as_they_come(bodies, || {
        thread::sleep(window.warmup + window.measured);
        stop.store(true, Ordering::Relaxed);
    })
}

fn netserver(listener: &TcpListener, threads: usize, udp: bool) -> io::Result<u64> {
    let servers = (0..threads).map(|_| {
        let (connection, _) = listener.accept()?;
        team::fork(Box::new(move || serve(connection, udp)))
    });
    let servers = servers.collect::<io::Result<Vec<_>>>()?;
    servers.into_iter().try_for_each(team::Member::join)?;
    Ok(0)
}

fn serve(mut control: TcpStream, udp: bool) -> io::Result<u64> {
    let socket: OwnedFd = if udp {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        control.write_all(&socket.local_addr()?.port().to_be_bytes())?;
        let (_, netperf) = socket.peek_from(&mut [0])?;
        socket.connect(netperf)?;
        socket.into()
    } else {
        control.write_all(&[0])?;
        control.into()
    };
    while take(&socket)? {
        put(&socket)?;
    }
    Ok(0)
}

fn netperf(netserver: SocketAddr, udp: bool, stop: &AtomicBool) -> io::Result<u64> {
    let mut control = TcpStream::connect(netserver)?;
    let socket: OwnedFd = if udp {
        let mut port = [0; 2];
        control.read_exact(&mut port)?;
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect((Ipv4Addr::LOCALHOST, u16::from_be_bytes(port)))?;
        socket.into()
    } else {
        control.read_exact(&mut [0])?;
        control.into()
    };
    let mut transactions = 0;
    while !stop.load(Ordering::Relaxed) {
        put(&socket)?;
        take(&socket)?;
        transactions += 1;
    }
    // The end of a stream says it; of UDP a message without a byte does.
    rustix::net::send(&socket, &[], SendFlags::NOSIGNAL)?;
    Ok(transactions)
}

/// As netperf does: by send() and recv().
fn put(socket: &OwnedFd) -> io::Result<()> {
    rustix::net::send(socket, &[0], SendFlags::NOSIGNAL)?;
    Ok(())
}

/// False if the other one has ended.
fn take(socket: &OwnedFd) -> io::Result<bool> {
    let (bytes, _) = rustix::net::recv(socket, &mut [0], RecvFlags::empty())?;
    Ok(bytes == 1)
}
