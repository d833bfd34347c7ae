//! How the figures get out: a table on the terminal, the socket that `scx_stats` clients read, and
//! text for Prometheus.

use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use comfy_table::{CellAlignment, LineStyle, Table, presets};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;
use scx_stats::prelude::*;
use tiny_http::{Header, Response, Server};

use crate::figures::Figures;

const OPEN_METRICS: &str =
    "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The newest figures, for whoever asks.
#[derive(Clone, Debug, Default)]
pub struct Latest(Arc<Mutex<Figures>>);

impl Latest {
    pub fn set(&self, figures: Figures) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = figures;
    }

    pub fn get(&self) -> Figures {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Placements by kind and distance, then what balancing moved; of the time since the last table.
pub fn table(figures: &Figures) -> String {
    let mut placed = empty_table();
    placed.set_header([
        "placed",
        "all",
        "same CPU",
        "SMT",
        "LLC",
        "other LLC",
        "other node",
        "on idle",
        "hinted",
    ]);
    for (kind, of_kind) in &figures.placed {
        let total = of_kind.total();
        let shares = of_kind.by_distance().map(|(_, count)| share(count, total));
        let rest = [share(of_kind.on_idle, total), of_kind.hinted.to_string()];
        let row = [kind.clone(), total.to_string()].into_iter().chain(shares).chain(rest);
        placed.add_row(row);
    }
    let mut balanced = empty_table();
    balanced.set_header(["level", "newly idle", "idle", "busy", "pushed"]);
    for (level, moved) in &figures.balanced {
        let counts = moved.by_cause().map(|(_, count)| count.to_string());
        balanced.add_row([level.to_string()].into_iter().chain(counts));
    }
    let mut text = String::new();
    for mut table in [placed, balanced] {
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let _ = writeln!(text, "{table}");
    }
    text
}

fn empty_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    table
}

fn share(count: u64, of: u64) -> String {
    if of == 0 { "-".into() } else { format!("{:.1} %", 100.0 * count as f64 / of as f64) }
}

/// Answers `scx_stats` clients at the usual place, each with what has been added since it last
/// asked.
pub fn serve_scx_stats(latest: &Latest) -> anyhow::Result<StatsServer<(), ()>> {
    let latest = latest.clone();
    let open: Box<dyn StatsOpener<(), ()>> = Box::new(move |_| {
        let latest = latest.clone();
        let mut before = latest.get();
        let read: Box<dyn StatsReader<(), ()>> = Box::new(move |_, _| {
            let now = latest.get();
            let since = now.since(&before);
            before = now;
            since.to_json()
        });
        Ok(read)
    });
    let data = StatsServerData::new()
        .add_meta(Figures::meta())
        .add_meta(crate::figures::Placed::meta())
        .add_meta(crate::figures::Balanced::meta())
        .add_ops("top", StatsOps { open, close: None });
    StatsServer::new(data).launch().context("cannot serve scx_stats")
}

/// Where Prometheus asks: an absolute path, or an address of this host alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricsAddress {
    Socket(PathBuf),
    Loopback(SocketAddr),
}

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(Self::Socket(text.into()));
        }
        match text.parse::<SocketAddr>() {
            Ok(address) if address.ip().is_loopback() => Ok(Self::Loopback(address)),
            Ok(address) => {
                Err(format!("{} is not this host alone; expected 127.0.0.1:PORT", address.ip()))
            }
            Err(_) => Err("expected an absolute path or 127.0.0.1:PORT".into()),
        }
    }
}

impl fmt::Display for MetricsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(f),
            Self::Loopback(address) => address.fmt(f),
        }
    }
}

