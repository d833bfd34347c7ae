//! Loads a library of somebody's policy, once its layout is found to be ours.

use std::ffi::{CStr, CString, c_void};
use std::mem::transmute;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::compiler::Object;
use super::error::OwnError;
use crate::state::{Code, RUST_LAYOUT};

#[allow(missing_docs)]
mod declared {
    include!(concat!(env!("OUT_DIR"), "/watch.rs"));
}

pub use declared::{NOWHERE, WatchSlot};

type Layout = unsafe extern "C" fn(entries: *mut usize) -> *const usize;
type Watch = unsafe extern "C" fn(slot: extern "C" fn() -> *mut WatchSlot, tree: u32);

/// The code of a tree, which is from `directory`. Each thread that calls it writes where it is to the
/// slot that `slot` gives it, as of `tree`. A library is never unloaded.
pub fn load(
    object: &Object,
    directory: &Path,
    slot: extern "C" fn() -> *mut WatchSlot,
    tree: u32,
) -> Result<&'static Code, OwnError> {
    let library = Library::open(&object.path)?;
    // SAFETY: the libraries that we compile have functions of these types under these names.
    let (layout, watch) = unsafe {
        let layout = transmute::<*mut c_void, Layout>(library.find("placewise_layout")?);
        (layout, transmute::<*mut c_void, Watch>(library.find("placewise_watch")?))
    };
    check_layout(layout, directory)?;
    // SAFETY: the slots are there for as long as threads call.
    unsafe { watch(slot, tree) };
    // SAFETY: the layout has just been checked.
    let code = unsafe { Code::of_library(object.identity, |symbol| library.find(symbol))? };
    Ok(Box::leak(Box::new(code)))
}

fn check_layout(layout: Layout, directory: &Path) -> Result<(), OwnError> {
    let mut entries = 0;
    // SAFETY: the function returns a static table of `entries` numbers.
    let theirs = unsafe {
        let table = layout(&mut entries);
        std::slice::from_raw_parts(table, entries)
    };
    assert_eq!(theirs.len(), RUST_LAYOUT.len(), "one build made both tables");
    match RUST_LAYOUT.iter().zip(theirs).find(|((_, ours), theirs)| ours != *theirs) {
        None => Ok(()),
        Some((&(member, ours), &theirs)) => {
            Err(OwnError::Layout { directory: directory.to_owned(), member, ours, theirs })
        }
    }
}

/// C that does not compile where the layout is not ours, for compilers of which nothing is loaded here.
pub fn layout_assertions() -> String {
    let assertion = |&(member, ours): &(&str, usize)| {
        let theirs = match member.split_once('.') {
            Some((of, field)) => format!("__builtin_offsetof(struct {of}, {field})"),
            None if member.starts_with(char::is_uppercase) => member.to_owned(),
            None => format!("sizeof(struct {member})"),
        };
        format!("_Static_assert({theirs} == {ours}, \"the layout differs: {member}\");\n")
    };
    RUST_LAYOUT.iter().map(assertion).collect()
}

struct Library<'a> {
    path: &'a Path,
    handle: *mut c_void,
}

impl<'a> Library<'a> {
    fn open(path: &'a Path) -> Result<Self, OwnError> {
        let name = CString::new(path.as_os_str().as_bytes()).expect("a path of ours has no NUL");
        // SAFETY: the name is a string; what the library does when it is loaded is its maker's wish.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() { Err(failed(path)) } else { Ok(Self { path, handle }) }
    }

    fn find(&self, symbol: &str) -> Result<*mut c_void, OwnError> {
        let name = CString::new(symbol).expect("a symbol has no NUL");
        // SAFETY: the library is loaded.
        let found = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if found.is_null() { Err(failed(self.path)) } else { Ok(found) }
    }
}

/// What the loader says of its last failure.
fn failed(path: &Path) -> OwnError {
    // SAFETY: it is a string, or nothing, until the next call in this thread.
    let problem = unsafe {
        let message = libc::dlerror();
        match message.is_null() {
            true => "for no reason that is told".to_owned(),
            false => CStr::from_ptr(message).to_string_lossy().into_owned(),
        }
    };
    OwnError::Library { path: path.to_owned(), problem }
}
