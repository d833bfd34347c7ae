//! For clients of `scx_stats`: a line of JSON for each request, `stats` or `stats_meta`.

use std::path::Path;

use anyhow::Context;
use rustix::fs::Mode;
use rustix::process::umask;
use scx_stats::prelude::*;

use crate::figures::{Balanced, Figures, Placed, Source};

/// Answers `scx_stats` clients, each with what has been added since it last asked.
pub fn serve_scx_stats(path: &Path, source: &Source) -> anyhow::Result<StatsServer<(), ()>> {
    let source = source.clone();
    let open: Box<dyn StatsOpener<(), ()>> = Box::new(move |_| {
        let source = source.clone();
        let mut before = source.read();
        let read: Box<dyn StatsReader<(), ()>> = Box::new(move |_, _| {
            let now = source.read();
            let since = now.since(&before);
            before = now;
            since.to_json()
        });
        Ok(read)
    });
    let data = StatsServerData::new()
        .add_meta(Figures::meta())
        .add_meta(Placed::meta())
        .add_meta(Balanced::meta())
        .add_ops("top", StatsOps { open, close: None });
    // Its clients are root's, whatever umask we were started with.
    let umask = umask(Mode::RWXG | Mode::RWXO);
    let launched = StatsServer::new(data).set_path(path).launch();
    rustix::process::umask(umask);
    launched.context("cannot serve scx_stats")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use serde_json::{Value, json};

    use super::*;
    use crate::figures::tests::figures;

    /// What the server answers on one connection, line by line.
    fn answers(path: &Path, requests: &[&str]) -> Vec<Value> {
        let mut stream = UnixStream::connect(path).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut answer = |request: &&str| {
            writeln!(stream, "{request}").unwrap();
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
        };
        requests.iter().map(&mut answer).collect()
    }

    /// Source of figures whose LLC wakeups are the number of readings so far.
    fn counting() -> (Source, Arc<AtomicU64>) {
        let (source, readings) = (Source::default(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&readings);
        source.follow(move || {
            let mut figures = figures();
            figures.placed.get_mut("wakeup").unwrap().llc =
                1 + counted.fetch_add(1, Ordering::Relaxed);
            figures
        });
        (source, readings)
    }

    fn serve(name: &str, source: &Source) -> (std::path::PathBuf, StatsServer<(), ()>) {
        let name = format!("placewise-stats-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let server = serve_scx_stats(&path, source).unwrap();
        (path, server)
    }

    #[test]
    fn figures_are_read_when_a_client_asks() {
        let (source, readings) = counting();
        let (path, _server) = serve("asked", &source);
        answers(&path, &[r#"{"req":"stats_meta"}"#]);
        assert_eq!(readings.load(Ordering::Relaxed), 0, "nobody has asked for figures");
        let stats = r#"{"req":"stats","args":{"target":"top"}}"#;
        let answers = answers(&path, &[stats, r#"{"req":"stats"}"#]);
        assert_eq!(readings.load(Ordering::Relaxed), 3, "at the first request, and for each");
        for answer in answers {
            assert_eq!(answer["errno"], 0);
            let added = &answer["args"]["resp"];
            assert_eq!(added["placed"]["wakeup"]["llc"], 1, "since this client last asked");
            assert_eq!(added["placed"]["wakeup"]["same_cpu"], 0);
            assert_eq!(added["balanced"]["1"]["domain"], "MC");
            assert_eq!(added["balanced"]["1"]["newly_idle"], 0);
        }
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn nobody_but_root_may_connect() {
        let before = umask(Mode::empty());
        let (path, _server) = serve("private", &Source::default());
        umask(before);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn the_fields_are_described() {
        let (path, _server) = serve("described", &Source::default());
        let requests = [r#"{"req":"stats_meta"}"#, r#"{"req":"tops"}"#];
        let [meta, unknown] = answers(&path, &requests).try_into().unwrap();
        let meta = &meta["args"]["resp"];
        assert_eq!(meta["Figures"]["top"], "true");
        let placed = &meta["Figures"]["fields"]["placed"]["dict"];
        assert_eq!(*placed, json!({"key": "string", "datum": {"struct": "Placed"}}));
        let described = serde_json::to_value(Placed::default()).unwrap();
        for (field, _) in described.as_object().unwrap() {
            let about = &meta["Placed"]["fields"][field];
            assert!(about["datum"] == "u64" && about["desc"].is_string(), "{field}: {about}");
        }
        assert_eq!(meta["Balanced"]["user"]["_om_label"], "level");
        assert_ne!(unknown["errno"], 0);
        let _ = std::fs::remove_file(path);
    }
}