/// Answers every request with the figures.
pub fn serve_metrics(address: &MetricsAddress, latest: &Latest) -> anyhow::Result<()> {
    let server = match address {
        MetricsAddress::Socket(path) => {
            let _ = std::fs::remove_file(path);
            Server::http_unix(path)
        }
        MetricsAddress::Loopback(address) => Server::http(address),
    };
    let server = server.map_err(|error| anyhow::anyhow!("{address}: cannot listen: {error}"))?;
    let mut registry = Registry::default();
    registry.register_collector(Box::new(latest.clone()));
    let format = Header::from_str(OPEN_METRICS).expect("a header");
    std::thread::spawn(move || {
        for request in server.incoming_requests() {
            let mut text = String::new();
            let encoded = prometheus_client::encoding::text::encode(&mut text, &registry);
            let status = if encoded.is_ok() { 200 } else { 500 };
            let response = Response::from_string(text).with_header(format.clone());
            let _ = request.respond(response.with_status_code(status));
        }
    });
    Ok(())
}

impl Collector for Latest {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let figures = self.get();
        let placed = figures.placed.iter().flat_map(|(kind, placed)| {
            placed.by_distance().map(|(distance, count)| {
                ([("kind", kind.clone()), ("distance", distance.into())], count)
            })
        });
        counters(
            &mut encoder,
            "placewise_placements",
            "Placements by distance from the previous CPU",
            placed,
        )?;
        let idle =
            figures.placed.iter().map(|(kind, placed)| ([("kind", kind.clone())], placed.on_idle));
        counters(
            &mut encoder,
            "placewise_placements_on_idle",
            "Placements on a CPU that was idle",
            idle,
        )?;
        let hinted =
            figures.placed.iter().map(|(kind, placed)| ([("kind", kind.clone())], placed.hinted));
        counters(
            &mut encoder,
            "placewise_placements_hinted",
            "Placements of tasks with a hint for them",
            hinted,
        )?;
        let balanced = figures.balanced.iter().flat_map(|(level, moved)| {
            moved.by_cause().map(|(cause, count)| {
                ([("level", level.to_string()), ("cause", cause.into())], count)
            })
        });
        counters(&mut encoder, "placewise_balanced_tasks", "Tasks that balancing moved", balanced)
    }
}

fn counters<const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = ([(&'static str, String); N], u64)>,
) -> fmt::Result {
    let kind = ConstCounter::new(0u64).metric_type();
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for (labels, value) in values {
        ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Balanced, Placed};

    fn figures() -> Figures {
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
        figures.balanced.insert(1, Balanced { newly_idle: 4, ..Balanced::default() });
        figures
    }

    #[test]
    fn prometheus_reads_every_figure() {
        let latest = Latest::default();
        latest.set(figures());
        let mut registry = Registry::default();
        registry.register_collector(Box::new(latest));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "placewise_placements_total{kind=\"wakeup\",distance=\"llc\"} 3",
            "placewise_placements_on_idle_total{kind=\"wakeup\"} 9",
            "placewise_balanced_tasks_total{level=\"1\",cause=\"newly_idle\"} 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} not in\n{text}");
        }
    }

    #[test]
    fn the_table_gives_shares() {
        let table = table(&figures());
        assert!(table.contains("60.0 %") && table.contains("90.0 %"), "{table}");
    }

    #[test]
    fn a_difference_counts_what_was_added() {
        let mut later = figures();
        later.placed.get_mut("wakeup").unwrap().llc += 7;
        let since = later.since(&figures());
        assert_eq!(since.placed["wakeup"], Placed { llc: 7, ..Placed::default() });
        assert_eq!(since.balanced[&1], Balanced::default());
    }

    #[test]
    fn metrics_stay_on_this_host() {
        assert!("127.0.0.1:9123".parse::<MetricsAddress>().is_ok());
        assert!("[::1]:9123".parse::<MetricsAddress>().is_ok());
        assert!("/run/placewise/metrics.sock".parse::<MetricsAddress>().is_ok());
        for refused in ["0.0.0.0:9123", "192.0.2.1:9123", "metrics.sock", "9123", ""] {
            assert!(refused.parse::<MetricsAddress>().is_err(), "{refused}");
        }
    }
}
