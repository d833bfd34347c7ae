//! What `placewise hint` says where it cannot hint: one line, and exit status 2 where the input is at
//! fault, 1 where no scx_placewise answers.

use std::path::PathBuf;
use std::process::Command;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};

/// The exit status, and what it says on the one line.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_placewise"));
    let output = command.arg("hint").args(arguments).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("placewise: ") && stderr.lines().count() == 1, "{stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
    (output.status.code(), stderr)
}

#[track_caller]
fn assert_refused(arguments: &[&str], status: i32, parts: &[&str]) {
    let (found, stderr) = refused(arguments);
    assert_eq!(found, Some(status), "{stderr}");
    for part in parts {
        assert!(stderr.contains(part), "no `{part}` in: {stderr}");
    }
}

fn file(directory: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn bad_hints_and_targets_are_named() {
    for (arguments, parts) in [
        (&["--fork", "spred", "--pid", "1"][..], &["spred", "spread"][..]),
        (&["--fork", "affine", "--fork", "spread", "--pid", "1"], &["--fork", "multiple times"]),
        (&["--fork", "spread", "--clear", "--pid", "1"], &["--clear", "--fork"]),
        (&["--fork", "spread", "--pid", "0"], &["--pid", "1.."]),
        (&["--fork", "spread", "--pid", "1", "--tid", "1"], &["--pid", "--tid"]),
        (&["--fork", "spread"], &["--pid", "--tid", "--cgroup", "COMMAND"]),
        (&["--pid", "1"], &["--fork", "--wake", "--intent", "--clear"]),
        (&["--fork", "spread", "--cgroup", "no/such"], &["no/such", "cgroup v2"]),
        (&["--intent", "fast", "--pid", "1"], &["fast", "throughput"]),
        (&["--intent", "fast", "--intents", "/no/such", "--pid", "1"], &["/no/such"]),
    ] {
        assert_refused(arguments, 2, parts);
    }
}

#[test]
fn a_malformed_table_of_intents_is_named_by_line_and_field() {
    let directory = tempfile::tempdir().unwrap();
    let table = file(&directory, "own.toml", "[batch]\nhint = \"fork_spred\"\nabout = \"x\"\n");
    let arguments = ["intents", "--intents", table.to_str().unwrap()];
    assert_refused(&arguments, 2, &["own.toml", "line 2", "hint", "fork_spread"]);
}

#[test]
fn that_nobody_listens_is_not_the_inputs_fault() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("hint.sock");
    let socket = socket.to_str().unwrap();
    assert_refused(&["show", "--socket", socket], 1, &[socket, "does not run"]);
    let hint = ["--wake", "hold", "--socket", socket, "--", "true"];
    assert_refused(&hint, 1, &[socket, "does not run"]);
}

#[test]
fn a_target_that_is_not_there_is_the_inputs_fault() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hint.sock");
    let server = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&server, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&server, 4).unwrap();
    let nobody = i32::MAX.to_string();
    for target in ["--pid", "--tid"] {
        let hint = ["--wake", "hold", "--socket", path.to_str().unwrap(), target, &nobody];
        assert_refused(&hint, 2, &[&nobody]);
    }
}
