//! The checked input: which combinations of machine, kernel, environment and policy are compared, in
//! which cases. Nothing is simulated before all of it is known to be good.
//!
//! Every axis may have several values; the combinations are all of them, and the first is what the
//! others are compared with. One policy alone that changes the kernel gets the kernel beside it.
//!
//! Limits: the default cases are those of the first machine.

use std::path::Path;

use placewise_machine::Machine;
use placewise_policy::{
    Policy, kernel_for_release, kernel_names, own, running_release, with_knobs,
};
use placewise_sim::{Scenario, simulate};
use placewise_workload::program::Workload;
use placewise_workload::{self as workload, Case, Environment};

use super::args::CompareArgs;
use crate::input::InputError;
use crate::own_policy;
use crate::replay::{self, Mode};
use crate::subject::{DescribedMachine, Subject};
use crate::uncertain;

pub const DEFAULT_KERNEL: &str = "v6.0";

/// What `--policy` says of a kernel as it is.
const BASELINE: &str = "baseline";

pub struct Plan {
    /// The first is what the others are compared with.
    pub combinations: Vec<Combination>,
    pub cases: Vec<PlannedCase>,
    machines: Vec<Machine>,
    /// Of the running kernel, where the kernel stands for it.
    pub release: Option<String>,
}

/// What is simulated in each case.
pub struct Combination {
    pub subject: Subject,
    /// Of the policy, whose name may say less.
    spec: String,
    machine: usize,
    environment: usize,
    policy: Policy,
}

pub struct PlannedCase {
    /// In the report; empty for a file.
    pub name: String,
    /// For each machine, if they are not alike on all, in each environment.
    workloads: Vec<Vec<Workload>>,
}

/// One simulation to do.
#[derive(Clone, Copy)]
pub struct Cell {
    pub case: usize,
    pub combination: usize,
    pub run: u32,
}

impl Plan {
    pub fn new(args: &CompareArgs) -> anyhow::Result<Self> {
        args.effort.check(args.runs(), args.seed)?;
        args.uncertain.check(args.format, args.machines.len())?;
        let machines = machines(&args.machines, args.costs_from.as_deref())?;
        let environments = environments(&args.environments)?;
        let (mut cases, recorded_under) = cases(&args.workload, &args.cases, &machines)?;
        let (kernels, release) = kernels(args, recorded_under.kernel)?;
        let preempt = recorded_under.preempt.filter(|_| args.kernels.is_empty());
        let combinations = combinations(args, &machines, (&kernels, preempt.as_deref()))?;
        let act_after_ns =
            combinations.iter().map(|it| it.policy.acts_after_ns()).max().unwrap_or(0);
        for case in &mut cases {
            case.put_into(&environments)?;
            if args.quick {
                case.shorten();
            }
            case.warm_up_for(act_after_ns);
        }
        Ok(Self { combinations, cases, machines, release })
    }

    pub fn scenario(&self, cell: Cell, first_seed: u64) -> Scenario<'_> {
        let combination = &self.combinations[cell.combination];
        Scenario {
            machine: &self.machines[combination.machine],
            policy: &combination.policy,
            workload: self.cases[cell.case].workload(combination),
            seed: first_seed + u64::from(cell.run),
        }
    }

    /// The same under other costs.
    pub fn uncertain(&self, args: &CompareArgs) -> anyhow::Result<Option<Vec<uncertain::Row>>> {
        let compared = uncertain::Compared {
            machine: &self.machines[0],
            cases: self.cases.iter().map(|case| case.name.as_str()).collect(),
            subjects: self.subjects(),
            runs: args.runs(),
            seed: args.seed,
            jobs: args.jobs,
        };
        uncertain::answer(
            &args.uncertain,
            &compared,
            |machine, uncertain::Run { case, subject, run }| {
                let cell = Cell { case, combination: subject, run };
                Ok(simulate(&Scenario { machine, ..self.scenario(cell, args.seed) }, None)?.figures)
            },
        )
    }

    pub fn subjects(&self) -> Vec<Subject> {
        self.combinations.iter().map(|of| of.subject.clone()).collect()
    }

    /// What gives each of the policies again.
    pub fn policies(&self) -> Vec<&str> {
        let mut policies: Vec<&str> = Vec::new();
        for Combination { spec, .. } in &self.combinations {
            if !policies.contains(&spec.as_str()) {
                policies.push(spec);
            }
        }
        policies
    }

    pub fn described_machines(&self) -> Vec<DescribedMachine> {
        self.machines.iter().map(DescribedMachine::of).collect()
    }
}

