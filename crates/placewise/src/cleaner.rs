//! What must not outlive this process, however it ends, is removed by another process then.
//!
//! That is a shell, which waits for the end of a pipe that only this process can write to: the
//! kernel closes it even after SIGKILL. Being in a process group of its own, it survives what the
//! terminal or a script sends to ours.
//!
//! Limit: what kills all processes of a container or cgroup at once leaves nobody to clean up.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub struct Cleaner(Child);

impl Cleaner {
    /// Has `script` run, with `path` as its `$1`, when this is dropped or the process ends.
    pub fn start(script: &str, path: &Path) -> io::Result<Self> {
        let script = format!("trap '' HUP INT QUIT TERM; read -r end; {script}");
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &script, "placewise-cleaner"]).arg(path).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let named = |error| io::Error::other(format!("/bin/sh cannot be started: {error}"));
        shell.spawn().map(Self).map_err(named)
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        let _ = self.0.wait(); // which closes the pipe first
    }
}
