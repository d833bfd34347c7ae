//! `placewise compare`: the same workload, machine and seeds under several policies, as a table.
//!
//! Runs are added to a case until its changes are known, if asked for. They are independent and go wide over threads; their results are ordered by what they are, not
//! by when they came, so the report is the same for any number of jobs.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Context;
use clap::builder::RangedU64ValueParser;
use placewise_machine::Machine;

use crate::comparison::{self, Comparison, Series};
use crate::effort::Effort;
use crate::input::InputError;
use crate::load_balance;
use crate::output_file::{self, OutputFile};
use crate::parallel;
use crate::report::Format;
use crate::uncertain::{self, Uncertain};
use placewise_machine::TraceTopology;
use placewise_policy::Policy;
use placewise_sim::{Figure, Outcome, Scenario, simulate};
use placewise_trace::{FtraceWriter, Header, Sink};
use placewise_workload as workload;
use placewise_workload::program::Workload;
use placewise_workload::{Case, Environment};

const EXAMPLE: &str = "\
Example:
  placewise compare --machine zen3-2s-nps1 --workload hackbench \\
      --case groups=1 --case groups=2 --policy baseline --policy short-task

`placewise list` names the kernels, policies, workloads and machines there are.
Exit status: 0 on success, 2 when the input is at fault, 1 when something else went wrong.";

/// Compare placement policies on one machine and workload
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct CompareArgs {
    /// Preset, `host`, hwloc XML file, lstopo synthetic string or TOML file
    #[arg(long, value_name = "MACHINE", default_value = "host")]
    machine: String,

    /// Kernel the policies are changes to
    #[arg(long, value_name = "KERNEL", default_value = "v6.0")]
    kernel: String,

    /// Benchmark, or the path of an rt-app JSON file
    #[arg(long, value_name = "WORKLOAD")]
    workload: String,

    /// Parameters of the benchmark, KEY=VALUE joined by `;` (repeatable) [default: a ladder]
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<String>,

    /// Cgroups of the tasks, and what changes while they run: an environment file (TOML)
    #[arg(long, value_name = "FILE")]
    environment: Option<PathBuf>,

    /// Policy: `baseline`, a patch, `hint:A+B`, or several joined by `,` (repeatable); the first is
    /// what the others are compared with
    #[arg(long = "policy", value_name = "POLICY", default_value = "baseline")]
    policies: Vec<String>,

    /// Runs of each case and policy; run i uses seed SEED + i for every policy
    #[arg(long, default_value_t = 5, value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000))]
    runs: u32,

    #[command(flatten)]
    effort: Effort,

    #[command(flatten)]
    uncertain: Uncertain,

    /// Seed of the first run
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Threads to simulate on; the result does not depend on it [default: all CPUs]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    jobs: Option<usize>,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Write the first run of the first case under the last policy as ftrace text
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Add to the trace what each placement decision read and answered
    #[arg(long, requires = "trace")]
    trace_decisions: bool,

    /// Add the figures that say why: wakeups by domain level, migrations, wait time, idle time, and
    /// what load balancing did
    #[arg(long)]
    stats: bool,
}

pub fn run(args: &CompareArgs) -> anyhow::Result<()> {
    let plan = Plan::new(args)?;
    let create = |path| OutputFile::create(path, output_file::FOR_ALL);
    let mut trace = args.trace.as_deref().map(create).transpose()?;
    let outcomes = plan.simulate_all(args, trace.as_mut())?;
    let comparison = plan.comparison(args, &outcomes);
    let uncertain = plan.uncertain(args)?;
    let text = uncertain::render(&comparison, args.format, uncertain.as_deref())?;
    // Without one of them, the other is as good as ever.
    let traced = trace.map_or(Ok(()), OutputFile::finish);
    let printed = io::stdout().write_all(text.as_bytes());
    traced?;
    Ok(printed?)
}

/// The checked input: nothing is simulated before all of it is known to be good.
struct Plan {
    machine: Machine,
    policies: Vec<Policy>,
    cases: Vec<(String, Workload)>,
}

/// One simulation to do.
#[derive(Clone, Copy)]
struct Cell {
    case: usize,
    policy: usize,
    run: u32,
}

/// The runs of each policy in one case.
type OfCase = Vec<Vec<Outcome>>;

impl Plan {
    fn new(args: &CompareArgs) -> anyhow::Result<Self> {
        args.effort.check(args.runs, args.seed)?;
        args.uncertain.check(args.format)?;
        let machine = placewise_machine::load(&args.machine)?;
        let policies = policies(&args.kernel, &args.policies)?;
        let mut cases = cases(&args.workload, &args.cases, machine.online().len())?;
        if let Some(path) = &args.environment {
            let environment = Environment::read(path)?;
            for (_, workload) in &mut cases {
                environment.apply(workload)?;
            }
        }
        Ok(Self { machine, policies, cases })
    }

