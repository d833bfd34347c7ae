//! Costs with other values: what they would be if figures were so many times what they are.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use toml::Value;

use crate::costs::Costs;
use crate::import::cost_bounds::bounds;

impl Costs {
    /// Every number of each named figure times its factor, within what a machine file may say. Of idle
    /// states that is the exit alone: their residencies are the kernel's own table.
    pub fn scaled(&self, factors: &BTreeMap<String, f64>) -> Self {
        let mut figures = toml::Table::try_from(self).expect("costs are TOML");
        for (name, factor) in factors {
            if let Some(value) = figures.get_mut(name) {
                scale(name, value, *factor);
            }
        }
        Value::Table(figures).try_into().expect("scaled costs are costs")
    }
}

fn scale(figure: &str, value: &mut Value, factor: f64) {
    match value {
        Value::Integer(number) => {
            let (least, most) = sensible(figure, *number).into_inner();
            *number = ((*number as f64 * factor).round() as i64).clamp(least, most);
        }
        Value::Table(table) => {
            let parts = table.iter_mut().filter(|(key, _)| *key != "residency_ns");
            parts.for_each(|(_, part)| scale(figure, part, factor));
        }
        Value::Array(parts) => parts.iter_mut().for_each(|part| scale(figure, part, factor)),
        _ => {}
    }
}

/// What a number may become: two siblings get no less done together than one alone.
fn sensible(figure: &str, number: i64) -> RangeInclusive<i64> {
    match figure {
        "smt_throughput_pct" => number.min(50)..=100,
        _ => bounds(figure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::load::load;

    #[test]
    fn named_figures_are_scaled_within_their_bounds_and_no_others() {
        let costs = load("icx-2s").unwrap().costs;
        let factors = [("wakeup_ns", 1.5), ("cache_line_ns", 2.0), ("smt_throughput_pct", 3.0)];
        let factors = factors.map(|(name, factor)| (name.to_owned(), factor)).into();
        let scaled = costs.scaled(&factors);
        assert_eq!(scaled.wakeup_ns, (costs.wakeup_ns * 3).div_ceil(2));
        assert_eq!(scaled.cache_line_ns.remote, 2 * costs.cache_line_ns.remote);
        assert_eq!(scaled.smt_throughput_pct, 100);
        let others = Costs {
            wakeup_ns: costs.wakeup_ns,
            cache_line_ns: costs.cache_line_ns,
            smt_throughput_pct: costs.smt_throughput_pct,
            ..scaled
        };
        assert_eq!(others, costs);
    }

    #[test]
    fn two_siblings_are_no_slower_than_one() {
        let costs = load("icx-2s").unwrap().costs;
        let scaled = costs.scaled(&[("smt_throughput_pct".to_owned(), 0.5)].into());
        assert_eq!((costs.smt_throughput_pct, scaled.smt_throughput_pct), (60, 50));
    }

    #[test]
    fn of_idle_states_the_exits_are_scaled() {
        let costs = load("icx-2s").unwrap().costs;
        let scaled = costs.scaled(&[("idle_states".to_owned(), 2.0)].into());
        for (before, after) in costs.idle_states.iter().zip(&scaled.idle_states) {
            assert_eq!(after.exit_ns, 2 * before.exit_ns);
            assert_eq!(after.residency_ns, before.residency_ns);
        }
    }
}
