//! The hint server on the running kernel: a real map of task storage, real callers, through the
//! Rust client and the C header. No scheduler is loaded, so this takes no sched_ext.
//!
//! Without root, or without BPF, a line that starts with SKIPPED says so.

use std::fs;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use libbpf_rs::{MapHandle, MapType};
use placewise_hint::{Client, ClientError, Hint, Inheritance, MESSAGE_MAX, thread_pidfd};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType, connect, recv, send, socket,
};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use scx_placewise::hint::{HintServer, ServerError};

const NOBODY: u32 = 65534;

/// A directory that everybody may enter, with a server in it.
struct Lab {
    directory: PathBuf,
    socket: PathBuf,
    _server: HintServer,
}

/// Says so even where a passing test's output is swallowed.
fn skipped(reason: &str) {
    let line = format!("SKIPPED: hints: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
}

/// A map like that of `bpf/task.h`. The scheduler's own object loads only where sched_ext is.
fn map() -> Result<MapHandle, String> {
    // SAFETY: the BTF is made, given to the kernel and kept until the process ends.
    let (types, key, value) = unsafe {
        let types = libbpf_sys::btf__new_empty();
        let key = libbpf_sys::btf__add_int(types, c"int".as_ptr(), 4, 1);
        let value = libbpf_sys::btf__add_int(types, c"u64".as_ptr(), 8, 0);
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
    MapHandle::create(MapType::TaskStorage, Some("hints"), 4, 8, 0, &options)
        .map_err(|error| error.to_string())
}

impl Lab {
    fn new(name: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skipped("they take root");
            return None;
        }
        let map = map().map_err(|reason| skipped(&reason)).ok()?;
        let directory =
            std::env::temp_dir().join(format!("placewise-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
        let socket = directory.join("hint.sock");
        let server = HintServer::start(&socket, map.into(), |_, _| Ok(())).unwrap();
        Some(Self { directory, socket, _server: server })
    }

    fn client(&self) -> Client {
        Client::connect(&self.socket).unwrap()
    }

    /// A program that hints with the C header: prints the errno, 0 where it went well.
    fn c_program(&self) -> PathBuf {
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
    fn errno_of(&self, program: &Path, uid: u32, arguments: &[&str]) -> i32 {
        let output =
            Command::new(program).arg(&self.socket).args(arguments).uid(uid).gid(uid).output();
        String::from_utf8(output.unwrap().stdout).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A task that does nothing, of that user.
struct Sleeper(Child);

impl Sleeper {
    fn of(uid: u32) -> Self {
        Self(Command::new("sleep").arg("1000").uid(uid).gid(uid).spawn().unwrap())
    }

    fn tid(&self) -> i32 {
        self.0.id() as i32
    }

    fn pidfd(&self) -> OwnedFd {
        thread_pidfd(self.tid()).unwrap()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn hint(names: &str) -> Hint {
    names.parse().unwrap()
}

#[test]
fn a_hint_is_kept_replaced_shown_and_cleared() {
    let Some(lab) = Lab::new("kept") else { return };
    let mut client = lab.client();
    let task = Sleeper::of(0);
    let thread = task.pidfd();
    let (spread, hold) = (hint("fork_spread"), hint("wake_hold"));

    assert_eq!(client.get(thread.as_fd()).unwrap().hint, Hint::NONE);
    client.set(thread.as_fd(), spread, Inheritance::OnlySelf).unwrap();
    let kept = client.get(thread.as_fd()).unwrap();
    assert_eq!((kept.hint, kept.inheritance), (spread, Inheritance::OnlySelf));
    client.set(thread.as_fd(), hold, Inheritance::Children).unwrap();
    let shown = client.show().unwrap();
    let shown: Vec<_> = shown.iter().filter(|hinted| hinted.tid == task.tid() as u32).collect();
    assert_eq!(shown.len(), 1);
    assert_eq!((shown[0].hint, shown[0].inheritance), (hold, Inheritance::Children));
    client.set(thread.as_fd(), Hint::NONE, Inheritance::Children).unwrap();
    assert!(client.show().unwrap().is_empty());
}

#[test]
fn users_hint_their_own_tasks_and_no_others() {
    let Some(lab) = Lab::new("users") else { return };
    let program = lab.c_program();
    let (roots, nobodys) = (Sleeper::of(0), Sleeper::of(NOBODY));
    let (of_root, of_nobody) = (roots.tid().to_string(), nobodys.tid().to_string());

    assert_eq!(lab.errno_of(&program, NOBODY, &["wake_hold", &of_nobody]), 0);
    assert_eq!(lab.errno_of(&program, NOBODY, &["wake_hold"]), 0, "oneself");
    assert_eq!(lab.errno_of(&program, NOBODY, &["wake_hold", &of_root]), libc::EPERM);
    assert_eq!(lab.errno_of(&program, NOBODY - 1, &["wake_hold", &of_nobody]), libc::EPERM);
    assert_eq!(lab.errno_of(&program, 0, &["fork_affine", &of_nobody]), 0, "root may");

    let mut client = lab.client();
    assert_eq!(client.get(nobodys.pidfd().as_fd()).unwrap().hint, hint("fork_affine"));
    assert_eq!(client.get(roots.pidfd().as_fd()).unwrap().hint, Hint::NONE);
}

#[test]
fn a_server_with_fewer_capabilities_serves_root() {
    let weaker = || {
        let mut ours = capabilities(None).unwrap();
        for set in [&mut ours.effective, &mut ours.permitted] {
            set.remove(CapabilitySet::SYS_TIME);
        }
        set_capabilities(None, ours).unwrap();
        Lab::new("weaker")
    };
    let root = rustix::process::geteuid().is_root();
    let lab = if root { std::thread::spawn(weaker).join().unwrap() } else { Lab::new("weaker") };
    let Some(lab) = lab else { return };
    let task = Sleeper::of(NOBODY);
    lab.client().set(task.pidfd().as_fd(), hint("wake_hold"), Inheritance::Children).unwrap();
}

#[test]
fn a_message_that_is_too_long_is_not_cut() {
    let Some(lab) = Lab::new("long") else { return };
    let request = format!("set fork_spread+wake_affine{} children", "+none".repeat(44));
    assert_eq!(request.len(), MESSAGE_MAX);
    // To the first there is an answer, though no pidfd is with it.
    for (text, answered) in [(request.clone(), true), (request + "s", false)] {
        let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        connect(&socket, &SocketAddrUnix::new(&lab.socket).unwrap()).unwrap();
        send(&socket, text.as_bytes(), SendFlags::NOSIGNAL).unwrap();
        let mut answer = [0; MESSAGE_MAX];
        let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty()).unwrap();
        assert_eq!(length > 0, answered, "{text}");
    }
}

#[test]
fn what_is_no_hint_is_refused_by_errno() {
    let Some(lab) = Lab::new("refused") else { return };
    let program = lab.c_program();
    for no_hint in ["fork_affine+fork_spread", "wake_hold+wake_affine", "wake", "3", ""] {
        assert_eq!(lab.errno_of(&program, 0, &[no_hint]), libc::EINVAL, "{no_hint}");
    }
    let mut client = lab.client();
    let file = fs::File::open("/dev/null").unwrap();
    let refused = client.set(file.as_fd(), hint("wake_hold"), Inheritance::Children);
    assert!(matches!(refused, Err(ClientError::Refused { errno: libc::EBADF, .. })), "{refused:?}");

    let task = Sleeper::of(0);
    let thread = task.pidfd();
    drop(task);
    let refused = client.set(thread.as_fd(), hint("wake_hold"), Inheritance::Children);
    assert!(matches!(refused, Err(ClientError::Refused { errno: libc::ESRCH, .. })), "{refused:?}");
}

#[test]
fn a_second_server_is_refused_and_a_dead_ones_socket_taken_over() {
    let Some(lab) = Lab::new("second") else { return };
    let second = HintServer::start(&lab.socket, map().unwrap().into(), |_, _| Ok(()));
    assert!(matches!(second, Err(ServerError::Taken { .. })));
    let left = lab.directory.join("left.sock");
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    assert!(HintServer::start(&left, map().unwrap().into(), |_, _| Ok(())).is_ok());
    let file = lab.directory.join("file");
    fs::write(&file, "of somebody else").unwrap();
    let refused = HintServer::start(&file, map().unwrap().into(), |_, _| Ok(()));
    assert!(matches!(refused, Err(ServerError::Listen { .. })));
    assert_eq!(fs::read_to_string(&file).unwrap(), "of somebody else");
}
