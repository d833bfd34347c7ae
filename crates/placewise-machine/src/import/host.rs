//! stub
use crate::{Machine, MachineError};
pub(crate) fn load() -> Result<Machine, MachineError> {
    Err(MachineError::new("host", "not yet"))
}
