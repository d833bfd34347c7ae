//! System calls of one task that wake nobody.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicU32;

use rustix::thread::futex;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::clock::time_each;
use crate::batches::Load;
use crate::quantity::Quantity;

const ROUNDS: u32 = 200;
/// Of a message, as hackbench sends.
pub const SHORT: usize = 100;
const LONG: usize = 4096;

pub fn loads() -> io::Result<Vec<Load>> {
    let syscall = || {
        time_each(ClockId::ThreadCPUTime, 10 * ROUNDS, || {
            black_box(rustix::process::getppid());
            Ok(())
        })
    };
    let word = AtomicU32::new(0);
    let futex_wake = move || {
        time_each(ClockId::ThreadCPUTime, 10 * ROUNDS, || {
            futex::wake(&word, futex::Flags::PRIVATE, 1)?;
            Ok(())
        })
    };
    let (pipe_out, pipe_in) = rustix::pipe::pipe()?;
    let pipe = move || {
        time_each(ClockId::ThreadCPUTime, ROUNDS, || {
            rustix::io::write(&pipe_in, &[0; SHORT])?;
            rustix::io::read(&pipe_out, &mut [0; SHORT])?;
            Ok(())
        })
    };
    let mut loads = vec![
        Load::new(Quantity::Syscall, syscall),
        Load::new(Quantity::FutexWake, futex_wake),
        Load::new(Quantity::PipePair, pipe),
        Load::new(Quantity::SocketPair, stream::<SHORT, _>(UnixStream::pair()?)),
        Load::new(Quantity::LongSocketPair, stream::<LONG, _>(UnixStream::pair()?)),
        Load::new(Quantity::TimerPair, timer()?),
    ];
    // A network namespace may have no loopback that is up.
    loads.extend(tcp_pair().map(|pair| Load::new(Quantity::TcpPair, stream::<SHORT, _>(pair))));
    loads.extend(udp().map(|batch| Load::new(Quantity::UdpPair, batch)));
    Ok(loads)
}

fn stream<const BYTES: usize, S: Read + Write>(
    (mut one, mut other): (S, S),
) -> impl FnMut() -> io::Result<f64> {
    move || {
        time_each(ClockId::ThreadCPUTime, ROUNDS, || {
            one.write_all(&[0; BYTES])?;
            other.read_exact(&mut [0; BYTES])
        })
    }
}

fn tcp_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    let (other, _) = listener.accept()?;
    one.set_nodelay(true)?;
    Ok((one, other))
}

fn udp() -> io::Result<impl FnMut() -> io::Result<f64>> {
    let (one, other) =
        (UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
    one.connect(other.local_addr()?)?;
    Ok(move || {
        time_each(ClockId::ThreadCPUTime, ROUNDS, || {
            one.send(&[0; SHORT])?;
            other.recv(&mut [0; SHORT])?;
            Ok(())
        })
    })
}

fn timer() -> io::Result<impl FnMut() -> io::Result<f64>> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::empty())?;
    let set = move |seconds| {
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec { tv_sec: seconds, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: never, it_value: value };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &setting).map(drop)
    };
    Ok(move || {
        time_each(ClockId::ThreadCPUTime, ROUNDS, || {
            set(1000)?;
            Ok(set(0)?)
        })
    })
}
