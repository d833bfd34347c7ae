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
use placewise_trace::{FtraceWriter, Header};

use super::args::CompareArgs;
use super::plan::{Cell, Plan};
use crate::input::InputError;
use crate::output_file::{self, OutputFile};
use crate::subject::{Subject, differing_axes};

pub struct Traces {
    /// By combination; `None` while it is written, and where none is wanted.
    files: Mutex<Vec<Option<OutputFile>>>,
    workload: String,
    with_decisions: bool,
}

impl Traces {
    /// Refuses places that cannot be written now, before any work is done for them.
    pub fn create(plan: &Plan, args: &CompareArgs) -> anyhow::Result<Self> {
        let create = |path: PathBuf| OutputFile::create(&path, output_file::FOR_ALL).map(Some);
        let files = match &args.trace {
            None => plan.combinations.iter().map(|_| None).collect(),
            Some(path) => {
                let paths = paths(path, &plan.subjects())?;
                paths.into_iter().map(create).collect::<Result<_, _>>()?
            }
        };
        let (workload, with_decisions) = (args.workload.clone(), args.trace_decisions);
        Ok(Self { files: Mutex::new(files), workload, with_decisions })
    }

    /// The file that the trace of a cell goes into, to be put back.
    pub fn take(&self, cell: Cell) -> Option<OutputFile> {
        let is_traced = cell.case == 0 && cell.run == 0;
        let mut files = self.files.lock().expect("nobody panics with the files");
        is_traced.then(|| files[cell.combination].take())?
    }

    pub fn put_back(&self, cell: Cell, file: OutputFile) {
        self.files.lock().expect("nobody panics with the files")[cell.combination] = Some(file);
    }

    pub fn writer<'f>(
        &self,
        file: &'f mut OutputFile,
        scenario: &Scenario,
        plan: &Plan,
        cell: Cell,
    ) -> FtraceWriter<&'f mut OutputFile> {
        let subject = &plan.combinations[cell.combination].subject;
        let header = Header {
            kernel: Some(subject.kernel.trim_start_matches('v').to_owned()),
            policy: Some(subject.policy.clone()),
            command: Some(format!("{} {}", self.workload, plan.cases[cell.case].name)),
            topology: TraceTopology::of(scenario.machine),
            ..Header::default()
        };
        let writer = FtraceWriter::new(file, scenario.machine.cpus.len()).with_header(&header);
        if self.with_decisions { writer.with_decisions() } else { writer }
    }

    /// All of them appear that can, and the first error is that of the trace.
    pub fn finish(self) -> anyhow::Result<()> {
        let files = self.files.into_inner().expect("nobody panics with the files");
        let finished: Vec<_> = files.into_iter().flatten().map(OutputFile::finish).collect();
        finished.into_iter().collect()
    }
}

fn paths(path: &Path, subjects: &[Subject]) -> Result<Vec<PathBuf>, InputError> {
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
            let problem = format!("--trace {}: two traces would have this name", path.display());
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
        let paths = paths(Path::new(path), subjects).unwrap();
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
        let error = paths(Path::new("out.txt"), &twins).unwrap_err();
        assert!(error.0.contains("out.a_b.txt"), "{error}");
    }
}
