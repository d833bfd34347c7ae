//! Clocks: how fast the cores of a package are, by how many of them are busy (`placewise-machine`'s clock.rs). Every
//! millisecond it is looked at, and what runs goes on from there at another speed.

use placewise_machine::Clocks;
use placewise_policy::CpuId;

use crate::engine::Engine;
use crate::state::cpu::Activity;
use crate::state::events::Slot;

impl Engine<'_> {
    /// The next look at the clocks, on machines that have other ones when many cores are busy.
    pub(crate) fn await_clocks(&mut self) {
        if self.hardware.clocks.is_some() {
            self.events.arm(Slot::Clock, self.now + Clocks::PERIOD_NS);
        }
    }

    pub(crate) fn look_at_clocks(&mut self) {
        self.await_clocks();
        let Some(mut clocks) = self.hardware.clocks.take() else { return };
        let is_busy = |cpu: usize| self.cpus[CpuId::from(cpu)].activity != Activity::Idle;
        for package in clocks.look(is_busy) {
            for cpu in clocks.cpus_of(package) {
                let id = CpuId::from(cpu);
                self.costs.set_clock(id, &self.hardware.machine.cpus[cpu], clocks.of(package));
                self.change_pace(id);
            }
        }
        self.hardware.clocks = Some(clocks);
    }
}
