//! The plan of a study: a TOML file that names the values of each axis, what is left out of their
//! combinations, and how many runs there are.
//!
//! Each workload of a plan is laid out as `placewise compare` lays it out; a plan's fields have the names
//! and the meaning of its options. Nothing is simulated before all of it is known to be good, and what is
//! not is told with file, line and field.
//!
//! Limits: names of files are relative to the plan's directory, which becomes the working directory. A
//! plan names no code to run: policies of one's own come from the command line.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use glob::Pattern;
use placewise_policy::{own, with_knobs};
use placewise_workload::{self as workload, Environment};
use serde::Deserialize;
use toml::Spanned;

use crate::compare::CompareArgs;
use crate::compare::plan::{DEFAULT_KERNEL, Plan};
use crate::effort::{self, Effort};
use crate::input::InputError;
use crate::own_policy;
use crate::report::Format;
use crate::subject::{Axis, Subject};
use crate::uncertain::Uncertain;

/// A plan that can be carried out.
pub struct StudyPlan {
    /// One for each workload.
    pub parts: Vec<Part>,
    /// Of each combination, before more are added.
    pub runs: u32,
    pub effort: Effort,
    pub seed: u64,
    /// Rows have the figures that say why, too.
    pub stats: bool,
    /// A simulation that takes longer has failed.
    pub limit: Duration,
}

pub struct Part {
    pub workload: String,
    pub plan: Plan,
    pub groups: Vec<Group>,
}

/// What changes are told in: combinations in one case, of which the first is what the others are
/// compared with.
pub struct Group {
    pub case: usize,
    pub combinations: Vec<usize>,
}

type Names = Vec<Spanned<String>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    machines: Spanned<Names>,
    #[serde(default)]
    kernels: Names,
    costs_from: Option<Spanned<String>>,
    #[serde(default)]
    policies: Names,
    #[serde(default)]
    set: Names,
    #[serde(default)]
    environments: Names,
    runs: Option<Spanned<u32>>,
    seed: Option<u64>,
    precision: Option<Spanned<f64>>,
    budget: Option<Spanned<u32>>,
    #[serde(default)]
    quick: bool,
    #[serde(default)]
    stats: bool,
    limit: Option<Spanned<String>>,
    /// Axes whose values are not compared with each other.
    #[serde(default)]
    within: Names,
    #[serde(default)]
    workload: Vec<Spanned<WorkloadEntry>>,
    #[serde(default)]
    leave_out: Vec<LeaveOut>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadEntry {
    name: Spanned<String>,
    #[serde(default)]
    cases: Names,
}

/// Combinations whose values match all that is named here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LeaveOut {
    machine: Option<Spanned<Patterns>>,
    kernel: Option<Spanned<Patterns>>,
    workload: Option<Spanned<Patterns>>,
    case: Option<Spanned<Patterns>>,
    environment: Option<Spanned<Patterns>>,
    policy: Option<Spanned<Patterns>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Patterns {
    One(String),
    Several(Vec<String>),
}

const LONGEST: Duration = Duration::from_secs(3_600);
const MOST_RUNS: Range<u32> = 1..10_001;

