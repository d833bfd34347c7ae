//! How many instructions of each BPF program the kernel's verifier followed, as recorded in the
//! repository: no program may take over a tenth more.
//!
//! Verifiers differ, so a file names the series of its kernel. A program that is only recorded, or
//! only there, is a shortcoming too; one that shrank is none. With `UPDATE_INSTRUCTION_COUNTS` set
//! what was counted is recorded first.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use anyhow::Context;

const HEADING: &str = "# Instructions verified by Linux ";
const GROWTH_PCT: u64 = 10;

#[derive(Debug, PartialEq)]
pub struct InstructionCounts {
    /// Series, such as 6.18.
    pub kernel: String,
    /// By program.
    pub counts: Vec<(String, u64)>,
}

impl InstructionCounts {
    /// Those in the file at `path`: `self`, if it is to be recorded there.
    pub fn recorded(&self, path: &Path) -> anyhow::Result<Self> {
        let named = || path.display().to_string();
        if env::var_os("UPDATE_INSTRUCTION_COUNTS").is_some() {
            fs::write(path, self.text()).with_context(named)?;
        }
        Self::parse(&fs::read_to_string(path).with_context(named)?).with_context(named)
    }

    /// In what these counts exceed or miss the recorded ones, a line each.
    pub fn shortcomings(&self, recorded: &Self) -> Vec<String> {
        let grown = self.counts.iter().filter_map(|(name, count)| match recorded.get(name) {
            None => Some(format!("{name}: {count} instructions, none recorded")),
            Some(before) if *count > before + before * GROWTH_PCT / 100 => {
                Some(format!("{name}: {count} instructions instead of {before}"))
            }
            Some(_) => None,
        });
        let gone = recorded.counts.iter().filter(|(name, _)| self.get(name).is_none());
        grown.chain(gone.map(|(name, _)| format!("{name}: recorded, but no more there"))).collect()
    }

    fn get(&self, name: &str) -> Option<u64> {
        self.counts.iter().find(|(its, _)| its == name).map(|(_, count)| *count)
    }

    fn text(&self) -> String {
        let mut text = format!("{HEADING}{}\n", self.kernel);
        for (name, count) in &self.counts {
            let _ = writeln!(text, "{count:>8} {name}");
        }
        text
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let (heading, lines) = text.split_once('\n').context("it is empty")?;
        let kernel = heading.strip_prefix(HEADING).with_context(|| format!("no `{HEADING}`"))?;
        let count = |line: &str| {
            let (count, name) = line.trim().split_once(' ')?;
            Some((name.to_owned(), count.parse().ok()?))
        };
        let counts = lines
            .lines()
            .map(|line| count(line).with_context(|| format!("`{line}`, expected `COUNT NAME`")));
        Ok(Self { kernel: kernel.to_owned(), counts: counts.collect::<anyhow::Result<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[(&str, u64)]) -> InstructionCounts {
        let named = |(name, count): &(&str, u64)| ((*name).to_owned(), *count);
        InstructionCounts { kernel: "6.18".to_owned(), counts: counts.iter().map(named).collect() }
    }

    #[test]
    fn what_is_written_is_read() {
        let two = counts(&[("place", 152_068), ("tick", 53)]);
        assert_eq!(InstructionCounts::parse(&two.text()).unwrap(), two);
    }

    #[test]
    fn a_program_may_shrink_or_grow_by_a_tenth() {
        let recorded = counts(&[("place", 1000), ("tick", 50)]);
        let now = counts(&[("place", 1100), ("tick", 5)]);
        assert_eq!(now.shortcomings(&recorded), [""; 0]);
        let now = counts(&[("place", 1101), ("tick", 50)]);
        assert_eq!(now.shortcomings(&recorded), ["place: 1101 instructions instead of 1000"]);
    }

    #[test]
    fn every_program_is_recorded_and_every_recorded_one_is_there() {
        let shortcomings = counts(&[("place", 1)]).shortcomings(&counts(&[("tick", 1)]));
        assert_eq!(
            shortcomings,
            ["place: 1 instructions, none recorded", "tick: recorded, but no more there"]
        );
    }
}
