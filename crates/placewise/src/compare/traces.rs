//! The traces of a comparison: the first run of the first case under each combination, each in a file
//! of its own.
//!
//! One combination has the file that was named. Of several each has a name with its values of what
//! differs before the extension: `out.txt` gives `out.baseline.txt` and `out.short-task.txt`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use placewise_machine::TraceTopology;
use placewise_sim::Scenario;
use placewise_trace::{Event, FtraceWriter, Header, PerfettoWriter, Record, Sink};

use super::args::CompareArgs;
use super::plan::{Cell, Plan};
use crate::input::InputError;
use crate::output_file::{self, OutputFile};
use crate::subject::{Subject, differing_axes};

pub struct Traces {
    /// By combination; empty while they are written, and where none is wanted.
    files: Mutex<Vec<Files>>,
    workload: String,
    with_decisions: bool,
}

/// Those of one run.
#[derive(Default)]
pub struct Files {
    text: Option<OutputFile>,
    perfetto: Option<OutputFile>,
}

impl Files {
    fn into_iter(self) -> impl Iterator<Item = OutputFile> {
        self.text.into_iter().chain(self.perfetto)
    }
}

impl Traces {
    /// Refuses places that cannot be written now, before any work is done for them.
    pub fn create(plan: &Plan, args: &CompareArgs) -> anyhow::Result<Self> {
        let subjects = plan.subjects();
        let text = create("--trace", args.trace.as_deref(), &subjects)?;
        let perfetto = create("--perfetto", args.perfetto.as_deref(), &subjects)?;
        let files = text.into_iter().zip(perfetto);
        let files = files.map(|(text, perfetto)| Files { text, perfetto }).collect();
        let (workload, with_decisions) = (args.workload.clone(), args.trace_decisions);
        Ok(Self { files: Mutex::new(files), workload, with_decisions })
    }

    /// The files that the trace of a cell goes into, to be put back.
    pub fn take(&self, cell: Cell) -> Files {
        if cell.case != 0 || cell.run != 0 {
            return Files::default();
        }
        let mut files = self.files.lock().expect("nobody panics with the files");
        std::mem::take(&mut files[cell.combination])
    }

    pub fn put_back(&self, cell: Cell, files: Files) {
        if files.text.is_some() || files.perfetto.is_some() {
            self.files.lock().expect("nobody panics with the files")[cell.combination] = files;
        }
    }

    /// None where there is nothing to write.
    pub fn writers<'f>(
        &self,
        files: &'f mut Files,
        scenario: &Scenario,
        plan: &Plan,
        cell: Cell,
    ) -> Option<Writers<'f>> {
        let subject = &plan.combinations[cell.combination].subject;
        let machine = scenario.machine;
        let header = Header {
            kernel: Some(subject.kernel.trim_start_matches('v').to_owned()),
            policy: Some(subject.policy.clone()),
            command: Some(format!("{} {}", self.workload, plan.cases[cell.case].name)),
            topology: TraceTopology::of(machine),
            ..Header::default()
        };
        let text = files.text.as_mut().map(|file| {
            let writer = FtraceWriter::new(file, machine.cpus.len()).with_header(&header);
            if self.with_decisions { writer.with_decisions() } else { writer }
        });
        let perfetto = files.perfetto.as_mut();
        let perfetto = perfetto.map(|file| PerfettoWriter::new(file, &header, machine));
        (text.is_some() || perfetto.is_some()).then_some(Writers { text, perfetto })
    }

    /// All of them appear that can, and the first error is that of the trace. Those of text, by
    /// combination.
    pub fn finish(self) -> anyhow::Result<Vec<PathBuf>> {
        let files = self.files.into_inner().expect("nobody panics with the files");
        let texts = files.iter().filter_map(|files| files.text.as_ref());
        let texts = texts.map(|file| file.path().to_owned()).collect();
        let files = files.into_iter().flat_map(Files::into_iter);
        let finished: Vec<_> = files.map(OutputFile::finish).collect();
        finished.into_iter().collect::<anyhow::Result<()>>()?;
        Ok(texts)
    }
}