impl StudyPlan {
    /// `further` policies stand behind those of the plan.
    pub fn read(path: &Path, further: &[String]) -> anyhow::Result<Self> {
        let refuse = |why: String| InputError(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(path)
            .map_err(|error| refuse(format!("cannot be read: {error}")))?;
        // Own code is found from here, all else from the plan.
        further.iter().try_for_each(|policy| own_policy::prepare(policy).map(drop))?;
        if let Some(directory) = path.parent().filter(|parent| *parent != Path::new("")) {
            std::env::set_current_dir(directory)
                .map_err(|error| refuse(format!("its directory cannot be entered: {error}")))?;
        }
        let plan = Self::parse(&text, further);
        plan.map_err(|wrong| refuse(wrong.told(&text)).into())
    }

    fn parse(text: &str, further: &[String]) -> Result<Self, Wrong> {
        let file: PlanFile = toml::from_str(text).map_err(|error| Wrong::syntax(text, &error))?;
        file.check()?;
        let mut parts = Vec::new();
        for entry in &file.workload {
            let args = file.compare_args(entry.get_ref(), further);
            let plan = Plan::new(&args).map_err(|error| file.blame(entry, &error))?;
            parts.push(Part::new(&file, args.workload, plan)?);
        }
        check_leave_outs(&file, &parts)?;
        Ok(Self {
            parts,
            runs: file.runs(),
            effort: file.effort(),
            seed: file.seed(),
            stats: file.stats,
            limit: file.limit()?,
        })
    }
}

impl Part {
    fn new(file: &PlanFile, workload: String, plan: Plan) -> Result<Self, Wrong> {
        let within = file.within()?;
        let mut groups = Vec::new();
        for (case, planned) in plan.cases.iter().enumerate() {
            let mut of_case: Vec<(Vec<&str>, Group)> = Vec::new();
            for (at, combination) in plan.combinations.iter().enumerate() {
                let subject = &combination.subject;
                if file.leave_out.iter().any(|it| it.matches(&workload, &planned.name, subject)) {
                    continue;
                }
                let apart: Vec<&str> = within.iter().map(|axis| axis.value(subject)).collect();
                match of_case.iter_mut().find(|(known, _)| *known == apart) {
                    Some((_, group)) => group.combinations.push(at),
                    None => of_case.push((apart, Group { case, combinations: vec![at] })),
                }
            }
            groups.extend(of_case.into_iter().map(|(_, group)| group));
        }
        Ok(Self { workload, plan, groups })
    }
}

impl PlanFile {
    /// What `Plan` does not look at.
    fn check(&self) -> Result<(), Wrong> {
        if self.machines.get_ref().is_empty() {
            let problem = "names none; name one machine at least";
            return Err(Wrong::at("machines", &self.machines, problem.into()));
        }
        if self.workload.is_empty() {
            return Err(Wrong::field("workload", "there is none; add a [[workload]] with a name"));
        }
        if let Some(own) = self.policies.iter().find(|it| own::names_directory(it.get_ref())) {
            let problem = "a plan names no code to run; give a directory with --policy";
            return Err(Wrong::at("policies", own, format!("{}: {problem}", own.get_ref())));
        }
        let numbers = [("runs", &self.runs), ("budget", &self.budget)];
        for (field, number) in numbers {
            if let Some(number) = number.as_ref().filter(|it| !MOST_RUNS.contains(it.get_ref())) {
                return Err(Wrong::at(field, number, "expected a number from 1 to 10000".into()));
            }
        }
        if let Some(precision) = &self.precision {
            effort::precision(&precision.get_ref().to_string())
                .map_err(|problem| Wrong::at("precision", precision, problem))?;
        }
        match (&self.budget, &self.precision) {
            (Some(budget), None) => {
                let problem = "only with `precision` runs are added; set it, or `runs` alone";
                Err(Wrong::at("budget", budget, problem.into()))
            }
            (Some(budget), _) if *budget.get_ref() < self.runs() => {
                let problem = format!("is less than the {} runs there are anyway", self.runs());
                Err(Wrong::at("budget", budget, problem))
            }
            _ => Ok(()),
        }
    }

    fn runs(&self) -> u32 {
        self.runs.as_ref().map_or(if self.quick { 3 } else { 5 }, |runs| *runs.get_ref())
    }

    fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    fn effort(&self) -> Effort {
        let precision = self.precision.as_ref().map(|it| *it.get_ref());
        Effort::new(precision, self.budget.as_ref().map(|it| *it.get_ref()))
    }

    fn limit(&self) -> Result<Duration, Wrong> {
        let Some(limit) = &self.limit else { return Ok(LONGEST) };
        let parsed = humantime::parse_duration(limit.get_ref()).ok();
        parsed.filter(|limit| !limit.is_zero()).ok_or_else(|| {
            let problem = format!("`{}` is no time; expected one such as 10min", limit.get_ref());
            Wrong::at("limit", limit, problem)
        })
    }

