//! What a trace is of: its machine and its kernel, as its header or the options say.

use std::path::Path;

use placewise_machine::Machine;
use placewise_policy::{Policy, kernel, kernel_names, own, with_knobs};
use placewise_trace::{Header, TraceError, TraceReader};

use super::args::{AUTO, AuditArgs};
use crate::input::InputError;
use crate::own_policy;

pub fn bad_trace(error: &TraceError) -> InputError {
    InputError(error.to_string())
}

pub fn trace_name(path: &Path) -> String {
    match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

/// What a command line says of a trace.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    pub trace: &'a Path,
    pub machine: Option<&'a str>,
    /// Its name, or [`AUTO`].
    pub kernel: &'a str,
    /// Those of somebody's own among them are known.
    pub policies: &'a [String],
    pub knobs: &'a [String],
}

impl AuditArgs {
    /// As if nothing but a trace were given, and what is said of it.
    pub fn from_origin(Origin { trace, machine, kernel, policies, knobs }: Origin<'_>) -> Self {
        let args = Self::of(trace.to_owned(), None);
        let (machine, kernel) = (machine.map(str::to_owned), kernel.to_owned());
        AuditArgs { machine, kernel, policies: policies.to_vec(), knobs: knobs.to_vec(), ..args }
    }

    fn origin(&self) -> Origin<'_> {
        Origin {
            trace: &self.trace,
            machine: self.machine.as_deref(),
            kernel: &self.kernel,
            policies: &self.policies,
            knobs: &self.knobs,
        }
    }
}

pub fn machine(args: &AuditArgs, reader: &mut TraceReader) -> anyhow::Result<Machine> {
    machine_of(args.origin(), reader)
}

pub fn machine_of(origin: Origin<'_>, reader: &mut TraceReader) -> anyhow::Result<Machine> {
    let trace = trace_name(origin.trace);
    let topology = &reader.header().topology;
    match origin.machine {
        Some(machine) => Ok(placewise_machine::load(machine)?),
        None if topology.cpus.is_empty() => {
            // It may be no trace at all.
            reader.next_record().map_err(|error| bad_trace(&error))?;
            let problem = "its header does not describe the machine; name it with --machine";
            Err(InputError(format!("{trace}: {problem}")).into())
        }
        None => Ok(placewise_machine::from_trace(&trace, topology)?),
    }
}

/// The kernel whose policy is compared with the trace.
pub struct Kernel {
    pub name: String,
    /// Why this one, if it was not asked for.
    pub release: Option<String>,
    pub policy: Policy,
}

pub fn kernel(args: &AuditArgs, header: &Header) -> anyhow::Result<Kernel> {
    kernel_of(args.origin(), header)
}

pub fn kernel_of(origin: Origin<'_>, header: &Header) -> anyhow::Result<Kernel> {
    let (name, release) = match origin.kernel {
        AUTO => kernel_of_header(origin.trace, header)?,
        name => (name, None),
    };
    // Only simulated kernels have been changed by a policy.
    let spec = header.policy.as_deref().unwrap_or("baseline");
    // Somebody's own is known where the command line names it too: a trace is not trusted with code.
    let policy = match origin.policies.iter().find(|given| own::name(given) == spec) {
        Some(given) => own_policy::parse(name, &with_knobs(given, origin.knobs))?,
        None => Policy::parse(name, &with_knobs(spec, origin.knobs))?,
    };
    let policy = policy.preempting(header.preempt.as_deref());
    Ok(Kernel { name: name.to_owned(), release, policy })
}

fn kernel_of_header<'a>(
    trace: &Path,
    header: &'a Header,
) -> Result<(&'a str, Option<String>), InputError> {
    let refuse = |why: String| {
        let (trace, known) = (trace_name(trace), kernel_names().join(", "));
        InputError(format!("{trace}: {why}; name a kernel with --kernel: {known}"))
    };
    let release = header.kernel.as_deref();
    let release = release.ok_or_else(|| refuse("its header names no kernel release".into()))?;
    let name = kernel::kernel_for_release(release);
    let name = name.ok_or_else(|| refuse(format!("no kernel stands for release `{release}`")))?;
    Ok((name, Some(release.to_owned())))
}

pub fn others(args: &AuditArgs, kernel: &Kernel) -> anyhow::Result<Vec<Policy>> {
    let mut policies: Vec<Policy> = Vec::new();
    for spec in &args.policies {
        let policy = own_policy::parse(&kernel.name, &with_knobs(spec, &args.knobs))?;
        if policies.iter().any(|other| other.name == policy.name) {
            let problem = format!("--policy {spec}: is given twice; name each policy once");
            return Err(InputError(problem).into());
        }
        policies.push(policy);
    }
    Ok(policies)
}
