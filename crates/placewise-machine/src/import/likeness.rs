//! Which preset a machine is shaped like, and in what it is still unlike that.
//!
//! The same shape can be had as a preset and as a synthetic string, a dump or a file; figures of both
//! would be taken for each other.
//!
//! Limits: shapes are compared by how many CPUs, cores, LLCs, nodes and packages they have.

use std::sync::OnceLock;

use super::file;
use super::presets::PRESETS;
use crate::machine::Machine;

/// The first preset of the machine's size.
pub(crate) fn preset_like(machine: &Machine) -> Option<&'static Machine> {
    let size_of_machine = size(machine);
    (0..PRESETS.len()).map(preset).find(|preset| size(preset) == size_of_machine)
}

/// Each is read once, however many machines are compared with it.
fn preset(at: usize) -> &'static Machine {
    static READ: [OnceLock<Machine>; PRESETS.len()] = [const { OnceLock::new() }; PRESETS.len()];
    let (name, text) = PRESETS[at];
    READ[at].get_or_init(|| file::parse(name, text).expect("presets are checked by the tests"))
}

fn size(machine: &Machine) -> [usize; 5] {
    [
        machine.online().len(),
        machine.nr_cores(),
        machine.nr_llcs(),
        machine.nr_nodes(),
        machine.nr_packages(),
    ]
}

impl Machine {
    /// The preset that this machine is shaped like, with what it has otherwise: `icx-2s, but for the
    /// NUMA distances`. `None` where no preset is, or where nothing is otherwise.
    pub fn unlike_preset(&self) -> Option<String> {
        if PRESETS.iter().any(|(name, _)| *name == self.name) {
            return None;
        }
        let preset = preset_like(self)?;
        let unlike = [
            ("costs", self.costs != preset.costs),
            ("CPU numbers", self.cpus != preset.cpus),
            ("NUMA distances", self.node_distances != preset.node_distances),
            ("node_reclaim_distance", self.node_reclaim_distance != preset.node_reclaim_distance),
        ];
        let unlike: Vec<&str> =
            unlike.into_iter().filter(|(_, is_unlike)| *is_unlike).map(|(what, _)| what).collect();
        (!unlike.is_empty()).then(|| format!("{}, but for the {}", preset.name, unlike.join(", ")))
    }

    /// This machine with the costs of another.
    pub fn with_costs_of(self, lender: &Machine) -> Self {
        let what = self.description.split("; costs of ").next().unwrap_or_default();
        Self {
            description: format!("{what}; costs of {}, not measured on this machine", lender.name),
            costs: lender.costs.clone(),
            costs_of: format!("those of {}", lender.name),
            cost_sources: lender.cost_sources.clone(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::load;

    fn unlike(machine: &str) -> Option<String> {
        load(machine).unwrap().unlike_preset()
    }

    /// Threads of core c are c and c + 4 in the preset.
    #[test]
    fn a_string_has_the_costs_of_the_preset_that_it_is_shaped_like() {
        for (string, preset) in [
            ("pack:1 l3:1 core:6 pu:2", "x86-12"),
            ("pack:1 l3:1 core:56 pu:2", "spr-112"),
            ("pack:4 l3:1 core:10 pu:2", "xeon-4n80"),
            ("pack:2 l3:8 core:8 pu:2", "zen3-2s-nps1"),
            ("pack:2 l3:1 core:32 pu:2", "icx-2s"),
        ] {
            let machine = load(string).unwrap();
            assert_eq!(machine.costs, load(preset).unwrap().costs, "{string}");
            assert_eq!(machine.costs_of, format!("those of {preset}"));
        }
    }

    #[test]
    fn what_is_unlike_the_preset_is_named() {
        assert_eq!(unlike("pack:1 l3:1 core:4 pu:2(indexes=2*4:1*2)"), None);
        assert_eq!(unlike("pack:1 l3:1 core:4 pu:2").unwrap(), "uma-8, but for the CPU numbers");
        let zen = unlike("pack:2 l3:8 core:8 pu:2(indexes=2*128:1*2)").unwrap();
        assert_eq!(zen, "zen3-2s-nps1, but for the NUMA distances, node_reclaim_distance");
        assert_eq!(unlike("pack:1 l3:1 core:3 pu:2"), None, "no preset has three cores");
        assert_eq!(unlike("hikey960"), None, "a preset is itself");
    }

    #[test]
    fn costs_may_be_those_of_another_machine() {
        let lender = load("icx-2s").unwrap();
        let machine = load("uma-8").unwrap().with_costs_of(&lender);
        assert_eq!((&machine.costs, machine.costs_of.as_str()), (&lender.costs, "those of icx-2s"));
        assert_eq!(machine.unlike_preset(), None, "its name is that of a preset");
    }
}
