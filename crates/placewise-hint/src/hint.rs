//! The hints there are, and which go together: at most one for fork and one for wakeup.
//!
//! Names and values are those of the userspace hinting series of September 2022, but for
//! `share_cache`: a kernel would be told that of each task by the `PR_SCHED_CACHE` that was posted in
//! August 2026.

use std::fmt;
use std::str::FromStr;

/// Where the children of a task go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fork {
    /// Near their parent, while half of its group is idle.
    Affine,
    /// To the group with most idle CPUs, whatever the NUMA node.
    Spread,
}

/// Where a task wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wake {
    /// In the LLC of its waker, while that has an idle core.
    Affine,
    /// In the LLC where it ran before, while that has an idle core.
    Hold,
}

/// What a task says about its placement. The default says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hint {
    pub fork: Option<Fork>,
    pub wake: Option<Wake>,
    /// Processes that it creates gather on an LLC with it, as threads do.
    pub share_cache: bool,
}

/// Why something is no hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HintError {
    #[error("unknown hint '{name}'; known: {}", known())]
    Unknown { name: String },
    #[error("hints '{names}' do not go together: at most one fork_ and one wake_ hint")]
    Conflict { names: String },
    #[error(
        "{value} is no hint mask; expected one of 0, 1, 2, 4, 5, 6, 8, 9, 10, or such a one and 16"
    )]
    Mask { value: u32 },
}

struct Word {
    name: &'static str,
    about: &'static str,
    hint: Hint,
    bit: u32,
}

const NONE: &str = "none";

const WORDS: &[Word] = &[
    Word {
        name: "fork_affine",
        about: "children stay near their parent while half of its group is idle",
        hint: Hint { fork: Some(Fork::Affine), ..Hint::NONE },
        bit: 1 << 0,
    },
    Word {
        name: "fork_spread",
        about: "children go to the group with most idle CPUs, whatever the NUMA node",
        hint: Hint { fork: Some(Fork::Spread), ..Hint::NONE },
        bit: 1 << 1,
    },
    Word {
        name: "wake_affine",
        about: "wakees go to the waker's LLC while it seems to have an idle core",
        hint: Hint { wake: Some(Wake::Affine), ..Hint::NONE },
        bit: 1 << 2,
    },
    Word {
        name: "wake_hold",
        about: "wakees stay in their own LLC while it seems to have an idle core",
        hint: Hint { wake: Some(Wake::Hold), ..Hint::NONE },
        bit: 1 << 3,
    },
    Word {
        name: "share_cache",
        about: "children that are processes gather on an LLC with their parent, as threads do",
        hint: Hint { share_cache: true, ..Hint::NONE },
        bit: 1 << 4,
    },
];

fn known() -> String {
    let names: Vec<&str> = Hint::names().map(|(name, _)| name).collect();
    names.join(", ")
}

impl Hint {
    pub const NONE: Self = Self { fork: None, wake: None, share_cache: false };

    /// Every name that a hint can be made of, with a line about it.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        let none = (NONE, "no hint: the kernel that knows hints, unused");
        std::iter::once(none).chain(WORDS.iter().map(|word| (word.name, word.about)))
    }

    /// Both of two hints.
    pub fn and(self, other: Self) -> Result<Self, HintError> {
        match (join(self.fork, other.fork), join(self.wake, other.wake)) {
            (Ok(fork), Ok(wake)) => {
                Ok(Self { fork, wake, share_cache: self.share_cache || other.share_cache })
            }
            _ => Err(HintError::Conflict { names: format!("{self}+{other}") }),
        }
    }

    /// The mask by which the policy, and but for `share_cache` the kernel series, knows it.
    pub fn mask(self) -> u32 {
        self.words().map(|word| word.bit).sum()
    }

    pub fn from_mask(value: u32) -> Result<Self, HintError> {
        let refused = HintError::Mask { value };
        let named = WORDS.iter().filter(|word| value & word.bit != 0);
        let hint = named.clone().try_fold(Self::NONE, |hint, word| hint.and(word.hint));
        match hint {
            Ok(hint) if hint.mask() == value => Ok(hint),
            _ => Err(refused),
        }
    }

    fn words(self) -> impl Iterator<Item = &'static Word> {
        WORDS.iter().filter(move |word| {
            word.hint.fork.is_some_and(|fork| self.fork == Some(fork))
                || word.hint.wake.is_some_and(|wake| self.wake == Some(wake))
                || word.hint.share_cache && self.share_cache
        })
    }
}

/// One, the other, or neither; the same twice is once.
fn join<T: PartialEq>(one: Option<T>, other: Option<T>) -> Result<Option<T>, ()> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => Err(()),
        (one, other) => Ok(one.or(other)),
    }
}

impl FromStr for Hint {
    type Err = HintError;

    /// Names joined by plus signs, or `none`.
    fn from_str(names: &str) -> Result<Self, HintError> {
        names.split('+').try_fold(Self::NONE, |hint, name| {
            let word = WORDS.iter().find(|word| word.name == name);
            match word {
                Some(word) => {
                    hint.and(word.hint).map_err(|_| HintError::Conflict { names: names.into() })
                }
                None if name == NONE => Ok(hint),
                None => Err(HintError::Unknown { name: name.into() }),
            }
        })
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.words().map(|word| word.name).collect();
        f.pad(if names.is_empty() { NONE.into() } else { names.join("+") }.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the series; 16 goes with each.
    const SERIES: [u32; 9] = [0, 1, 2, 4, 5, 6, 8, 9, 10];

    #[test]
    fn nine_masks_of_the_series_are_hints_with_and_without_a_shared_cache() {
        let valid: Vec<u32> = (0..64).filter(|&mask| Hint::from_mask(mask).is_ok()).collect();
        assert_eq!(valid, [SERIES, SERIES.map(|mask| 16 + mask)].concat());
    }

    #[test]
    fn names_and_masks_say_the_same() {
        for mask in SERIES.into_iter().chain([16, 26]) {
            let hint = Hint::from_mask(mask).unwrap();
            assert_eq!(hint.mask(), mask);
            assert_eq!(hint.to_string().parse(), Ok(hint));
        }
        assert_eq!("fork_spread+wake_hold".parse::<Hint>().unwrap().mask(), 10);
        assert_eq!("wake_affine+fork_affine".parse::<Hint>().unwrap().mask(), 5);
    }

    #[test]
    fn two_of_a_kind_are_refused_by_name() {
        let refused = "fork_affine+fork_spread".parse::<Hint>().unwrap_err().to_string();
        assert!(refused.contains("fork_affine+fork_spread"), "{refused}");
        let refused = "wake_afine".parse::<Hint>().unwrap_err().to_string();
        assert!(refused.contains("wake_affine"), "{refused}");
    }
}
