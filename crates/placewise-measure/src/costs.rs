//! From measurements to the cost figures of a machine file.
//!
//! Each is what is left of a measured time once all else is taken off that the simulator charges on the
//! same path:
//!
//! ```text
//! half of a byte to and fro through two pipes, between two CPUs that are idle but for it
//!               syscall + 2 pipe_message + wakeup + 2 rq_lock_hold + idle_switch + 1/2 sleep
//!               + (2 channel + 2 page + 1/3 + wakeup_lines) cache_line + ipi_delivery + exit
//! the waker's call
//!   to its own CPU
//!               syscall + pipe_message + wakeup + rq_lock_hold
//!   to an idle CPU
//!               syscall + pipe_message + wakeup
//!               + (channel + page + wakeup_lines) cache_line + ipi_send
//!   to a busy one, which it does not interrupt
//!               syscall + pipe_message + wakeup + rq_lock_hold
//!               + (channel + page + wakeup_lines + rq_lock_lines) cache_line
//! a yield       syscall + rq_lock_hold + context_switch
//! a wakee, from another one until it sleeps again
//!               syscall + pipe_message + rq_lock_hold + context_switch + sleep
//! an interrupt and its acknowledgement
//!               syscall + ipi_delivery + 2 cache_line
//! ```
//!
//! Lines of a channel and of a page are those of `pipe_lines`: a byte fills a pipe that is empty, and reading it
//! drains it.
//!
//! The lock's hold and the switches to idle and from it cannot be told from the switch: they have the share of it that
//! they have in the borrowed figures.

use std::collections::BTreeMap;

use placewise_machine::{
    BandwidthCurve, ByDistance, Costs, IdleState, Machine, SHORT_COPY_OVERLAP, within_bounds,
};

use crate::quantity::{Access, Distance, Measurements, Quantity, Sample};

/// KiB by which the messages of the two socket loads differ, and of the short one.
const LONGER_KIB: f64 = (4096.0 - 100.0) / 1024.0;
const SHORT_KIB: f64 = 100.0 / 1024.0;
/// A bandwidth that no machine has.
const ENDLESS: f64 = 1e9;

/// `host` with the figures that follow from measurements; the others are marked as borrowed.
pub fn with_measured_costs(host: Machine, measurements: &Measurements, hz: u32) -> Machine {
    let mut figures = Figures {
        measured: measurements,
        borrowed: host.costs.clone(),
        costs: host.costs.clone(),
        sources: BTreeMap::new(),
        of: host.costs_of.clone(),
    };
    figures.costs.hz = hz;
    figures.say("hz", "measured: resolution of the coarse clock".to_owned());
    for follow in [
        Figures::calls,
        Figures::switches,
        Figures::tasks,
        Figures::distances,
        Figures::wakeup_lines,
        Figures::interrupts,
        Figures::idle_states,
        Figures::newidle_outlier,
        Figures::smt,
        Figures::bandwidth,
    ] {
        follow(&mut figures);
        figures.drop_impossible();
    }
    let borrowed = |source: &String| format!("assumed: not measured; {}: {source}", host.costs_of);
    let mut cost_sources: BTreeMap<String, String> =
        host.cost_sources.iter().map(|(name, source)| (name.clone(), borrowed(source))).collect();
    cost_sources.extend(figures.sources);
    let description = host.description.split("; costs of").next().unwrap_or_default();
    Machine {
        description: format!("{description}; costs measured on it"),
        costs: figures.costs,
        cost_sources,
        costs_of: "its own".to_owned(),
        ..host
    }
}

struct Figures<'a> {
    measured: &'a Measurements,
    borrowed: Costs,
    costs: Costs,
    sources: BTreeMap<String, String>,
    /// Whose the borrowed ones are.
    of: String,
}

/// At least 0: noise can make more of a part than of the whole.
fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

