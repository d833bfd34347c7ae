//! `placewise policy`: policies of one's own, from the headers to what they decide otherwise.

mod decisions;
mod diff;
mod eject;

use std::path::PathBuf;

use clap::Subcommand;

const EXAMPLE: &str = "\
Example:
  placewise policy eject mine
  $EDITOR mine/idle_scan.h
  placewise policy diff mine
  placewise compare --machine zen3-2s-nps1 --workload hackbench --policy baseline --policy ./mine

Exit status: 0 on success, 2 when the input is at fault, 1 when something else went wrong.";

/// Change the policy, and see what the change does
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct PolicyArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Write the policy's C headers to a directory, to be changed and named as `--policy DIR`
    Eject {
        /// Directory for them; it is made if it is not there
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Show what a directory changes, and which decisions come out otherwise
    Diff(diff::DiffArgs),
}

impl PolicyArgs {
    /// Does it call what somebody else has written?
    pub fn calls_own_code(&self) -> bool {
        matches!(self.action, Action::Diff(_))
    }
}

pub fn run(args: &PolicyArgs) -> anyhow::Result<()> {
    match &args.action {
        Action::Eject { directory } => eject::run(directory),
        Action::Diff(args) => diff::run(args),
    }
}
