//! Each scenario on each of its machines and kernels, as a test of its own.
//!
//! `make test-vm` builds what they need and runs them all; `make test-vm VM='[quick]'` those of the
//! quick part, `make test-vm VM=placement` those with that in their name. What a case left is in
//! `target/tmp/vm/CASE`.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use placewise_vm::boot::{self, Parts};
use placewise_vm::check;
use placewise_vm::guest::Guest;
use placewise_vm::host::Host;
use placewise_vm::scenario::{self, Case};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    match trials(&arguments) {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn trials(arguments: &Arguments) -> anyhow::Result<Vec<Trial>> {
    let cases = scenario::cases(Path::new(env!("CARGO_MANIFEST_DIR")))?;
    let mut cases: Vec<Arc<Case>> = cases.into_iter().map(Arc::new).collect();
    // The longest first: the last one runs alone.
    cases.sort_by_key(|case| Reverse((case.scenario.deterministic, case.machine.cpus())));
    // Nothing is installed or fetched for those who do not mean to boot, nor for what they did not ask for.
    let boots = (arguments.ignored || arguments.include_ignored) && !arguments.list;
    let nowhere = Arc::new(Host::default());
    let is_asked_for =
        |case: &&Arc<Case>| !arguments.is_filtered_out(&trial((*case).clone(), nowhere.clone()));
    let host = match boots {
        true => Arc::new(Host::prepare(cases.iter().filter(is_asked_for).map(|it| it.guest()))?),
        false => nowhere.clone(),
    };
    for missing in host.missing() {
        println!("left out what takes this: {missing}");
    }
    Ok(cases.into_iter().map(|case| trial(case, host.clone())).collect())
}

fn trial(case: Arc<Case>, host: Arc<Host>) -> Trial {
    let kind = if case.scenario.quick { "quick" } else { "long" };
    Trial::ignorable_test(case.name.clone(), move || match Parts::find(&host, &case.guest()) {
        Ok(parts) => passes(&case, &parts).map(|()| Completion::Completed),
        Err(missing) => Ok(Completion::ignored_with(missing)),
    })
    .with_kind(kind)
    .with_ignored_flag(true)
}

/// The quick part decides what lands, so it has a second try, and says why it took one: what hackbench does
/// may differ in all with what was a little earlier or later. Where time is counted in instructions the same
/// start mostly ends the same, so the second one is a little later. What is wrong goes wrong twice.
fn passes(case: &Case, parts: &Parts) -> Result<(), Failed> {
    runs_well(case, &case.guest(), parts).or_else(|failed| {
        if !case.scenario.quick {
            return Err(failed);
        }
        eprintln!("{}: a second try, after\n{}", case.name, failed.message().unwrap_or_default());
        let mut later = case.guest();
        later.script.insert_str(0, "sleep 0.1\n");
        runs_well(case, &later, parts)
    })
}

fn runs_well(case: &Case, guest: &Guest, parts: &Parts) -> Result<(), Failed> {
    let directory = directory(case).map_err(|error| format!("{error:#}"))?;
    let kept = || format!("kept in {}", directory.display());
    let run = boot::run(guest, parts, &directory)
        .map_err(|error| format!("{}: {error:#}\n{}", case.scenario.shows, kept()))?;
    let shortcomings = check::shortcomings(case, &run).map_err(|error| format!("{error:#}"))?;
    if shortcomings.is_empty() {
        return Ok(());
    }
    let lines = shortcomings.join("\n  ");
    let console = boot::tail(&run.console);
    Err(format!("{}:\n  {lines}\n{console}\n{}", case.scenario.shows, kept()).into())
}

/// Empty.
fn directory(case: &Case) -> anyhow::Result<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vm").join(case.name.replace("::", "-"));
    if path.exists() {
        fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
    }
    fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
    Ok(path)
}
