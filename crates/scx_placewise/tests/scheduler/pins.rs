//! Where maps are pinned, on a real bpf file system of this test's own.
//!
//! Without root, or without BPF, a line that starts with SKIPPED says so.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use libbpf_rs::{MapCore, MapHandle, MapType};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use scx_placewise::pins::Pins;

/// A user without rights.
const NOBODY: u32 = 65534;

/// Runs `test` in a bpf file system that only its thread sees, and that goes with it.
fn on_bpf_file_system(test: fn(&Path)) {
    let thread = std::thread::spawn(move || match mounted() {
        Ok(path) => test(&path),
        Err(reason) => {
            let line = format!("SKIPPED: pins: cannot mount a bpf file system: {reason}\n");
            io::stderr().write_all(line.as_bytes()).expect("stderr is open");
        }
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn mounted() -> io::Result<PathBuf> {
    // SAFETY: the thread has just begun: it shares no paths that anybody relies on.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // In that namespace there is nothing to be missed in /mnt.
    mount("bpf", "/mnt", "bpf", MountFlags::empty(), None)?;
    Ok(PathBuf::from("/mnt"))
}

fn map() -> MapHandle {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as u64,
        ..Default::default()
    };
    MapHandle::create(MapType::Array, Some("pinned"), 4, 4, 1, &options).expect("BPF has arrays")
}

fn id(map: &MapHandle) -> u32 {
    map.info().expect("the map is there").info.id
}

fn make(path: &Path, mode: u32) {
    DirBuilder::new().create(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn refusal(path: &Path) -> String {
    match Pins::at(path) {
        Ok(_) => panic!("{}: taken", path.display()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_directory_of_roots_is_made_and_taken_away() {
    on_bpf_file_system(|root| {
        let path = root.join("placewise");
        let pins = Pins::at(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        let mut pinned = map();
        pinned.pin(pins.path("hints")).unwrap();
        assert!(path.join("hints").exists());
        assert_eq!(id(&pins.map("hints").unwrap()), id(&pinned));
        drop(pins);
        assert!(!path.exists());
    });
}

#[test]
fn what_a_killed_loader_left_is_taken_away() {
    on_bpf_file_system(|root| {
        let path = root.join("placewise");
        make(&path, 0o700);
        map().pin(path.join("tasks")).unwrap();
        let pins = Pins::at(&path).unwrap();
        assert!(pins.map("tasks").is_err());
    });
}

#[test]
fn a_directory_that_others_may_change_is_refused() {
    on_bpf_file_system(|root| {
        let path = root.join("placewise");
        for found in [0o1777, 0o770, 0o755, 0o500] {
            make(&path, found);
            let expected = format!(
                "/mnt/placewise: expected a directory of root's, with mode 0700, \
                 and it has owner 0 and mode {found:04o}: remove it"
            );
            assert_eq!(refusal(&path), expected);
            fs::remove_dir(&path).expect("it was left alone");
        }
        make(&path, 0o700);
        chown(&path, Some(NOBODY), None).unwrap();
        assert!(refusal(&path).ends_with("and it has owner 65534 and mode 0700: remove it"));
    });
}

#[test]
fn a_link_is_refused() {
    on_bpf_file_system(|root| {
        let (path, other) = (root.join("placewise"), root.join("other"));
        make(&other, 0o700);
        map().pin(other.join("hints")).unwrap();
        symlink(&other, &path).unwrap();
        assert!(refusal(&path).ends_with("and it is none: remove it"));
        assert!(other.join("hints").exists());
    });
}

#[test]
fn a_directory_that_takes_its_place_later_is_not_used() {
    on_bpf_file_system(|root| {
        let (path, moved) = (root.join("placewise"), root.join("moved"));
        let pins = Pins::at(&path).unwrap();
        fs::rename(&path, &moved).unwrap();
        DirBuilder::new().mode(0o777).create(&path).unwrap();
        let (mut ours, mut theirs) = (map(), map());
        theirs.pin(path.join("hints")).unwrap();
        ours.pin(pins.path("hints")).unwrap();
        assert_eq!(id(&pins.map("hints").unwrap()), id(&ours));
        assert!(moved.join("hints").exists());
        drop(pins);
        assert!(!moved.join("hints").exists() && path.join("hints").exists());
    });
}

#[test]
fn it_takes_a_bpf_file_system() {
    on_bpf_file_system(|_| {
        assert!(refusal(Path::new("/tmp/placewise-pins")).contains("mount -t bpf bpf /tmp"));
        assert!(!Path::new("/tmp/placewise-pins").exists());
    });
}
