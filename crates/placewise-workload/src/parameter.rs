//! The parameters of a benchmark model: names, meanings, defaults and ranges, and the check of a
//! case against them. Where its tasks may run is a setting of every model.

use crate::case::Case;
use placewise_machine::CpuSet;

use crate::error::{WorkloadError, quoted, suggestion};
use crate::program::{Program, Window};

/// One parameter of a workload, for help texts and for checking a case.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub meaning: &'static str,
    pub value: Value,
}

/// What a parameter may be set to.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// A whole number from `min` to `max`.
    Integer {
        /// `None`: depends on other parameters, as the meaning says.
        default: Option<u64>,
        min: u64,
        max: u64,
        /// Empty for a count.
        unit: &'static str,
    },
    /// One of these words; the first is the default.
    Choice { words: &'static [&'static str] },
    /// What is written in a form of its own.
    Text {
        default: &'static str,
        /// What the form looks like.
        form: &'static str,
        /// Says what is wrong with a value, or how to write it so that equal ones read the same.
        canonical: fn(&str) -> Result<String, WorkloadError>,
    },
}

/// What every workload takes besides: where all its tasks may run, as `numactl` binds them.
pub const BINDING: [Parameter; 2] = [
    Parameter::set("cpus", "a CPU list, such as `0-15`", "CPUs its tasks may run on (numactl -C)"),
    Parameter::set("nodes", "such as `0-1`", "NUMA nodes its tasks may run on (numactl -N)"),
];

/// The binding that binds to nothing.
const ALL: &str = "all";

impl Parameter {
    /// A set of CPUs or nodes; where not set, all.
    const fn set(name: &'static str, form: &'static str, meaning: &'static str) -> Self {
        let value = Value::Text { default: ALL, form, canonical: canonical_set };
        Self { name, meaning, value }
    }

    pub(crate) const fn integer(
        name: &'static str,
        default: u64,
        min: u64,
        max: u64,
        unit: &'static str,
        meaning: &'static str,
    ) -> Self {
        let default = Some(default);
        let value = Value::Integer { default, min, max, unit };
        Self { name, meaning, value }
    }

    pub(crate) const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        let value = Value::Choice { words };
        Self { name, meaning, value }
    }

    /// `startup_us`, of workloads whose tasks wait until all are there.
    pub(crate) const fn startup_us() -> Self {
        Self::integer(
            "startup_us",
            60,
            0,
            1_000_000,
            "us",
            "CPU time of a new task before it is ready: page faults of its stack and heap [assumed]",
        )
    }

    /// `warmup_ms`, which every workload has.
    pub(crate) const fn warmup_ms(default: u64) -> Self {
        Self::integer(
            "warmup_ms",
            default,
            0,
            LONGEST_MS,
            "ms",
            "simulated time after the start that is not measured; where not set, longer until steady",
        )
    }

    /// `window_ms`, which every workload has.
    pub(crate) const fn window_ms(default: u64) -> Self {
        Self::integer("window_ms", default, 1, LONGEST_MS, "ms", "simulated time that is measured")
    }

    fn check(&self, text: &str) -> Result<(), WorkloadError> {
        let wrong = |expected: String| {
            let place = format!("{}={}", self.name, text);
            Err(WorkloadError::new(quoted(&place), format!("expected {expected}")))
        };
        match self.value {
            Value::Choice { words } if words.contains(&text) => Ok(()),
            Value::Choice { words } => wrong(words.join(" or ")),
            Value::Integer { min, max, unit, .. } => match parse_integer(text) {
                Some(number) if (min..=max).contains(&number) => Ok(()),
                _ => wrong(
                    format!("a whole number from {min} to {max} {unit}").trim_end().to_string(),
                ),
            },
            Value::Text { canonical, .. } => canonical(text).map(|_| ()),
        }
    }

    /// A value that is checked, numbers without leading zeros.
    fn canonical(&self, text: &str) -> String {
        let written = match self.value {
            Value::Choice { .. } => None,
            Value::Integer { .. } => parse_integer(text).map(|number| number.to_string()),
            Value::Text { canonical, .. } => canonical(text).ok(),
        };
        written.unwrap_or_else(|| text.to_owned())
    }
}

fn parse_set(text: &str) -> Result<Option<CpuSet>, WorkloadError> {
    if text == ALL {
        return Ok(None);
    }
    let wrong = || WorkloadError::new(quoted(text), "expected `all` or a list, such as `0-15,32`");
    let set = CpuSet::parse_list(text).map_err(|_| wrong())?;
    if set.is_empty() { Err(wrong()) } else { Ok(Some(set)) }
}

