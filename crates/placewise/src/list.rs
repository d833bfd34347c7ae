//! `placewise list`: the names that `placewise compare` takes, and what a case may set.

use std::io::{self, Write};

use clap::ValueEnum;
use placewise_workload::{BINDING, Parameter, Value};
use serde::Serialize;

use crate::report::{TableOrJson, json, terminal};

const EXAMPLE: &str = "\
Examples:
  placewise list workloads
  placewise list --format json

`placewise machine show NAME` tells more about a machine.";

/// List the kernels, policies, workloads and machines there are
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct ListArgs {
    /// What to list [default: all]
    #[arg(value_enum, value_name = "WHAT")]
    what: Option<What>,

    /// How to print the list
    #[arg(long, value_enum, default_value_t = TableOrJson::Table)]
    format: TableOrJson,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum What {
    /// What --kernel takes
    Kernels,
    /// What --policy takes
    Policies,
    /// What --set takes
    Knobs,
    /// What --workload takes, with the keys of --case
    Workloads,
    /// What --machine takes
    Machines,
}

/// What is not asked for is left out.
#[derive(Serialize)]
struct Names {
    #[serde(skip_serializing_if = "Option::is_none")]
    kernels: Option<Vec<Named>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policies: Option<Vec<Named>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    knobs: Option<Vec<Knob>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workloads: Option<Vec<Workload>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    machines: Option<Vec<Named>>,
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
    parameters: Vec<Setting>,
}

/// A key of a case, and what it may be set to.
#[derive(Serialize)]
struct Setting {
    name: String,
    about: String,
    /// As it is written in a case; `None`: it depends on others, as `about` says.
    default: Option<String>,
    /// A whole number from `min` to `max`, one of `choices`, or what `form` describes.
    min: Option<u64>,
    max: Option<u64>,
    unit: Option<&'static str>,
    choices: Option<&'static [&'static str]>,
    form: Option<&'static str>,
}

