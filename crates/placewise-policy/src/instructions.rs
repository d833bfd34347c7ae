//! What one kernel executes for what another does, too: calls that pass messages, and the scheduler's own work.
//!
//! Costs of a machine are those under Linux 6.18: what they are under another kernel is told by the instructions
//! that these take there. A sender that allocates for longer than a receiver takes has its receiver sleep more often,
//! and who switches sooner is found asleep more often: with it all that wakeups decide.
//!
//! Limits: counted under five of Debian's kernels, with its configuration; those in between are taken for the one
//! before, but 6.15 to 6.17 for 6.18. TCP and UDP are taken to be the same under all.

use placewise_machine::Costs;

use crate::{MEASURED_5_10, MEASURED_6_12, MEASURED_6_18, MEASURED_7_3, MeasuredKernel};

/// Counted on an emulated machine by `interventions costs`. Rows recorded there under 5.10 and 6.1 had been predicted with such
/// ratios before all were counted; none was chosen by them, nor by a published table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// Calls that pass 100 bytes, half of what a channel holds at a time, without what a system call takes that does
    /// nothing.
    pub pipe: OfBothSides,
    /// Of an AF_UNIX stream socket.
    pub socket: OfBothSides,
    /// A wakeup of a task on another CPU whose run queue the waker locks: the second one of a call.
    pub wake: u64,
    /// A wakeup of one that is still queued, for its dequeue is delayed: in percent of one that chooses a CPU, each beside
    /// a hold of the lock. Counted step by step: 360 of 730 with the interrupt, and 770 of 535 without it and without a
    /// look at a CPU under 7.3.
    pub wake_delayed_pct: u64,
    pub switches: Switches,
    /// What a read from a pipe that sleeps takes longer than one that need not, beside the switch: on one CPU and on
    /// two, the mean, counted step by step (docs/vm.md). How recorded rows fit with it was seen, and did not decide it.
    pub sleep: u64,
    /// Of schedule() by one who sleeps, until the idle task is back in its loop: the parts in percent until it has the
    /// run queue's lock, and until the sleeper is off the queue. Up to 6.6 that is so before it is dequeued, from 6.12 on
    /// after. Counted likewise; under 5.10 taken as under 6.1.
    pub dequeue_pct: [u64; 2],
}

/// In terms of two switches by sched_yield(), which all are taken to go by. But under 7.3 each was counted step by step:
/// without holds of the lock 1,853, 1,113 and 936, where 6.18 takes 1,385, 1,070 and 800.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// From one who sleeps.
    pub to_another: u64,
    pub to_idle: u64,
    pub from_idle: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfBothSides {
    pub write: u64,
    pub read: u64,
}

impl Instructions {
    pub fn of(kernel: MeasuredKernel) -> Self {
        let ([pipe, socket], [wake, wake_delayed_pct, sleep], switches, dequeue_pct) = match kernel
        {
            // 5.10 and 6.1 differ by 3 and by 4 %. They do not switch where one of two yields: of a round trip through
            // pipes on one CPU their switches and sleeps take 0.797 of what those of 6.18 do.
            MEASURED_5_10 => ([[864, 806], [2_705, 1_913]], [1_275, 50, 670], [4_427; 3], [7, 14]),
            MEASURED_6_12 => ([[863, 801], [2_118, 1_899]], [1_407, 50, 687], [5_143; 3], [6, 50]),
            MEASURED_7_3 => {
                ([[811, 679], [2_091, 1_677]], [1_624, 144, 566], [7_431, 5_777, 6_498], [7, 55])
            }
            // MEASURED_6_18
            _ => ([[714, 634], [2_063, 1_867]], [1_524, 50, 480], [5_554; 3], [6, 50]),
        };
        let [pipe, socket] = [pipe, socket].map(OfBothSides::new);
        let [to_another, to_idle, from_idle] = switches;
        let switches = Switches { to_another, to_idle, from_idle };
        Instructions { pipe, socket, wake, wake_delayed_pct, switches, sleep, dequeue_pct }
    }

    /// By which of them a machine's figure of that name goes, if it hangs on the kernel.
    pub fn of_figure(self, name: &str) -> Option<u64> {
        Some(match name {
            "pipe_message_ns" => self.pipe.together(),
            "socket_message_ns" => self.socket.together(),
            "wakeup_ns" | "wake_elsewhere_ns" | "rq_lock_hold_ns" => self.wake,
            "context_switch_ns" => self.switches.to_another,
            "switch_to_idle_ns" => self.switches.to_idle,
            "idle_switch_ns" => self.switches.from_idle,
            "sleep_ns" => self.sleep,
            _ => return None,
        })
    }
}

