//! How the figures get out, to whoever asks: a table on the terminal, the socket that `scx_stats`
//! clients read, and a file for Prometheus.

mod json;
mod metrics;
mod stats;
mod table;

pub use json::json;
pub use metrics::MetricsFile;
pub use stats::serve_scx_stats;
pub use table::table;
