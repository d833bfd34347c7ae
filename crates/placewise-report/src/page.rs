//! The page: one HTML file with its style, its script and its data.
//!
//! Nothing in it comes from elsewhere, and it is told to load nothing. The data is compressed and in
//! base64, so that no name in it means anything to HTML; the script puts names into the page as text.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;

use crate::recording::Recording;
use crate::result::JsonResult;

const PAGE: &str = include_str!("../page/page.html");
const STYLE: &str = include_str!("../page/page.css");
/// In the order in which they stand in the page: each knows those before it.
const SCRIPTS: [&str; 9] = [
    include_str!("../page/data.js"),
    include_str!("../page/dom.js"),
    include_str!("../page/result.js"),
    include_str!("../page/charts.js"),
    include_str!("../page/machine.js"),
    include_str!("../page/palette.js"),
    include_str!("../page/timeline.js"),
    include_str!("../page/decisions.js"),
    include_str!("../page/main.js"),
];

/// A report of results and of what traces show. `made_with`: the version of Placewise.
pub fn page(results: &[JsonResult], recordings: &[Recording], made_with: &str) -> String {
    #[derive(Serialize)]
    struct Data<'a> {
        made_with: &'a str,
        results: &'a [JsonResult],
        traces: &'a [Recording],
    }
    let data = Data { made_with, results, traces: recordings };
    let json = serde_json::to_vec(&data).expect("all keys are text");
    let mut blocks = embedded("data", &json);
    for recording in recordings {
        blocks += &embedded("columns", &recording.columns);
    }
    // The data comes last: what stands in it is not looked at again.
    PAGE.replacen("/*STYLE*/", STYLE, 1).replacen("/*SCRIPT*/", &SCRIPTS.concat(), 1).replacen(
        "<!--DATA-->",
        &blocks,
        1,
    )
}

fn embedded(class: &str, bytes: &[u8]) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).expect("memory takes all");
    let base64 = STANDARD.encode(encoder.finish().expect("memory takes all"));
    format!(
        "<script type=\"application/octet-stream;base64\" class=\"{class}\">{base64}</script>\n"
    )
}
