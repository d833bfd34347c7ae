//! `placewise report`: results and traces as one HTML page to look at, and plots of traces as SVG.
//! (The module `report` is how results are printed.)
//!
//! A file that begins with `{` is a result; all else is a trace, which is audited. Of two traces the
//! first is the one before the change.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use placewise_report::{JsonResult, Recording};

use crate::audit;
use crate::audit::args::{AUTO, AuditArgs};
use crate::audit::explanation::parse_time;
use crate::html_file::HtmlFile;
use crate::input::InputError;
use crate::output_file::{FOR_ALL, OutputFile};

const EXAMPLE: &str = "\
Examples:
  placewise report trace.txt.zst -o report.html
  placewise report trace.txt.zst --from 5.54 --to 5.55 -o report.html
  placewise report before.txt.zst after.txt.zst -o report.html
  placewise report trace.txt.zst --svg pictures
  placewise compare --workload hackbench --policy short-task --format json --trace out.txt >result.json
  placewise report result.json out.baseline.txt out.short-task.txt -o report.html

Exit status: 0 on success, 2 when the input is at fault, 1 when something else went wrong.";

/// Make one HTML page of results and traces, to look at, or SVG pictures of traces
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct ReportArgs {
    /// What `compare`, `audit`, `reproduce` or `advise` printed with `--format json`, or a trace as `audit` takes
    /// it; of traces at most two
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The page: one file that needs nothing beside it
    #[arg(short, long, value_name = "FILE.html", required_unless_present = "svg")]
    output: Option<PathBuf>,

    /// Write every plot of the traces into this directory, each as NAME.svg; it is made if it is not
    /// there
    #[arg(long, value_name = "DIRECTORY")]
    svg: Option<PathBuf>,

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
    if args.svg.is_some() && traces.is_empty() {
        let problem = "--svg: there is no trace to draw; give one";
        return Err(InputError(problem.to_owned()).into());
    }
    let file = args.output.as_deref().map(HtmlFile::create).transpose()?;
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
    args.svg.as_deref().map_or(Ok(()), |directory| write_plots(directory, &recordings))?;
    file.map_or(Ok(()), |file| file.write(&results, &recordings))
}

fn write_plots(directory: &Path, recordings: &[Recording]) -> anyhow::Result<()> {
    let refuse = |error| InputError(format!("{}: cannot make it: {error}", directory.display()));
    fs::create_dir_all(directory).map_err(refuse)?;
    for plot in placewise_report::plots(recordings) {
        let path = directory.join(format!("{}.svg", plot.name));
        let mut file = OutputFile::create(&path, FOR_ALL)?;
        // The file keeps the error for `finish`.
        let _ = file.write_all(plot.svg.as_bytes());
        file.finish()?;
    }
    Ok(())
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
