//! What tasks of one process wait on: mutexes, conditions, lists, barriers, gates, semaphores, flags,
//! locks of CPUs.

use std::collections::VecDeque;

use placewise_policy::{CpuId, TaskId};

use crate::state::effect::{Effect, Then};
use crate::state::event_queue::Time;
use crate::state::lock::FifoLock;
use crate::state::task::Resume;

/// A pthread mutex: whoever finds it free takes it; a waiter that is woken tries again.
#[derive(Default)]
pub struct Mutex {
    owner: Option<TaskId>,
    pub waiters: VecDeque<TaskId>,
}

impl Mutex {
    pub fn lock(&mut self, task: TaskId) -> Then {
        if self.owner.is_some() {
            self.waiters.push_back(task);
            return Then::Block(Resume::Retry);
        }
        self.owner = Some(task);
        Then::Next
    }

    pub fn unlock(&mut self, effect: &mut Effect) -> Then {
        self.owner = None;
        effect.wake_first(&mut self.waiters);
        Then::Next
    }
}

#[derive(Default)]
pub struct Condition {
    pub waiters: VecDeque<TaskId>,
}

impl Condition {
    pub fn signal(&mut self, effect: &mut Effect) -> Then {
        effect.wake_first(&mut self.waiters);
        Then::Next
    }

    pub fn broadcast(&mut self, effect: &mut Effect) -> Then {
        effect.wake_all(&mut self.waiters);
        Then::Next
    }
}

/// Tasks that want to be woken, by one that walks over them.
#[derive(Default)]
pub struct List {
    waiting: Vec<TaskId>,
    /// Those that a walk has taken off and not woken yet.
    taken: Vec<TaskId>,
    pub walk_began: Time,
}

impl List {
    pub fn put(&mut self, task: TaskId) {
        self.waiting.push(task);
    }

    pub fn is_walked(&self) -> bool {
        !self.taken.is_empty()
    }

    pub fn begin_walk(&mut self, now: Time) {
        std::mem::swap(&mut self.taken, &mut self.waiting);
        self.walk_began = now;
    }

    /// Last come, first woken.
    pub fn next_of_walk(&mut self) -> Option<TaskId> {
        self.taken.pop()
    }
}

pub struct Barrier {
    pub parties: u32,
    /// Those who sleep and those who spin.
    pub waiters: Vec<TaskId>,
    /// How many have been here and gone on.
    pub gone_on: u32,
    /// Where the count was written last.
    pub last_cpu: CpuId,
}

impl Barrier {
    pub fn new(parties: u32) -> Self {
        Barrier { parties, waiters: Vec::new(), gone_on: 0, last_cpu: CpuId::default() }
    }

    /// Are all others here?
    pub fn lacks_one(&self) -> bool {
        self.gone_on + self.waiters.len() as u32 + 1 >= self.parties
    }
}

/// Closed until somebody opens it, for good: a pipe that all poll. Who came last is woken first, as of all who share a
/// wait queue. Who is woken leaves that queue, and so needs its lock, which the opener has while it wakes the others.
#[derive(Default)]
pub struct Gate {
    open: bool,
    /// Its opener wakes those who wait.
    pub opening: bool,
    pub lock: FifoLock,
    pub waiters: VecDeque<TaskId>,
    /// Where tasks want the lock meanwhile, the first before the others.
    pub spinners: Vec<CpuId>,
}

impl Gate {
    /// Before it sleeps, and once it is woken.
    pub fn wait(&mut self, cpu: CpuId, task: TaskId) -> Then {
        if self.opening {
            self.spinners.push(cpu);
            return Then::Spin;
        }
        if self.open {
            return Then::Next;
        }
        self.waiters.push_front(task);
        Then::Block(Resume::Retry)
    }

    pub fn open(&mut self, effect: &mut Effect) {
        self.open = true;
        self.opening = !self.waiters.is_empty();
        effect.sync = true;
        effect.wake_all(&mut self.waiters);
    }
}

/// Posts that nobody has taken yet, the first before the others, and those that were taken and not answered.
#[derive(Default)]
pub struct Semaphore {
    posts: VecDeque<Post>,
    /// Where the answers to these are awaited, the longest first.
    unanswered: VecDeque<usize>,
    pub waiters: VecDeque<TaskId>,
    /// Who post and have not closed it; 0 of one that nobody closes, too.
    posters: u32,
    is_closed: bool,
}

#[derive(Clone, Copy)]
pub struct Post {
    pub cpu: CpuId,
    /// The semaphore where its answer is awaited.
    pub answered_at: Option<usize>,
}

impl Semaphore {
    pub fn of(posters: u32) -> Self {
        Semaphore { posters, ..Semaphore::default() }
    }

    /// Where the next post was made, if there is one to take.
    pub fn posted_on(&self) -> Option<CpuId> {
        self.posts.front().map(|post| post.cpu)
    }

    pub fn post(&mut self, post: Post, effect: &mut Effect) -> Then {
        self.posts.push_back(post);
        effect.wake_first(&mut self.waiters);
        Then::Next
    }

    /// Whoever is woken tries again.
    pub fn take(&mut self, task: TaskId) -> Then {
        match self.posts.pop_front() {
            Some(Post { answered_at, .. }) => {
                self.unanswered.extend(answered_at);
                Then::Next
            }
            None if self.is_closed => Then::Next,
            None => {
                self.waiters.push_back(task);
                Then::Block(Resume::Retry)
            }
        }
    }

    /// By one who posts there no more.
    pub fn close(&mut self, effect: &mut Effect) -> Then {
        self.posters -= 1;
        self.is_closed = self.posters == 0;
        if self.is_closed {
            effect.wake_all(&mut self.waiters);
        }
        Then::Next
    }

    /// Whom to answer next.
    pub fn next_unanswered(&mut self) -> Option<usize> {
        self.unanswered.pop_front()
    }
}

/// A word in memory, which one task raises and another lowers.
#[derive(Default)]
pub struct Flag {
    pub raised: bool,
    /// Waits busily until the flag is turned.
    pub waiter: Option<TaskId>,
    pub last_cpu: CpuId,
}

/// The lock of a CPU, for whoever runs there.
#[derive(Default)]
pub struct CpuLock {
    pub is_held: bool,
    /// Who waits busily for it, or would if it ran.
    pub waiters: Vec<TaskId>,
}
