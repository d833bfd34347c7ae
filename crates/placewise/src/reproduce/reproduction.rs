//! Everything that a report of published and predicted figures is made of.

use super::score::{Score, Scored};

pub struct Reproduction {
    pub rows: Vec<Scored>,
    pub score: Score,
    /// How many runs there were, and with which seeds.
    pub runs: String,
}