impl OfBothSides {
    const fn new([write, read]: [u64; 2]) -> Self {
        OfBothSides { write, read }
    }

    const fn together(self) -> u64 {
        self.write + self.read
    }
}

/// What the scheduler's own work takes.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerCosts {
    pub wakeup_ns: u64,
    /// Of one whose dequeue is delayed.
    pub wake_delayed_ns: u64,
    pub wake_elsewhere_ns: u64,
    pub rq_lock_hold_ns: u64,
    pub context_switch_ns: u64,
    pub switch_to_idle_ns: u64,
    pub idle_switch_ns: u64,
    pub sleep_ns: u64,
    /// From the call of schedule() until it has the run queue's lock, and until who sleeps is off the queue.
    pub dequeue_ns: [u64; 2],
}

impl SchedulerCosts {
    pub fn under(kernel: MeasuredKernel, figures: &Costs) -> Self {
        let [here, there] = [kernel, MEASURED_6_18].map(Instructions::of);
        let under = |of: fn(&Instructions) -> u64, figure: u64| figure * of(&here) / of(&there);
        let wake = |figure| under(|it| it.wake, figure);
        let (wakeup_ns, rq_lock_hold_ns) = (wake(figures.wakeup_ns), wake(figures.rq_lock_hold_ns));
        let switch_to_idle_ns = under(|it| it.switches.to_idle, figures.switch_to_idle_ns);
        let to_idle = rq_lock_hold_ns + switch_to_idle_ns;
        SchedulerCosts {
            wakeup_ns,
            wake_delayed_ns: wakeup_ns * here.wake_delayed_pct / 100,
            wake_elsewhere_ns: wake(figures.wake_elsewhere_ns),
            rq_lock_hold_ns,
            context_switch_ns: under(|it| it.switches.to_another, figures.context_switch_ns),
            switch_to_idle_ns,
            idle_switch_ns: under(|it| it.switches.from_idle, figures.idle_switch_ns),
            sleep_ns: under(|it| it.sleep, figures.sleep_ns),
            dequeue_ns: here.dequeue_pct.map(|part| to_idle * part / 100),
        }
    }

    /// Of what a call that sleeps takes longer: before the switch, and once it runs again.
    #[inline]
    pub fn half_a_sleep(&self) -> u64 {
        self.sleep_ns / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand. Fails if one kernel's work took as long as another's, or a switch as a wakeup.
    #[test]
    fn the_scheduler_takes_as_long_as_its_kernels_instructions() {
        let mut figures = placewise_machine::load("uma-8").unwrap().costs;
        (figures.wakeup_ns, figures.rq_lock_hold_ns) = (1_524, 3_048);
        figures.wake_elsewhere_ns = 762;
        (figures.context_switch_ns, figures.idle_switch_ns) = (5_554, 11_108);
        (figures.switch_to_idle_ns, figures.sleep_ns) = (2_777, 960);
        let under = |kernel| {
            let costs = SchedulerCosts::under(kernel, &figures);
            let wake = [costs.wakeup_ns, costs.wake_elsewhere_ns, costs.rq_lock_hold_ns];
            let wake = (wake, costs.wake_delayed_ns);
            let SchedulerCosts { context_switch_ns, switch_to_idle_ns, idle_switch_ns, .. } = costs;
            let switch = [context_switch_ns, switch_to_idle_ns, idle_switch_ns];
            (wake, switch, costs.sleep_ns, costs.dequeue_ns)
        };
        let expected = (([1_524, 762, 3_048], 762), [5_554, 2_777, 11_108], 960, [349, 2_912]);
        assert_eq!(under(MEASURED_6_18), expected);
        let expected = (([1_275, 637, 2_550], 637), [4_427, 2_213, 8_854], 1_340, [333, 666]);
        assert_eq!(under(MEASURED_5_10), expected);
        let expected = (([1_624, 812, 3_248], 2_338), [7_431, 2_888, 12_996], 1_132, [429, 3_374]);
        assert_eq!(under(MEASURED_7_3), expected);
    }
}