    fn within(&self) -> Result<Vec<Axis>, Wrong> {
        let axis = |name: &Spanned<String>| {
            let axis = Axis::ALL.into_iter().find(|axis| axis.name() == name.get_ref());
            axis.ok_or_else(|| {
                let known = Axis::ALL.map(Axis::name).join(", ");
                let problem = format!("`{}` is no axis; expected {known}", name.get_ref());
                Wrong::at("within", name, problem)
            })
        };
        self.within.iter().map(axis).collect()
    }

    fn policies(&self, further: &[String]) -> Vec<String> {
        let mut policies = texts(&self.policies);
        if policies.is_empty() {
            policies.push("baseline".into());
        }
        policies.extend_from_slice(further);
        policies
    }

    fn compare_args(&self, entry: &WorkloadEntry, further: &[String]) -> CompareArgs {
        CompareArgs {
            machines: texts(self.machines.get_ref()),
            kernels: texts(&self.kernels),
            costs_from: self.costs_from.as_ref().map(|it| it.get_ref().clone()),
            workload: entry.name.get_ref().clone(),
            cases: texts(&entry.cases),
            environments: texts(&self.environments),
            policies: self.policies(further),
            knobs: texts(&self.set),
            runs: Some(self.runs()),
            quick: self.quick,
            effort: self.effort(),
            uncertain: Uncertain::default(),
            seed: self.seed(),
            jobs: None,
            format: Format::Json,
            trace: None,
            trace_decisions: false,
            perfetto: None,
            html: None,
            stats: None,
        }
    }

    /// The field that `error` is about: the first whose value is wrong by itself.
    fn blame(&self, entry: &Spanned<WorkloadEntry>, error: &anyhow::Error) -> Wrong {
        let problem = format!("{error:#}").replace("--", "");
        let machine = |it: &&Spanned<String>| placewise_machine::load(it.get_ref()).is_err();
        let environment = |it: &&Spanned<String>| Environment::load(it.get_ref()).is_err();
        let kernel = |it: &&Spanned<String>| own_policy::parse(it.get_ref(), "baseline").is_err();
        let decides = |policy: &str| {
            let kernels = self.kernels.iter().map(|kernel| kernel.get_ref().as_str());
            let mut kernels = kernels.chain(self.kernels.is_empty().then_some(DEFAULT_KERNEL));
            kernels.all(|kernel| own_policy::parse(kernel, policy).is_ok())
        };
        let knob = |it: &&Spanned<String>| {
            !decides(&with_knobs("baseline", &[(*it).clone().into_inner()]))
        };
        let policy = |it: &&Spanned<String>| !decides(it.get_ref());
        let WorkloadEntry { name, cases } = entry.get_ref();
        let case = |it: &&Spanned<String>| {
            let case = it.get_ref().parse::<workload::Case>();
            case.map_err(drop)
                .and_then(|case| workload::build(name.get_ref(), &case).map_err(drop))
                .is_err()
        };
        let known = workload::names().any(|known| known == name.get_ref());
        let suspects = [
            ("machines", self.machines.get_ref().iter().find(machine)),
            ("costs_from", self.costs_from.iter().find(machine)),
            ("kernels", self.kernels.iter().find(kernel)),
            ("set", self.set.iter().find(knob)),
            ("policies", self.policies.iter().find(policy)),
            ("environments", self.environments.iter().find(environment)),
            ("workload.cases", cases.iter().filter(|_| known).find(case)),
            ("machines", second(self.machines.get_ref())),
            ("kernels", second(&self.kernels)),
            ("policies", second(&self.policies)),
            ("environments", second(&self.environments)),
            ("workload.cases", second(cases)),
        ];
        let guilty = suspects.into_iter().find_map(|(field, it)| Some((field, it?)));
        let (field, it) = guilty.unwrap_or(("workload.name", name));
        Wrong::at(field, it, problem)
    }
}

/// One that is named for the second time.
fn second(names: &[Spanned<String>]) -> Option<&Spanned<String>> {
    let of = |at: usize| names[at].get_ref();
    (1..names.len()).find(|at| (0..*at).any(|before| of(before) == of(*at))).map(|at| &names[at])
}

fn texts(names: &[Spanned<String>]) -> Vec<String> {
    names.iter().map(|name| name.get_ref().clone()).collect()
}

impl LeaveOut {
    fn fields(&self) -> [(&'static str, &Option<Spanned<Patterns>>); 6] {
        [
            ("machine", &self.machine),
            ("kernel", &self.kernel),
            ("workload", &self.workload),
            ("case", &self.case),
            ("environment", &self.environment),
            ("policy", &self.policy),
        ]
    }

    fn matches(&self, workload: &str, case: &str, subject: &Subject) -> bool {
        self.fields().into_iter().all(|(field, patterns)| {
            let value = value(field, workload, case, subject);
            patterns.as_ref().is_none_or(|patterns| patterns.get_ref().match_any(value))
        })
    }
}

fn value<'a>(field: &str, workload: &'a str, case: &'a str, subject: &'a Subject) -> &'a str {
    match field {
        "workload" => workload,
        "case" => case,
        axis => {
            let axis = Axis::ALL.into_iter().find(|known| known.name() == axis);
            axis.expect("all others are axes").value(subject)
        }
    }
}