impl Figures<'_> {
    fn sample(&self, quantity: Quantity) -> Option<&Sample> {
        self.measured.get(&quantity).filter(|sample| sample.median.is_finite())
    }

    fn get(&self, quantity: Quantity) -> Option<f64> {
        self.sample(quantity).map(|sample| sample.median)
    }

    fn say(&mut self, figure: &str, source: String) {
        self.sources.insert(figure.to_owned(), source);
    }

    /// Measured by `quantity`, and `how`.
    fn measured(&mut self, figure: &str, quantity: Quantity, how: &str) {
        let source = format!("measured: {quantity}{how}; {}", self.told(quantity));
        self.say(figure, source);
    }

    fn told(&self, quantity: Quantity) -> String {
        let Some(sample) = self.sample(quantity) else { return "no sample".to_owned() };
        let Sample { median, lower, upper, counted, batches, disturbed } = sample;
        let unit = quantity.unit();
        let busy = if *disturbed { ", others ran beside them" } else { "" };
        format!(
            "median {median:.0} {unit}, quartiles {lower:.0} and {upper:.0}, \
             {counted} of {batches} batches{busy}"
        )
    }

    fn calls(&mut self) {
        let Some(syscall) = self.get(Quantity::Syscall) else { return };
        self.costs.syscall_ns = whole(syscall);
        self.measured("syscall_ns", Quantity::Syscall, "");
        if let Some(pair) = self.get(Quantity::PipePair) {
            self.costs.pipe_message_ns = whole(pair / 2.0 - syscall);
            let how = ", half of it, less a system call";
            self.measured("pipe_message_ns", Quantity::PipePair, how);
        }
        if let Some(wake) = self.get(Quantity::FutexWake) {
            self.costs.futex_ns = whole(wake - syscall);
            self.measured("futex_ns", Quantity::FutexWake, ", less a system call");
        }
        if let Some(pair) = self.get(Quantity::TimerPair) {
            self.costs.timer_ns = whole(pair / 2.0 - syscall);
            let how = ", half of it, less a system call";
            self.measured("timer_ns", Quantity::TimerPair, how);
        }
        self.sockets(syscall);
    }

    fn sockets(&mut self, syscall: f64) {
        let how = ", half of it, less a system call and the copying";
        if let Some(pair) = self.get(Quantity::SocketPair) {
            self.costs.socket_message_ns = whole(pair / 2.0 - syscall);
            let how = ", half of it, less a system call";
            self.measured("socket_message_ns", Quantity::SocketPair, how);
            if let Some(long) = self.get(Quantity::LongSocketPair) {
                self.costs.copy_ns_per_kib = whole((long - pair) / 2.0 / LONGER_KIB);
                let how = ", half of it, less that of 100 bytes, by the KiB";
                self.measured("copy_ns_per_kib", Quantity::LongSocketPair, how);
            }
        }
        let copy = self.costs.copy_ns_per_kib as f64 * SHORT_KIB;
        if let Some(pair) = self.get(Quantity::TcpPair) {
            self.costs.tcp_message_ns = whole(pair / 2.0 - syscall - copy);
            self.measured("tcp_message_ns", Quantity::TcpPair, how);
        }
        if let Some(pair) = self.get(Quantity::UdpPair) {
            self.costs.udp_message_ns = whole(pair / 2.0 - syscall - copy);
            self.measured("udp_message_ns", Quantity::UdpPair, how);
        }
    }

    fn switches(&mut self) {
        let Some(a_yield) = self.get(Quantity::Yield) else { return };
        let all = (a_yield - self.costs.syscall_ns as f64).max(0.0);
        let (hold, switch) = (self.borrowed.rq_lock_hold_ns, self.borrowed.context_switch_ns);
        let hold_share = hold as f64 / (hold + switch).max(1) as f64;
        self.costs.rq_lock_hold_ns = whole(all * hold_share);
        let rest = all * (1.0 - hold_share);
        let as_borrowed = |figure: u64| whole(rest * figure as f64 / switch.max(1) as f64);
        self.costs.context_switch_ns = whole(rest);
        self.costs.switch_to_idle_ns = as_borrowed(self.borrowed.switch_to_idle_ns);
        self.costs.idle_switch_ns = as_borrowed(self.borrowed.idle_switch_ns);
        let how = ", less a system call and rq_lock_hold_ns";
        self.measured("context_switch_ns", Quantity::Yield, how);
        for figure in ["rq_lock_hold_ns", "switch_to_idle_ns", "idle_switch_ns"] {
            let of = &self.of;
            let source = format!("assumed: the share of the measured switch that is {of}");
            self.say(figure, source);
        }
        self.wakeup();
    }

    /// A wakee's first read ends with the call that has slept: one call for each message.
    fn wakeup(&mut self) {
        let Costs { syscall_ns, pipe_message_ns, rq_lock_hold_ns, context_switch_ns, .. } =
            self.costs;
        let message = syscall_ns + pipe_message_ns + rq_lock_hold_ns;
        if let Some(call) = self.get(Quantity::WakeCallHere) {
            self.costs.wakeup_ns = whole(call - message as f64);
            let how = ", less call, message and the lock";
            self.measured("wakeup_ns", Quantity::WakeCallHere, how);
        }
        if let Some(sleeper) = self.get(Quantity::Sleeper) {
            self.costs.sleep_ns = whole(sleeper - (message + context_switch_ns) as f64);
            let how = ", less call, message, the lock and context_switch_ns";
            self.measured("sleep_ns", Quantity::Sleeper, how);
        }
    }

    fn tasks(&mut self) {
        let Costs { rq_lock_hold_ns: hold, context_switch_ns, syscall_ns, .. } = self.costs;
        let how = ", until the creator goes on, less the lock";
        if let Some(fork) = self.get(Quantity::Fork) {
            self.costs.fork_ns = whole(fork - hold as f64);
            self.measured("fork_ns", Quantity::Fork, how);
        }
        let Some(create) = self.get(Quantity::ThreadCreate) else { return };
        self.costs.thread_create_ns = whole(create - hold as f64);
        self.measured("thread_create_ns", Quantity::ThreadCreate, how);
        if let Some(life) = self.get(Quantity::ThreadLife) {
            let others = syscall_ns
                + self.costs.futex_ns
                + self.costs.wakeup_ns
                + 2 * context_switch_ns
                + 3 * hold;
            self.costs.exit_ns = whole(life - create - others as f64);
            let how = ", less its creation, the wait, two switches and a wakeup";
            self.measured("exit_ns", Quantity::ThreadLife, how);
        }
    }

    fn distances(&mut self) {
        let mut lines = self.costs.cache_line_ns;
        if self.by_distance("cache_line_ns", &mut lines, Quantity::CacheLine, Self::get) {
            self.costs.cache_line_ns = lines;
        }
        let mut refill = self.costs.refill_ns_per_kib;
        if self.by_distance("refill_ns_per_kib", &mut refill, Quantity::Refill, Self::get) {
            self.costs.refill_ns_per_kib = refill;
        }
    }

    /// Fills in what is measured of a figure by distance; false if that is nothing.
    fn by_distance(
        &mut self,
        figure: &str,
        values: &mut ByDistance,
        quantity: fn(Distance) -> Quantity,
        value: impl Fn(&Self, Quantity) -> Option<f64>,
    ) -> bool {
        let (mut told, mut others) = (Vec::new(), Vec::new());
        for distance in Distance::ALL {
            let quantity = quantity(distance);
            match value(self, quantity) {
                Some(ns) => {
                    *part(values, distance) = whole(ns);
                    told.push(format!("{quantity}, {}", self.told(quantity)));
                }
                // What is no nearer than its LLC has no figure.
                None if distance == Distance::Cluster => values.cluster = None,
                None => others.push(distance.name()),
            }
        }
        let borrowed = match others.is_empty() {
            true => String::new(),
            false => format!("; not measured, {}: {}", self.of, others.join(", ")),
        };
        if !told.is_empty() {
            self.say(figure, format!("measured: {}{borrowed}", told.join("; ")));
        }
        !told.is_empty()
    }

    /// What waking a partner so far away takes the waker, but for the interrupt.
    fn waking_call(&self, distance: Distance) -> u64 {
        let costs = &self.costs;
        let lines = u64::from(message_lines(costs) + costs.wakeup_lines);
        costs.syscall_ns
            + costs.pipe_message_ns
            + costs.wakeup_ns
            + lines * costs.cache_line_ns.at(distance)
    }

    /// Of half a round trip to an idle CPU, delivery and the exit of the idle state. The end of the waker's call goes on
    /// beside them; in place of its way out of the kernel comes that of the reader, which has slept in there, at the end
    /// of its way to the pipe.
    fn delivery_and_exit(&self, distance: Distance) -> Option<f64> {
        let costs = &self.costs;
        let line = costs.cache_line_ns.at(distance);
        let others = self.waking_call(distance)
            + u64::from(message_lines(costs)) * line
            + line / u64::from(SHORT_COPY_OVERLAP)
            + costs.pipe_message_ns
            + 2 * costs.rq_lock_hold_ns
            + costs.idle_switch_ns
            + costs.sleep_ns / 2
            - after_wakeup(costs)
            - reader_way(costs);
        let half = self.get(Quantity::RoundTrip(distance))? / 2.0;
        Some((half - others as f64).max(0.0))
    }

    fn nearest(&self) -> Option<Distance> {
        let nearness = [Distance::Llc, Distance::Package, Distance::Remote, Distance::Smt];
        nearness.into_iter().find(|it| self.get(Quantity::WakeCall(*it)).is_some())
    }

    /// Lines are counted in those of [`Quantity::CacheLine`]: a wakeup may wait for several at once.
    fn wakeup_lines(&mut self) {
        let Some(near) = self.nearest() else { return };
        let quantity = Quantity::BusyWakeCall(near);
        let line = self.costs.cache_line_ns.at(near);
        let Some(call) = self.get(quantity).filter(|_| line > 0) else { return };
        self.costs.wakeup_lines = 0;
        let lock = self.costs.rq_lock_hold_ns + u64::from(self.costs.rq_lock_lines) * line;
        let lines = (call - (self.waking_call(near) + lock) as f64) / line as f64;
        self.costs.wakeup_lines = whole(lines) as u32;
        let how = ", less call, messages, wakeup_ns, the lock and their cache lines, by the line";
        self.measured("wakeup_lines", quantity, how);
    }

    fn interrupts(&mut self) {
        let Some(near) = self.nearest() else { return };
        let call = self.get(Quantity::WakeCall(near)).unwrap_or(0.0);
        self.costs.ipi_send_ns = whole(call - self.waking_call(near) as f64);
        let how = ", less call, message, wakeup_ns and cache lines";
        self.measured("ipi_send_ns", Quantity::WakeCall(near), how);
        let mut delivery = self.costs.ipi_delivery_ns;
        // An idle CPU that polls needs no interrupt, and is there sooner.
        let of = |this: &Self, quantity: Quantity| {
            let Quantity::Interrupt(distance) = quantity else { return None };
            let line = this.costs.cache_line_ns.at(distance);
            // Its delivery begins as its sending does.
            let others = this.costs.syscall_ns + 2 * line;
            let interrupt = this.get(quantity)? - others as f64;
            Some(interrupt.min(this.delivery_and_exit(distance)?))
        };
        if self.by_distance("ipi_delivery_ns", &mut delivery, Quantity::Interrupt, of) {
            self.costs.ipi_delivery_ns = delivery;
        }
    }

    /// A state for every rest after which the wakeup takes longer than after the shorter ones.
    fn idle_states(&mut self) {
        let Some((near, all)) =
            self.nearest().and_then(|it| Some((it, self.delivery_and_exit(it)?)))
        else {
            return;
        };
        let least = (all - self.costs.ipi_delivery_ns.at(near) as f64).max(0.0);
        let rests = self.measured.iter().filter_map(|(quantity, sample)| match quantity {
            Quantity::WakeAfter(us) if sample.median.is_finite() => Some((*us, *sample)),
            _ => None,
        });
        let rests: Vec<(u32, Sample)> = rests.collect();
        let state = |name, exit, us: u32| IdleState {
            name,
            exit_ns: whole(exit),
            residency_ns: u64::from(us) * 1_000,
            polling: false,
        };
        let mut states = vec![state("at once".to_owned(), least, 0)];
        let Some((_, shortest)) = rests.first() else { return };
        let mut before = *shortest;
        for (us, rest) in &rests[1..] {
            if rest.lower > before.upper {
                let exit = least + rest.median - shortest.median;
                states.push(state(format!("after {us} us"), exit, *us));
                before = *rest;
            }
        }
        self.costs.idle_states = states;
        let round_trip = Quantity::RoundTrip(near);
        let deeper: Vec<String> =
            rests.iter().map(|(us, it)| format!("{us} us {:.0} ns", it.median)).collect();
        let source = format!(
            "measured: {round_trip}, half of it, less all else, {}; the others by what wakeups take \
             after idling for {}",
            self.told(round_trip),
            deeper.join(", ")
        );
        self.say("idle_states", source);
    }

    /// Where a partner waited for its CPU nearly always, more was measured than any machine takes.
    fn drop_impossible(&mut self) {
        let (costs, impossible) = within_bounds(&self.costs, &self.borrowed);
        self.costs = costs;
        for figure in impossible {
            let of = &self.of;
            let source =
                format!("assumed: the host was too busy, no machine is as was measured; {of}");
            self.say(&figure, source);
        }
    }

    fn smt(&mut self) {
        if let Some(share) = self.get(Quantity::SmtShare) {
            self.costs.smt_throughput_pct = whole(share.clamp(1.0, 100.0)) as u32;
            self.measured("smt_throughput_pct", Quantity::SmtShare, "");
        }
    }

    /// What a CPU is away for in the midst of a pass makes that dear; what else may is not measured, and borrowed.
    fn newidle_outlier(&mut self) {
        let Some(away) = self.get(Quantity::Absence).map(whole) else { return };
        if away > self.costs.newidle_outlier_ns {
            self.costs.newidle_outlier_ns = away;
            self.measured("newidle_outlier_ns", Quantity::Absence, "");
        }
    }

    fn bandwidth(&mut self) {
        let mut told = Vec::new();
        for access in Access::ALL {
            let Some((curve, streams)) = self.curve(access) else { return };
            let curves = &mut self.costs.node_bandwidth_mbps;
            match access {
                Access::Copy => curves.copy = curve,
                Access::Scale => curves.scale = curve,
                Access::Add => curves.add = curve,
                Access::Triad => curves.triad = curve,
            }
            for streams in [1, streams] {
                let quantity = Quantity::Bandwidth(access, streams);
                told.push(format!("{quantity}, {}", self.told(quantity)));
            }
        }
        told.dedup();
        self.say("node_bandwidth_mbps", format!("measured: {}", told.join("; ")));
        self.llc_bandwidth();
        let mut remote = self.costs.remote_bandwidth_pct;
        let mut told = Vec::new();
        for (distance, part) in
            [(Distance::Package, &mut remote.package), (Distance::Remote, &mut remote.remote)]
        {
            let quantity = Quantity::RemoteBandwidth(distance);
            if let Some(share) = self.get(quantity) {
                *part = whole(share.clamp(1.0, 100.0)) as u32;
                told.push(format!("{quantity}, {}", self.told(quantity)));
            }
        }
        if !told.is_empty() {
            self.costs.remote_bandwidth_pct = remote;
            self.say("remote_bandwidth_pct", format!("measured: {}", told.join("; ")));
        }
    }

    /// The curve through what one stream gets and what the most get, and how many those are.
    fn curve(&self, access: Access) -> Option<(BandwidthCurve, u32)> {
        let one = self.get(Quantity::Bandwidth(access, 1))?;
        let streams = self.measured.keys().filter_map(|quantity| match quantity {
            Quantity::Bandwidth(of, streams) if *of == access => Some(*streams),
            _ => None,
        });
        let most = streams.max()?;
        let together = self.get(Quantity::Bandwidth(access, most))?;
        let peak = peak(one, together, most);
        Some((BandwidthCurve { one: whole(one), peak: whole(peak.max(one)) }, most))
    }

    /// Where an LLC is the whole node no other figure binds its streams.
    fn llc_bandwidth(&mut self) {
        if let Some(together) = self.get(Quantity::LlcBandwidth) {
            self.costs.llc_bandwidth_mbps = whole(together);
            self.measured("llc_bandwidth_mbps", Quantity::LlcBandwidth, "");
            return;
        }
        let bandwidths =
            self.measured.iter().filter(|(it, _)| matches!(it, Quantity::Bandwidth(..)));
        let most = bandwidths.max_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
        if let Some((&quantity, sample)) = most {
            self.costs.llc_bandwidth_mbps = whole(sample.median);
            self.measured("llc_bandwidth_mbps", quantity, ", the most that any streams got");
        }
    }
}

