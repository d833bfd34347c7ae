//! How long tasks waited while a CPU that they may use was idle.
//!
//! The integral over time of the number of tasks that wait behind another task
//! (queued, while another task runs on their CPU) and whose affinity holds an
//! idle CPU. Each such task counts in full, even if one idle CPU is all there is
//! for many of them, and at every moment for the place where its nearest idle CPU
//! is then. Placement, balancing and everything that keeps a run queue from being
//! work-conserving add to it.
//!
//! It is kept up to date rather than summed up: an `Audience` is the waiting
//! tasks of one affinity with their counts per LLC and node, so that a task that
//! begins or ends to wait and a CPU that becomes idle or busy change a few sums.
//! Nearly always there is one audience, that of tasks which may run anywhere.

use serde::Serialize;

use super::places::{ByNearest, Mask, Place, Places, contains, cpus_of};

/// Time that tasks spent waiting behind others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IdleBeside {
    /// Waiting behind another task, summed over all tasks, idle CPU or not.
    pub waited_ns: u64,
    /// The part of it in which an allowed CPU was idle, by the nearest one.
    pub beside_idle_ns: ByNearest<u64>,
    /// Time in which at least one task waited so, however many did.
    pub elapsed_ns: u64,
}

/// Clocks, for differences and sums of them; a sum may lack some to come, and be less than nothing.
#[derive(Clone, Copy, Default)]
pub struct Clocks {
    pub now: u64,
    /// That run while a CPU is idle which may be used, in the LLC, in the node, anywhere.
    pub llc: u64,
    pub node: u64,
    pub allowed: u64,
    /// While any CPU is.
    pub machine: u64,
}

impl Clocks {
    pub fn add(&mut self, times: u64, other: &Clocks) {
        self.now = self.now.wrapping_add(times.wrapping_mul(other.now));
        self.llc = self.llc.wrapping_add(times.wrapping_mul(other.llc));
        self.node = self.node.wrapping_add(times.wrapping_mul(other.node));
        self.allowed = self.allowed.wrapping_add(times.wrapping_mul(other.allowed));
        self.machine = self.machine.wrapping_add(times.wrapping_mul(other.machine));
    }

    pub fn subtract(&mut self, times: u64, other: &Clocks) {
        self.add(times.wrapping_neg(), other);
    }
}

/// How many CPUs are idle, and for how long any was.
#[derive(Clone, Default)]
struct Idle {
    count: u32,
    since: u64,
    total_ns: u64,
}

impl Idle {
    fn add(&mut self, now: u64) {
        if self.count == 0 {
            self.since = now;
        }
        self.count += 1;
    }

    fn remove(&mut self, now: u64) {
        self.count -= 1;
        if self.count == 0 {
            self.total_ns += now - self.since;
        }
    }

    fn until(&self, now: u64) -> u64 {
        self.total_ns + if self.count > 0 { now - self.since } else { 0 }
    }
}

/// The tasks that wait with one affinity, and the idle CPUs in it.
struct Audience {
    allowed: Mask,
    nr_waiting: u64,
    /// Idle CPUs, and waiting tasks, by LLC.
    idle_of_llc: Vec<Idle>,
    waiting_of_llc: Vec<u32>,
    idle_of_node: Vec<Idle>,
    idle: Idle,
    /// Tasks that wait on an LLC without an idle CPU, by node.
    no_idle_llc_of_node: Vec<u32>,
    /// The same of all nodes.
    no_idle_llc: u64,
    /// Tasks that wait on a node without an idle CPU.
    no_idle_node: u64,
}

impl Audience {
    /// With no idle CPU.
    fn new(places: &Places) -> Self {
        Audience {
            allowed: Mask::default(),
            nr_waiting: 0,
            idle_of_llc: vec![Idle::default(); places.nr_llcs()],
            waiting_of_llc: vec![0; places.nr_llcs()],
            idle_of_node: vec![Idle::default(); places.nr_nodes()],
            idle: Idle::default(),
            no_idle_llc_of_node: vec![0; places.nr_nodes()],
            no_idle_llc: 0,
            no_idle_node: 0,
        }
    }

