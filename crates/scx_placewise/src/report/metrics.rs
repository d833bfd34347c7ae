//! For Prometheus: OpenMetrics text over HTTP, at a Unix socket or a port of this host alone.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::anyhow;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;
use tiny_http::{Header, Response, Server};

use crate::figures::{Figures, Placed, Source};
use crate::socket::remove_left_socket;

const OPEN_METRICS: &str =
    "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8";

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

/// Answers until it is dropped, then takes its socket away.
pub struct MetricsServer {
    socket: Option<PathBuf>,
}

impl MetricsServer {
    /// Answers every request with the figures.
    pub fn start(address: &MetricsAddress, source: &Source) -> anyhow::Result<Self> {
        let server = listen(address);
        let server = server.map_err(|error| anyhow!("{address}: cannot listen: {error}"))?;
        let source = source.clone();
        std::thread::spawn(move || serve(&server, &source));
        let socket = match address {
            MetricsAddress::Socket(path) => Some(path.clone()),
            MetricsAddress::Loopback(_) => None,
        };
        Ok(Self { socket })
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        if let Some(path) = &self.socket {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn listen(address: &MetricsAddress) -> Result<Server, Box<dyn Error + Send + Sync>> {
    match address {
        MetricsAddress::Socket(path) => {
            remove_left_socket(path)?;
            Server::http_unix(path)
        }
        MetricsAddress::Loopback(address) => Server::http(address),
    }
}

fn serve(server: &Server, source: &Source) {
    let format = Header::from_str(OPEN_METRICS).expect("a header");
    for request in server.incoming_requests() {
        let text = open_metrics(source.read());
        let status = if text.is_ok() { 200 } else { 500 };
        let response = Response::from_string(text.unwrap_or_default());
        let _ = request.respond(response.with_header(format.clone()).with_status_code(status));
    }
}

fn open_metrics(figures: Figures) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(figures));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let placed = self.placed.iter().flat_map(|(kind, placed)| {
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
        let by_kind = |count: fn(&Placed) -> u64| {
            self.placed.iter().map(move |(kind, placed)| ([("kind", kind.clone())], count(placed)))
        };
        counters(
            &mut encoder,
            "placewise_placements_on_idle",
            "Placements on a CPU that was idle",
            by_kind(|placed| placed.on_idle),
        )?;
        counters(
            &mut encoder,
            "placewise_placements_hinted",
            "Placements of tasks with a hint for them",
            by_kind(|placed| placed.hinted),
        )?;
        let balanced = self.balanced.iter().flat_map(|(level, moved)| {
            moved.by_cause().map(|(cause, count)| {
                let level = ("level", level.to_string());
                ([level, ("domain", moved.domain.clone()), ("cause", cause.into())], count)
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
    use std::collections::BTreeSet;
    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::report::tests::figures;

    #[test]
    fn prometheus_reads_every_figure() {
        let text = open_metrics(figures()).unwrap();
        for line in [
            "placewise_placements_total{kind=\"wakeup\",distance=\"llc\"} 3",
            "placewise_placements_on_idle_total{kind=\"wakeup\"} 9",
            "placewise_balanced_tasks_total{level=\"1\",domain=\"MC\",cause=\"newly_idle\"} 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} not in\n{text}");
        }
    }

    #[test]
    fn every_sample_has_one_line_below_its_help_and_type() {
        let text = open_metrics(figures()).unwrap();
        let body = text.strip_suffix("# EOF\n").expect("OpenMetrics ends so");
        let (mut helped, mut family, mut series) = (None, None, BTreeSet::new());
        for line in body.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["#", "HELP", name, _, ..] => helped = Some(name),
                ["#", "TYPE", name, "counter"] => {
                    assert_eq!(helped, Some(name));
                    family = Some(name);
                }
                [sample, count] => {
                    let name = sample.split('{').next().unwrap().strip_suffix("_total");
                    assert!(name.is_some() && name == family, "{line}");
                    assert!(series.insert(sample), "{line} stands there twice");
                    assert!(count.parse::<u64>().is_ok(), "{line}");
                }
                _ => panic!("{line}"),
            }
        }
        assert_eq!(series.len(), 5 + 1 + 1 + 4);
    }

    #[test]
    fn a_socket_answers_and_goes_and_no_other_file_is_taken_away() {
        let name = format!("placewise-metrics-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let address = MetricsAddress::Socket(path.clone());
        fs::write(&path, "of somebody else").unwrap();
        assert!(MetricsServer::start(&address, &Source::default()).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "of somebody else");
        fs::remove_file(&path).unwrap();

        let source = Source::default();
        let server = MetricsServer::start(&address, &source).unwrap();
        source.follow(figures);
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.") && answer.contains(OPEN_METRICS), "{answer}");
        assert!(answer.ends_with(&open_metrics(figures()).unwrap()), "{answer}");
        drop(server);
        assert!(!path.exists());
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
