//! Independent simulations go wide over threads, first come, first served.
//!
//! Results are told apart by what they are results of, so a report is the same for any number of
//! threads. Progress is shown on a terminal only.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How long whoever waits for results hears nothing at most.
const TICK: Duration = Duration::from_millis(100);

/// `run` of every item, on `jobs` threads or one per CPU.
pub fn map<T: Sync, R: Send>(
    items: &[T],
    jobs: Option<usize>,
    run: impl Fn(&T) -> R + Sync + Send,
) -> anyhow::Result<Vec<R>> {
    let progress = progress_bar(items.len());
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    each(items, threads(jobs), run, |heard| {
        if let Some((at, result)) = heard {
            results[at] = Some(result);
            progress.inc(1);
        }
    });
    progress.finish_and_clear();
    Ok(results.into_iter().map(|result| result.expect("each item has been run")).collect())
}

/// `run` of every item, begun in their order. `hear` gets each result with its place as soon as it is
/// there, and `None` now and then, in this thread.
pub fn each<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    run: impl Fn(&T) -> R + Sync,
    mut hear: impl FnMut(Option<(usize, R)>),
) {
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            let (sender, next, run) = (sender.clone(), &next, &run);
            scope.spawn(move || {
                let take = || next.fetch_add(1, Ordering::Relaxed);
                let mut at = take();
                while let Some(item) = items.get(at) {
                    // Whoever hears lives as long as this thread.
                    let _ = sender.send((at, run(item)));
                    at = take();
                }
            });
        }
        drop(sender);
        loop {
            match results.recv_timeout(TICK) {
                Ok(result) => hear(Some(result)),
                Err(RecvTimeoutError::Timeout) => hear(None),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
}

/// As many as asked for, or one per CPU.
pub fn threads(jobs: Option<usize>) -> usize {
    let one_per_cpu = || thread::available_parallelism().map_or(1, usize::from);
    jobs.unwrap_or_else(one_per_cpu)
}

fn progress_bar(runs: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left");
    ProgressBar::new(runs as u64).with_style(style.expect("the template is well formed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn results_stand_where_their_items_do() {
        let items: Vec<usize> = (0..100).collect();
        assert_eq!(map(&items, Some(3), |item| 2 * item).unwrap()[99], 198);
        assert!(map(&[], Some(3), |item: &usize| *item).unwrap().is_empty());
    }

    /// So that the first rows of a report are there first.
    #[test]
    fn items_are_begun_in_their_order() {
        let begun = Mutex::new(Vec::new());
        let mut heard = 0;
        each(
            &[5, 6, 7, 8],
            1,
            |item| begun.lock().unwrap().push(*item),
            |result| {
                heard += usize::from(result.is_some());
            },
        );
        assert_eq!((begun.into_inner().unwrap(), heard), (vec![5, 6, 7, 8], 4));
    }
}