impl Patterns {
    fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Several(texts) => texts,
        }
    }

    fn match_any(&self, value: &str) -> bool {
        let matches = |text: &String| Pattern::new(text).is_ok_and(|it| it.matches(value));
        self.texts().iter().any(matches)
    }
}

/// A pattern that matches nothing is a slip, and so is a study without cells.
fn check_leave_outs(file: &PlanFile, parts: &[Part]) -> Result<(), Wrong> {
    let matches = |field: &str, text: &String| {
        let pattern = Pattern::new(text).ok()?;
        let found = parts.iter().any(|Part { workload, plan, .. }| {
            plan.cases.iter().any(|case| {
                let value = |subject| value(field, workload, &case.name, subject);
                plan.combinations.iter().any(|of| pattern.matches(value(&of.subject)))
            })
        });
        found.then_some(())
    };
    for leave_out in &file.leave_out {
        let named =
            leave_out.fields().into_iter().filter_map(|(name, it)| Some((name, it.as_ref()?)));
        for (field, patterns) in named {
            let texts = patterns.get_ref().texts();
            if let Some(text) = texts.iter().find(|text| matches(field, text).is_none()) {
                let problem = format!("`{text}` matches no {field} of this plan");
                return Err(Wrong::at(&format!("leave_out.{field}"), patterns, problem));
            }
        }
    }
    match parts.iter().all(|part| part.groups.is_empty()) {
        true => Err(Wrong::field("leave_out", "leaves nothing to simulate")),
        false => Ok(()),
    }
}

/// What is wrong in a plan, and where.
struct Wrong {
    field: Option<String>,
    /// In bytes.
    at: Option<usize>,
    problem: String,
}

impl Wrong {
    fn at<T>(field: &str, value: &Spanned<T>, problem: String) -> Self {
        Self { field: Some(field.into()), at: Some(value.span().start), problem }
    }

    fn field(field: &str, problem: &str) -> Self {
        Self { field: Some(field.into()), at: None, problem: problem.into() }
    }

    /// toml's own message.
    fn syntax(text: &str, error: &toml::de::Error) -> Self {
        let at = error.span().map(|span| span.start);
        let field = at.and_then(|at| field_at(text, at));
        Self { field, at, problem: error.message().to_owned() }
    }

    fn told(&self, text: &str) -> String {
        let line = self.at.map(|at| format!("line {}: ", line_at(text, at))).unwrap_or_default();
        let field = self.field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
        format!("{line}{field}{}", self.problem)
    }
}