    /// Gives it, in which nobody waits, this affinity, and the CPUs that are idle now.
    fn renew(&mut self, allowed: &Mask, places: &Places, idle: &Mask, now: u64) {
        self.allowed = *allowed;
        self.idle_of_llc.fill(Idle::default());
        self.idle_of_node.fill(Idle::default());
        self.idle = Idle::default();
        for word in 0..places.nr_words() {
            for cpu in cpus_of(word, idle[word] & places.online[word] & allowed[word]) {
                self.idle(cpu, places.of(cpu), now);
            }
        }
    }

    fn idle(&mut self, cpu: u32, place: Place, now: u64) {
        if !contains(&self.allowed, cpu) {
            return;
        }
        let (llc, node) = (usize::from(place.llc), usize::from(place.node));
        if self.idle_of_node[node].count == 0 {
            self.no_idle_node -= u64::from(self.no_idle_llc_of_node[node]);
        }
        if self.idle_of_llc[llc].count == 0 {
            self.no_idle_llc_of_node[node] -= self.waiting_of_llc[llc];
            self.no_idle_llc -= u64::from(self.waiting_of_llc[llc]);
        }
        self.idle_of_llc[llc].add(now);
        self.idle_of_node[node].add(now);
        self.idle.add(now);
    }

    fn busy(&mut self, cpu: u32, place: Place, now: u64) {
        if !contains(&self.allowed, cpu) {
            return;
        }
        let (llc, node) = (usize::from(place.llc), usize::from(place.node));
        self.idle_of_llc[llc].remove(now);
        self.idle_of_node[node].remove(now);
        self.idle.remove(now);
        if self.idle_of_llc[llc].count == 0 {
            self.no_idle_llc_of_node[node] += self.waiting_of_llc[llc];
            self.no_idle_llc += u64::from(self.waiting_of_llc[llc]);
        }
        if self.idle_of_node[node].count == 0 {
            self.no_idle_node += u64::from(self.no_idle_llc_of_node[node]);
        }
    }

    fn wait(&mut self, place: Place) {
        let (llc, node) = (usize::from(place.llc), usize::from(place.node));
        self.nr_waiting += 1;
        self.waiting_of_llc[llc] += 1;
        if self.idle_of_llc[llc].count == 0 {
            self.no_idle_llc_of_node[node] += 1;
            self.no_idle_llc += 1;
            self.no_idle_node += u64::from(self.idle_of_node[node].count == 0);
        }
    }

    fn end_wait(&mut self, place: Place) {
        let (llc, node) = (usize::from(place.llc), usize::from(place.node));
        self.nr_waiting -= 1;
        self.waiting_of_llc[llc] -= 1;
        if self.idle_of_llc[llc].count == 0 {
            self.no_idle_llc_of_node[node] -= 1;
            self.no_idle_llc -= 1;
            self.no_idle_node -= u64::from(self.idle_of_node[node].count == 0);
        }
    }

    /// Tasks that wait beside an idle CPU.
    fn beside_idle(&self) -> ByNearest<u64> {
        ByNearest {
            same_llc: self.nr_waiting - self.no_idle_llc,
            same_node: self.no_idle_llc - self.no_idle_node,
            other_node: if self.idle.count > 0 { self.no_idle_node } else { 0 },
        }
    }
}

/// Which `Audience` a waiting task is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudienceId(u32);

impl AudienceId {
    fn at(self) -> usize {
        self.0 as usize
    }
}

const EVERYWHERE: AudienceId = AudienceId(0);

/// Integrates [`IdleBeside`].
pub struct IdleBesideMeter {
    idle: Mask,
    /// The first may run everywhere. Others that nobody waits in are out of date.
    audiences: Vec<Audience>,
    nr_waiting: u64,
    /// Tasks that wait beside an idle CPU.
    beside_idle: ByNearest<u64>,
    /// `beside_idle` has to be summed up again.
    changed: bool,
    now: u64,
    sum: IdleBeside,
}

impl IdleBesideMeter {
    pub fn new(places: &Places, idle: &Mask) -> Self {
        let mut everywhere = Audience::new(places);
        everywhere.renew(&places.online, places, idle, 0);
        IdleBesideMeter {
            idle: *idle,
            audiences: vec![everywhere],
            nr_waiting: 0,
            beside_idle: ByNearest::default(),
            changed: false,
            now: 0,
            sum: IdleBeside::default(),
        }
    }

    /// The idle CPUs of the last step.
    pub fn idle(&self) -> &Mask {
        &self.idle
    }

