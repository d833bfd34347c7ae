//! Why the kernel unloaded the scheduler: what `bpf/exit.h` left of `struct scx_exit_info`.

use std::ffi::CStr;
use std::fmt;

use libbpf_rs::{AsRawLibbpf, MapCore, Object};

use crate::shared::ExitRecord;

/// The exit code's bits: what the loader is to do.
const SCX_ECODE_ACT_RESTART: i64 = 1 << 48;

/// The least `enum scx_exit_kind` that is an error.
const SCX_EXIT_ERROR: i32 = 1024;

/// Why the kernel unloaded the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// `enum scx_exit_kind`
    kind: i32,
    code: i64,
    reason: String,
    message: String,
    /// What the kernel knew of CPUs and tasks when an error ended it.
    pub dump: String,
}

impl Exit {
    /// Of the scheduler with this object; None while it is loaded.
    pub(crate) fn read(object: &Object) -> Option<Self> {
        let record = record(object);
        // SAFETY: the kernel writes `kind` last, and the mapping lives as long as the object.
        let kind = unsafe { (&raw const (*record).kind).read_volatile() };
        if kind == 0 {
            return None;
        }
        // SAFETY: nothing writes the record any more.
        Some(Self::of(unsafe { &*record }))
    }

    fn of(record: &ExitRecord) -> Self {
        let text = |bytes: &[u8]| {
            let text = CStr::from_bytes_until_nul(bytes).unwrap_or_default();
            visible(&text.to_string_lossy())
        };
        Self {
            kind: record.kind,
            code: record.code,
            reason: text(&record.reason),
            message: text(&record.message),
            dump: text(&record.dump),
        }
    }

    /// A change of the machine (a CPU went on- or offline) wants it to be loaded anew.
    pub fn wants_restart(&self) -> bool {
        self.code & SCX_ECODE_ACT_RESTART != 0
    }

    /// Was it ended because something went wrong?
    pub fn is_error(&self) -> bool {
        self.kind >= SCX_EXIT_ERROR
    }
}

/// The names of tasks are what their owners made them: nothing in them is for the terminal to obey.
fn visible(text: &str) -> String {
    let is_plain = |letter: char| matches!(letter, '\n' | '\t' | ' '..='~');
    let spelt = |letter: char| match is_plain(letter) {
        true => letter.to_string(),
        false => letter.escape_unicode().to_string(),
    };
    text.chars().map(spelt).collect()
}

fn record(object: &Object) -> *const ExitRecord {
    let named = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(".data.exit");
    let map = object.maps().find(|map| named(map.name()));
    let map = map.expect("the object has an exit record").as_libbpf_object();
    let mut size = 0;
    // SAFETY: the map belongs to a loaded object.
    let start = unsafe { libbpf_sys::bpf_map__initial_value(map.as_ptr(), &raw mut size) };
    assert!(size as usize >= size_of::<ExitRecord>());
    start.cast()
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.kind {
            64 => "unloaded",
            65 => "it unloaded itself",
            66 => "the kernel unloaded it",
            67 => "unloaded by SysRq-S",
            1024 => "the kernel found an error in it",
            1025 => "it found an error in itself",
            1026 => "a runnable task waited too long: the kernel's watchdog unloaded it",
            _ => &self.reason,
        };
        match self.message.is_empty() {
            true => f.write_str(reason),
            false => write!(f, "{reason} ({})", self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tasks_do_not_reach_the_terminal_as_orders() {
        let mut record = ExitRecord {
            code: 0,
            kind: 1024,
            reason: [0; 128],
            message: [0; 1024],
            dump: [0; 32768],
        };
        let dump = b"CPU 0\n\tR \x1b[2Jname\x07[1]\n";
        record.dump[..dump.len()].copy_from_slice(dump);
        assert_eq!(Exit::of(&record).dump, "CPU 0\n\tR \\u{1b}[2Jname\\u{7}[1]\n");
    }
}
