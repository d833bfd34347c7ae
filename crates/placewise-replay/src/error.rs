//! Why a trace, or a file made of one, cannot be replayed: one line.

use placewise_audit::AuditError;
use placewise_machine::MachineError;
use placewise_sim::SimError;
use placewise_trace::TraceError;

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Sim(#[from] SimError),
    #[error("{file}: {problem}")]
    Unfit { file: String, problem: String },
}
