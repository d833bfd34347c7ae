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
    let config = config().unwrap_or_default();
    Ok(Header {
        kernel: Some(running_release()),
        topology: TraceTopology { hz: hz_of(&config), ..TraceTopology::of_host()? },
        base_slice_ns: read("/sys/kernel/debug/sched/base_slice_ns").and_then(|ns| ns.parse().ok()),
        features: features(),
        preempt: preempt(&config),
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

/// What debugfs says, or else the command line, or else the configuration.
fn preempt(config: &str) -> Option<String> {
    let told = read("/sys/kernel/debug/sched/preempt").and_then(|modes| chosen(&modes));
    let booted = || read("/proc/cmdline").and_then(|line| booted_to_preempt(&line));
    told.or_else(booted).or_else(|| built_to_preempt(config))
}

/// `none voluntary (full) lazy`
fn chosen(modes: &str) -> Option<String> {
    let (_, chosen) = modes.split_once('(')?;
    Some(chosen.split_once(')')?.0.to_owned())
}

fn booted_to_preempt(command_line: &str) -> Option<String> {
    let mode = |word: &str| word.strip_prefix("preempt=").map(str::to_owned);
    command_line.split_whitespace().filter_map(mode).next_back()
}

fn built_to_preempt(config: &str) -> Option<String> {
    let modes = [
        ("CONFIG_PREEMPT_NONE=y", "none"),
        ("CONFIG_PREEMPT_VOLUNTARY=y", "voluntary"),
        ("CONFIG_PREEMPT_LAZY=y", "lazy"),
        ("CONFIG_PREEMPT=y", "full"),
    ];
    let is_built = |line: &str| config.lines().any(|it| it == line);
    modes.into_iter().find(|(line, _)| is_built(line)).map(|(_, mode)| mode.to_owned())
}

fn config() -> Option<String> {
    let boot = || {
        let uname = rustix::system::uname();
        read(format!("/boot/config-{}", uname.release().to_string_lossy()))
    };
    read_gzip("/proc/config.gz").or_else(boot)
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

    #[test]
    fn how_the_kernel_preempts_is_told_or_booted_or_built() {
        assert_eq!(chosen("none voluntary (full) lazy").as_deref(), Some("full"));
        assert_eq!(chosen("none voluntary full"), None);
        assert_eq!(booted_to_preempt("quiet preempt=none ro").as_deref(), Some("none"));
        assert_eq!(booted_to_preempt("quiet"), None);
        let built =
            "CONFIG_PREEMPT_BUILD=y\n# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT_LAZY=y\n";
        assert_eq!(built_to_preempt(built).as_deref(), Some("lazy"));
        assert_eq!(
            built_to_preempt("CONFIG_PREEMPTION=y\nCONFIG_PREEMPT=y\n").as_deref(),
            Some("full")
        );
        assert_eq!(built_to_preempt("CONFIG_PREEMPT_DYNAMIC=y\n"), None);
    }
}
