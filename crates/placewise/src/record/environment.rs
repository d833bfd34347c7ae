//! What a trace says about the host it is recorded on: its machine and the kernel settings that placement
//! depends on. Its tasks are in [`residents`](super::residents).
//!
//! What the kernel does not show is left out: the tick rate without a readable configuration,
//! sched features and base slice without debugfs.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use placewise_machine::{MachineError, TraceTopology};
use placewise_policy::running_release;
use placewise_trace::Header;

pub fn header() -> Result<Header, MachineError> {
    Ok(Header {
        kernel: Some(running_release()),
        topology: TraceTopology { hz: hz(), ..TraceTopology::of_host()? },
        base_slice_ns: read("/sys/kernel/debug/sched/base_slice_ns").and_then(|ns| ns.parse().ok()),
        features: features(),
        recorder: Some(std::process::id()),
        ..Header::default()
    })
}

pub(super) fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn features() -> Vec<String> {
    // The second is the place before v5.13.
    let text = read("/sys/kernel/debug/sched/features")
        .or_else(|| read("/sys/kernel/debug/sched_features"));
    text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn hz() -> Option<u32> {
    let boot = || {
        let uname = rustix::system::uname();
        read(format!("/boot/config-{}", uname.release().to_string_lossy()))
    };
    let config = read_gzip("/proc/config.gz").or_else(boot);
    hz_of(&config?)
}

fn hz_of(config: &str) -> Option<u32> {
    config.lines().find_map(|line| line.strip_prefix("CONFIG_HZ="))?.parse().ok()
}

fn read_gzip(path: &str) -> Option<String> {
    let mut text = String::new();
    GzDecoder::new(File::open(path).ok()?).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tick_rate_is_not_the_choice_of_it() {
        assert_eq!(hz_of("CONFIG_HZ_250=y\nCONFIG_HZ=250\n"), Some(250));
        assert_eq!(hz_of("# CONFIG_HZ is not set\n"), None);
    }
}
