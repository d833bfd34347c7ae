//! The trace for Perfetto, with what the audit says of each decision: which rules were asked, what
//! they saw, and what they answered.

use placewise_audit::{Decided, explain};
use placewise_machine::Machine;
use placewise_trace::{Event, Header, PerfettoWriter, Placement, Record, Sink};

use crate::output_file::OutputFile;

pub struct PerfettoFile(PerfettoWriter<OutputFile>);

impl PerfettoFile {
    pub fn new(file: OutputFile, header: &Header, machine: &Machine) -> Self {
        PerfettoFile(PerfettoWriter::new(file, header, machine))
    }

    /// Decisions that the trace has recorded are told as those of the audit.
    pub fn read(&mut self, record: &Record<'_>) {
        if !matches!(record.event, Event::Decision(_)) {
            self.0.record(record);
        }
    }

    pub fn decided(&mut self, decided: &Decided<'_>) {
        let Decided { time_ns, placed, sight, state, tasks, .. } = *decided;
        let name = |task| format!("{}-{}", tasks.name_of(task), tasks.get(task).pid);
        let mut reasons = vec![("waker", name(placed.waker))];
        let policy = format!("CPU {}", placed.predicted);
        let agrees = if placed.predicted == placed.actual { "as the kernel" } else { &policy };
        reasons.push(("the policy says", agrees.to_owned()));
        for rule in explain(placed, sight, state, tasks) {
            let saw = if rule.saw.is_empty() { "" } else { ": " };
            reasons.push((rule.rule, format!("{}{saw}{}", rule.saw, rule.answer)));
        }
        let reasons: Vec<(&str, &str)> =
            reasons.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.0.placed(&Placement {
            time_ns,
            kind: placed.kind.word(),
            cpu: placed.waking_cpu,
            task: tasks.name_of(placed.task),
            pid: tasks.get(placed.task).pid,
            from_cpu: placed.prev_cpu,
            to_cpu: placed.actual,
            reasons: &reasons,
        });
    }

    /// The file keeps the first error.
    pub fn finish(self) -> anyhow::Result<()> {
        let file = self
            .0
            .finish()
            .map_err(|error| anyhow::Error::new(error).context("cannot write for Perfetto"))?;
        file.finish()
    }
}