impl PlannedCase {
    fn workload(&self, combination: &Combination) -> &Workload {
        let machine = combination.machine.min(self.workloads.len() - 1);
        &self.workloads[machine][combination.environment]
    }

    /// `None` changes nothing.
    fn put_into(&mut self, environments: &[Option<Environment>]) -> anyhow::Result<()> {
        for workloads in &mut self.workloads {
            let plain = workloads.remove(0);
            for environment in environments {
                let workload = plain.clone();
                workloads.push(match environment {
                    Some(environment) => environment.around(workload)?,
                    None => workload,
                });
            }
        }
        Ok(())
    }

    fn shorten(&mut self) {
        for workload in self.workloads.iter_mut().flatten() {
            workload.window.warm_up /= QUICK;
            workload.window.measure = (workload.window.measure / QUICK).max(1);
        }
    }

    /// At least so long, under all policies alike, unless the case names its warm-up or has none.
    fn warm_up_for(&mut self, ns: u64) {
        for Workload { window, .. } in self.workloads.iter_mut().flatten() {
            if window.until_steady {
                window.warm_up = window.warm_up.max(ns);
            }
        }
    }
}

/// The part of warm-up and window that is enough for a first look.
const QUICK: u64 = 5;

/// All of them, the later axes first: machine, kernel, environment, policy. `preempt`: how the kernel does, if that is
/// the one that was recorded.
fn combinations(
    args: &CompareArgs,
    machines: &[Machine],
    (kernels, preempt): (&[String], Option<&str>),
) -> anyhow::Result<Vec<Combination>> {
    let environments = environment_names(&args.environments);
    refuse_twins("kernel", kernels)?;
    refuse_twins("environment", &environments)?;
    refuse_twins("policy", &args.policies.iter().map(|spec| own::name(spec)).collect::<Vec<_>>())?;
    let others = [machines.len(), kernels.len(), environments.len()];
    let policies = policies(&args.policies, others.iter().all(|values| *values == 1));
    let mut combinations = Vec::new();
    for (machine, Machine { name, .. }) in machines.iter().enumerate() {
        for kernel in kernels {
            for (environment, environment_name) in environments.iter().enumerate() {
                for policy in &policies {
                    let spec = with_knobs(policy, &args.knobs);
                    let policy = own_policy::parse(kernel, &spec)?.preempting(preempt);
                    let subject = Subject {
                        policy: policy.name.clone(),
                        machine: name.clone(),
                        kernel: kernel.clone(),
                        environment: environment_name.clone(),
                    };
                    combinations.push(Combination { subject, spec, machine, environment, policy });
                }
            }
        }
    }
    Ok(combinations)
}

/// A change says little without what it changes.
fn policies(named: &[String], nothing_else_differs: bool) -> Vec<String> {
    match named {
        [only] if only != BASELINE && nothing_else_differs => {
            vec![BASELINE.to_owned(), only.clone()]
        }
        _ => named.to_vec(),
    }
}

fn refuse_twins(option: &str, values: &[String]) -> Result<(), InputError> {
    match (1..values.len()).find(|at| values[..*at].contains(&values[*at])) {
        None => Ok(()),
        Some(twin) => {
            let problem = format!("is given twice; name each {option} once");
            Err(InputError(format!("--{option} {}: {problem}", values[twin])))
        }
    }
}

fn machines(specs: &[String], costs_from: Option<&str>) -> anyhow::Result<Vec<Machine>> {
    let mut machines: Vec<Machine> =
        specs.iter().map(|spec| placewise_machine::load(spec)).collect::<Result<_, _>>()?;
    if let Some(lender) = costs_from {
        let lender = placewise_machine::load(lender)?;
        machines = machines.into_iter().map(|machine| machine.with_costs_of(&lender)).collect();
    }
    let names: Vec<String> = machines.iter().map(|machine| machine.name.clone()).collect();
    refuse_twins("machine", &names)?;
    Ok(machines)
}

