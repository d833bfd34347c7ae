//! What `top` shows, laid out for a terminal of any size: a line of what is looked at and what that
//! costs, a heat map of CPUs by LLC, wakeups by distance, and the tasks that waited longest.
//!
//! Names of tasks are others' text: what does not show in them is spelt out.

use placewise_audit::Moment;
use placewise_audit::cost::latency::Latency;
use placewise_audit::cost::turns::TurnsOfName;
use placewise_machine::Machine;
use placewise_trace::LlcLoad;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table};

use crate::report::foreign::visible;

/// How busy a CPU is, in eighths.
const BARS: [&str; 9] = ["·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// Lines of the table of distances: its frame, its heading, five rows.
const DISTANCE_LINES: u16 = 8;
/// Lines of the worst tasks that are kept free for them: frame, heading, three rows.
const TASK_LINES: u16 = 6;

/// What is looked at, and what that takes.
pub struct Status {
    pub source: String,
    /// Of the time, since it is counted.
    pub watched: Option<f64>,
    /// Of one CPU, since it is counted.
    pub own_share: Option<f64>,
    pub keys: &'static str,
}

impl Status {
    fn shares(&self) -> String {
        let say = |name: &str, share: Option<f64>| {
            share.map(|share| format!("  {name} {:.1} %", share * 100.0)).unwrap_or_default()
        };
        say("watched", self.watched) + &say("own CPU", self.own_share)
    }

    /// All of it.
    pub fn line(&self) -> String {
        format!("{}  {}{}", visible(&self.source), self.keys, self.shares())
    }
}

pub fn draw(frame: &mut Frame<'_>, machine: &Machine, status: &Status, moment: &Moment) {
    let llcs = llc_lines(machine, moment);
    let room = frame.area().height.saturating_sub(2 + DISTANCE_LINES + TASK_LINES);
    let [head, map, distances, tasks] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length((llcs.len() as u16 + 2).min(room.max(3))),
        Constraint::Length(DISTANCE_LINES),
        Constraint::Min(3),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(head_lines(machine, status, moment)), head);
    draw_map(frame, map, llcs);
    draw_distances(frame, distances, moment);
    draw_tasks(frame, tasks, moment);
}

fn head_lines<'a>(machine: &Machine, status: &Status, moment: &Moment) -> Vec<Line<'a>> {
    let (cpus, llcs, nodes) = (machine.online().len(), machine.nr_llcs(), machine.nr_nodes());
    let shape = format!("{cpus} CPUs, {llcs} LLCs, {nodes} NUMA nodes");
    let first = format!("{}  {shape}  {}", visible(&status.source), status.keys);
    let second = format!(
        "{:.3} s  {} events  {} lost{}",
        moment.elapsed_ns as f64 / 1e9,
        moment.events,
        moment.lost,
        status.shares()
    );
    let lost = if moment.lost > 0 { Style::new().fg(Color::Red) } else { Style::new() };
    vec![Line::styled(first, Modifier::BOLD), Line::styled(second, lost)]
}

pub fn titled(title: &'static str) -> Block<'static> {
    Block::new().borders(Borders::ALL).title(title)
}

/// One line for each LLC: its CPUs, and what waits there.
fn llc_lines<'a>(machine: &Machine, moment: &Moment) -> Vec<Line<'a>> {
    let line = |(llc, load): (usize, &LlcLoad)| {
        let cpus = machine.cpus_where(|cpu| usize::from(cpu.llc) == llc);
        let busy: f64 = cpus.iter().map(|cpu| moment.busy[cpu]).sum();
        let share = busy / cpus.len().max(1) as f64 * 100.0;
        let text = format!(
            "LLC {llc:>2} {share:5.1} % busy {:>4} idle {:>4} queued  ",
            load.idle_cpus, load.queued
        );
        let cell = |cpu: usize| Span::styled(bar(moment.busy[cpu]), heat(moment.busy[cpu]));
        Line::from_iter(std::iter::once(Span::raw(text)).chain(cpus.iter().map(cell)))
    };
    moment.llcs.iter().enumerate().map(line).collect()
}

fn bar(busy: f64) -> &'static str {
    // A little is more than nothing.
    BARS[(busy * 8.0).ceil().clamp(0.0, 8.0) as usize]
}

