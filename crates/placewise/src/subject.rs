//! What is compared: a value of each axis, and which axes differ in a comparison.

use placewise_machine::Machine;
use serde::Serialize;

/// One combination of machine, kernel, environment and policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Subject {
    pub policy: String,
    pub machine: String,
    pub kernel: String,
    /// The path of its file, or `none`.
    pub environment: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    Machine,
    Kernel,
    Environment,
    Policy,
}

impl Axis {
    pub const ALL: [Self; 4] = [Self::Machine, Self::Kernel, Self::Environment, Self::Policy];

    pub fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Kernel => "kernel",
            Self::Environment => "environment",
            Self::Policy => "policy",
        }
    }

    pub fn value(self, subject: &Subject) -> &str {
        match self {
            Self::Machine => &subject.machine,
            Self::Kernel => &subject.kernel,
            Self::Environment => &subject.environment,
            Self::Policy => &subject.policy,
        }
    }

    /// Its values in the order they first come.
    pub fn values<'a>(self, subjects: impl IntoIterator<Item = &'a Subject>) -> Vec<&'a str> {
        let mut values: Vec<&str> = Vec::new();
        for value in subjects.into_iter().map(|subject| self.value(subject)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    }
}

/// The axes with more than one value; the policy where nothing differs.
pub fn differing_axes(subjects: &[Subject]) -> Vec<Axis> {
    let differs = |axis: &Axis| axis.values(subjects).len() > 1;
    let axes: Vec<Axis> = Axis::ALL.into_iter().filter(differs).collect();
    if axes.is_empty() { vec![Axis::Policy] } else { axes }
}

/// What tells a subject apart: `v6.12 short-task`
pub fn label(axes: &[Axis], subject: &Subject) -> String {
    axes.iter().map(|axis| axis.value(subject)).collect::<Vec<_>>().join(" ")
}

/// What a report says of a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DescribedMachine {
    pub machine: String,
    pub shape: String,
    /// Whose costs it has.
    pub costs_of: String,
    /// The preset that it is shaped like and yet unlike, with what is otherwise.
    pub unlike_preset: Option<String>,
}

impl DescribedMachine {
    pub fn of(machine: &Machine) -> Self {
        Self {
            machine: machine.name.clone(),
            shape: shape(machine),
            costs_of: machine.costs_of.clone(),
            unlike_preset: machine.unlike_preset(),
        }
    }
}

fn shape(machine: &Machine) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    [
        count(machine.online().len(), "CPU"),
        count(machine.nr_cores(), "core"),
        count(machine.nr_llcs(), "LLC"),
        count(machine.nr_nodes(), "NUMA node"),
        count(machine.nr_packages(), "package"),
    ]
    .join(", ")
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn subject(kernel: &str, policy: &str) -> Subject {
        Subject {
            policy: policy.to_owned(),
            machine: "uma-8".to_owned(),
            kernel: kernel.to_owned(),
            environment: "none".to_owned(),
        }
    }

    #[test]
    fn axes_of_one_value_do_not_differ() {
        let axes = |subjects: &[Subject]| differing_axes(subjects);
        let (old, new) = (subject("v6.0", "baseline"), subject("v6.12", "baseline"));
        assert_eq!(axes(std::slice::from_ref(&old)), [Axis::Policy]);
        assert_eq!(axes(&[old.clone(), new.clone()]), [Axis::Kernel]);
        let patched = subject("v6.12", "short-task");
        assert_eq!(axes(&[old.clone(), new, patched.clone()]), [Axis::Kernel, Axis::Policy]);
        assert_eq!(Axis::Kernel.values(&[old.clone(), patched, old]), ["v6.0", "v6.12"]);
    }
}