fn canonical_set(text: &str) -> Result<String, WorkloadError> {
    Ok(parse_set(text)?.map_or(ALL.to_owned(), |set| set.to_string()))
}

/// Ten minutes of simulated time: far beyond what any of the models needs to settle.
const LONGEST_MS: u64 = 600_000;

/// `+5` is not a number here although `u64::from_str` takes it.
fn parse_integer(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// A case that fits the parameters of a workload.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    parameters: &'static [Parameter],
    case: &'a Case,
}

impl<'a> Settings<'a> {
    /// Refuses unknown keys and values out of range.
    pub(crate) fn check(
        parameters: &'static [Parameter],
        case: &'a Case,
    ) -> Result<Self, WorkloadError> {
        for (key, value) in case.iter() {
            let mut all = parameters.iter().chain(&BINDING);
            let Some(parameter) = all.find(|parameter| parameter.name == key) else {
                let all = parameters.iter().chain(&BINDING);
                let known: Vec<&str> = all.map(|parameter| parameter.name).collect();
                return Err(WorkloadError::new(
                    format!("case key {}", quoted(key)),
                    format!("unknown; {}", suggestion(key, &known)),
                ));
            };
            parameter.check(value)?;
        }
        Ok(Self { parameters, case })
    }

    /// The keys that are set, in the order of the workload's parameters, with canonical values.
    pub(crate) fn canonical(&self) -> Case {
        let mut case = Case::default();
        for parameter in self.parameters.iter().chain(&BINDING) {
            let Some(text) = self.case.get(parameter.name) else {
                continue;
            };
            case = case.with(parameter.name, parameter.canonical(text));
        }
        case
    }

    /// The value of an integer parameter that has a default.
    pub(crate) fn integer(&self, name: &str) -> u64 {
        self.integer_or(name, 0)
    }

    /// The value of an integer parameter whose default depends on others.
    pub(crate) fn integer_or(&self, name: &str, otherwise: u64) -> u64 {
        let Value::Integer { default, .. } = self.parameter(name).value else {
            unreachable!("{name} is not an integer parameter");
        };
        let given = self.case.get(name).and_then(parse_integer);
        given.or(default).unwrap_or(otherwise)
    }

    /// As [`Settings::integer`], for counts whose range fits.
    pub(crate) fn count(&self, name: &str) -> u32 {
        u32::try_from(self.integer(name)).expect("the parameter's range fits a u32")
    }

    /// The word a choice parameter is set to.
    pub(crate) fn choice(&self, name: &str) -> &'a str {
        let Value::Choice { words } = self.parameter(name).value else {
            unreachable!("{name} is not a choice parameter");
        };
        self.case.get(name).unwrap_or(words[0])
    }

    /// What a text parameter is set to.
    pub(crate) fn text(&self, name: &str) -> &'a str {
        let Value::Text { default, .. } = self.parameter(name).value else {
            unreachable!("{name} is not a text parameter");
        };
        self.case.get(name).unwrap_or(default)
    }

    /// The window that `warmup_ms` and `window_ms` set. A warm-up that is asked for is as long as
    /// that, whether the workload has settled or not.
    pub(crate) fn window(&self) -> Window {
        self.window_or(0)
    }

    /// As [`Settings::window`], for a `window_ms` whose default depends on other parameters.
    pub(crate) fn window_or(&self, window_ms: u64) -> Window {
        let warm_up = self.integer("warmup_ms") * 1_000_000;
        Window {
            warm_up,
            until_steady: warm_up > 0 && self.case.get("warmup_ms").is_none(),
            measure: self.integer_or("window_ms", window_ms) * 1_000_000,
        }
    }

    /// The same where a run has a `near` end: all of it is simulated, unless part of it is asked for.
    pub(crate) fn window_of(&self, near: bool) -> Window {
        let asked_for = ["warmup_ms", "window_ms"].map(|name| self.case.get(name));
        match near && asked_for == [None; 2] {
            true => Window { measure: LONGEST_MS * 1_000_000, ..Window::default() },
            false => self.window(),
        }
    }

    /// Binds the programs that are not bound otherwise.
    pub(crate) fn bind(&self, programs: &mut [Program]) {
        let set = |name| self.case.get(name).and_then(|text| parse_set(text).ok()).flatten();
        let (cpus, nodes) = (set("cpus"), set("nodes"));
        for program in programs {
            program.cpus = program.cpus.or(cpus);
            program.nodes = program.nodes.or(nodes);
        }
    }

    fn parameter(&self, name: &str) -> &'static Parameter {
        self.parameters
            .iter()
            .find(|parameter| parameter.name == name)
            .unwrap_or_else(|| unreachable!("{name} is not a parameter of this workload"))
    }
}