pub fn run(args: &ListArgs) -> anyhow::Result<()> {
    let names = names(args.what)?;
    let text = match args.format {
        TableOrJson::Table => table(&names),
        TableOrJson::Json => json::render(&names)?,
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn names(what: Option<What>) -> anyhow::Result<Names> {
    let is_wanted = |one: What| what.is_none_or(|what| what == one);
    let workloads = || placewise_workload::names().map(workload).collect::<anyhow::Result<_>>();
    Ok(Names {
        kernels: is_wanted(What::Kernels).then(kernels),
        policies: is_wanted(What::Policies).then(policies),
        knobs: is_wanted(What::Knobs).then(knobs),
        workloads: is_wanted(What::Workloads).then(workloads).transpose()?,
        machines: is_wanted(What::Machines).then(machines),
    })
}

fn kernels() -> Vec<Named> {
    placewise_policy::kernel_names().iter().map(|name| named(name, "")).collect()
}

fn policies() -> Vec<Named> {
    let baseline = named("baseline", "the kernel as it is");
    let patches = placewise_policy::patch_names();
    let patches = patches.iter().map(|(name, about)| named(name, about));
    std::iter::once(baseline).chain(patches).collect()
}

fn knobs() -> Vec<Knob> {
    let knobs = placewise_policy::knob_names().into_iter();
    knobs.map(|(name, about, kernels)| Knob { name, about, kernels }).collect()
}

fn machines() -> Vec<Named> {
    let host = named("host", "the machine this runs on");
    let presets = placewise_machine::presets();
    let presets = presets.iter().map(|preset| named(preset.name, &preset.description));
    std::iter::once(host).chain(presets).collect()
}

fn named(name: &str, about: &str) -> Named {
    Named { name: name.to_owned(), about: about.to_owned() }
}

fn workload(name: &'static str) -> anyhow::Result<Workload> {
    let parameters = placewise_workload::parameters(name)?.iter().chain(&BINDING);
    Ok(Workload {
        name: name.to_owned(),
        about: placewise_workload::summary(name)?.to_owned(),
        parameters: parameters.map(Setting::of).collect(),
    })
}

impl Setting {
    fn of(parameter: &Parameter) -> Self {
        let mut setting = Setting {
            name: parameter.name.to_owned(),
            about: parameter.meaning.to_owned(),
            default: None,
            min: None,
            max: None,
            unit: None,
            choices: None,
            form: None,
        };
        match parameter.value {
            Value::Integer { default, min, max, unit } => {
                setting.default = default.map(|number| number.to_string());
                (setting.min, setting.max) = (Some(min), Some(max));
                setting.unit = Some(unit).filter(|unit| !unit.is_empty());
            }
            Value::Choice { words } => {
                setting.default = words.first().map(|word| word.to_string());
                setting.choices = Some(words);
            }
            Value::Text { default, form, .. } => {
                setting.default = Some(default.to_owned());
                setting.form = Some(form);
            }
        }
        setting
    }

    /// `groups of tasks: 1 to 4096 [default: 1]`
    fn told(&self) -> String {
        let unit = self.unit.map(|unit| format!(" {unit}")).unwrap_or_default();
        let range = match (self.min, self.max, self.choices, self.form) {
            (Some(min), Some(max), ..) => format!("{min} to {max}{unit}"),
            (_, _, Some(words), _) => words.join(" or "),
            (_, _, _, form) => form.unwrap_or_default().to_owned(),
        };
        let default = self.default.iter().map(|text| format!(" [default: {text}]"));
        format!("{}: {range}{}", self.about, default.collect::<String>())
    }
}

fn table(names: &Names) -> String {
    let policies = "policies (--policy; join patches and knobs by `,` and hints by `+`)";
    let machines = "machines (--machine, or the path of a .toml or .xml file)";
    let sections = [
        names.kernels.as_ref().map(|kernels| section("kernels (--kernel)", kernels)),
        names.policies.as_ref().map(|all| section(policies, all)),
        names.knobs.as_ref().map(|all| section_of_knobs(all)),
        names.workloads.as_ref().map(|all| section_of_workloads(all)),
        names.machines.as_ref().map(|all| section(machines, all)),
    ];
    sections.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn section(title: &str, names: &[Named]) -> String {
    let lines: String = names.iter().map(|one| entry(2, &one.name, &one.about)).collect();
    format!("{title}\n{lines}")
}

fn section_of_knobs(knobs: &[Knob]) -> String {
    let title =
        "knobs (set:NAME=VALUE in --policy, or --set NAME=VALUE), with the kernels that have them";
    let line_of =
        |knob: &Knob| entry(2, knob.name, knob.about) + &entry(4, "", &knob.kernels.join(", "));
    format!("{title}\n{}", knobs.iter().map(line_of).collect::<String>())
}

fn section_of_workloads(workloads: &[Workload]) -> String {
    let title =
        "workloads (--workload, or the path of an rt-app JSON file), with the keys of --case";
    let of = |workload: &Workload| {
        let settings = workload.parameters.iter();
        let settings: String =
            settings.map(|setting| entry(4, &setting.name, &setting.told())).collect();
        entry(2, &workload.name, &workload.about) + &settings
    };
    format!("{title}\n{}", workloads.iter().map(of).collect::<String>())
}

/// A name with what it is about behind it, on lines of at most 100 columns. A name that is too long for
/// that has a line of its own.
fn entry(indent: usize, name: &str, about: &str) -> String {
    const ABOUT: usize = 26;
    let name = format!("{:indent$}{name}", "");
    if about.is_empty() {
        return name + "\n";
    }
    let below = " ".repeat(ABOUT);
    let (own_line, first) = match name.len() < ABOUT {
        true => (String::new(), format!("{name:<ABOUT$}")),
        false => (name + "\n", below.clone()),
    };
    let options =
        terminal::lines().initial_indent(&first).subsequent_indent(&below).break_words(false);
    own_line + &textwrap::fill(about, options) + "\n"
}