    /// `trace` receives the first run of the first case under the last policy.
    fn simulate_all(
        &self,
        args: &CompareArgs,
        trace: Option<&mut OutputFile>,
    ) -> anyhow::Result<Vec<OfCase>> {
        let mut outcomes = vec![vec![Vec::new(); self.policies.len()]; self.cases.len()];
        let mut open: Vec<usize> = (0..self.cases.len()).collect();
        let trace = Mutex::new(trace);
        let mut next = Some(0..args.runs);
        while let Some(runs) = next.filter(|_| !open.is_empty()) {
            let cells = self.cells(&open, runs.clone());
            for (cell, outcome) in cells.iter().zip(self.simulate_cells(&cells, args, &trace)?) {
                outcomes[cell.case][cell.policy].push(outcome);
            }
            open.retain(|case| !self.is_known(&outcomes[*case], args));
            next = args.effort.more(runs.end);
        }
        Ok(outcomes)
    }

    fn simulate_cells(
        &self,
        cells: &[Cell],
        args: &CompareArgs,
        trace: &Mutex<Option<&mut OutputFile>>,
    ) -> anyhow::Result<Vec<Outcome>> {
        let traced =
            |cell: &Cell| (cell.case, cell.policy + 1, cell.run) == (0, self.policies.len(), 0);
        let simulate_cell = |cell: &Cell| {
            let mut trace_of_cell = None;
            if traced(cell) {
                trace_of_cell = trace.lock().expect("no cell panics with the trace").take();
            }
            self.simulate(*cell, args, trace_of_cell)
        };
        parallel::map(cells, args.jobs, simulate_cell)?.into_iter().collect()
    }

    fn cells(&self, cases: &[usize], runs: Range<u32>) -> Vec<Cell> {
        let policies = 0..self.policies.len();
        let of_case = |case: usize| policies.clone().map(move |policy| (case, policy));
        let of_all = cases.iter().copied().flat_map(of_case);
        let cell = |(case, policy)| runs.clone().map(move |run| Cell { case, policy, run });
        of_all.flat_map(cell).collect()
    }

    fn is_known(&self, of_case: &OfCase, args: &CompareArgs) -> bool {
        let series = series(&self.by_policy(of_case), |outcome| &outcome.figures);
        args.effort.precision.is_none_or(|precision| comparison::is_known(&series, precision))
    }

    fn simulate(
        &self,
        cell: Cell,
        args: &CompareArgs,
        trace: Option<&mut OutputFile>,
    ) -> anyhow::Result<Outcome> {
        let (case, workload) = &self.cases[cell.case];
        let policy = &self.policies[cell.policy];
        let seed = args.seed + u64::from(cell.run);
        let scenario = Scenario { machine: &self.machine, policy, workload, seed };
        let mut writer = trace.map(|file| self.trace_writer(file, args, case, policy));
        let sink = writer.as_mut().map(|writer| writer as &mut dyn Sink);
        let outcome = simulate(&scenario, sink)
            .with_context(|| format!("{case} under {}, run {}", policy.name, cell.run + 1))?;
        // What cannot be written costs the trace, whose file keeps the error, not the figures.
        let _ = writer.map(FtraceWriter::finish);
        Ok(outcome)
    }

    /// The same under other costs.
    fn uncertain(&self, args: &CompareArgs) -> anyhow::Result<Option<Vec<uncertain::Row>>> {
        let compared = uncertain::Compared {
            machine: &self.machine,
            cases: self.cases.iter().map(|(case, _)| case.as_str()).collect(),
            policies: self.policies.iter().map(|policy| policy.name.as_str()).collect(),
            runs: args.runs,
            seed: args.seed,
            jobs: args.jobs,
        };
        uncertain::answer(&args.uncertain, &compared, |machine, run| {
            let (policy, (_, workload)) = (&self.policies[run.policy], &self.cases[run.case]);
            let seed = args.seed + u64::from(run.run);
            Ok(simulate(&Scenario { machine, policy, workload, seed }, None)?.figures)
        })
    }

