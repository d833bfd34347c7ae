//! How much of the server a user may have: connections, and time of a CPU.
//!
//! Limits: users are told apart by uid, so who has many uids has many shares. Root has no limit of
//! time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

const CONNECTIONS_PER_USER: usize = 16;
/// Of all users but root. Each takes a thread and up to four descriptors.
const CONNECTIONS: usize = 192;
/// What a user's requests take is followed by so many times as long in which they wait: they get a
/// tenth of a CPU.
const REST: u32 = 9;

const ROOT: u32 = 0;

/// All users that have a connection, or whose rest is not over.
#[derive(Default)]
pub struct Users(Mutex<BTreeMap<u32, User>>);

#[derive(Default)]
struct User {
    connections: usize,
    turn: Arc<Turn>,
}

/// A user's requests are answered one after another: when the next may begin.
type Turn = Mutex<Option<Instant>>;

/// A connection's place, which it gives back when dropped.
pub struct Seat {
    users: Arc<Users>,
    uid: u32,
    turn: Arc<Turn>,
}

impl Users {
    /// None where the user, or all together, have as many connections as they may.
    pub fn admit(self: &Arc<Self>, uid: u32) -> Option<Seat> {
        let mut users = lock(&self.0);
        users.retain(|_, user| user.connections > 0 || rests(&user.turn));
        let of_others = users.iter().filter(|(uid, _)| **uid != ROOT);
        let all: usize = of_others.map(|(_, user)| user.connections).sum();
        let user = users.entry(uid).or_default();
        if user.connections == CONNECTIONS_PER_USER || (uid != ROOT && all == CONNECTIONS) {
            return None;
        }
        user.connections += 1;
        Some(Seat { users: Arc::clone(self), uid, turn: Arc::clone(&user.turn) })
    }
}

impl Seat {
    /// Does what a request asks for when it is the user's turn.
    pub fn serve<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.uid == ROOT {
            return work();
        }
        let mut next = lock(&self.turn);
        if let Some(next) = *next {
            sleep(next.saturating_duration_since(Instant::now()));
        }
        let before = own_cpu_time();
        let done = work();
        *next = Some(Instant::now() + (own_cpu_time() - before) * REST);
        done
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(user) = lock(&self.users.0).get_mut(&self.uid) {
            user.connections -= 1;
        }
    }
}

/// May its next request not begin yet?
fn rests(turn: &Turn) -> bool {
    lock(turn).is_some_and(|next| next > Instant::now())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of the calling thread.
fn own_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOMEBODY: u32 = 1000;

    #[test]
    fn seats_are_few_and_come_back() {
        let users = Arc::new(Users::default());
        let seats: Vec<Seat> =
            (0..CONNECTIONS_PER_USER).map(|_| users.admit(SOMEBODY).unwrap()).collect();
        assert!(users.admit(SOMEBODY).is_none());
        assert!(users.admit(SOMEBODY + 1).is_some());
        drop(seats);
        assert!(users.admit(SOMEBODY).is_some());
    }

    #[test]
    fn root_finds_a_seat_when_all_others_are_taken() {
        let users = Arc::new(Users::default());
        let mut seats = Vec::new();
        while let Some(seat) = users.admit(SOMEBODY + (seats.len() / CONNECTIONS_PER_USER) as u32) {
            seats.push(seat);
        }
        assert_eq!(seats.len(), CONNECTIONS);
        assert!(users.admit(ROOT).is_some());
    }

    #[test]
    fn who_asks_much_waits_whatever_the_connection() {
        let users = Arc::new(Users::default());
        let began = Instant::now();
        let seat = users.admit(SOMEBODY).unwrap();
        let worked = seat.serve(|| {
            let before = own_cpu_time();
            while own_cpu_time() - before < Duration::from_millis(5) {}
            own_cpu_time() - before
        });
        drop(seat);
        users.admit(SOMEBODY + 1).unwrap().serve(|| ());
        let again = users.admit(SOMEBODY).unwrap().serve(Instant::now);
        assert!(again - began >= worked * (1 + REST), "the next request had to wait for its turn");
    }

    #[test]
    fn root_waits_for_nobody() {
        let users = Arc::new(Users::default());
        let (one, another) = (users.admit(ROOT).unwrap(), users.admit(ROOT).unwrap());
        one.serve(|| another.serve(|| ()));
    }
}