/// A figure by distance, at one.
trait At {
    fn at(&self, distance: Distance) -> u64;
}

impl At for ByDistance {
    fn at(&self, distance: Distance) -> u64 {
        let mut values = *self;
        *part(&mut values, distance)
    }
}

fn part(values: &mut ByDistance, distance: Distance) -> &mut u64 {
    match distance {
        Distance::Smt => &mut values.smt,
        Distance::Cluster => values.cluster.get_or_insert(values.llc),
        Distance::Llc => &mut values.llc,
        Distance::Package => &mut values.package,
        Distance::Remote => &mut values.remote,
    }
}

/// Those that come along with a byte in a pipe, for who writes it and for who reads it.
fn message_lines(costs: &Costs) -> u32 {
    costs.pipe_lines.channel + costs.pipe_lines.page
}

/// What a write does after its wakeup.
fn after_wakeup(costs: &Costs) -> u64 {
    costs.pipe_message_ns * u64::from(costs.after_wakeup_pct.pipe.write) / 100
}

/// What a read does before it sees whether the pipe has anything for it.
fn reader_way(costs: &Costs) -> u64 {
    let read = 2 * costs.pipe_message_ns * u64::from(100 - costs.pipe_writer_pct) / 100;
    let others = costs.pipe_locked_pct + costs.after_wakeup_pct.pipe.read;
    read * u64::from(100u32.saturating_sub(others)) / 100
}

