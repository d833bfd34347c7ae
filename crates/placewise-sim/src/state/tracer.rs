//! Where the run's tracepoints go, if anywhere.

use placewise_trace::{Record, Sink};

pub struct Tracer<'a> {
    sink: Option<&'a mut dyn Sink>,
    /// The sink takes placement decisions, too.
    takes_decisions: bool,
}

impl<'a> Tracer<'a> {
    pub fn new(sink: Option<&'a mut dyn Sink>) -> Self {
        Tracer { takes_decisions: sink.as_ref().is_some_and(|sink| sink.takes_decisions()), sink }
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.sink.is_some()
    }

    #[inline]
    pub fn takes_decisions(&self) -> bool {
        self.takes_decisions
    }

    pub fn record(&mut self, record: &Record) {
        if let Some(sink) = &mut self.sink {
            sink.record(record);
        }
    }
}