/// What one run is written by.
pub struct Writers<'f> {
    text: Option<FtraceWriter<&'f mut OutputFile>>,
    perfetto: Option<PerfettoWriter<&'f mut OutputFile>>,
}

impl Writers<'_> {
    /// What cannot be written costs the trace, whose file keeps the error, not the figures.
    pub fn finish(self) {
        let _ = self.text.map(FtraceWriter::finish);
        let _ = self.perfetto.map(PerfettoWriter::finish);
    }
}

impl Sink for Writers<'_> {
    fn record(&mut self, record: &Record<'_>) {
        let is_decision = matches!(record.event, Event::Decision(_));
        let write = |writer: &mut dyn Sink| {
            if !is_decision || writer.takes_decisions() {
                writer.record(record);
            }
        };
        self.text.iter_mut().for_each(|writer| write(writer));
        self.perfetto.iter_mut().for_each(|writer| write(writer));
    }

    fn takes_decisions(&self) -> bool {
        self.perfetto.is_some() || self.text.as_ref().is_some_and(Sink::takes_decisions)
    }
}

/// A file for each subject, or none.
fn create(
    option: &str,
    path: Option<&Path>,
    subjects: &[Subject],
) -> anyhow::Result<Vec<Option<OutputFile>>> {
    let Some(path) = path else { return Ok(subjects.iter().map(|_| None).collect()) };
    let paths = paths(option, path, subjects)?;
    let create = |path: PathBuf| OutputFile::create(&path, output_file::FOR_ALL).map(Some);
    paths.into_iter().map(create).collect()
}

fn paths(option: &str, path: &Path, subjects: &[Subject]) -> Result<Vec<PathBuf>, InputError> {
    if subjects.len() == 1 {
        return Ok(vec![path.to_owned()]);
    }
    let axes = differing_axes(subjects);
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut seen = BTreeSet::new();
    for subject in subjects {
        let values: Vec<String> =
            axes.iter().map(|axis| in_file_name(axis.value(subject))).collect();
        let path = with_label(path, &values.join("."));
        if !seen.insert(path.clone()) {
            let problem = format!("{option} {}: two traces would have this name", path.display());
            return Err(InputError(problem));
        }
        paths.push(path);
    }
    Ok(paths)
}

/// `out.txt` with `baseline` is `out.baseline.txt`.
fn with_label(path: &Path, label: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|extension| extension.to_string_lossy());
    let name = [Some(stem), Some(label.into()), extension];
    path.with_file_name(name.into_iter().flatten().collect::<Vec<_>>().join("."))
}

/// What a shell or a directory takes for something else becomes `_`.
fn in_file_name(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_+,.".contains(c);
    value.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::tests::subject;

    fn named(path: &str, subjects: &[Subject]) -> Vec<String> {
        let paths = paths("--trace", Path::new(path), subjects).unwrap();
        paths.iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn what_differs_stands_before_the_extension() {
        let policies = ["baseline", "hint:wake_affine"].map(|policy| subject("v6.0", policy));
        assert_eq!(named("d/out.txt", &policies[..1]), ["d/out.txt"]);
        let two = named("d/out.txt", &policies);
        assert_eq!(two, ["d/out.baseline.txt", "d/out.hint_wake_affine.txt"]);
        assert_eq!(named("out", &policies), ["out.baseline", "out.hint_wake_affine"]);
        let kernels = [subject("v6.0", "baseline"), subject("v6.12", "short-task")];
        let both = ["out.v6.0.baseline.txt", "out.v6.12.short-task.txt"];
        assert_eq!(named("out.txt", &kernels), both);
    }

    #[test]
    fn two_traces_never_share_a_file() {
        let twins = [subject("v6.0", "a:b"), subject("v6.0", "a_b")];
        let error = paths("--trace", Path::new("out.txt"), &twins).unwrap_err();
        assert!(error.0.contains("out.a_b.txt"), "{error}");
    }
}
