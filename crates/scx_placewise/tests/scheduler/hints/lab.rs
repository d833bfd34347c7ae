//! A hint server, and callers of all kinds.

use std::fs;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use libbpf_rs::{MapHandle, MapType};
use placewise_hint::{Client, Hint, thread_pidfd};
use scx_placewise::hint::{HintMap, HintServer};

pub const NOBODY: u32 = 65534;

/// The size of `struct hint_entry`.
const HINT_WORDS: u32 = 3;

/// A directory that everybody may enter, with a server in it.
pub struct Lab {
    pub directory: PathBuf,
    pub socket: PathBuf,
    _server: HintServer,
}

/// Says so even where a passing test's output is swallowed.
pub fn skipped(reason: &str) {
    let line = format!("SKIPPED: hints: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
}

/// A map like that of `bpf/task.h`. The scheduler's own object loads only where sched_ext is.
pub fn hint_map() -> Result<HintMap, String> {
    // SAFETY: the BTF is made, given to the kernel and kept until the process ends.
    let (types, key, value) = unsafe {
        let types = libbpf_sys::btf__new_empty();
        let key = libbpf_sys::btf__add_int(types, c"int".as_ptr(), 4, 1);
        let value = libbpf_sys::btf__add_array(types, key, key, HINT_WORDS);
        match libbpf_sys::btf__load_into_kernel(types) {
            0 => (libbpf_sys::btf__fd(types), key, value),
            error => return Err(format!("the kernel takes no BTF: {error}")),
        }
    };
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as u64,
        map_flags: libbpf_sys::BPF_F_NO_PREALLOC,
        btf_fd: types as u32,
        btf_key_type_id: key as u32,
        btf_value_type_id: value as u32,
        ..Default::default()
    };
    MapHandle::create(MapType::TaskStorage, Some("hints"), 4, 4 * HINT_WORDS, 0, &options)
        .map(|map| HintMap::new(map, false))
        .map_err(|error| error.to_string())
}

impl Lab {
    pub fn new(name: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skipped("they take root");
            return None;
        }
        let map = hint_map().map_err(|reason| skipped(&reason)).ok()?;
        let directory =
            std::env::temp_dir().join(format!("placewise-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let socket = directory.join("hint.sock");
        let server = HintServer::start(&socket, map).unwrap();
        Some(Self { directory, socket, _server: server })
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.socket).unwrap()
    }

    /// A program that hints with the C header: prints the errno, 0 where it went well.
    pub fn c_program(&self) -> PathBuf {
        let source = self.directory.join("hint.c");
        let program = self.directory.join("hint");
        let text = "#include \"placewise-hint.h\"\n\
            int main(int argc, char **argv)\n{\n\
            \tint done = placewise_hint_thread(argv[1], argc > 3 ? atoi(argv[3]) : 0, argv[2], 1);\n\
            \tprintf(\"%d\\n\", done < 0 ? errno : 0);\n\treturn 0;\n}\n";
        fs::write(&source, text).unwrap();
        let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../placewise-hint/include");
        let built = Command::new("cc")
            .args(["-Wall", "-Wextra", "-Werror", "-I"])
            .arg(headers)
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .status();
        assert!(built.unwrap().success());
        program
    }

    /// What the C program says as that user.
    pub fn errno_of(&self, program: &Path, uid: u32, arguments: &[&str]) -> i32 {
        let mut command = Command::new(program);
        command.uid(uid).gid(uid);
        self.errno_in(command, arguments)
    }

    /// What the C program says that a command runs.
    pub fn errno_in(&self, mut command: Command, arguments: &[&str]) -> i32 {
        let output = command.arg(&self.socket).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        said.trim().parse().unwrap_or_else(|_| panic!("{said:?}, {output:?}"))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A task that does nothing, of that user.
pub struct Sleeper(Child);

impl Sleeper {
    pub fn of(uid: u32) -> Self {
        Self(Command::new("sleep").arg("1000").uid(uid).gid(uid).spawn().unwrap())
    }

    pub fn tid(&self) -> i32 {
        self.0.id() as i32
    }

    pub fn pidfd(&self) -> OwnedFd {
        thread_pidfd(self.tid()).unwrap()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn hint(names: &str) -> Hint {
    names.parse().unwrap()
}
