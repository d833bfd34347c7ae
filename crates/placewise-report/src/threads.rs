//! Who ran: names, pids, processes, and for how long on which LLC; who moved from LLC to LLC.

use placewise_audit::{NameId, TaskNumber};
use serde::Serialize;

use crate::note::Who;
use crate::runs::What;

/// The index of all threads beyond those with an index of their own.
const OTHERS: u16 = 0;
/// Threads whose time by LLC the page shows.
const LISTED: usize = 64;

#[derive(Clone)]
struct Thread {
    pid: u32,
    tgid: Option<u32>,
    name: NameId,
    ns_by_llc: Vec<u64>,
}

/// The threads of a trace, and how they moved.
pub struct Threads {
    llcs: usize,
    threads: Vec<Thread>,
    /// The index of each task there is.
    index: Vec<Option<u16>>,
    /// By name, as they come up.
    names: Vec<Option<String>>,
    moves: Vec<u64>,
}

impl Threads {
    pub fn new(llcs: usize) -> Self {
        let others = Thread { pid: 0, tgid: None, name: 0, ns_by_llc: vec![0; llcs] };
        Threads {
            llcs,
            threads: vec![others],
            index: Vec::new(),
            names: vec![Some("(other threads)".to_owned())],
            moves: vec![0; llcs * llcs],
        }
    }

    /// The index of a task, which the trace may have given another name or a process since.
    pub fn index(&mut self, Who { task, pid, tgid, name }: Who) -> u16 {
        let known = self.index.get(task as usize).copied().flatten();
        let index = known.unwrap_or_else(|| self.admit(task));
        if index != OTHERS {
            let thread = &mut self.threads[usize::from(index)];
            (thread.pid, thread.tgid, thread.name) = (pid, tgid.or(thread.tgid), name);
        }
        index
    }

    fn admit(&mut self, task: TaskNumber) -> u16 {
        let index = u16::try_from(self.threads.len()).unwrap_or(OTHERS);
        if index != OTHERS {
            let ns_by_llc = vec![0; self.llcs];
            self.threads.push(Thread { pid: 0, tgid: None, name: 0, ns_by_llc });
        }
        if self.index.len() <= task as usize {
            self.index.resize(task as usize + 1, None);
        }
        self.index[task as usize] = Some(index);
        index
    }

    pub fn learn(&mut self, id: NameId, name: String) {
        if self.names.len() <= id as usize {
            self.names.resize(id as usize + 1, None);
        }
        self.names[id as usize] = Some(name);
    }

    pub fn name(&self, name: NameId) -> &str {
        self.names.get(name as usize).and_then(Option::as_deref).unwrap_or_default()
    }

    /// The task is gone: its number may become another's.
    pub fn forget(&mut self, task: TaskNumber) {
        if let Some(index) = self.index.get_mut(task as usize) {
            *index = None;
        }
    }

    pub fn ran(&mut self, what: What, llc: u16, ns: u64) {
        self.threads[usize::from(what.thread)].ns_by_llc[usize::from(llc)] += ns;
    }

    /// From one CPU to another, which may be of the same LLC.
    pub fn moved(&mut self, from_llc: u16, to_llc: u16) {
        self.moves[usize::from(from_llc) * self.llcs + usize::from(to_llc)] += 1;
    }

    pub fn list(&self) -> Vec<Listed> {
        let listed = |thread: &Thread| Listed {
            name: self.name(thread.name).to_owned(),
            pid: thread.pid,
            tgid: thread.tgid,
        };
        self.threads.iter().map(listed).collect()
    }

    /// Those that ran longest first.
    pub fn residency(&self) -> Vec<Residency> {
        let total = |thread: &Thread| thread.ns_by_llc.iter().sum::<u64>();
        let mut order: Vec<usize> = (0..self.threads.len()).collect();
        order.retain(|&at| total(&self.threads[at]) > 0);
        order.sort_by_key(|&at| (std::cmp::Reverse(total(&self.threads[at])), at));
        order.truncate(LISTED);
        let residency =
            |thread| Residency { thread, ns_by_llc: self.threads[thread].ns_by_llc.clone() };
        order.into_iter().map(residency).collect()
    }

    /// Moves from each LLC to each, row by row.
    pub fn moves(&self) -> Vec<&[u64]> {
        self.moves.chunks(self.llcs.max(1)).collect()
    }
}

#[derive(Serialize)]
pub struct Listed {
    pub(crate) name: String,
    pub(crate) pid: u32,
    tgid: Option<u32>,
}

/// Where a thread ran.
#[derive(Serialize)]
pub struct Residency {
    pub(crate) thread: usize,
    pub(crate) ns_by_llc: Vec<u64>,
}
