//! What is wrong with the command line, or with the machine, is one line on standard error and exit
//! status 2; nothing is loaded then.

use std::path::Path;
use std::process::{Command, Output};

fn scx_placewise(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_placewise")).args(arguments).output().unwrap()
}

/// What it says when it refuses.
fn refused(arguments: &[&str]) -> String {
    let output = scx_placewise(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(stderr.starts_with("scx_placewise: ") && stderr.lines().count() == 1, "{stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
    stderr
}

#[test]
fn a_wrong_argument_is_named_with_what_was_expected() {
    for (arguments, parts) in [
        (&["--policy", "short-tusk"][..], &["short-tusk", "short-task"][..]),
        (&["--policy", "hint:fork_affine+fork_spread"], &["fork_affine+fork_spread"]),
        (&["--kernel", "v6.1"], &["v6.1", "v6.0", "v6.12"]),
        (&["--kernel", "v6.5", "--policy", "shared-runq"], &["shared-runq", "simulated only"]),
        (&["--kernel", "v6.18", "--policy", "next-buddy"], &["next-buddy", "simulated only"]),
        (&["--stats", "soon"], &["--stats", "soon"]),
        (&["--format", "json"], &["--stats"]),
        (&["--stats", "1s", "--format", "csv"], &["csv", "table, json"]),
        (&["--timeout-ms", "30001"], &["--timeout-ms", "1..=30000"]),
        (&["--timeout-ms", "0"], &["--timeout-ms", "1..=30000"]),
        (&["--polcy"], &["--polcy"]),
    ] {
        let stderr = refused(arguments);
        for part in parts {
            assert!(stderr.contains(part), "no `{part}` in: {stderr}");
        }
    }
}

#[test]
fn a_kernel_without_sched_ext_is_told() {
    if Path::new("/sys/kernel/sched_ext").exists() {
        return eprintln!("SKIPPED: command line: this kernel has sched_ext");
    }
    let missing = match rustix::process::geteuid().is_root() {
        true => "/sys/kernel/sched_ext is missing",
        false => "run it with sudo",
    };
    for arguments in [&[][..], &["--verify"], &["--stats", "1s", "--format", "json"]] {
        assert!(refused(arguments).contains(missing), "{arguments:?}");
    }
}

#[test]
fn the_version_tells_the_commit_it_was_built_from() {
    let output = scx_placewise(&["--version"]);
    let version = concat!("scx_placewise ", env!("PLACEWISE_VERSION"), "\n");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), version);
    if let Some(commit) = option_env!("PLACEWISE_COMMIT") {
        assert!(version.contains(&format!(" ({commit})")), "{version}");
    }
}

#[test]
fn every_use_has_an_example() {
    let output = scx_placewise(&["--help"]);
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).unwrap();
    let (options, examples) = help.split_once("Examples:").unwrap();
    let options = options
        .lines()
        .filter_map(|line| line.trim().split([' ', ',']).find(|word| word.starts_with("--")));
    for option in
        options.filter(|option| !["--help", "--version", "--hint-socket"].contains(option))
    {
        assert!(examples.contains(&format!(" {option}")), "no example of {option} in:\n{help}");
    }
}
