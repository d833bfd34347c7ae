//! Times, CPUs and causes as the report has them.

use placewise_audit::cost::causes::CauseKind;
use placewise_machine::CpuSet;

use crate::report::number;

const NSEC_PER_SEC: u64 = 1_000_000_000;
/// What ftrace prints of a time.
const NSEC_PER_USEC: u64 = 1_000;
/// A longer list of CPUs is told by their number.
const LONGEST_LIST: usize = 12;

/// `12.34 ms`
pub fn time(ns: u64) -> String {
    match ns as f64 {
        0.0 => "0".to_owned(),
        ns if ns < 1e6 => format!("{} us", number::figure(ns / 1e3)),
        ns if ns < 1e9 => format!("{} ms", number::figure(ns / 1e6)),
        ns => format!("{} s", number::figure(ns / 1e9)),
    }
}

/// `5.544334`, as the trace has it.
pub fn trace_time(ns: u64) -> String {
    format!("{}.{:06}", ns / NSEC_PER_SEC, ns % NSEC_PER_SEC / NSEC_PER_USEC)
}

/// `CPU 0`, `CPUs 0-3`, `12 CPUs`
pub fn cpus(cpus: &CpuSet) -> String {
    let list = cpus.to_string();
    match cpus.len() {
        1 => format!("CPU {list}"),
        _ if list.len() <= LONGEST_LIST => format!("CPUs {list}"),
        several => format!("{several} CPUs"),
    }
}

pub fn cause_words(cause: CauseKind) -> &'static str {
    match cause {
        CauseKind::RealTime => "real-time task",
        CauseKind::Bound => "bound",
        CauseKind::NewTasks => "new tasks",
        CauseKind::IdleInLlc => "idle in the LLC",
        CauseKind::IdleInNode => "idle in the node",
        CauseKind::IdleInOtherNode => "idle beyond",
        CauseKind::Overload => "no CPU idle",
        CauseKind::Throttled => "throttled",
        CauseKind::AcrossLlcs => "woken across LLCs",
        CauseKind::IdleExit => "idle exit",
    }
}
