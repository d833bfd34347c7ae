//! Plots of what was recorded of traces, as SVG for documents: on white, in the words of the page.

mod axes;
mod drawing;
mod latency;
mod machine;
mod matrix;
mod tasks;
mod timeline;

use crate::recording::Recording;

/// One picture.
pub struct Plot {
    /// As the panel of the page is called.
    pub name: String,
    pub svg: String,
}

/// All there are of one trace or of two.
pub fn plots(recordings: &[Recording]) -> Vec<Plot> {
    let timeline = (!recordings.is_empty()).then(|| timeline::timeline(recordings));
    let shared = [("timeline", timeline), ("latency", latency::latency(recordings))];
    let shared = shared
        .into_iter()
        .filter_map(|(name, svg)| svg.map(|svg| Plot { name: name.to_owned(), svg }));
    let of_trace = recordings.iter().enumerate().flat_map(|(at, recording)| {
        let plots = [
            ("machine", machine::machine(recording)),
            ("tasks", tasks::tasks(recording)),
            ("residency", matrix::residency(recording)),
            ("moves", matrix::moves(recording)),
        ];
        plots.map(|(panel, svg)| Plot { name: format!("{panel}-{at}"), svg })
    });
    shared.chain(of_trace).collect()
}
