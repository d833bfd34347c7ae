//! stub
use crate::{Machine, MachineError};
pub(crate) fn parse(name: &str) -> Result<Machine, MachineError> {
    Err(MachineError::new(name, "not yet"))
}