/// Of a [`BandwidthCurve`] that goes through `one` and through `together` at so many streams.
fn peak(one: f64, together: f64, streams: u32) -> f64 {
    let at = |peak: f64| peak * (1.0 - (1.0 - one / peak).powi(streams as i32));
    let (mut low, mut high) = (one, ENDLESS);
    for _ in 0..100 {
        let middle = (low * high).sqrt();
        if at(middle) < together { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a machine of these costs would measure, by the sums that the simulator charges.
    fn measurements_of(costs: &Costs) -> Measurements {
        let Costs { syscall_ns, pipe_message_ns: pipe, wakeup_ns, rq_lock_hold_ns: hold, .. } =
            *costs;
        let line = costs.cache_line_ns.llc;
        let calls = syscall_ns + pipe + wakeup_ns;
        let sleeper = syscall_ns + pipe + hold + costs.context_switch_ns + costs.sleep_ns;
        let call_lines = u64::from(message_lines(costs) + costs.wakeup_lines);
        let call = calls + call_lines * line;
        let idle = call
            + u64::from(message_lines(costs)) * line
            + line / u64::from(SHORT_COPY_OVERLAP)
            + pipe
            + 2 * hold
            + costs.idle_switch_ns
            + costs.sleep_ns / 2
            - after_wakeup(costs)
            - reader_way(costs);
        let there = idle + costs.ipi_delivery_ns.llc + costs.idle_states[0].exit_ns;
        let deeper = there + costs.idle_states[1].exit_ns - costs.idle_states[0].exit_ns;
        let join = syscall_ns + costs.futex_ns + wakeup_ns + 3 * hold + 2 * costs.context_switch_ns;
        let lock = hold + u64::from(costs.rq_lock_lines) * line;
        let interrupt = syscall_ns + costs.ipi_delivery_ns.llc + 2 * line;
        let near = Distance::Llc;
        [
            (Quantity::Syscall, syscall_ns),
            (Quantity::PipePair, 2 * (syscall_ns + pipe)),
            (Quantity::FutexWake, syscall_ns + costs.futex_ns),
            (Quantity::TimerPair, 2 * (syscall_ns + costs.timer_ns)),
            (Quantity::Yield, syscall_ns + hold + costs.context_switch_ns),
            (Quantity::Fork, costs.fork_ns + hold),
            (Quantity::ThreadCreate, costs.thread_create_ns + hold),
            (Quantity::ThreadLife, costs.thread_create_ns + hold + costs.exit_ns + join),
            (Quantity::WakeCallHere, calls + hold),
            (Quantity::Sleeper, sleeper),
            (Quantity::CacheLine(near), line),
            (Quantity::WakeCall(near), call + costs.ipi_send_ns),
            (Quantity::BusyWakeCall(near), call + lock),
            (Quantity::Interrupt(near), interrupt),
            (Quantity::RoundTrip(near), 2 * there),
            (Quantity::WakeAfter(5), there),
            (Quantity::WakeAfter(20), there + 1),
            (Quantity::WakeAfter(500), deeper),
        ]
        .map(|(quantity, ns)| (quantity, exactly(ns as f64)))
        .into()
    }

    fn exactly(median: f64) -> Sample {
        let (lower, upper) = (0.99 * median, 1.01 * median);
        Sample { median, lower, upper, counted: 40, batches: 50, disturbed: false }
    }

    /// Of the shape of the host, with costs of another machine.
    fn host() -> Machine {
        placewise_machine::load("l3:1 core:4 pu:1").unwrap()
    }

    #[test]
    fn costs_are_recovered_from_what_they_would_measure() {
        let mut truth = host().costs;
        truth.syscall_ns = 77;
        truth.pipe_message_ns = 201;
        truth.futex_ns = 99;
        truth.timer_ns = 444;
        // The shares of a switch are those of the borrowed figures.
        truth.context_switch_ns *= 2;
        truth.switch_to_idle_ns *= 2;
        truth.idle_switch_ns *= 2;
        truth.rq_lock_hold_ns *= 2;
        truth.wakeup_ns = 1_234;
        truth.sleep_ns = 987;
        truth.fork_ns = 50_000;
        truth.thread_create_ns = 9_000;
        truth.exit_ns = 21_000;
        truth.cache_line_ns.llc = 61;
        truth.wakeup_lines = 6;
        truth.ipi_send_ns = 3_100;
        truth.ipi_delivery_ns.llc = 2_200;
        truth.idle_states = [("at once", 1_500, 0), ("after 500 us", 30_000, 500_000)]
            .map(|(name, exit_ns, residency_ns)| IdleState {
                name: name.to_owned(),
                exit_ns,
                residency_ns,
                polling: false,
            })
            .to_vec();
        truth.hz = 300;
        let machine = with_measured_costs(host(), &measurements_of(&truth), 300);
        assert_eq!(machine.costs, truth);
    }

    /// An idle CPU that polls is there before an interrupt would be.
    #[test]
    fn what_an_idle_cpu_is_woken_in_limits_the_delivery() {
        let truth = host().costs;
        let mut measured = measurements_of(&truth);
        measured.insert(Quantity::Interrupt(Distance::Llc), exactly(50_000.0));
        let costs = with_measured_costs(host(), &measured, 250).costs;
        assert_eq!(costs.idle_states[0].exit_ns, 0);
        let both = truth.ipi_delivery_ns.llc + truth.idle_states[0].exit_ns;
        assert_eq!(costs.ipi_delivery_ns.llc, both);
    }

    #[test]
    fn every_figure_says_whether_it_is_measured_or_borrowed_and_is_read_back() {
        let measured = measurements_of(&host().costs);
        let machine = with_measured_costs(host(), &measured, 250);
        let source = |name: &str| machine.cost_sources[name].as_str();
        assert!(
            source("syscall_ns").starts_with("measured: system call; median 120 ns, quartiles")
        );
        assert!(source("scan_cpu_ns").starts_with("assumed: not measured; those of uma-8: "));
        assert!(source("cache_line_ns").ends_with("those of uma-8: smt, package, remote"));
        let directory = std::env::temp_dir().join(format!("measure-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("it.toml");
        std::fs::write(&path, placewise_machine::to_toml(&machine, "")).unwrap();
        let read = placewise_machine::load(path.to_str().unwrap()).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!((read.costs, read.cost_sources), (machine.costs, machine.cost_sources));
    }

    /// What is shorter than what else may hold up a pass says nothing of that.
    #[test]
    fn a_pass_may_be_held_up_for_as_long_as_a_cpu_is_away() {
        let truth = host().costs;
        let outlier = |away: u64| {
            let measured = Measurements::from([(Quantity::Absence, exactly(away as f64))]);
            with_measured_costs(host(), &measured, truth.hz).costs.newidle_outlier_ns
        };
        assert_eq!(outlier(200_000), 200_000);
        assert_eq!(outlier(1_000), truth.newidle_outlier_ns);
    }

    /// What a partner's CPU was taken away for is no cost.
    #[test]
    fn what_no_machine_can_take_is_borrowed_and_says_so() {
        let truth = host().costs;
        let mut measured = measurements_of(&truth);
        measured.insert(Quantity::CacheLine(Distance::Llc), exactly(1_440_106.0));
        measured.insert(Quantity::Fork, exactly(50_000_000.0));
        let machine = with_measured_costs(host(), &measured, truth.hz);
        assert_eq!(machine.costs.cache_line_ns, truth.cache_line_ns);
        assert_eq!(machine.costs.fork_ns, truth.fork_ns);
        for figure in ["cache_line_ns", "fork_ns"] {
            let source = &machine.cost_sources[figure];
            assert!(source.starts_with("assumed: the host was too busy"), "{source}");
        }
        assert!(machine.cost_sources["syscall_ns"].starts_with("measured"));
    }

    #[test]
    fn nothing_measured_leaves_all_but_the_tick_borrowed() {
        let machine = with_measured_costs(host(), &Measurements::new(), 1_000);
        assert_eq!(machine.costs, Costs { hz: 1_000, ..host().costs });
        let is_measured = |source: &&String| source.starts_with("measured");
        assert_eq!(machine.cost_sources.values().filter(is_measured).count(), 1);
    }

    #[test]
    fn the_curve_of_a_bandwidth_goes_through_what_was_measured() {
        let (one, truth): (f64, f64) = (20_000.0, 80_000.0);
        let together = truth * (1.0 - (1.0 - one / truth).powi(8));
        assert!((peak(one, together, 8) - truth).abs() < 1.0);
        assert!((peak(one, one / 2.0, 8) - one).abs() < 1.0, "streams that hinder each other");
    }
}
