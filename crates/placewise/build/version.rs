//! Names the commit that `--version` of both programs tells: `PLACEWISE_COMMIT` of the environment, or
//! that of the checkout. Without either there is none.

use std::path::Path;
use std::process::Command;

/// For the crate whose build script calls it.
pub fn tell() {
    println!("cargo::rerun-if-env-changed=PLACEWISE_COMMIT");
    let given = std::env::var("PLACEWISE_COMMIT").ok();
    let version = env!("CARGO_PKG_VERSION");
    match given.filter(|commit| !commit.is_empty()).or_else(of_checkout) {
        Some(commit) => {
            println!("cargo::rustc-env=PLACEWISE_COMMIT={commit}");
            println!("cargo::rustc-env=PLACEWISE_VERSION={version} ({commit})");
        }
        None => println!("cargo::rustc-env=PLACEWISE_VERSION={version}"),
    }
}

/// `None` where these sources are not in a repository, or in that of somebody else.
fn of_checkout() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // Git appends to it whenever HEAD moves, and to nothing else of ours.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

/// In the directory of the crate.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