    fn trace_writer<'f>(
        &self,
        file: &'f mut OutputFile,
        args: &CompareArgs,
        case: &str,
        policy: &Policy,
    ) -> FtraceWriter<&'f mut OutputFile> {
        let header = Header {
            kernel: Some(args.kernel.trim_start_matches('v').to_owned()),
            policy: Some(policy.name.clone()),
            command: Some(format!("{} {case}", args.workload)),
            topology: TraceTopology::of(&self.machine),
            ..Header::default()
        };
        let writer = FtraceWriter::new(file, self.machine.cpus.len()).with_header(&header);
        if args.trace_decisions { writer.with_decisions() } else { writer }
    }

    fn comparison(&self, args: &CompareArgs, outcomes: &[OfCase]) -> Comparison {
        let (mut rows, mut stats, mut load_balance) = (Vec::new(), Vec::new(), Vec::new());
        for ((case, _), of_case) in self.cases.iter().zip(outcomes) {
            let runs = self.by_policy(of_case);
            rows.extend(comparison::rows(case, &series(&runs, |o| &o.figures)));
            if args.stats {
                stats.extend(comparison::rows(case, &series(&runs, |o| &o.statistics.figures)));
                load_balance.extend(load_balance::rows(case, &runs));
            }
        }
        let runs = || outcomes.iter().map(|of_case| of_case[0].len() as u32);
        Comparison {
            machine: self.machine.name.clone(),
            costs_of: self.machine.costs_of.clone(),
            machine_shape: shape(&self.machine),
            kernel: args.kernel.clone(),
            workload: args.workload.clone(),
            runs: runs().max().unwrap_or(args.runs),
            least_runs: runs().min().unwrap_or(args.runs),
            seed: args.seed,
            rows,
            stats,
            load_balance,
            command: command(args),
        }
    }

    fn by_policy<'a>(&'a self, of_case: &'a OfCase) -> Vec<load_balance::Runs<'a>> {
        let of_policies = self.policies.iter().zip(of_case);
        of_policies
            .map(|(policy, outcomes)| load_balance::Runs { policy: &policy.name, outcomes })
            .collect()
    }
}

/// The figures of each policy's runs.
fn series<'a>(
    runs: &[load_balance::Runs<'a>],
    figures: fn(&Outcome) -> &[Figure],
) -> Vec<Series<'a>> {
    let of_policy = |of: &load_balance::Runs<'a>| Series {
        policy: of.policy,
        runs: of.outcomes.iter().map(figures).collect(),
    };
    runs.iter().map(of_policy).collect()
}

fn policies(kernel: &str, specs: &[String]) -> anyhow::Result<Vec<Policy>> {
    let mut policies: Vec<Policy> = Vec::new();
    for spec in specs {
        let policy = Policy::parse(kernel, spec)?;
        if policies.iter().any(|other| other.name == policy.name) {
            let problem = format!("--policy {spec}: is given twice; name each policy once");
            return Err(InputError(problem).into());
        }
        policies.push(policy);
    }
    Ok(policies)
}

/// The cases to run, each with its name in the report. An rt-app file is one case without a name.
fn cases(name: &str, specs: &[String], nr_cpus: usize) -> anyhow::Result<Vec<(String, Workload)>> {
    if is_path(name) {
        if let Some(spec) = specs.first() {
            let problem = format!("--case {spec}: an rt-app file has no cases; leave --case out");
            return Err(InputError(problem).into());
        }
        return Ok(vec![(String::new(), workload::from_rt_app(Path::new(name))?)]);
    }
    let cases: Vec<Case> = if specs.is_empty() {
        workload::default_cases(name, nr_cpus)?
    } else {
        specs.iter().map(|spec| spec.parse::<Case>()).collect::<Result<_, _>>()?
    };
    let mut named: Vec<(String, Workload)> = Vec::new();
    for case in &cases {
        let case_name = workload::canonical(name, case)?.to_string();
        if named.iter().any(|(other, _)| *other == case_name) {
            let problem = format!("--case {case}: is given twice; name each case once");
            return Err(InputError(problem).into());
        }
        named.push((case_name, workload::build(name, case)?));
    }
    Ok(named)
}

/// A benchmark's name has neither a directory nor an extension.
fn is_path(workload: &str) -> bool {
    workload.contains(['/', '.'])
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

/// The options that give the same figures again, every default spelt out.
fn command(args: &CompareArgs) -> Vec<String> {
    let mut command = Vec::new();
    let mut option = |name: &str, value: &str| {
        command.push(format!("--{name} {}", quoted(value)));
    };
    option("machine", &args.machine);
    option("kernel", &args.kernel);
    option("workload", &args.workload);
    args.cases.iter().for_each(|case| option("case", case));
    if let Some(path) = &args.environment {
        option("environment", &path.display().to_string());
    }
    args.policies.iter().for_each(|policy| option("policy", policy));
    option("runs", &args.runs.to_string());
    if let Some(precision) = args.effort.precision {
        option("precision", &precision.to_string());
        option("budget", &args.effort.budget().to_string());
    }
    option("seed", &args.seed.to_string());
    if args.stats {
        command.push("--stats".to_owned());
    }
    command
}

/// For a shell, with quotes only where it needs them.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+:,./".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => Cow::Borrowed(word),
        false => shell_words::quote(word),
    }
}
