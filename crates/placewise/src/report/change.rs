//! How a change is written for people.
//!
//! In percent with three digits that count; a tenfold change and more as a factor of the figure, for
//! nobody reads `-11405 %`; and `=` where every run had the same figure. A mark stands behind it.

use placewise_sim::Better;

use super::number::three_digits;
use crate::comparison::Row;

/// From here on a change is told as a factor.
const TOLD_AS_FACTOR: f64 = 10.0;

pub const FORM: &str =
    "x10 = ten times the first row's figure, /10 = a tenth of it, = the same in every run";
pub const MARKS: &str = "~ = within the noise (95 % interval with 0 in it), ? = unknown (too few runs, \
                         or too scattered for a tenfold change)";

/// Without a mark its place is kept, so that digits stay in line.
pub fn change(row: &Row) -> String {
    if row.identical == Some(true) {
        return "=  ".to_owned();
    }
    let Some(change) = row.change_pct else { return String::new() };
    format!("{} {}", amount(change, row.better), mark(row, change))
}

/// A tenfold change is never called noise: runs that scatter so much do not tell.
fn mark(row: &Row, change: f64) -> char {
    match row.significant {
        Some(true) => ' ',
        Some(false) if factor(change, row.better).is_none() => '~',
        _ => '?',
    }
}

/// `-0.900 to +0.440`
pub fn interval(row: &Row) -> String {
    match (row.change_low_pct, row.change_high_pct) {
        (Some(_), Some(_)) if row.identical == Some(true) => String::new(),
        (Some(low), Some(high)) => {
            format!("{} to {}", amount(low, row.better), amount(high, row.better))
        }
        _ => String::new(),
    }
}

/// `+1.62`, `-62.3`, `x115`, `/20.0`
fn amount(change: f64, better: Option<Better>) -> String {
    match factor(change, better) {
        Some(factor) if factor > 1.0 => format!("x{}", three_digits(factor)),
        Some(factor) => format!("/{}", three_digits(1.0 / factor)),
        None if change > 0.0 => format!("+{}", three_digits(change)),
        None => three_digits(change),
    }
}

/// What the first figure is to be multiplied by, if it is a tenth or less, or ten and more. Positive is
/// better, and more where nothing is better.
fn factor(change: f64, better: Option<Better>) -> Option<f64> {
    let increase = if better == Some(Better::Lower) { -change } else { change };
    let factor = 1.0 + increase / 100.0;
    let is_large = factor >= TOLD_AS_FACTOR || (factor > 0.0 && factor <= 1.0 / TOLD_AS_FACTOR);
    is_large.then_some(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison;
    use crate::subject::tests::subject;
    use placewise_sim::Figure;

    /// The row of a policy whose runs had these figures.
    fn row(better: Better, first: &[f64], other: &[f64]) -> Row {
        let figure = |value: &f64| {
            [Figure { metric: "time".into(), value: *value, unit: "s", better: Some(better) }]
        };
        let [first, other] = [first, other].map(|values| values.iter().map(figure).collect());
        let runs = |of: &'static Vec<[Figure; 1]>| of.iter().map(|run| &run[..]).collect();
        let subject = subject("v6.0", "baseline");
        let series = [first, other].map(|of: Vec<_>| comparison::Series {
            subject: &subject,
            runs: runs(Box::leak(Box::new(of))),
        });
        comparison::rows("", &series).pop().unwrap()
    }

    fn told(first: &[f64], other: &[f64]) -> String {
        change(&row(Better::Lower, first, other))
    }

    #[test]
    fn a_tenfold_change_is_a_factor_of_the_figure() {
        let five = [100.0, 101.0, 100.0, 99.0, 100.0];
        let times = |factor: f64| five.map(|value| value * factor);
        assert_eq!(told(&five, &times(115.0)), "x115  ");
        assert_eq!(told(&five, &times(1.0 / 115.0)), "/115  ");
        assert_eq!(change(&row(Better::Higher, &five, &times(115.0))), "x115  ");
        assert_eq!(told(&five, &times(9.0)), "-800  ");
        assert_eq!(told(&five, &times(0.5)), "+50.0  ");
        let row = row(Better::Lower, &[1.0, 1.0, 1.0], &[100.0, 110.0, 120.0]);
        assert_eq!(interval(&row), "x138 to x87.8");
    }

    #[test]
    fn only_what_is_the_same_in_every_run_is_identical() {
        assert_eq!(told(&[1.0, 2.0], &[1.0, 2.0]), "=  ");
        assert_eq!(told(&[1.0, 2.0], &[2.0, 1.0]), "0 ~");
        assert_eq!(told(&[1.0], &[1.0]), "=  ");
        assert_eq!(told(&[1.0], &[1.00000001]), "-1.00e-6 ?");
    }

    /// One run of five makes the mean a hundred times as large: that is no noise, and not known.
    #[test]
    fn a_hundredfold_change_is_never_noise() {
        let outlier = [1.0, 1.0, 1.0, 1.0, 500.0];
        assert_eq!(told(&[1.0; 5], &outlier), "x101 ?");
        assert_eq!(told(&[1.0; 5], &[1.0, 1.0, 1.0, 1.0, 10.0]), "-180 ~");
    }
}
