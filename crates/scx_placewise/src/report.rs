//! How the figures get out, to whoever asks: a table on the terminal, the socket that `scx_stats`
//! clients read, and a file for Prometheus.

mod metrics;
mod stats;
mod table;

pub use metrics::MetricsFile;
pub use stats::serve_scx_stats;
pub use table::table;

#[cfg(test)]
mod tests {
    use crate::figures::{Balanced, Figures, Placed};

    /// Some of all kinds.
    pub fn figures() -> Figures {
        let mut figures = Figures::default();
        let wakeups = Placed {
            same_cpu: 6,
            llc: 3,
            other_node: 1,
            on_idle: 9,
            hinted: 2,
            ..Placed::default()
        };
        figures.placed.insert("wakeup".into(), wakeups);
        let moved = Balanced { domain: "MC".into(), newly_idle: 4, ..Balanced::default() };
        figures.balanced.insert(1, moved);
        figures
    }
}