/// Those that were named, else the one that the workload was recorded under. The host has the kernel that stands for
/// the running one, whose release is returned too.
fn kernels(
    args: &CompareArgs,
    recorded_under: Option<String>,
) -> Result<(Vec<String>, Option<String>), InputError> {
    if !args.kernels.is_empty() {
        return Ok((args.kernels.clone(), None));
    }
    if let Some(kernel) = recorded_under {
        return Ok((vec![kernel], None));
    }
    if !args.machines.iter().any(|machine| machine == "host") {
        return Ok((vec![DEFAULT_KERNEL.to_owned()], None));
    }
    let release = running_release();
    match kernel_for_release(&release) {
        Some(kernel) => Ok((vec![kernel.to_owned()], Some(release))),
        None => {
            let problem = "--machine host: no kernel stands for the running";
            let known = kernel_names().join(", ");
            Err(InputError(format!("{problem} `{release}`; name one with --kernel: {known}")))
        }
    }
}

fn environment_names(named: &[String]) -> Vec<String> {
    if named.is_empty() { vec![Environment::NONE.to_owned()] } else { named.to_vec() }
}

fn environments(named: &[String]) -> anyhow::Result<Vec<Option<Environment>>> {
    let load = |name: &String| Ok(Environment::load(name)?);
    environment_names(named).iter().map(load).collect()
}

/// The kernel that a workload was recorded under, if it was, and how that preempted.
#[derive(Default)]
struct RecordedUnder {
    kernel: Option<String>,
    preempt: Option<String>,
}

/// The cases to run, and what they were recorded under. A file is one case without a name.
fn cases(
    name: &str,
    specs: &[String],
    machines: &[Machine],
) -> anyhow::Result<(Vec<PlannedCase>, RecordedUnder)> {
    let planned = |name: String, workload| PlannedCase { name, workloads: vec![vec![workload]] };
    if is_path(name) {
        return of_file(Path::new(name), specs, machines);
    }
    let nr_cpus = machines[0].online().len();
    let cases: Vec<Case> = if specs.is_empty() {
        workload::default_cases(name, nr_cpus)?
    } else {
        specs.iter().map(|spec| spec.parse::<Case>()).collect::<Result<_, _>>()?
    };
    let mut named: Vec<PlannedCase> = Vec::new();
    for case in &cases {
        let case_name = workload::canonical(name, case)?.to_string();
        if named.iter().any(|other| other.name == case_name) {
            let problem = format!("--case {case}: is given twice; name each case once");
            return Err(InputError(problem).into());
        }
        named.push(planned(case_name, workload::build(name, case)?));
    }
    Ok((named, RecordedUnder::default()))
}

/// An rt-app file is alike on all machines; a trace begins as it was recorded where that can be, and its
/// cases say how it is replayed.
fn of_file(
    path: &Path,
    specs: &[String],
    machines: &[Machine],
) -> anyhow::Result<(Vec<PlannedCase>, RecordedUnder)> {
    let name = path.display().to_string();
    let mut under = RecordedUnder::default();
    let mut replayed = |case: String, mode: &Mode| {
        let replay = replay::workload(path, mode)?;
        let on = |machine| vec![replay.workload(&name, machine)];
        let workloads = machines.iter().map(on).collect();
        under = RecordedUnder { kernel: replay.kernel, preempt: replay.preempt };
        anyhow::Ok(PlannedCase { name: case, workloads })
    };
    let Some(spec) = specs.first() else {
        if replay::is_replay(path) {
            return Ok((vec![replayed(String::new(), &Mode::Exact)?], under));
        }
        let workloads = vec![vec![workload::from_rt_app(path)?]];
        return Ok((
            vec![PlannedCase { name: String::new(), workloads }],
            RecordedUnder::default(),
        ));
    };
    if !replay::is_trace(path) {
        let problem = format!("--case {spec}: such a file has no cases; leave --case out");
        return Err(InputError(problem).into());
    }
    refuse_twins("case", specs)?;
    let case = |spec: &String| replayed(spec.clone(), &Mode::of_case(spec)?);
    let cases: Vec<PlannedCase> = specs.iter().map(case).collect::<anyhow::Result<_>>()?;
    Ok((cases, under))
}

/// A benchmark's name has neither a directory nor an extension.
fn is_path(workload: &str) -> bool {
    workload.contains(['/', '.'])
}