fn heat(busy: f64) -> Style {
    let color = match busy {
        busy if busy > 0.9 => Color::Red,
        busy if busy > 0.5 => Color::Yellow,
        _ => Color::Green,
    };
    Style::new().fg(color)
}

/// In as many columns as it takes, and where even they do not do, the first ones.
fn draw_map(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'_>>) {
    let block = titled("CPUs by LLC");
    let inside = block.inner(area);
    frame.render_widget(block, area);
    let rows = usize::from(inside.height).max(1);
    let width = lines.iter().map(Line::width).max().unwrap_or(0) as u16 + 2;
    let columns = lines.len().div_ceil(rows).min(usize::from(inside.width / width).max(1));
    let shown = rows * columns;
    let mut lines = lines;
    if lines.len() > shown {
        let hidden = lines.len() - shown + 1;
        lines.truncate(shown - 1);
        lines.push(Line::raw(format!("and {hidden} LLCs more: make the window larger")));
    }
    for (column, lines) in lines.chunks(rows).enumerate() {
        let x = inside.x + column as u16 * width;
        let area = Rect { x, width: width.min(inside.right().saturating_sub(x)), ..inside };
        let area = if columns == 1 { inside } else { area };
        frame.render_widget(Paragraph::new(lines.to_vec()), area);
    }
}

fn us(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

fn ms(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

/// What stands first is a name, all else are numbers.
pub fn row<'a>(cells: impl IntoIterator<Item = String>) -> Row<'a> {
    let cell = |(column, text): (usize, String)| match column {
        0 => Cell::from(text),
        _ => Cell::from(Line::from(text).right_aligned()),
    };
    Row::new(cells.into_iter().enumerate().map(cell))
}

pub fn heading<'a>(names: &[impl AsRef<str>]) -> Row<'a> {
    row(names.iter().map(|name| name.as_ref().to_owned())).style(Modifier::BOLD)
}

fn draw_distances(frame: &mut Frame<'_>, area: Rect, moment: &Moment) {
    let total: u64 = moment.wakeups.iter().map(|of| of.wakeup_to_run.count).sum();
    let of_distance = |of: &Latency| {
        let waits = &of.wakeup_to_run;
        let share = waits.count as f64 / total.max(1) as f64;
        let times = match waits.count {
            0 => Default::default(),
            _ => [waits.p50_ns, waits.p99_ns, waits.max_ns].map(us),
        };
        let counts = [waits.count.to_string(), format!("{:.1}", share * 100.0)];
        row([of.distance.heading()].into_iter().chain(counts).chain(times))
    };
    let names = ["to", "wakeups", "%", "p50 us", "p99 us", "max us"];
    let widths = [10, 11, 6, 11, 11, 11].map(Constraint::Length);
    let table = Table::new(moment.wakeups.iter().map(of_distance), widths)
        .header(heading(&names))
        .block(titled("wakeups by distance from the previous CPU, and how long to run"));
    frame.render_widget(table, area);
}

fn draw_tasks(frame: &mut Frame<'_>, area: Rect, moment: &Moment) {
    let of_name = |of: &TurnsOfName| {
        let worst = of.worst_wait;
        let worst = worst.map(|of| [us(of.wait_ns), of.pid.to_string(), of.cpu.to_string()]);
        let mean = of.waited_ns.checked_div(of.waits).unwrap_or(0);
        let waits = [of.waits.to_string(), ms(of.waited_ns), us(mean)];
        let cells = [visible(&of.name)].into_iter().chain(waits).chain(worst.unwrap_or_default());
        row(cells.chain([ms(of.run_ns)]))
    };
    let names = ["task", "waits", "waited ms", "mean us", "worst us", "of pid", "CPU", "ran ms"];
    let widths = [15, 8, 10, 9, 10, 7, 4, 9].map(Constraint::Length);
    let room = usize::from(area.height.saturating_sub(3));
    let table = Table::new(moment.turns.iter().take(room).map(of_name), widths)
        .header(heading(&names))
        .column_spacing(0)
        .block(titled("who waited longest"));
    frame.render_widget(table, area);
}

#[cfg(test)]
mod tests;
