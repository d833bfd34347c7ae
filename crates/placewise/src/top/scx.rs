//! A loaded `scx_placewise`, by what it says of itself on its stats socket: no tracepoint is on for
//! that, so it costs next to nothing. It tells each client what has been added since that last asked;
//! here that is summed up from the start.
//!
//! Limit: it tells of placements and balancing, not of waits, nor of single tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::iter;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use placewise_audit::Distance;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table};
use serde::Deserialize;

use super::screen::{Status, heading, row, titled};
use crate::report::foreign::visible;

/// Where schedulers of sched_ext answer; only root can make it.
pub const SOCKET: &str = "/var/run/scx/root/stats";
const REQUEST: &[u8] = b"{\"req\":\"stats\",\"args\":{}}\n";
const PATIENCE: Duration = Duration::from_secs(2);
/// More is no answer.
const LONGEST_ANSWER: u64 = 1 << 20;

type Counts = BTreeMap<String, u64>;

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Figures {
    /// `wakeup` and `fork`, by distance.
    placed: BTreeMap<String, Counts>,
    /// By level.
    balanced: BTreeMap<u32, Balanced>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Balanced {
    domain: String,
    #[serde(flatten)]
    counts: Counts,
}

impl Figures {
    fn add(&mut self, other: &Self) {
        for (kind, counts) in &other.placed {
            add(self.placed.entry(kind.clone()).or_default(), counts);
        }
        for (level, Balanced { domain, counts }) in &other.balanced {
            let of_level = self.balanced.entry(*level).or_default();
            of_level.domain.clone_from(domain);
            add(&mut of_level.counts, counts);
        }
    }
}

fn add(sums: &mut Counts, counts: &Counts) {
    for (key, count) in counts {
        let sum = sums.entry(key.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
}

#[derive(Deserialize)]
struct Answer {
    errno: i32,
    args: Arguments,
}

#[derive(Deserialize)]
struct Arguments {
    resp: Figures,
}

pub struct Scheduler {
    socket: BufReader<UnixStream>,
    asked: Instant,
    sums: Figures,
}

impl Scheduler {
    pub fn connect(path: &Path) -> anyhow::Result<Self> {
        let connect = || {
            let socket = UnixStream::connect(path)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            socket.set_write_timeout(Some(PATIENCE))?;
            Ok::<_, std::io::Error>(BufReader::new(socket))
        };
        let socket = connect().with_context(|| {
            format!("{}: no scx_placewise answers; load one, or leave out --scx", path.display())
        })?;
        let mut scheduler = Scheduler { socket, asked: Instant::now(), sums: Figures::default() };
        scheduler.sums = scheduler.ask()?;
        Ok(scheduler)
    }

    fn ask(&mut self) -> anyhow::Result<Figures> {
        self.socket.get_mut().write_all(REQUEST).context("the scheduler has gone")?;
        let mut line = String::new();
        self.socket.by_ref().take(LONGEST_ANSWER).read_line(&mut line)?;
        if line.is_empty() {
            bail!("the scheduler has gone");
        }
        let answer: Answer =
            serde_json::from_str(&line).context("it is not scx_placewise that answers")?;
        match answer.errno {
            0 => Ok(answer.args.resp),
            errno => bail!("the scheduler does not say: error {errno}"),
        }
    }

    /// What has been since the last look.
    pub fn look(&mut self) -> anyhow::Result<Look> {
        let (added, now) = (self.ask()?, Instant::now());
        let seconds = now.duration_since(std::mem::replace(&mut self.asked, now)).as_secs_f64();
        self.sums.add(&added);
        Ok(Look { sums: self.sums.clone(), added, seconds: seconds.max(1e-3) })
    }
}

/// Figures from the start, and what has been added to them last, in so many seconds.
pub struct Look {
    sums: Figures,
    added: Figures,
    seconds: f64,
}

impl Look {
    fn per_second(&self, added: u64) -> String {
        format!("{:.0}", added as f64 / self.seconds)
    }

    /// Distances, and what else the scheduler counts of placements.
    fn columns_of_placed(&self) -> Vec<&str> {
        let distances = Distance::ALL.map(Distance::word);
        let counted = self.sums.placed.values().flat_map(BTreeMap::keys).map(String::as_str);
        let others: BTreeSet<_> = counted.filter(|key| !distances.contains(key)).collect();
        distances.into_iter().chain(others).collect()
    }

    fn columns_of_balanced(&self) -> BTreeSet<&str> {
        let counts = self.sums.balanced.values().map(|balanced| &balanced.counts);
        counts.flat_map(BTreeMap::keys).map(String::as_str).collect()
    }

    /// Sums of each kind, and what they grow by.
    fn placed(&self) -> Vec<Row<'static>> {
        let (columns, none) = (self.columns_of_placed(), Counts::new());
        let at = |counts: &Counts, key: &str| counts.get(key).copied().unwrap_or(0);
        let mut rows = Vec::new();
        for (kind, sums) in &self.sums.placed {
            let added = self.added.placed.get(kind).unwrap_or(&none);
            let sums = columns.iter().map(|key| at(sums, key).to_string());
            rows.push(row([visible(kind)].into_iter().chain(sums)));
            let grow = columns.iter().map(|key| self.per_second(at(added, key)));
            rows.push(row(["  a second".to_owned()].into_iter().chain(grow)));
        }
        rows
    }

    fn balanced(&self) -> Vec<Row<'static>> {
        let of_level = |(level, balanced): (&u32, &Balanced)| {
            let count = |key: &&str| balanced.counts.get(*key).copied().unwrap_or(0).to_string();
            let name = format!("{level} {}", visible(&balanced.domain));
            row([name].into_iter().chain(self.columns_of_balanced().iter().map(count)))
        };
        self.sums.balanced.iter().map(of_level).collect()
    }
}

/// The headings of a first column and of those that are called by figures.
fn headings<'a>(first: &str, columns: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let columns = columns.into_iter().map(|key| visible(&placewise_policy::distance::heading(key)));
    iter::once(first.to_owned()).chain(columns).collect()
}

