//! `placewise hint`: says to a running `scx_placewise` where a program should run, without a change
//! to the program.
//!
//! Limit: a hint is heard, not obeyed at once. It acts on the next fork or wakeup of the thread.

mod targets;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use clap::{Subcommand, ValueEnum};
use placewise_hint::{
    Client, ClientError, Fork, Hint, Hinted, Inheritance, Intent, Intents, SOCKET, Wake,
    thread_pidfd,
};
use rustix::io::Errno;
use serde::Serialize;

use crate::input::InputError;
use crate::report::foreign::visible;
use crate::report::terminal::{empty_table, fitting};
use crate::report::{TableOrJson, json};
use targets::{Target, TargetChoice};

const EXAMPLE: &str = "\
Examples:
  placewise hint --fork spread -- ./stream
  placewise hint --intent tail-latency --pid 4711
  placewise hint --wake hold --cgroup system.slice/nightly.service
  placewise hint --clear --pid 4711
  placewise hint show

Needs a running scx_placewise. A hint replaces the one that was there; children get it too.
`placewise hint intents` prints the intents and their hints.
Exit status: that of COMMAND; 0 when hinted, 2 when the input is at fault, 1 when scx_placewise
is not there or refuses.";

/// As it would be told without, on lines that are not too long.
const USAGE: &str = "\
placewise hint [OPTIONS] <--fork FORK|--wake WAKE|--share-cache|--intent NAME|--clear>
                      [--intents FILE] <--pid PID|--tid TID|--cgroup PATH|COMMAND>
       placewise hint <show|intents|help>";

/// Tell a running scx_placewise where programs should run
#[derive(clap::Args)]
#[command(after_help = EXAMPLE, override_usage = USAGE, args_conflicts_with_subcommands = true)]
#[command(subcommand_negates_reqs = true)]
pub struct HintArgs {
    #[command(subcommand)]
    show: Option<Show>,

    #[command(flatten)]
    hint: HintChoice,

    #[command(flatten)]
    target: TargetChoice,

    /// Hint the threads alone, not what they create
    #[arg(long)]
    no_inherit: bool,

    /// Where scx_placewise listens
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    socket: PathBuf,
}

#[derive(Subcommand)]
enum Show {
    /// List the hinted threads that you may hint
    Show {
        /// How to print the list
        #[arg(long, value_enum, default_value_t = TableOrJson::Table)]
        format: TableOrJson,

        /// Where scx_placewise listens
        #[arg(long, value_name = "PATH", default_value = SOCKET)]
        socket: PathBuf,
    },
    /// List the intents and the hint of each
    Intents {
        /// How to print the list
        #[arg(long, value_enum, default_value_t = TableOrJson::Table)]
        format: TableOrJson,

        /// A table of your own
        #[arg(long, value_name = "FILE")]
        intents: Option<PathBuf>,
    },
}

#[derive(clap::Args)]
#[group(required = true, multiple = true)]
struct HintChoice {
    /// Where children go: near their parent, or to the most idle group
    #[arg(long, value_enum)]
    fork: Option<ForkChoice>,

    /// Where it wakes: in the waker's LLC, or where it ran before
    #[arg(long, value_enum)]
    wake: Option<WakeChoice>,

    /// Processes that it creates gather on an LLC with it, as threads do
    #[arg(long)]
    share_cache: bool,

    /// What the program is for; `placewise hint intents` lists them
    #[arg(long, value_name = "NAME", conflicts_with_all = ["fork", "wake", "share_cache"])]
    intent: Option<String>,

    /// A table of intents of your own
    #[arg(long, value_name = "FILE", requires = "intent")]
    intents: Option<PathBuf>,

