//! Reports to look at: results and traces as one HTML file that needs nothing beside it.
//!
//! ```text
//!   audit ──steps, decisions──> recorder.rs ──notes──> draft.rs ──> Recording ─┬─> svg/ ──> SVG
//!   JSON of compare, audit, reproduce, advise ───────> result.rs ──────────────┴─> page.rs ──> HTML
//! ```
//!
//! - [`Recorder`] looks on while a trace is audited, and notes what happened; on a thread of its own
//!   `draft.rs` keeps of that what the page draws: `cells.rs` what
//!   each CPU did in bins of time, `runs.rs` every single run while there are few enough,
//!   `wakeups.rs` those across LLCs, `threads.rs` who ran on which LLC, `latency.rs` how long
//!   wakeups took, `explained.rs` the placements that cost most, rule by rule.
//! - `result.rs` tells results apart and says in one sentence what each shows.
//! - `columns.rs` and `page.rs` put all that into the page, whose style and script are in `page/`.
//!
//! Memory is bounded, whatever the length of the trace. The same inputs give the same bytes.
//!
//! This crate neither judges a placement, which the audit does, nor measures anything.

mod cells;
mod columns;
mod draft;
mod explained;
mod latency;
mod note;
mod page;
mod recorder;
mod recording;
mod result;
mod runs;
mod svg;
mod threads;
mod wakeups;

pub use page::page;
pub use recorder::{Part, Recorder};
pub use recording::Recording;
pub use result::{JsonResult, ResultError};
pub use svg::{Plot, plots};
