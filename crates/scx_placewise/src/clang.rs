//! How BPF programs are compiled: by the build, and of somebody's own policy when it is loaded.

use std::path::Path;
use std::process::Command;

/// Newest first; a plain `clang` may be any version.
pub const COMPILERS: [&str; 2] = ["clang-19", "clang"];

/// Freestanding, or clang would make memset() of some stores to the arena, with
/// an address that BPF cannot use.
const FLAGS: &[&str] = &[
    "-target",
    "bpf",
    "-mcpu=v4",
    "-O2",
    "-g",
    "-std=gnu11",
    "-ffreestanding",
    "-Wall",
    "-Wextra",
];

/// The first that can.
pub fn find() -> Option<&'static str> {
    COMPILERS.into_iter().find(|compiler| knows_arenas(compiler))
}

/// Arenas need `__BPF_FEATURE_ADDR_SPACE_CAST`, which clang has since version 19.
fn knows_arenas(compiler: &str) -> bool {
    let macros = Command::new(compiler)
        .args(["-target", "bpf", "-mcpu=v4", "-dM", "-E", "-x", "c", "/dev/null"])
        .output();
    macros.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout).contains("__BPF_FEATURE_ADDR_SPACE_CAST")
    })
}

/// Compiles `source` to `object`, with the headers in `includes`.
pub fn command(compiler: &str, includes: &[&Path], source: &Path, object: &Path) -> Command {
    let mut command = Command::new(compiler);
    command.args(FLAGS);
    for include in includes {
        command.arg("-I").arg(include);
    }
    command.arg("-c").arg(source).arg("-o").arg(object);
    command
}