    /// Take the hint away
    #[arg(long, conflicts_with_all = ["fork", "wake", "share_cache", "intent"])]
    clear: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ForkChoice {
    Affine,
    Spread,
}

#[derive(Clone, Copy, ValueEnum)]
enum WakeChoice {
    Affine,
    Hold,
}

pub fn run(args: &HintArgs) -> anyhow::Result<()> {
    match &args.show {
        Some(Show::Show { format, socket }) => show(*format, &Client::connect(socket)?.show()?),
        Some(Show::Intents { format, intents }) => show_intents(*format, &table(intents)?),
        None => set(args),
    }
}

fn set(args: &HintArgs) -> anyhow::Result<()> {
    let hint = chosen_hint(&args.hint)?;
    let inheritance = if args.no_inherit { Inheritance::OnlySelf } else { Inheritance::Children };
    let target = Target::chosen(&args.target)?;
    let mut client = Client::connect(&args.socket)?;
    let Some(target) = target else {
        client.set_self(hint, inheritance)?;
        return Err(exec(&args.target.command));
    };
    let hinted = hint_all(&mut client, &target, hint, inheritance)?;
    let s = if hinted == 1 { "" } else { "s" };
    eprintln!("{}", visible(&format!("{target}: {hint} for {hinted} thread{s}")));
    Ok(())
}

/// Goes through the threads until it meets no new one: what an already hinted thread creates has
/// its hint from there, what another one creates meanwhile has not.
fn hint_all(
    client: &mut Client,
    target: &Target,
    hint: Hint,
    inheritance: Inheritance,
) -> anyhow::Result<usize> {
    let mut hinted = BTreeSet::new();
    loop {
        let new: Vec<i32> =
            target.threads()?.into_iter().filter(|tid| !hinted.contains(tid)).collect();
        if new.is_empty() {
            break;
        }
        for tid in new {
            match hint_one(client, tid, hint, inheritance) {
                Ok(()) => hinted.insert(tid),
                // It has ended meanwhile, as threads do.
                Err(error) if is_gone(&error) && !target.is_one_thread() => hinted.insert(tid),
                Err(error @ ClientError::Thread { .. }) => return Err(error.into()),
                Err(error) => return Err(error).with_context(|| format!("thread {tid}")),
            };
        }
    }
    anyhow::ensure!(!hinted.is_empty(), InputError(format!("{target}: no threads there")));
    Ok(hinted.len())
}

fn hint_one(
    client: &mut Client,
    tid: i32,
    hint: Hint,
    inheritance: Inheritance,
) -> Result<(), ClientError> {
    client.set(thread_pidfd(tid)?.as_fd(), hint, inheritance)
}

fn is_gone(error: &ClientError) -> bool {
    let gone = Errno::SRCH.raw_os_error();
    match error {
        ClientError::Refused { errno, .. } => *errno == gone,
        ClientError::Thread { error, .. } => error.raw_os_error() == Some(gone),
        _ => false,
    }
}

fn chosen_hint(choice: &HintChoice) -> anyhow::Result<Hint> {
    if let Some(name) = &choice.intent {
        let hint = table(&choice.intents)?.hint(name);
        return hint.map_err(|error| InputError(error.to_string()).into());
    }
    let fork = choice.fork.map(|fork| match fork {
        ForkChoice::Affine => Fork::Affine,
        ForkChoice::Spread => Fork::Spread,
    });
    let wake = choice.wake.map(|wake| match wake {
        WakeChoice::Affine => Wake::Affine,
        WakeChoice::Hold => Wake::Hold,
    });
    Ok(Hint { fork, wake, share_cache: choice.share_cache })
}

fn table(file: &Option<PathBuf>) -> anyhow::Result<Intents> {
    let Some(path) = file else { return Ok(Intents::default()) };
    let fault = |problem: String| InputError(format!("{}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
    Ok(Intents::parse(&text).map_err(|error| fault(error.to_string()))?)
}

/// Does not return where it succeeds.
fn exec(words: &[OsString]) -> anyhow::Error {
    let error = Command::new(&words[0]).args(&words[1..]).exec();
    let name = words[0].to_string_lossy();
    InputError(format!("command `{name}`: cannot be started: {}", error.kind())).into()
}

#[derive(Serialize)]
struct HintedRow {
    tid: u32,
    command: String,
    hint: String,
    inherited_by_children: bool,
}

fn show(format: TableOrJson, hinted: &[Hinted]) -> anyhow::Result<()> {
    let row = |hinted: &Hinted| HintedRow {
        tid: hinted.tid,
        command: targets::command_of(hinted.tid),
        hint: hinted.hint.to_string(),
        inherited_by_children: hinted.inheritance == Inheritance::Children,
    };
    let rows: Vec<HintedRow> = hinted.iter().map(row).collect();
    print(format, "hints", &rows, ["thread", "command", "hint", "for its children too"], |row| {
        let children = if row.inherited_by_children { "yes" } else { "no" };
        [row.tid.to_string(), row.command.clone(), row.hint.clone(), children.into()]
    })
}

#[derive(Serialize)]
struct IntentRow {
    intent: String,
    hint: String,
    about: String,
}

fn show_intents(format: TableOrJson, intents: &Intents) -> anyhow::Result<()> {
    let row = |(name, intent): (&str, &Intent)| IntentRow {
        intent: name.into(),
        hint: intent.hint.to_string(),
        about: intent.about.clone(),
    };
    let rows: Vec<IntentRow> = intents.iter().map(row).collect();
    print(format, "intents", &rows, ["intent", "hint", "for"], |row| {
        [row.intent.clone(), row.hint.clone(), row.about.clone()]
    })
}

fn print<R: Serialize, const N: usize>(
    format: TableOrJson,
    what: &str,
    rows: &[R],
    header: [&str; N],
    cells: impl Fn(&R) -> [String; N],
) -> anyhow::Result<()> {
    let text = match format {
        TableOrJson::Json => json::render(&BTreeMap::from([(what, rows)]))?,
        TableOrJson::Table => {
            let mut table = fitting(empty_table());
            table.set_header(header);
            rows.iter().for_each(|row| table.add_row(cells(row)));
            table.trimmed() + "\n"
        }
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
