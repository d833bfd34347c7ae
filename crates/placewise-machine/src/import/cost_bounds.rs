//! What a cost figure of a machine file may be: wide enough for any machine, and so narrow that the
//! simulator's arithmetic cannot overflow and its clock goes on.

use std::ops::RangeInclusive;

use crate::costs::Costs;
use crate::error::MachineError;

/// Scheduler ticks per second.
pub(crate) const HZ: RangeInclusive<i64> = 100..=1000;

const SECOND: i64 = 1_000_000_000;
const IDLE_STATES: RangeInclusive<usize> = 1..=16;

/// For every number in the figure of this name.
pub(crate) fn bounds(figure: &str) -> RangeInclusive<i64> {
    match figure {
        "hz" => HZ,
        "smt_throughput_pct" | "remote_bandwidth_pct" => 1..=100,
        "all_busy_clock_pct" => 10..=100,
        "jitter_pct" => 0..=50,
        // What is left for the others does not get below zero.
        "message_spread_pct" => 0..=500,
        "pipe_locked_pct" | "pipe_writer_pct" | "socket_writer_pct" | "after_wakeup_pct" => 0..=100,
        "copy_overlap" | "balance_overlap" => 1..=64,
        "wakeup_lines"
        | "rq_lock_lines"
        | "channel_lines"
        | "pipe_lines"
        | "socket_lines"
        | "tcp_lines"
        | "udp_lines"
        | "balance_lines_per_cpu" => 0..=1000,
        // Up to 4 TiB.
        "llc_kib" => 1..=1 << 32,
        // In MB/s: up to a petabyte per second.
        "llc_bandwidth_mbps" | "node_bandwidth_mbps" => 1..=1_000_000_000,
        "copy_ns_per_kib" | "refill_ns_per_kib" => 0..=SECOND / 1000,
        "cache_line_ns" => 0..=SECOND / 10_000,
        // A tenth of the shortest tick.
        "tick_ns" => 0..=SECOND / *HZ.end() / 10,
        // What a CPU waits for or is left with for long; all else is done in one go.
        "idle_states" | "llc_idle_residency_ns" | "refill_cap_ns" => 0..=SECOND,
        _ => 0..=SECOND / 100,
    }
}

/// Refuses numbers out of bounds where their name is known: `place` is that of the figure.
pub(crate) fn check_numbers(
    figure: &str,
    place: &str,
    value: &toml::Value,
) -> Result<(), MachineError> {
    let within = |part: &toml::Value, place: String| check_numbers(figure, &place, part);
    match value {
        toml::Value::Integer(number) if bounds(figure).contains(number) => Ok(()),
        toml::Value::Integer(_) | toml::Value::Float(_) => {
            let (least, most) = bounds(figure).into_inner();
            let problem = format!("is {value}, must be a whole number from {least} to {most}");
            Err(MachineError::new(place, problem))
        }
        toml::Value::Table(table) => {
            table.iter().try_for_each(|(key, part)| within(part, format!("{place}.{key}")))
        }
        toml::Value::Array(array) => {
            let mut parts = array.iter().enumerate();
            parts.try_for_each(|(index, part)| within(part, format!("{place}[{index}]")))
        }
        _ => Ok(()),
    }
}

/// `costs` with the figures of `others` for those that no machine file may have, and the names of these.
pub fn within_bounds(costs: &Costs, others: &Costs) -> (Costs, Vec<String>) {
    let [mut figures, others] = [costs, others].map(table);
    let mut replaced = Vec::new();
    for (name, other) in others {
        if check_numbers(&name, &name, &figures[&name]).is_err() {
            figures[&name] = other;
            replaced.push(name);
        }
    }
    (toml::Value::Table(figures).try_into().expect("costs are a table"), replaced)
}

fn table(costs: &Costs) -> toml::Table {
    toml::Table::try_from(costs).expect("costs are a table")
}

/// What the numbers of a figure must be to each other.
pub(crate) fn check_relations(costs: &Costs) -> Result<(), MachineError> {
    let curves = &costs.node_bandwidth_mbps;
    for (name, curve) in [
        ("copy", curves.copy),
        ("scale", curves.scale),
        ("add", curves.add),
        ("triad", curves.triad),
    ] {
        if curve.one > curve.peak {
            let place = format!("[costs] node_bandwidth_mbps.{name}");
            return Err(MachineError::new(place, "must have one <= peak"));
        }
    }
    let residencies = costs.idle_states.iter().map(|state| state.residency_ns);
    if !IDLE_STATES.contains(&costs.idle_states.len()) || !residencies.is_sorted() {
        let problem = "must name 1 to 16 states, in order of residency_ns";
        return Err(MachineError::new("[costs] idle_states", problem));
    }
    Ok(())
}
