//! Predicted against published changes as a plot in SVG.
//!
//! Both axes are linear near 0 and logarithmic beyond, for changes go from a tenth of a percent to
//! thousands. A dot in a shaded quarter has the right sign. Numbers have one decimal, so that the same
//! rows give the same bytes.

use std::fmt::Write;

use super::score::Scored;
use super::verdict::Verdict;
use crate::report::grouped;

const SIZE: f64 = 640.0;
const MARGIN: f64 = 56.0;
const LEGEND: f64 = 150.0;
/// What lies beyond is drawn at the edge.
const LARGEST_PCT: f64 = 500.0;
/// Up to about here the axes are linear.
const LINEAR_PCT: f64 = 5.0;
const TICKS: [f64; 6] = [2.0, 5.0, 20.0, 50.0, 200.0, 500.0];
/// Told apart by the colour-blind, too (Okabe and Ito).
const COLOURS: [&str; 9] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999",
    "#f0e442",
];

pub fn svg(rows: &[Scored]) -> String {
    let width = SIZE + LEGEND;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {SIZE}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{SIZE}\" fill=\"white\"/>\n"
    );
    svg += &axes();
    let judged: Vec<&Scored> =
        rows.iter().filter(|one| one.verdict.is_some() && !one.is_repeated).collect();
    let workloads = grouped(&judged, |one| &one.row.published.ran_as.workload);
    for (at, (rows, colour)) in workloads.iter().zip(COLOURS.iter().cycle()).enumerate() {
        rows.iter().for_each(|one| svg += &dot(one, colour));
        svg += &legend(at, &rows[0].row.published.ran_as.workload, colour);
    }
    svg += &notes(workloads.len());
    svg + "</svg>\n"
}

/// From 0 to 1 along an axis.
fn along(pct: f64) -> f64 {
    let scaled = |pct: f64| (pct / LINEAR_PCT).asinh();
    (1.0 + scaled(pct.clamp(-LARGEST_PCT, LARGEST_PCT)) / scaled(LARGEST_PCT)) / 2.0
}

fn x(pct: f64) -> f64 {
    MARGIN + along(pct) * (SIZE - 2.0 * MARGIN)
}

fn y(pct: f64) -> f64 {
    SIZE - x(pct)
}

fn axes() -> String {
    let mut svg = String::new();
    let (low, middle, high) = (x(-LARGEST_PCT), x(0.0), x(LARGEST_PCT));
    let half = high - middle;
    for (left, top) in [(middle, low), (low, middle)] {
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{half:.1}\" height=\"{half:.1}\" fill=\"#f0f4f0\"/>"
        );
    }
    svg += &line([low, high], [high, low], "#bbbbbb");
    svg += &line([middle, low], [middle, high], "#888888");
    svg += &line([low, middle], [high, middle], "#888888");
    for tick in TICKS.iter().flat_map(|tick| [-tick, *tick]).chain([0.0]) {
        let text = if tick == 0.0 { "0".to_owned() } else { format!("{tick:+}") };
        svg += &label(x(tick), high + 16.0, "middle", &text);
        svg += &label(low - 6.0, y(tick) + 4.0, "end", &text);
        svg += &line([x(tick), high], [x(tick), high + 4.0], "#888888");
        svg += &line([low - 4.0, y(tick)], [low, y(tick)], "#888888");
    }
    svg += &label(middle, SIZE - 14.0, "middle", "published change, %");
    svg + &label(8.0, 30.0, "start", "predicted change, % (positive is better)")
}

fn line(from: [f64; 2], to: [f64; 2], colour: &str) -> String {
    let ([x1, y1], [x2, y2]) = (from, to);
    format!(
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>\n"
    )
}

fn label(x: f64, y: f64, anchor: &str, text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n")
}

/// Filled where the row is out of sample; small where it is a null.
fn dot(one: &Scored, colour: &str) -> String {
    let (Some(published), Some(predicted)) =
        (one.row.published.change_pct, one.row.predicted_change_pct)
    else {
        return String::new();
    };
    let is_decisive = one.verdict.is_some_and(Verdict::is_of_decisive);
    circle(
        x(published),
        y(predicted),
        if is_decisive { 4.5 } else { 2.5 },
        colour,
        one.is_in_sample(),
    )
}

fn circle(x: f64, y: f64, radius: f64, colour: &str, is_hollow: bool) -> String {
    let fill = if is_hollow { "none" } else { colour };
    format!(
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{fill}\" fill-opacity=\"0.7\" \
         stroke=\"{colour}\"/>\n"
    )
}

fn legend(at: usize, workload: &str, colour: &str) -> String {
    let y = MARGIN + 20.0 * at as f64;
    circle(SIZE, y, 4.5, colour, false) + &label(SIZE + 12.0, y + 4.0, "start", workload)
}

/// What is below the workloads in the legend.
fn notes(workloads: usize) -> String {
    let y = |row: usize| MARGIN + 20.0 * (workloads + row) as f64 + 10.0;
    let note = |row: usize, radius, is_hollow, text| {
        circle(SIZE, y(row), radius, "#444444", is_hollow)
            + &label(SIZE + 12.0, y(row) + 4.0, "start", text)
    };
    note(0, 4.5, false, "decisive")
        + &note(1, 2.5, false, "null")
        + &note(2, 4.5, true, "in sample")
        + &label(SIZE - 4.0, y(3) + 4.0, "start", "shaded: right sign")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axes_go_through_the_middle_and_end_at_the_largest_change() {
        assert_eq!((along(0.0), along(LARGEST_PCT), along(-LARGEST_PCT)), (0.5, 1.0, 0.0));
        assert_eq!(along(-5850.0), 0.0);
        assert!(along(5.0) > along(2.0) && along(20.0) < along(50.0));
        assert_eq!((x(0.0), y(0.0)), (SIZE / 2.0, SIZE / 2.0));
        assert!(y(50.0) < y(-50.0), "better is up");
    }

    #[test]
    fn names_are_escaped() {
        assert!(label(0.0, 0.0, "start", "a<b&c").contains("a&lt;b&amp;c"));
    }
}
