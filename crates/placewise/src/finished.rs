//! Finished runs as files keep them, and what a run is known by there: a digest of all that its figures
//! follow from, which is machine, policy, workload, seed, and this program itself. A run of another build
//! is thus never taken for one of this.

use std::fmt::{self, Debug, Write};
use std::fs;
use std::io::ErrorKind;
use std::sync::Mutex;

use anyhow::Context;
use placewise_sim::{Better, Figure};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::machine_readable::direction_name;

/// 128 bits, which are written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(u128);

impl Digest {
    /// Of a value, by what it says of all that is in it.
    pub fn of(value: &impl Debug) -> Self {
        struct Hashed(Xxh3);
        impl Write for Hashed {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                self.0.update(text.as_bytes());
                Ok(())
            }
        }
        let mut hashed = Hashed(Xxh3::new());
        write!(hashed, "{value:?}").expect("a digest takes every text");
        Self(hashed.0.digest128())
    }

    /// Of this program, by its own bytes.
    pub fn of_build() -> anyhow::Result<Self> {
        let bytes = fs::read("/proc/self/exe").or_else(|error| match error.kind() {
            ErrorKind::NotFound => fs::read(std::env::current_exe()?),
            _ => Err(error),
        });
        Ok(Self(xxh3_128(&bytes.context("cannot read this program")?)))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

/// A figure: name, value, unit and good direction; `null` for a value that is not finite.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Told(String, Option<f64>, String, Option<String>);

impl Told {
    pub fn of(figure: &Figure) -> Self {
        let better = figure.better.map(|better| direction_name(better).to_owned());
        let value = Some(figure.value).filter(|value| value.is_finite());
        Self(figure.metric.clone(), value, figure.unit.to_owned(), better)
    }

    pub fn figure(self) -> Figure {
        let Self(metric, value, unit, better) = self;
        let better = better.map(|name| match name == direction_name(Better::Lower) {
            true => Better::Lower,
            false => Better::Higher,
        });
        Figure { metric, value: value.unwrap_or(f64::NAN), unit: unit_named(unit), better }
    }
}

/// Units are few, and live as long as the program.
fn unit_named(unit: String) -> &'static str {
    static KNOWN: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().expect("nothing panics here");
    if let Some(known) = known.iter().find(|known| **known == unit) {
        return known;
    }
    known.push(unit.leak());
    known[known.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_comes_back_to_the_last_bit() {
        let figure = |value, better| Figure { metric: "time".into(), value, unit: "s", better };
        for figure in [figure(0.1 + 0.2, Some(Better::Lower)), figure(1e-300, None)] {
            let text = serde_json::to_string(&Told::of(&figure)).unwrap();
            let back = serde_json::from_str::<Told>(&text).unwrap().figure();
            assert_eq!((back.value.to_bits(), back.unit), (figure.value.to_bits(), "s"), "{text}");
            assert_eq!(back.better, figure.better);
        }
    }

    #[test]
    fn a_digest_is_of_all_that_a_value_says() {
        let digest = |value: &[u32]| Digest::of(&value);
        assert_eq!(digest(&[1, 2]), digest(&[1, 2]));
        assert_ne!(digest(&[1, 2]), digest(&[12]));
        assert_eq!(digest(&[1]).to_string().len(), 32);
    }
}
