//! For Prometheus: the figures in a file, as the textfile collector of node_exporter reads them.
//!
//! A file has no port, no callers and no connections that could run out. It is there whole or not
//! at all, and goes with the scheduler. What a loader that was killed has left tells by its age.

use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use placewise_policy::Distance;

use crate::figures::{Balanced, Figure, Figures, Placed};

/// The file, until it is dropped.
pub struct MetricsFile {
    path: PathBuf,
}

impl MetricsFile {
    /// Refuses a place that cannot be written, or is something else than a file.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        let is_other = fs::symlink_metadata(path).is_ok_and(|found| !found.is_file());
        anyhow::ensure!(!is_other, "{}: is no regular file; name a file to write", path.display());
        let file = Self { path: path.to_owned() };
        file.write(&Figures::default())?;
        Ok(file)
    }

    /// Puts the figures in place of those that were there.
    pub fn write(&self, figures: &Figures) -> anyhow::Result<()> {
        let new = beside(&self.path);
        let written = replace(&new, text(figures).as_bytes(), &self.path);
        written.with_context(|| {
            let _ = fs::remove_file(&new);
            format!("{}: cannot be written", self.path.display())
        })
    }
}

impl Drop for MetricsFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The collector reads names that end with `.prom`, so not this one.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Where others may write too, nobody else's file is opened: it is a new one, or none.
fn replace(new: &Path, bytes: &[u8], path: &Path) -> io::Result<()> {
    match fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::create_new(new)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(bytes)?;
    fs::rename(new, path)
}

/// In Prometheus' text format. Values of labels are words that need no quoting.
fn text(figures: &Figures) -> String {
    let Figures { placed, balanced } = figures;
    let (distances, others) = Placed::FIGURES.split_at(Distance::ALL.len());
    let by_distance = placed.iter().flat_map(|(kind, placed)| {
        let counts = distances.iter().zip(placed.counts());
        counts.map(move |(to, count)| (format!("kind=\"{kind}\",distance=\"{}\"", to.name), count))
    });
    let by_level = balanced.iter().flat_map(|(level, moved)| {
        let of = format!("level=\"{level}\",domain=\"{}\"", moved.domain);
        let causes = Balanced::FIGURES.iter().zip(moved.counts());
        causes.map(move |(cause, count)| (format!("{of},cause=\"{}\"", cause.name), count))
    });
    let mut text =
        counter("placements", "Placements by distance from the previous CPU", by_distance);
    for (at, Figure { name, help, .. }) in others.iter().enumerate() {
        let by_kind = placed.iter().map(|(kind, placed)| {
            (format!("kind=\"{kind}\""), placed.counts()[distances.len() + at])
        });
        text += &counter(&format!("placements_{name}"), &format!("Placements {help}"), by_kind);
    }
    text + &counter("balanced_tasks", "Tasks that balancing moved", by_level)
}

fn counter(name: &str, help: &str, samples: impl Iterator<Item = (String, u64)>) -> String {
    let name = format!("placewise_{name}_total");
    let mut text = format!("# HELP {name} {help}\n# TYPE {name} counter\n");
    for (labels, count) in samples {
        let _ = writeln!(text, "{name}{{{labels}}} {count}"); // a String takes all
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::figures::tests::figures;

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let name = format!("placewise-metrics-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn prometheus_reads_every_figure() {
        let text = text(&figures());
        for line in [
            "placewise_placements_total{kind=\"wakeup\",distance=\"llc\"} 3",
            "placewise_placements_on_idle_total{kind=\"wakeup\"} 9",
            "placewise_balanced_tasks_total{level=\"1\",domain=\"MC\",cause=\"newly_idle\"} 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} not in\n{text}");
        }
    }

    #[test]
    fn every_sample_has_one_line_below_its_help_and_type() {
        let text = text(&figures());
        let (mut helped, mut family, mut series) = (None, None, BTreeSet::new());
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["#", "HELP", name, _, ..] => helped = Some(name),
                ["#", "TYPE", name, "counter"] => {
                    assert_eq!(helped, Some(name));
                    family = Some(name);
                }
                [sample, count] => {
                    assert_eq!(sample.split('{').next(), family);
                    assert!(series.insert(sample), "{line} stands there twice");
                    assert!(count.parse::<u64>().is_ok(), "{line}");
                }
                _ => panic!("{line}"),
            }
        }
        assert_eq!(series.len(), Placed::FIGURES.len() + Balanced::FIGURES.len());
    }

    #[test]
    fn the_file_is_whole_for_all_to_read_and_goes_in_the_end() {
        let directory = Directory::new("whole");
        let path = directory.0.join("placewise.prom");
        let file = MetricsFile::create(&path).unwrap();
        file.write(&figures()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text(&figures()));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(directory.names(), ["placewise.prom"]);
        drop(file);
        assert!(directory.names().is_empty());
    }

    #[test]
    fn nobody_elses_file_is_written_through_a_link() {
        let directory = Directory::new("link");
        let (others, path) = (directory.0.join("others"), directory.0.join("placewise.prom"));
        fs::write(&others, "of somebody else").unwrap();
        symlink(&others, beside(&path)).unwrap();
        let file = MetricsFile::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&others, &path).unwrap();
        file.write(&figures()).unwrap();
        assert_eq!(fs::read_to_string(&others).unwrap(), "of somebody else");
        assert_eq!(fs::read_to_string(&path).unwrap(), text(&figures()));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused() {
        let directory = Directory::new("refused");
        for place in [directory.0.clone(), directory.0.join("missing/placewise.prom")] {
            let refused = MetricsFile::create(&place).err().unwrap();
            assert!(format!("{refused:#}").starts_with(place.to_str().unwrap()), "{refused:#}");
        }
    }
}
