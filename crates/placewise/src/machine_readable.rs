//! How figures and directions are written for programs: enough digits, without the noise of the last
//! bits, and `null` for what there is not.

use placewise_sim::Better;
use serde::{Serialize, Serializer};

pub fn round_to_nine_digits(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

pub fn nine_digits<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(round_to_nine_digits).serialize(serializer)
}

pub fn direction_name(better: Better) -> &'static str {
    match better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    }
}

pub fn direction<S: Serializer>(better: &Option<Better>, serializer: S) -> Result<S::Ok, S::Error> {
    better.map(direction_name).serialize(serializer)
}
