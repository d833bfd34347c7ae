//! What others took of the CPUs while this process ran: all that was not idle, less what was its own.
//!
//! Limits: the kernel counts in ticks, so a fifth of a second tells some hundredths; what a hypervisor
//! takes away counts as others'.

use std::fs;

use rustix::time::ClockId;

use crate::load::clock::cpu_time;

/// Times since boot, in seconds of CPU time.
pub struct CpuTimes {
    all: f64,
    idle: f64,
    own: f64,
}

impl CpuTimes {
    /// `None` where the kernel does not say.
    pub fn so_far() -> Option<Self> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let times = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let seconds = |ticks: &str| Some(ticks.parse::<f64>().ok()? / ticks_per_second());
        let times: Vec<f64> = times.filter_map(seconds).collect();
        Some(Self {
            // Guests count as user time already.
            all: times.iter().take(8).sum(),
            idle: times.get(3)? + times.get(4)?,
            own: cpu_time(ClockId::ProcessCPUTime) / 1e9,
        })
    }

    /// In percent of the time of all CPUs.
    pub fn others_pct_since(&self, before: &Self) -> Option<f64> {
        let all = self.all - before.all;
        let others = all - (self.idle - before.idle) - (self.own - before.own);
        let pct = 100.0 * others.max(0.0) / all;
        pct.is_finite().then_some(pct)
    }
}

fn ticks_per_second() -> f64 {
    // SAFETY: sysconf() takes a number and gives one.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_neither_idle_nor_own_is_others() {
        let times = |all, idle, own| CpuTimes { all, idle, own };
        let others = |after: CpuTimes| after.others_pct_since(&times(100.0, 50.0, 20.0));
        assert_eq!(others(times(110.0, 55.0, 22.0)), Some(30.0));
        assert_eq!(others(times(110.0, 55.0, 26.0)), Some(0.0), "ticks round");
        assert_eq!(others(times(100.0, 50.0, 20.0)), None);
    }

    #[test]
    fn this_kernel_says() {
        assert!(CpuTimes::so_far().unwrap().all > 0.0);
    }
}