/// Of the first column, and of the others, for sums of eight digits at least.
fn widths(first: u16, headings: &[String]) -> impl Iterator<Item = Constraint> {
    let others = headings.iter().skip(1).map(|heading| heading.len().max(8) as u16 + 1);
    iter::once(first).chain(others).map(Constraint::Length)
}

pub fn draw(frame: &mut Frame<'_>, status: &Status, look: &Look) {
    let placed = look.placed();
    let [head, of_placed, of_balanced] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(placed.len() as u16 + 3),
        Constraint::Min(3),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(Line::raw(status.line())), head);
    let names = headings("placed", look.columns_of_placed());
    let table = Table::new(placed, widths(10, &names)).header(heading(&names)).column_spacing(0);
    frame.render_widget(table.block(titled("placements by scx_placewise")), of_placed);
    let names = headings("level", look.columns_of_balanced());
    let table = Table::new(look.balanced(), widths(20, &names)).header(heading(&names));
    frame.render_widget(table.block(titled("tasks moved by balancing")), of_balanced);
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn answer(wakeups: u64) -> String {
        format!(
            r#"{{"errno":0,"args":{{"resp":{{"placed":{{"wakeup":{{"same_cpu":{wakeups},"smt":2,"llc":3,"other_llc":4,"other_node":5,"on_idle":6,"hinted":7}}}},"balanced":{{"1":{{"domain":"MC\u001b[2J","newly_idle":8,"idle":9,"busy":10,"pushed":11}}}}}}}}}}"#
        )
    }

    /// A scheduler that says so of what it has added, one line for each request, then goes.
    fn scheduler(answers: Vec<String>) -> anyhow::Result<(tempfile::TempDir, Scheduler)> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("stats");
        let listener = UnixListener::bind(&path)?;
        thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut requests = BufReader::new(socket.try_clone().unwrap()).lines();
            for answer in answers {
                assert_eq!(requests.next().unwrap().unwrap(), r#"{"req":"stats","args":{}}"#);
                socket.write_all(format!("{answer}\n").as_bytes()).unwrap();
            }
        });
        Ok((directory, Scheduler::connect(&path)?))
    }

    #[test]
    fn what_is_added_is_summed_up() {
        let (_directory, mut scheduler) =
            scheduler(vec![answer(1), answer(200), answer(1_000)]).unwrap();
        scheduler.look().unwrap();
        let look = Look { seconds: 2.0, ..scheduler.look().unwrap() };
        let status =
            Status { source: "scx".into(), watched: None, own_share: None, keys: "q: quit" };
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &status, &look)).unwrap();
        let text: String =
            terminal.backend().buffer().content.iter().map(|cell| cell.symbol()).collect();
        let words = |after: &str| -> Vec<String> {
            let text = text.split_once(after).unwrap_or_else(|| panic!("{text}")).1;
            text.split_whitespace().take(7).map(str::to_owned).collect()
        };
        assert_eq!(words("wakeup"), ["1201", "6", "9", "12", "15", "21", "18"]);
        assert_eq!(words("a second"), ["500", "1", "2", "2", "2", "4", "3"]);
        assert_eq!(words(r"1 MC\u{1b}[2J")[..4], ["30", "27", "24", "33"]);
        assert!(scheduler.look().is_err(), "it has gone");
    }

    #[test]
    fn another_scheduler_is_not_taken_for_it() {
        let other = r#"{"errno":0,"args":{"resp":{"nr_running":3}}}"#.to_owned();
        let error = scheduler(vec![other]).err().unwrap();
        assert_eq!(error.to_string(), "it is not scx_placewise that answers");
        let refused = answer(1).replace(r#""errno":0"#, r#""errno":22"#);
        assert!(scheduler(vec![refused]).err().unwrap().to_string().contains("error 22"));
    }
}
