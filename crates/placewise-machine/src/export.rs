//! Writes a machine as a machine file that says all of it: nothing is left to another file.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::cpuset::CpuSet;
use crate::import::cpu_lists::CpuLists;
use crate::machine::{Cpu, Machine};

/// The text of a machine file from which the machine can be read again, under the name of the file.
/// `comment` stands at its top.
pub fn to_toml(machine: &Machine, comment: &str) -> String {
    let mut lines: Vec<String> =
        comment.lines().map(|line| format!("# {line}").trim_end().to_owned()).collect();
    lines.push(String::new());
    lines.push(format!("description = {}", quoted(&machine.description)));
    lines.push(format!("node_reclaim_distance = {}", machine.node_reclaim_distance));
    let rows = machine.node_distances.iter().map(|row| format!("{row:?}"));
    lines.push(format!("node_distances = [{}]", rows.collect::<Vec<_>>().join(", ")));
    lines
        .extend(setting(machine, "capacity", |_, cpu| Some(cpu.capacity).filter(|it| *it != 1024)));
    lines.extend(setting(machine, "speed", |_, cpu| {
        Some(cpu.speed).filter(|it| *it != cpu.capacity)
    }));
    lines.extend(setting(machine, "priority", |id, cpu| {
        Some(cpu.priority).filter(|it| *it != -(id as i32))
    }));
    lines.push("\n[shape]".to_owned());
    lines.push(shape(machine));
    lines.push("[costs]".to_owned());
    for figure in machine.cost_figures() {
        let (name, value, source) = (figure.name, figure.value, quoted(figure.source));
        lines.push(format!("{name} = {{ value = {value}, source = {source} }}"));
    }
    lines.join("\n") + "\n"
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// The CPUs that have each value of a setting; none for those that are as usual.
fn setting<T: Display + Ord>(
    machine: &Machine,
    name: &str,
    unusual: impl Fn(usize, &Cpu) -> Option<T>,
) -> Option<String> {
    let mut cpus: BTreeMap<T, CpuSet> = BTreeMap::new();
    for id in machine.online().iter() {
        if let Some(value) = unusual(id, &machine.cpus[id]) {
            cpus.entry(value).or_default().insert(id);
        }
    }
    let entry = |(value, cpus)| format!("    {{ cpus = \"{cpus}\", value = {value} }},\n");
    let entries: String = cpus.into_iter().map(entry).collect();
    (!entries.is_empty()).then(|| format!("{name} = [\n{entries}]"))
}

fn shape(machine: &Machine) -> String {
    toml::to_string(&CpuLists::of(machine)).expect("lists of CPUs are TOML")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::file;
    use crate::import::load::{load, presets};

    #[test]
    fn every_preset_is_read_back_as_it_was() {
        for preset in presets() {
            let machine = load(preset.name).unwrap();
            let read = file::parse(preset.name, &to_toml(&machine, "One\n\nTwo")).unwrap();
            let expected = Machine { costs_of: "its own".to_owned(), ..machine };
            assert_eq!(read, expected, "{}", preset.name);
        }
    }

    #[test]
    fn a_shape_that_no_list_of_packages_could_say_is_read_back() {
        let machine = load("pack:2 core:2 pu:2(indexes=0,4,2,6,1,5,3,7)").unwrap();
        let read = file::parse(&machine.name, &to_toml(&machine, "")).unwrap();
        assert_eq!((read.cpus, read.node_distances), (machine.cpus, machine.node_distances));
    }

    fn refused(shape: &str) -> String {
        let text = format!("description = \"it\"\ncosts_from = \"uma-8\"\n[shape]\n{shape}\n");
        file::parse("it", &text).unwrap_err().to_string()
    }

    #[test]
    fn a_cpu_twice_or_nowhere_is_refused() {
        let twice = refused(
            "packages = [\"0-1\"]\nnodes = [\"0-1\"]\nllcs = [\"0-1\"]\ncores = [\"0\", \"0-1\"]",
        );
        assert_eq!(twice, "[shape] cores: names CPU 0 twice, must name each CPU once");
        let nowhere = refused(
            "packages = [\"0-1\"]\nnodes = [\"0\"]\nllcs = [\"0-1\"]\ncores = [\"0\", \"1\"]",
        );
        assert!(nowhere.starts_with("[shape] nodes: CPU 1 is in none"), "{nowhere}");
    }
}
