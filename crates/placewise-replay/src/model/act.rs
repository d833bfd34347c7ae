//! What a task of a model does.

use placewise_workload::program::Wake;

/// A class, as its place in the list of classes.
pub type ClassIndex = u32;

/// What a task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    Begin,
    /// Sleep until a task of that class posts.
    Await(ClassIndex),
    /// Sleep until another of its class hands on what it holds.
    Contend(Wake),
    /// Sleep as a task does as the trace ends: until anybody posts.
    Rest,
    /// What it computed when the trace ended.
    Compute,
    /// Post to the task of that class that has posted to this one.
    Answer(ClassIndex, Owed, Wake),
    /// Post to a task of that class that waits.
    Call(ClassIndex, Wake),
    /// Post to who forked it.
    TellParent(Wake),
    Sleep,
    /// Sleep until the next arrival.
    Arrival,
    Fork(ClassIndex),
    Exit,
}

/// Which of several that wait for an answer: who has posted last, or longest ago; or in a replay longest ago then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owed {
    Latest,
    Earliest,
    InTurn,
}
