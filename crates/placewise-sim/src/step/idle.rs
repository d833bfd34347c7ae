//! How deep an idle CPU sleeps, and what coming back costs.
//!
//! The governor expects as much idle time as there was of late, and chooses the
//! deepest state that is worth it. A CPU that rests longer than a tick in a
//! shallow state is woken by that tick to choose again, so the state it comes
//! back from follows from how long it really rested. An LLC all of whose CPUs
//! have been idle for a while comes back at an extra cost.
//!
//! Limits: no package states beyond the LLC; no frequency effects; the expected
//! time does not look at pending timers.

use placewise_policy::CpuId;

use crate::engine::Engine;
use crate::state::cpu::Activity;
use crate::state::event_queue::Time;
use crate::state::events::Slot;

/// Weight of the last idle time in what is expected of the next, as a shift.
const EXPECTED_IDLE_SHIFT: u32 = 3;

impl Engine<'_> {
    pub(super) fn enter_idle(&mut self, cpu: CpuId) {
        let expected = self.cpus[cpu].expected_idle;
        let state = self.idle_state_for(expected);
        let latency = self.costs.figures.idle_states.get(state).map_or(0, |state| state.exit_ns);
        self.cpus[cpu].activity = Activity::Idle;
        self.cpus[cpu].clock_stands_at = None;
        self.cpus[cpu].idle_since = self.now;
        self.cpus[cpu].idle_state = state;
        self.cpus[cpu].debt = 0;
        self.scheduler.policy.rq[cpu].idle_exit_latency = latency as u32;
        self.hardware.cache_of(cpu).rest(self.now);
        self.siblings_change_speed(cpu);
        if !self.is_online(cpu) {
            self.stop_tick(cpu);
            self.note_offline(cpu);
        } else if expected >= u64::from(self.scheduler.policy.root.tick_ns) {
            self.stop_tick(cpu);
        }
    }

    /// The deepest state that is worth `time`.
    fn idle_state_for(&self, time: Time) -> usize {
        let states = &self.costs.figures.idle_states;
        states.iter().rposition(|state| state.residency_ns <= time).unwrap_or(0)
    }

    /// TIF_POLLING_NRFLAG: is the CPU idle, and watches its need-resched flag?
    pub(super) fn polls(&self, cpu: CpuId) -> bool {
        let here = &self.cpus[cpu];
        here.activity == Activity::Idle
            && self.costs.figures.idle_states.get(here.idle_state).is_some_and(|it| it.polling)
    }

    /// An idle CPU is woken by something that reaches it at `arrival`.
    pub(crate) fn kick_idle(&mut self, cpu: CpuId, arrival: Time) {
        self.kick_idle_longer(cpu, arrival, 0);
    }

    /// The same, if it takes so much longer than by the figures to leave idle for this.
    pub(super) fn kick_idle_longer(&mut self, cpu: CpuId, arrival: Time, beyond: i32) {
        if self.cpus[cpu].activity != Activity::Idle {
            return;
        }
        let rested = arrival - self.cpus[cpu].idle_since;
        let latency = self.exit_latency(cpu, rested, beyond);
        self.note_idle_time(cpu, rested);
        self.scheduler.policy.rq[cpu].idle_exit_latency = placewise_policy::LATENCY_UNKNOWN;
        self.begin(cpu, Activity::IdleExit, arrival + latency);
        self.hardware.cache_of(cpu).wake();
        self.siblings_change_speed(cpu);
        self.start_tick(cpu);
    }

    fn exit_latency(&mut self, cpu: CpuId, rested: Time, beyond: i32) -> Time {
        let tick = Time::from(self.scheduler.policy.root.tick_ns);
        let chosen = self.cpus[cpu].idle_state;
        let state = if rested > tick { chosen.max(self.idle_state_for(rested)) } else { chosen };
        let figures = self.costs.figures;
        let core = figures.idle_states.get(state).map_or(0, |state| state.exit_ns);
        let residency = figures.llc_idle_residency_ns;
        let whole_cache = self.hardware.cache_of(cpu).has_rested_for(residency, self.now);
        let figure = core + if whole_cache { figures.llc_idle_exit_ns } else { 0 };
        self.costs.draw(figure.saturating_add_signed(beyond.into()))
    }

    fn note_idle_time(&mut self, cpu: CpuId, rested: Time) {
        let cpu = &mut self.cpus[cpu];
        cpu.expected_idle = cpu.expected_idle - (cpu.expected_idle >> EXPECTED_IDLE_SHIFT)
            + (rested >> EXPECTED_IDLE_SHIFT);
    }

    fn stop_tick(&mut self, cpu: CpuId) {
        self.events.disarm(Slot::Tick(cpu));
        if self.is_online(cpu) {
            self.scheduler.policy.nohz_balance_enter_idle(cpu.into());
        }
    }

    fn start_tick(&mut self, cpu: CpuId) {
        let slot = Slot::Tick(cpu);
        if self.events.due(slot).is_none() {
            let tick = Time::from(self.scheduler.policy.root.tick_ns);
            self.events.arm(slot, (self.now / tick + 1) * tick);
        }
    }

    /// An idle CPU's tick: it balances if that is due, chooses its state again, and may do without
    /// ticks from now on.
    pub(super) fn idle_tick(&mut self, cpu: CpuId) {
        self.tick_balance(cpu);
        if self.scheduler.policy.rq[cpu].nr_running > 0 {
            return self.kick_idle(cpu, self.now);
        }
        let rested = self.now - self.cpus[cpu].idle_since;
        if rested >= Time::from(self.scheduler.policy.root.tick_ns) {
            self.stop_tick(cpu);
        } else {
            self.start_tick(cpu);
        }
    }
}
