//! Independent simulations go wide over threads.
//!
//! Results come in the order of what they are results of, so a report is the same for any number of
//! threads. Progress is shown on a terminal only.

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;

/// `run` of every item, on `jobs` threads or one per CPU.
pub fn map<T: Sync, R: Send>(
    items: &[T],
    jobs: Option<usize>,
    run: impl Fn(&T) -> R + Sync + Send,
) -> anyhow::Result<Vec<R>> {
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(jobs) = jobs {
        pool = pool.num_threads(jobs);
    }
    let pool = pool.build().context("cannot start the threads")?;
    let progress = progress_bar(items.len());
    let run_and_count = |item: &T| {
        let result = run(item);
        progress.inc(1);
        result
    };
    let results = pool.install(|| items.par_iter().with_max_len(1).map(run_and_count).collect());
    progress.finish_and_clear();
    Ok(results)
}

fn progress_bar(runs: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left");
    ProgressBar::new(runs as u64).with_style(style.expect("the template is well formed"))
}
