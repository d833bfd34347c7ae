//! The units that figures are published in, and which of them measure the same.
//!
//! What follows the unit, from `_` or `(` on, is a note: `usec_p99`, `MB/s(unit not stated)`.

use serde::{Serialize, Serializer};

/// A unit as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    written: String,
    quantity: Quantity,
    /// In the first unit of its quantity.
    size: f64,
}

/// What a unit measures. Units of one quantity can be converted into each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    Time,
    Rate,
    Bandwidth,
    Share,
    Count,
    /// To another row's figure.
    Relative,
}

impl Quantity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Rate => "rate",
            Self::Bandwidth => "bandwidth",
            Self::Share => "share",
            Self::Count => "count",
            Self::Relative => "relative",
        }
    }
}

const UNITS: [(&str, Quantity, f64); 34] = [
    ("s", Quantity::Time, 1.0),
    ("sec", Quantity::Time, 1.0),
    ("ms", Quantity::Time, 1e-3),
    ("msec", Quantity::Time, 1e-3),
    ("us", Quantity::Time, 1e-6),
    ("usec", Quantity::Time, 1e-6),
    ("ns", Quantity::Time, 1e-9),
    ("nsec", Quantity::Time, 1e-9),
    ("ops/s", Quantity::Rate, 1.0),
    ("tps", Quantity::Rate, 1.0),
    ("transactions/s", Quantity::Rate, 1.0),
    ("trans/s", Quantity::Rate, 1.0),
    ("iterations/s", Quantity::Rate, 1.0),
    ("requests/s", Quantity::Rate, 1.0),
    ("kop/s", Quantity::Rate, 1e3),
    ("kops/s", Quantity::Rate, 1e3),
    ("Mop/s", Quantity::Rate, 1e6),
    ("Mops/s", Quantity::Rate, 1e6),
    ("B/s", Quantity::Bandwidth, 1.0),
    ("kB/s", Quantity::Bandwidth, 1e3),
    ("KiB/s", Quantity::Bandwidth, 1024.0),
    ("MB/s", Quantity::Bandwidth, 1e6),
    ("MiB/s", Quantity::Bandwidth, 1024.0 * 1024.0),
    ("GB/s", Quantity::Bandwidth, 1e9),
    ("GiB/s", Quantity::Bandwidth, 1024.0 * 1024.0 * 1024.0),
    ("ratio", Quantity::Share, 1.0),
    ("%", Quantity::Share, 1e-2),
    ("pct", Quantity::Share, 1e-2),
    ("count", Quantity::Count, 1.0),
    ("tasks", Quantity::Count, 1.0),
    ("threads", Quantity::Count, 1.0),
    ("normalized", Quantity::Relative, 1.0),
    // Not stated where it was published.
    ("unknown", Quantity::Relative, 1.0),
    ("as_printed", Quantity::Relative, 1.0),
];

impl Unit {
    /// `None` for a unit that is not known.
    pub fn parse(written: &str) -> Option<Self> {
        let name = written.split(['_', '(']).next().unwrap_or_default().trim_end();
        let is_it = |(known, ..): &&(&str, _, _)| [written, name].contains(known);
        let (_, quantity, size) = UNITS.iter().find(is_it)?;
        Some(Self { written: written.to_owned(), quantity: *quantity, size: *size })
    }

    pub fn written(&self) -> &str {
        &self.written
    }

    pub fn quantity(&self) -> Quantity {
        self.quantity
    }

    /// What 1 in this unit is in `other`; `None` where they measure different quantities.
    pub fn in_unit(&self, other: &Unit) -> Option<f64> {
        (self.quantity == other.quantity).then(|| self.size / other.size)
    }

    /// The units there are, all of them or those of one quantity.
    pub fn known(of: Option<Quantity>) -> String {
        let wanted = UNITS.iter().filter(|(_, quantity, _)| of.is_none_or(|of| of == *quantity));
        wanted.map(|(name, ..)| *name).collect::<Vec<_>>().join(", ")
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(from: &str, to: &str) -> Option<f64> {
        Unit::parse(from).unwrap().in_unit(&Unit::parse(to).unwrap())
    }

    #[test]
    fn units_of_one_quantity_are_converted() {
        assert_eq!(factor("s", "ms"), Some(1e3));
        assert_eq!(factor("us", "usec_p99"), Some(1.0));
        assert_eq!(factor("MB/s", "GB/s"), Some(1e-3));
        assert_eq!(factor("MB/s", "MB/s(unit not stated)"), Some(1.0));
        assert_eq!(factor("%", "ratio"), Some(1e-2));
        assert_eq!(factor("s", "MB/s"), None);
        assert_eq!(factor("tps", "MB/s"), None);
        assert_eq!(factor("s", "normalized"), None);
    }

    #[test]
    fn what_is_no_unit_is_told_apart() {
        for text in ["", "S", "seconds!", "m s", "_p99", "(s)"] {
            assert_eq!(Unit::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_documentation_has_every_unit() {
        let page = include_str!("../../../../docs/reproduce.md");
        for (name, ..) in UNITS {
            assert!(page.contains(&format!("`{name}`")), "docs/reproduce.md does not name {name}");
        }
    }
}