    /// For an audience that somebody waits in, seen from `place`.
    #[inline]
    pub fn clocks(&self, id: AudienceId, place: Place) -> Clocks {
        let audience = &self.audiences[id.at()];
        Clocks {
            now: self.now,
            llc: audience.idle_of_llc[usize::from(place.llc)].until(self.now),
            node: audience.idle_of_node[usize::from(place.node)].until(self.now),
            allowed: audience.idle.until(self.now),
            machine: self.audiences[EVERYWHERE.at()].idle.until(self.now),
        }
    }

    /// Goes on to `now`, up to which nothing has changed.
    #[inline]
    pub fn advance(&mut self, now: u64) {
        let ns = now - self.now;
        self.now = now;
        if ns == 0 || self.nr_waiting == 0 {
            return;
        }
        if self.changed {
            self.beside_idle = self.beside_idle();
            self.changed = false;
        }
        self.sum.waited_ns += ns * self.nr_waiting;
        self.sum.beside_idle_ns.same_llc += ns * self.beside_idle.same_llc;
        self.sum.beside_idle_ns.same_node += ns * self.beside_idle.same_node;
        self.sum.beside_idle_ns.other_node += ns * self.beside_idle.other_node;
        self.sum.elapsed_ns += if self.beside_idle.total() > 0 { ns } else { 0 };
    }

    /// How many tasks wait beside an idle CPU that they may use, from now on.
    pub fn beside_idle(&self) -> ByNearest<u64> {
        if !self.changed {
            return self.beside_idle;
        }
        let mut sum = ByNearest::default();
        for audience in self.audiences.iter().filter(|audience| audience.nr_waiting > 0) {
            let beside_idle = audience.beside_idle();
            sum.same_llc += beside_idle.same_llc;
            sum.same_node += beside_idle.same_node;
            sum.other_node += beside_idle.other_node;
        }
        sum
    }

    /// These CPUs are idle now.
    #[inline]
    pub fn set_idle(&mut self, idle: &Mask, places: &Places) {
        for (word, &idle) in idle.iter().enumerate().take(places.nr_words()) {
            let changed = (self.idle[word] ^ idle) & places.online[word];
            self.idle[word] = idle;
            if changed != 0 {
                self.toggle_of_word(word, changed, places);
            }
        }
    }

    fn toggle_of_word(&mut self, word: usize, changed: u64, places: &Places) {
        for cpu in cpus_of(word, changed) {
            self.toggle(cpu, contains(&self.idle, cpu), places.of(cpu));
        }
    }

    fn toggle(&mut self, cpu: u32, idle: bool, place: Place) {
        self.changed = true;
        for (id, audience) in self.audiences.iter_mut().enumerate() {
            if id != EVERYWHERE.at() && audience.nr_waiting == 0 {
                continue;
            }
            match idle {
                true => audience.idle(cpu, place, self.now),
                false => audience.busy(cpu, place, self.now),
            }
        }
    }

    /// A task begins to wait behind another on a CPU at `place`.
    #[inline]
    pub fn wait(
        &mut self,
        place: Place,
        allowed: &Mask,
        nr_allowed: u16,
        places: &Places,
    ) -> AudienceId {
        let id = match nr_allowed >= places.nr_online {
            true => EVERYWHERE,
            false => self.audience_of(allowed, places),
        };
        self.audiences[id.at()].wait(place);
        self.nr_waiting += 1;
        self.changed = true;
        id
    }

    #[inline]
    pub fn end_wait(&mut self, id: AudienceId, place: Place) {
        self.audiences[id.at()].end_wait(place);
        self.nr_waiting -= 1;
        self.changed = true;
    }

    /// The audience with this affinity, or one that nobody waits in, given it.
    #[cold]
    fn audience_of(&mut self, allowed: &Mask, places: &Places) -> AudienceId {
        let others = || self.audiences.iter().enumerate().skip(1);
        let same = |a: &&Audience| a.nr_waiting > 0 && a.allowed == *allowed;
        if let Some((id, _)) = others().find(|(_, audience)| same(audience)) {
            return AudienceId(id as u32);
        }
        let free = others().find(|(_, audience)| audience.nr_waiting == 0).map(|(id, _)| id);
        let id = free.unwrap_or_else(|| {
            self.audiences.push(Audience::new(places));
            self.audiences.len() - 1
        });
        self.audiences[id].renew(allowed, places, &self.idle, self.now);
        AudienceId(id as u32)
    }

    pub fn report(&self) -> IdleBeside {
        self.sum
    }
}
