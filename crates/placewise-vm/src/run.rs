//! What a boot left behind.

use crate::figures::Figures;

pub struct Run {
    pub console: String,
    pub figures: Figures,
}
