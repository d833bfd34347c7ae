//! Shapes as SVG. Numbers have one decimal, so that the same recording gives the same bytes; names
//! from traces are escaped.

use std::fmt::Write;

/// Told apart by the colour-blind, too (Okabe and Ito).
pub const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d3b", "#9467bd"];
pub const OTHER: &str = "#8c959f";
pub const INK: &str = "#1b1f24";
pub const QUIET: &str = "#57606a";
pub const LINE: &str = "#d0d7de";
pub const HOT: &str = "#b45309";

/// Of a text, where it is put.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A place and its size.
#[derive(Clone, Copy)]
pub struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

/// What has been drawn so far.
pub struct Drawing {
    width: f64,
    body: String,
}

impl Drawing {
    pub fn new(width: f64) -> Self {
        Drawing { width, body: String::new() }
    }

    /// It takes no more than that.
    pub fn narrow(&mut self, width: f64) {
        self.width = width;
    }

    /// `opacity`: from 0 to 1.
    pub fn fill(&mut self, area: Area, colour: &str, opacity: f64) {
        let Area { x, y, width, height } = area;
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"{colour}\" fill-opacity=\"{opacity:.2}\"/>"
        ));
    }

    pub fn frame(&mut self, Area { x, y, width, height }: Area) {
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"3\" \
             fill=\"none\" stroke=\"{LINE}\"/>"
        ));
    }

    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, colour: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{}</text>",
            escaped(text)
        ));
    }

    pub fn line(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
        self.add(format_args!("<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{LINE}\"/>"));
    }

    pub fn polyline(&mut self, points: &[[f64; 2]], colour: &str, is_dashed: bool) {
        let list: String = points.iter().map(|[x, y]| format!("{x:.1},{y:.1} ")).collect();
        let dashes = if is_dashed { " stroke-dasharray=\"5 3\"" } else { "" };
        self.add(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"{dashes}/>",
            list.trim_end()
        ));
    }

    /// A square of each colour with its name, in lines below each other; returns where they end.
    pub fn legend(&mut self, entries: &[(&str, String)], left: f64, top: f64) -> f64 {
        let (mut x, mut y) = (left, top);
        for (colour, name) in entries {
            let width = 24.0 + text_width(name);
            if x + width > self.width && x > left {
                (x, y) = (left, y + 18.0);
            }
            self.fill(Area { x, y: y - 10.0, width: 11.0, height: 11.0 }, colour, 1.0);
            self.text(x + 15.0, y, Anchor::Start, INK, name);
            x += width;
        }
        y + 12.0
    }

    /// `label`: what it shows, for those who cannot see it.
    pub fn finish(self, height: f64, label: &str) -> String {
        let (width, label) = (self.width, escaped(label));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
             <title>{label}</title>\n\
             <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"white\"/>\n{}</svg>\n",
            self.body
        )
    }

    fn add(&mut self, shape: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{shape}");
    }
}

/// About as wide as it will be.
pub fn text_width(text: &str) -> f64 {
    6.8 * text.chars().count() as f64
}

/// Neither markup nor what XML may not have.
fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        c if c.is_control() => "?".to_owned(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// With its unit: `1.5 ms`.
pub fn time(ns: f64) -> String {
    let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3)];
    let (unit, size) = units.into_iter().find(|(_, size)| ns >= *size).unwrap_or(("ns", 1.0));
    format!("{} {unit}", figure(ns / size))
}

/// With three digits at most behind no trailing zeros.
pub fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        0.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_text() {
        assert_eq!(escaped("</text><b>&\u{7}"), "&lt;/text&gt;&lt;b&gt;&amp;?");
    }

    #[test]
    fn figures_have_three_digits() {
        let figures = [0.0, 0.25, 1.5, 12.34, 150.4, 20_000.0].map(figure);
        assert_eq!(figures, ["0", "0.25", "1.5", "12.3", "150", "20000"]);
        assert_eq!([time(7.0), time(1_500.0), time(2e9)], ["7 ns", "1.5 us", "2 s"]);
    }
}
