//! The exit status of an error: 2 where the input is at fault, that of a command that failed, else 1.
//!
//! Wrong machines, kernels, policies, workloads and cases are found by the crates that own them,
//! workloads that cannot be carried out (a deadlock, no CPU to run on) by the simulator, threads that do
//! not exist by whoever hints them. What only the command line can see is an [`InputError`].

use placewise_hint::ClientError;
use placewise_machine::MachineError;
use placewise_policy::PolicyError;
use placewise_policy::own::OwnError;
use placewise_replay::ReplayError;
use placewise_sim::SimError;
use placewise_workload::WorkloadError;

use crate::input::InputError;
use crate::record::command::CommandFailed;

pub const BAD_INPUT: u8 = 2;
pub const FAILURE: u8 = 1;
/// As a shell tells of what SIGINT has ended.
pub const INTERRUPTED: u8 = 130;

pub fn of(error: &anyhow::Error) -> u8 {
    if let Some(command) = error.downcast_ref::<CommandFailed>() {
        return command.exit_status();
    }
    if error.chain().any(is_bad_input) { BAD_INPUT } else { FAILURE }
}

fn is_bad_input(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<InputError>()
        || error.is::<MachineError>()
        || error.is::<PolicyError>()
        || error.is::<OwnError>()
        || error.is::<WorkloadError>()
        || error.is::<ReplayError>()
        || error.is::<SimError>()
        || matches!(error.downcast_ref(), Some(ClientError::Thread { .. }))
}
