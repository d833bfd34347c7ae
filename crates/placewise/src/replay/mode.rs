//! How a trace is replayed: as it was, or as a model of it, which may be longer and have more clients.

use std::time::Duration;

use clap::ValueEnum;
use placewise_machine::Machine;
use placewise_replay::{
    Draw, Measured, Model, Recording, Source, Validation, read, replayed, validate,
};
use placewise_workload::Case;

use crate::input::InputError;

/// More than so many of a task are a slip of the finger.
const MOST: u32 = 1_000;

/// How `--mode` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Word {
    /// What was recorded, in its order, once
    Exact,
    /// What tasks of each class do next, drawn anew from what they did
    Model,
}

/// The options.
#[derive(clap::Args)]
pub struct ModeArgs {
    /// What is replayed: each task's steps as they were, or steps drawn of a model
    #[arg(long, value_enum, default_value_t = Word::Exact)]
    mode: Word,

    /// With --mode model: how long it is, in seconds or with a unit such as 500ms [default: as the trace]
    #[arg(long, value_name = "TIME", value_parser = crate::record::duration)]
    length: Option<Duration>,

    /// With --mode model: N tasks of this name for one of the trace (repeatable)
    #[arg(long, value_name = "NAME=N")]
    scale: Vec<String>,
}

/// How a trace is replayed.
#[derive(Clone, Debug, PartialEq)]
pub enum Mode {
    Exact,
    /// `length`: as long as the trace, if none is named.
    Model {
        length: Option<Duration>,
        scale: Vec<(String, u32)>,
    },
}

impl ModeArgs {
    pub fn mode(&self) -> Result<Mode, InputError> {
        let scale: Vec<_> =
            self.scale.iter().map(|spec| scale("--scale", spec, '=')).collect::<Result<_, _>>()?;
        match self.mode {
            Word::Model => Ok(Mode::Model { length: self.length, scale }),
            Word::Exact if self.length.is_none() && scale.is_empty() => Ok(Mode::Exact),
            Word::Exact => {
                let problem = "--length and --scale take --mode model: a recording is as it is";
                Err(InputError(problem.into()))
            }
        }
    }
}

fn scale(of: &str, spec: &str, separator: char) -> Result<(String, u32), InputError> {
    let parsed = spec.rsplit_once(separator).and_then(|(name, count)| {
        let count = count.parse().ok().filter(|count| (1..=MOST).contains(count))?;
        (!name.is_empty()).then(|| (name.to_owned(), count))
    });
    let problem = || {
        format!(
            "{of} {spec}: expected NAME{separator}N, a task's name and a number from 1 to {MOST}"
        )
    };
    parsed.ok_or_else(|| InputError(problem()))
}

impl Mode {
    /// As `compare --case` has it: `mode=model;length=10s;scale=web:2+db:3`.
    pub fn of_case(spec: &str) -> anyhow::Result<Self> {
        let wrong = |problem: &str| InputError(format!("--case {spec}: {problem}"));
        let case: Case = spec.parse()?;
        let mut length = None;
        let mut scales = Vec::new();
        for (key, value) in case.iter() {
            match key {
                "mode" if ["exact", "model"].contains(&value) => {}
                "mode" => return Err(wrong("mode: expected exact or model").into()),
                "length" => {
                    let read = crate::record::duration(value);
                    length = Some(read.map_err(|error| wrong(&format!("length: {error}")))?);
                }
                "scale" => {
                    let parts = value.split('+').map(|part| scale("--case scale", part, ':'));
                    scales = parts.collect::<Result<_, _>>()?;
                }
                _ => return Err(wrong("a trace has mode, length and scale").into()),
            }
        }
        match case.get("mode") {
            Some("model") => Ok(Mode::Model { length, scale: scales }),
            _ if length.is_none() && scales.is_empty() => Ok(Mode::Exact),
            _ => Err(wrong("length and scale take mode=model").into()),
        }
    }

    /// What is replayed, what it was held against, and how that went.
    pub fn replayed(
        &self,
        source: &Source<'_>,
    ) -> anyhow::Result<(Recording, Measured, Validation)> {
        let Source { machine, kernel, .. } = *source;
        match self {
            Mode::Exact => Ok(replayed(source)?),
            Mode::Model { length, scale } => {
                let (recording, recorded) = read(source)?;
                let model = Model::of(&recording, cpus(machine));
                drop(recording);
                check_names(&model, scale)?;
                let as_long = Draw { length_ns: model.length_ns(), scale: Vec::new() };
                let mut drawn = model.draw(&as_long, cpus(machine));
                let recorded = recorded.stretched(&model.shares(&drawn));
                let validation = validate(&mut drawn, &recorded, machine, kernel)?;
                if length.is_some() || !scale.is_empty() {
                    let length_ns = length.map_or(drawn.length_ns, |it| it.as_nanos() as u64);
                    drawn = model.draw(&Draw { length_ns, scale: scale.clone() }, cpus(machine));
                    validation.fitted.apply(&mut drawn);
                }
                Ok((drawn, recorded, validation))
            }
        }
    }
}

fn cpus(machine: &Machine) -> usize {
    machine.online().len()
}

fn check_names(model: &Model, scale: &[(String, u32)]) -> Result<(), InputError> {
    match scale.iter().find(|(name, _)| !model.has(name)) {
        Some((name, _)) => {
            let problem = "expected the name of a task of the trace";
            Err(InputError(format!("scale of `{name}`: {problem}")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_say_how_a_trace_is_replayed() {
        assert_eq!(Mode::of_case("mode=exact").unwrap(), Mode::Exact);
        let scale = vec![("web".to_owned(), 2), ("a:b".to_owned(), 3)];
        let length = Some(Duration::from_millis(500));
        let model = Mode::of_case("mode=model;length=500ms;scale=web:2+a:b:3").unwrap();
        assert_eq!(model, Mode::Model { length, scale });
        for (wrong, problem) in [
            ("mode=x", "exact or model"),
            ("scale=web:2", "mode=model"),
            ("mode=model;scale=web", "NAME:N"),
            ("mode=model;scale=web:0", "1 to 1000"),
            ("mode=model;length=x", "length"),
            ("clients=2", "mode, length and scale"),
        ] {
            let error = Mode::of_case(wrong).unwrap_err().to_string();
            assert!(error.contains(problem), "{wrong}: {error}");
        }
    }
}
