//! The settings of a load, as `placewise compare --case` takes them. Every key is to be taken by the
//! load; what is left over nobody knows.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, ensure};

pub struct Case(BTreeMap<String, String>);

impl Case {
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let settings = text.split(';').filter(|setting| !setting.is_empty()).map(|setting| {
            let (key, value) = setting
                .split_once('=')
                .with_context(|| format!("`{setting}`, expected key=value"))?;
            Ok((key.to_owned(), value.to_owned()))
        });
        Ok(Self(settings.collect::<anyhow::Result<_>>()?))
    }

    pub fn number(&mut self, key: &str, default: usize) -> anyhow::Result<usize> {
        match self.0.remove(key) {
            Some(value) => value.parse().with_context(|| format!("{key}={value}: no number")),
            None => Ok(default),
        }
    }

    pub fn milliseconds(&mut self, key: &str, default: usize) -> anyhow::Result<Duration> {
        Ok(Duration::from_millis(self.number(key, default)? as u64))
    }

    pub fn microseconds(&mut self, key: &str, default: usize) -> anyhow::Result<Duration> {
        Ok(Duration::from_micros(self.number(key, default)? as u64))
    }

    /// Whether `key` is `other`, where it may be that or `usual`, which it is by default.
    pub fn is(&mut self, key: &str, usual: &str, other: &str) -> anyhow::Result<bool> {
        let value = self.0.remove(key).unwrap_or_else(|| usual.to_owned());
        ensure!(value == usual || value == other, "{key}={value}, expected {usual} or {other}");
        Ok(value == other)
    }

    /// A run that ends by itself is measured as a whole: the simulator's window only has to be long.
    pub fn ends_by_itself(&mut self) -> anyhow::Result<()> {
        let warmup = self.number("warmup_ms", 0)?;
        ensure!(warmup == 0, "warmup_ms={warmup}, expected 0: the whole run is measured");
        self.0.remove("window_ms");
        self.all_taken()
    }

    /// How long a run goes that does not end by itself, warm-up included.
    pub fn window(&mut self, warmup_ms: usize, window_ms: usize) -> anyhow::Result<Window> {
        let warmup = self.milliseconds("warmup_ms", warmup_ms)?;
        let window = Window { warmup, measured: self.milliseconds("window_ms", window_ms)? };
        self.all_taken()?;
        Ok(window)
    }

    fn all_taken(&self) -> anyhow::Result<()> {
        let unknown: Vec<&str> = self.0.keys().map(String::as_str).collect();
        ensure!(unknown.is_empty(), "no such setting here: {}", unknown.join(", "));
        Ok(())
    }
}

/// Samples are taken after the warm-up only; counts are of all.
#[derive(Clone, Copy)]
pub struct Window {
    pub warmup: Duration,
    pub measured: Duration,
}
