//! Which cost figures are fitted, and within which bounds: those whose source begins with `calibrated`,
//! and those asked for by name. What was measured on the machine stands.

use std::collections::BTreeMap;

use placewise_machine::Machine;

use crate::cost_bound;
use crate::input::InputError;

/// What each figure is multiplied by; by 1 where it is not named.
pub type Factors = BTreeMap<String, f64>;

/// A figure that may be fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub name: String,
    /// The most that it may be multiplied or divided by.
    pub bound: f64,
}

pub fn select(machine: &Machine, spec: &str, asked: &[String]) -> Result<Vec<Figure>, InputError> {
    for name in asked {
        let problem = match machine.cost_sources.get(name) {
            None => format!(
                "is no cost figure; `placewise machine show {spec} --costs` prints those there are"
            ),
            Some(_) if cost_bound::of(machine, name).is_some() => continue,
            Some(source) => {
                format!("stands as it is, by its source `{source}`; name one that is not measured")
            }
        };
        return Err(InputError(format!("--figure {name}: {problem}")));
    }
    let wanted = |(name, source): &(&String, &String)| {
        cost_bound::word(source) == "calibrated" || asked.contains(name)
    };
    let figure = |(name, _): (&String, _)| {
        Some(Figure { bound: cost_bound::of(machine, name)?, name: name.clone() })
    };
    let figures: Vec<Figure> =
        machine.cost_sources.iter().filter(wanted).filter_map(figure).collect();
    match figures.is_empty() {
        true => Err(InputError(format!(
            "{spec}: no cost figure is marked `calibrated`; name those to fit with --figure"
        ))),
        false => Ok(figures),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(sources: &[(&str, &str)]) -> Machine {
        let mut machine = placewise_machine::load("uma-8").unwrap();
        for source in machine.cost_sources.values_mut() {
            "assumed".clone_into(source);
        }
        let sources = sources.iter().map(|(name, source)| ((*name).into(), (*source).into()));
        machine.cost_sources.extend(sources);
        machine
    }

    fn selected(machine: &Machine, asked: &[&str]) -> Result<Vec<(String, f64)>, String> {
        let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
        let figures = select(machine, "m", &asked).map_err(|error| error.0)?;
        Ok(figures.into_iter().map(|figure| (figure.name, figure.bound)).collect())
    }

    #[test]
    fn figures_marked_calibrated_and_those_asked_for_are_fitted_within_their_bounds() {
        let machine = machine(&[
            ("syscall_ns", "calibrated: a table"),
            ("wakeup_ns", "assumed: as calibrated elsewhere"),
            ("futex_ns", "published: there"),
        ]);
        assert_eq!(selected(&machine, &[]), Ok(vec![("syscall_ns".into(), 1.5)]));
        let three = selected(&machine, &["wakeup_ns", "syscall_ns", "futex_ns"]).unwrap();
        let expected = [("futex_ns", 1.25), ("syscall_ns", 1.5), ("wakeup_ns", 2.0)];
        assert_eq!(three, expected.map(|(name, bound)| (name.to_owned(), bound)));
    }

    #[test]
    fn what_cannot_be_fitted_is_refused() {
        let machine = machine(&[("futex_ns", "measured: futex wake")]);
        let refused = |asked: &[&str]| selected(&machine, asked).unwrap_err();
        assert!(refused(&[]).contains("--figure"));
        assert!(refused(&["futex_ms"]).contains("futex_ms: is no cost figure"));
        assert!(refused(&["futex_ns"]).contains("measured: futex wake"));
        assert!(refused(&["hz"]).contains("--figure hz"));
    }
}
