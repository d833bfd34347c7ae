//! `placewise`: judge where Linux puts tasks, on machines you do not own.
//!
//! One file per verb. This one reads the command line, calls the verb and turns what went wrong
//! into one line and an exit status: 2 where the input is at fault, 1 where Placewise or the
//! system is, and that of the command where `record` ran one that failed.

mod advise;
mod audit;
mod bench;
mod calibrate;
mod change;
mod cleaner;
mod compare;
mod comparison;
mod cost_bound;
mod effort;
mod exit_status;
mod finished;
mod hint;
mod html_file;
mod input;
mod list;
mod load_balance;
mod machine;
mod machine_readable;
mod noise;
mod output_file;
mod own_policy;
mod page;
mod parallel;
mod policy;
mod record;
mod replay;
mod report;
mod reproduce;
mod share;
mod standard_output;
mod states;
mod study;
mod subject;
mod supervised;
mod top;
mod uncertain;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use placewise_policy::own;

const EXIT_CODES: &str = "\
Exit status: 0 on success, 2 when the input is at fault (argument, file, name, value),
1 when something else went wrong, such as a full disk. `record` passes on that of its command.";

/// Simulate Linux task placement: compare policies on machines you do not own
#[derive(Parser)]
#[command(version = env!("PLACEWISE_VERSION"), propagate_version = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Compare(compare::CompareArgs),
    Reproduce(reproduce::ReproduceArgs),
    Study(study::StudyArgs),
    Calibrate(calibrate::CalibrateArgs),
    Machine(machine::MachineArgs),
    List(list::ListArgs),
    Policy(policy::PolicyArgs),
    Bench(bench::BenchArgs),
    Audit(audit::args::AuditArgs),
    Report(page::ReportArgs),
    Record(record::RecordArgs),
    Top(top::TopArgs),
    Replay(replay::ReplayArgs),
    Advise(advise::AdviseArgs),
    Hint(hint::HintArgs),
    Share(share::ShareArgs),
}

fn main() -> ExitCode {
    if !standard_output::is_writable() {
        let problem = "standard output is closed, or not open for writing; use a file, a pipe or \
                       /dev/null";
        return fail(problem, exit_status::FAILURE);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    if !cli.verb.calls_own_code() {
        return perform(cli);
    }
    supervised::run(|| perform(cli))
        .unwrap_or_else(|error| fail(&format!("{error:#}"), exit_status::of(&error)))
}

impl Verb {
    /// May code of somebody's own loop or crash here?
    fn calls_own_code(&self) -> bool {
        let policies = match self {
            Verb::Compare(args) => &args.policies,
            Verb::Reproduce(args) => &args.policies,
            Verb::Audit(args) => &args.policies,
            Verb::Policy(args) => return args.calls_own_code(),
            _ => return false,
        };
        policies.iter().any(|spec| own::names_directory(spec))
    }
}

fn perform(cli: Cli) -> ExitCode {
    let done = match cli.verb {
        Verb::Compare(args) => compare::run(&args),
        Verb::Reproduce(args) => reproduce::run(&args),
        Verb::Study(args) => study::run(&args),
        Verb::Calibrate(args) => calibrate::run(&args),
        Verb::Machine(args) => machine::run(&args),
        Verb::List(args) => list::run(&args),
        Verb::Policy(args) => policy::run(&args),
        Verb::Bench(args) => bench::run(&args),
        Verb::Audit(args) => audit::run(&args),
        Verb::Report(args) => page::run(&args),
        Verb::Record(args) => record::run(&args),
        Verb::Top(args) => top::run(&args),
        Verb::Replay(args) => replay::run(&args),
        Verb::Advise(args) => advise::run(&args),
        Verb::Hint(args) => hint::run(&args),
        Verb::Share(args) => share::run(&args, Cli::command()),
    };
    ended(done, ExitCode::SUCCESS)
}

fn ended(done: anyhow::Result<()>, status: ExitCode) -> ExitCode {
    match done {
        Ok(()) => status,
        // `placewise ... | head` has seen enough.
        Err(error) if is_broken_pipe(&error) => status,
        Err(error) => fail(&format!("{error:#}"), exit_status::of(&error)),
    }
}

/// Help and version as clap prints them; a wrong command line as one line like any other input.
fn usage(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

    if !error.use_stderr() || error.kind() == DisplayHelpOnMissingArgumentOrSubcommand {
        let printed = error.print().map_err(anyhow::Error::new);
        return ended(printed, ExitCode::from(error.exit_code() as u8));
    }
    let text = error.to_string();
    let problem = text.split("\n\nUsage:").next().unwrap_or(&text);
    let problem = problem.split("\n\nFor more").next().unwrap_or(problem);
    fail(problem.trim_start_matches("error: "), exit_status::BAD_INPUT)
}

fn fail(problem: &str, status: u8) -> ExitCode {
    let one_line: Vec<&str> = problem.split_whitespace().collect();
    let one_line = report::foreign::visible(&one_line.join(" "));
    let _ = writeln!(io::stderr(), "placewise: {one_line}");
    ExitCode::from(status)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_error = error.root_cause().downcast_ref::<io::Error>();
    io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