fn line_at(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

/// The key that the value there is of.
fn field_at(text: &str, at: usize) -> Option<String> {
    let lines: Vec<&str> = text.lines().take(line_at(text, at)).collect();
    let key = |line: &&str| {
        let (key, _) = line.split_once('=')?;
        let key = key.trim();
        let is_key =
            !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
        is_key.then(|| key.to_owned())
    };
    lines.iter().rev().find_map(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "\
machines = ['uma-8', 'x86-12']
policies = ['baseline', 'short-task']
runs = 2

[[workload]]
name = 'hackbench'
cases = ['groups=1;loops=2', 'groups=2;loops=2']
";

    fn wrong(text: &str) -> String {
        StudyPlan::parse(text, &[]).err().expect("it is wrong").told(text)
    }

    fn groups(more: &str) -> Vec<Vec<String>> {
        let plan = StudyPlan::parse(&format!("{more}\n{PLAN}"), &[]);
        let plan = plan.unwrap_or_else(|wrong| panic!("{}", wrong.problem));
        let Part { plan, groups, .. } = &plan.parts[0];
        let label = |at: &usize| {
            let Subject { machine, policy, .. } = &plan.combinations[*at].subject;
            format!("{machine} {policy}")
        };
        groups.iter().map(|group| group.combinations.iter().map(label).collect()).collect()
    }

    #[test]
    fn combinations_are_compared_with_the_first_of_their_group() {
        let all = ["uma-8 baseline", "uma-8 short-task", "x86-12 baseline", "x86-12 short-task"];
        assert_eq!(groups(""), [all, all]);
        let apart = groups("within = ['machine']");
        assert_eq!(apart, [&all[..2], &all[2..], &all[..2], &all[2..]]);
    }

    #[test]
    fn what_matches_all_that_is_named_is_left_out() {
        let text = format!("{PLAN}\n[[leave_out]]\nmachine = ['x*']\npolicy = 'short-task'\n");
        let plan = StudyPlan::parse(&text, &[]).ok().unwrap();
        let sizes = plan.parts[0].groups.iter().map(|group| group.combinations.len());
        assert_eq!(sizes.collect::<Vec<_>>(), [3, 3]);
    }

    #[test]
    fn what_is_wrong_is_told_with_line_and_field() {
        let with = |from: &str, to: &str| wrong(&PLAN.replace(from, to));
        let starts = |told: String, start: &str| assert!(told.starts_with(start), "{told}");
        starts(with("'x86-12'", "'x86-13'"), "line 1: machines: machine `x86-13`");
        starts(with("'short-task'", "'shirt-task'"), "line 2: policies: ");
        starts(with("'short-task'", "'./mine'"), "line 2: policies: ./mine: a plan names no code");
        starts(with("runs = 2", "runs = 0"), "line 3: runs: expected a number");
        starts(with("runs = 2", "runs = 'two'"), "line 3: runs: invalid type");
        starts(with("runs = 2", "rums = 2"), "line 3: rums: unknown field");
        starts(with("runs = 2", "limit = 'long'"), "line 3: limit: `long` is no time");
        starts(with("runs = 2", "budget = 9"), "line 3: budget: only with `precision`");
        starts(with("runs = 2", "within = ['seed']"), "line 3: within: `seed` is no axis");
        starts(with("runs = 2", "environments = ['a.toml']"), "line 3: environments: a.toml");
        starts(with("runs = 2", "set = ['NO_SUCH=1']"), "line 3: set: ");
        starts(with("'hackbench'", "'hackbunch'"), "line 6: workload.name: ");
        starts(with("'groups=2;loops=2'", "'groops=2'"), "line 7: workload.cases: ");
        starts(with("'x86-12'", "'uma-8'"), "line 1: machines: machine uma-8: is given twice");
        starts(with("['uma-8', 'x86-12']", "[]"), "line 1: machines: names none");
        starts(wrong("machines = ['uma-8']"), "workload: there is none");
        let slip = format!("{PLAN}[[leave_out]]\nkernel = 'v9*'\n");
        starts(wrong(&slip), "line 9: leave_out.kernel: `v9*` matches no kernel");
        let nothing = format!("{PLAN}[[leave_out]]\nkernel = '*'\n");
        starts(wrong(&nothing), "leave_out: leaves nothing");
    }
}
