//! `placewise report`: results and traces as one HTML page to look at.
//!
//! A file that begins with `{` is a result; all else is a trace, which is audited. Of two traces the
//! first is the one before the change.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use placewise_report::JsonResult;

use crate::audit;
use crate::audit::args::{AUTO, AuditArgs};
use crate::audit::explanation::parse_time;
use crate::html_file::HtmlFile;
use crate::input::InputError;

const EXAMPLE: &str = "\
Examples:
  placewise report trace.txt.zst -o report.html
  placewise report trace.txt.zst --from 5.54 --to 5.55 -o report.html
  placewise report before.txt.zst after.txt.zst -o report.html
  placewise compare --workload hackbench --policy short-task --format json --trace out.txt >result.json
  placewise report result.json out.baseline.txt out.short-task.txt -o report.html

Exit status: 0 on success, 2 when the input is at fault, 1 when something else went wrong.";

/// Make one HTML page of results and traces, to look at
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct ReportArgs {
    /// What `compare`, `audit` or `reproduce` printed with `--format json`, or a trace as `audit` takes
    /// it; of traces at most two
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The page: one file that needs nothing beside it
    #[arg(short, long, value_name = "FILE.html")]
    output: PathBuf,

    /// Draw the traces from this time on, in seconds: of a long trace a part shows every run
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<u64>,

    /// Draw the traces until this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<u64>,

    /// Machine of the traces: preset, `host`, hwloc XML file, lstopo synthetic string or TOML file
    /// [default: the header of each]
    #[arg(long, value_name = "MACHINE")]
    machine: Option<String>,

    /// Kernel of the traces; `auto` takes the release in the header of each
    #[arg(long, value_name = "KERNEL", default_value = AUTO)]
    kernel: String,
}

pub fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let (mut results, mut traces) = (Vec::new(), Vec::new());
    for file in &args.files {
        match read_result(file)? {
            Some(result) => results.push(result),
            None => traces.push(file.clone()),
        }
    }
    if traces.len() > 2 {
        let problem = "is the third trace; give one, or one before and one after a change";
        return Err(InputError(format!("{}: {problem}", traces[2].display())).into());
    }
    if args.from > args.to && args.to.is_some() {
        let problem = "--to: is before --from; give the later time";
        return Err(InputError(problem.to_owned()).into());
    }
    let file = HtmlFile::create(&args.output)?;
    let mut traces = traces.into_iter();
    let mut recordings = Vec::new();
    if let Some(trace) = traces.next() {
        let (machine, kernel) = (args.machine.clone(), args.kernel.clone());
        let of_traces = AuditArgs { machine, kernel, ..AuditArgs::of(trace, traces.next()) };
        let part = args.from.unwrap_or(0)..=args.to.unwrap_or(u64::MAX);
        let audited = audit::for_page(&of_traces, &part)?;
        results.push(audited.result);
        recordings = audited.recordings;
    }
    file.write(&results, &recordings)
}

/// None if the file is no result.
fn read_result(path: &Path) -> anyhow::Result<Option<JsonResult>> {
    if path == Path::new("-") {
        return Ok(None);
    }
    let name = path.display().to_string();
    let refuse = |error| InputError(format!("{name}: cannot read: {error}"));
    let mut file = File::open(path).map_err(refuse)?;
    let mut first = [0; 1];
    let begins = file.read(&mut first).map_err(refuse)? == 1 && first[0] == b'{';
    if !begins {
        return Ok(None);
    }
    let mut json = first.to_vec();
    file.read_to_end(&mut json).with_context(|| format!("cannot read {name}"))?;
    let result = JsonResult::parse(&name, &json, None);
    Ok(Some(result.map_err(|error| InputError(error.to_string()))?))
}
