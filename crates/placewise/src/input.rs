//! What only the command line can see to be wrong: a policy given twice, a trace path nobody can
//! write.

/// Something in the command line that cannot be: what, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InputError(pub String);
