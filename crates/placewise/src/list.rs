//! `placewise list`: the names that `placewise compare` takes.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

use crate::report::json;

const EXAMPLE: &str = "\
Example:
  placewise list --format json

`placewise machine show NAME` tells more about a machine.";

/// List the kernels, policies, workloads and machines there are
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct ListArgs {
    /// How to print the list
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For the terminal
    Table,
    /// For programs
    Json,
}

#[derive(Serialize)]
struct Names {
    kernels: Vec<Named>,
    policies: Vec<Named>,
    knobs: Vec<Knob>,
    workloads: Vec<Workload>,
    machines: Vec<Named>,
}

#[derive(Serialize)]
struct Named {
    name: String,
    about: String,
}

#[derive(Serialize)]
struct Knob {
    name: &'static str,
    about: &'static str,
    /// That have it.
    kernels: Vec<&'static str>,
}

#[derive(Serialize)]
struct Workload {
    name: String,
    about: String,
    /// Keys of a case.
    parameters: Vec<Named>,
}

pub fn run(args: &ListArgs) -> anyhow::Result<()> {
    let names = names()?;
    let text = match args.format {
        Format::Table => table(&names),
        Format::Json => json::render(&names)?,
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn names() -> anyhow::Result<Names> {
    let baseline = named("baseline", "the kernel as it is");
    let patches = placewise_policy::patch_names();
    let machines = placewise_machine::presets();
    Ok(Names {
        kernels: placewise_policy::kernel_names().iter().map(|name| named(name, "")).collect(),
        policies: std::iter::once(baseline)
            .chain(patches.iter().map(|(name, about)| named(name, about)))
            .collect(),
        knobs: placewise_policy::knob_names().into_iter().map(knob).collect(),
        workloads: placewise_workload::names().map(workload).collect::<anyhow::Result<_>>()?,
        machines: std::iter::once(named("host", "the machine this runs on"))
            .chain(machines.iter().map(|preset| named(preset.name, &preset.description)))
            .collect(),
    })
}

fn named(name: &str, about: &str) -> Named {
    Named { name: name.to_owned(), about: about.to_owned() }
}

fn knob((name, about, kernels): (&'static str, &'static str, Vec<&'static str>)) -> Knob {
    Knob { name, about, kernels }
}

fn workload(name: &'static str) -> anyhow::Result<Workload> {
    let parameters = placewise_workload::parameters(name)?.iter();
    Ok(Workload {
        name: name.to_owned(),
        about: placewise_workload::summary(name)?.to_owned(),
        parameters: parameters.map(|parameter| named(parameter.name, parameter.meaning)).collect(),
    })
}

fn table(names: &Names) -> String {
    let mut text = section("kernels (--kernel)", &names.kernels);
    text += &section(
        "policies (--policy; join patches and knobs by `,` and hints by `+`)",
        &names.policies,
    );
    text += "knobs (set:NAME=VALUE in --policy, or --set NAME=VALUE), with the kernels that have them\n";
    for knob in &names.knobs {
        text += &line(2, knob.name, knob.about);
        text += &line(4, "", &knob.kernels.join(", "));
    }
    text += "\n";
    text += "workloads (--workload, or the path of an rt-app JSON file), with the keys of --case\n";
    for workload in &names.workloads {
        text += &line(2, &workload.name, &workload.about);
        for parameter in &workload.parameters {
            text += &line(4, &parameter.name, &parameter.about);
        }
    }
    text += "\n";
    text += &section("machines (--machine, or the path of a .toml or .xml file)", &names.machines);
    text.trim_end().to_owned() + "\n"
}

fn section(title: &str, names: &[Named]) -> String {
    let lines: String = names.iter().map(|n| line(2, &n.name, &n.about)).collect();
    format!("{title}\n{lines}\n")
}

fn line(indent: usize, name: &str, about: &str) -> String {
    let width = 26 - indent;
    format!("{:indent$}{name:<width$}{about}", "").trim_end().to_owned() + "\n"
}
