//! `vm-guest`: the loads of scenarios that nobody else has written, each of which says what became
//! of its tasks. Runs in the guest; prints lines `NAME VALUE`.

mod bpf_open;
mod costs;
mod heartbeat;
mod hog;
mod load;
mod stream;
mod topology;
mod wake;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Loads for scenarios, to be run in the guest")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Load(load::LoadArgs),
    Costs(costs::CostsArgs),
    Stream(stream::StreamArgs),
    Wake(wake::WakeArgs),
    Heartbeat(heartbeat::HeartbeatArgs),
    BehindHog(hog::BehindHogArgs),
    BesideHog(hog::BesideHogArgs),
    BpfOpen(bpf_open::BpfOpenArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Load(args) => load::run(&args),
        Command::Costs(args) => costs::run(&args),
        Command::Stream(args) => stream::run(&args),
        Command::Wake(args) => wake::run(&args),
        Command::Heartbeat(args) => heartbeat::run(&args),
        Command::BehindHog(args) => hog::run_behind(&args),
        Command::BesideHog(args) => hog::run_beside(&args),
        Command::BpfOpen(args) => bpf_open::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vm-guest: {error:#}");
            ExitCode::FAILURE
        }
    }
}
