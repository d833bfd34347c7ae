//! A plot of curves: axes with ticks, and where a value is between them.

use super::drawing::{Anchor, Drawing, INK, QUIET};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 340.0;
/// Around the curves.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 40.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;

/// A place from 0 to 1, and what stands there.
pub type Tick = (f64, String);

pub struct Axes {
    pub drawing: Drawing,
}

impl Axes {
    pub fn new(x_ticks: &[Tick], y_ticks: &[Tick], x_title: &str) -> Self {
        let mut drawing = Drawing::new(WIDTH);
        for (share, text) in x_ticks {
            drawing.line([x(*share), y(0.0)], [x(*share), y(1.0)]);
            drawing.text(x(*share), y(0.0) + 16.0, Anchor::Middle, INK, text);
        }
        for (share, text) in y_ticks {
            drawing.line([x(0.0), y(*share)], [x(1.0), y(*share)]);
            drawing.text(x(0.0) - 6.0, y(*share) + 4.0, Anchor::End, INK, text);
        }
        drawing.text(x(1.0), HEIGHT - 10.0, Anchor::End, QUIET, x_title);
        Axes { drawing }
    }

    /// Through places, each from 0 to 1 on both axes.
    pub fn curve(&mut self, points: &[[f64; 2]], colour: &str, is_dashed: bool) {
        let points: Vec<[f64; 2]> = points.iter().map(|[a, b]| [x(*a), y(*b)]).collect();
        self.drawing.polyline(&points, colour, is_dashed);
    }

    pub fn finish(mut self, legend: &[(&str, String)], label: &str) -> String {
        let height = self.drawing.legend(legend, LEFT, HEIGHT + 8.0);
        self.drawing.finish(height, label)
    }
}

fn x(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

fn y(share: f64) -> f64 {
    HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
}
