//! Plain text under 80 columns, complete enough to be posted: machine, kernel, runs, the sign
//! convention, the figures and the command that gives them again.

use comfy_table::{Cell, presets};

use super::cells::Table;
use super::foreign::visible;
use super::head::{head, legend, lines};
use super::tables::{states, tables};
use crate::comparison::Comparison;

/// Widest line: the mailing list's 80 columns, less the last.
const WIDTH: usize = 79;
const OPENING: &str =
    concat!("Simulated by placewise ", env!("PLACEWISE_VERSION"), ", not measured.");
const INDENT: &str = "    ";

pub fn render(comparison: &Comparison) -> String {
    let mut text = textwrap::fill(OPENING, WIDTH) + "\n\n";
    text += &lines(&[head(comparison), legend(comparison)].concat(), WIDTH);
    for (heading, table) in tables(comparison, WIDTH, empty_table, |change, _| Cell::new(change)) {
        let end = if table.is_some() { ":" } else { "." };
        text += &format!("\n{}\n", textwrap::fill(&visible(&(heading + end)), WIDTH));
        text += &table.map(|table| table.trimmed() + "\n").unwrap_or_default();
    }
    for told in states(comparison) {
        text += &format!("\n{}\n", textwrap::fill(&visible(&told), WIDTH));
    }
    text += &format!("\nSimulated with:\n{}", command(&comparison.command));
    text
}

fn empty_table() -> Table {
    let mut table = comfy_table::Table::new();
    table.load_style(presets::NOTHING);
    table.force_no_tty();
    let mut table = Table::new(table, visible);
    table.fit(WIDTH);
    table
}

/// One shell command, broken between words, and inside a word that no line could hold.
fn command(words: &[String]) -> String {
    let mut lines = vec![INDENT.to_owned() + "placewise compare"];
    for word in words.iter().map(|word| visible(word)) {
        let line = lines.last_mut().expect("there is a first line");
        // A space before and ` \` after it.
        if line.len() + word.len() + 3 <= WIDTH {
            *line += &format!(" {word}");
        } else {
            let word = format!("{INDENT}{INDENT}{word}");
            lines.push(broken(&word));
        }
    }
    lines.join(" \\\n") + "\n"
}

/// The shell joins a word again that goes on at the very start of the next line, unless it is in
/// quotes: such a word stays as long as it is.
fn broken(word: &str) -> String {
    let longest = WIDTH - " \\".len();
    if word.contains('\'') {
        return word.to_owned();
    }
    let characters: Vec<char> = word.chars().collect();
    let pieces = characters.chunks(longest).map(|piece| piece.iter().collect::<String>());
    pieces.collect::<Vec<_>>().join("\\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Reference, Row};
    use crate::subject::tests::subject;
    use crate::subject::{DescribedMachine, Subject};
    use placewise_sim::Better;

    /// Names of any length, and enough policies that not all of them fit side by side.
    fn comparison(length: usize) -> Comparison {
        let long = |c: char| c.to_string().repeat(length);
        let subjects = ['p', 'q', 'r', 's', 't', 'u'].map(|policy| subject("v6.0", &long(policy)));
        let row = |metric: &str, better, subject: &Subject| Row {
            case: long('c'),
            metric: metric.to_owned(),
            subject: subject.clone(),
            mean: Some(123456789.0),
            median: None,
            std_pct: Some(100.0),
            unit: "usec_p999",
            better,
            change_pct: better.map(|_| -1000.0),
            change_low_pct: None,
            change_high_pct: None,
            significant: better.map(|_| false),
            identical: None,
            runs: 10_000,
            states: None,
        };
        let why = "schedstat_total_waittime_by_tasks_on_this_processor_in_jiffies";
        let figure = |subject| row("p999_wakeup_latency", Some(Better::Lower), subject);
        let machine = DescribedMachine {
            machine: long('m'),
            shape: "1024 CPUs, 512 cores, 64 LLCs, 8 NUMA nodes, 8 packages".to_owned(),
            costs_of: format!("those of {}", long('l')),
            unlike_preset: None,
        };
        Comparison {
            reference: Reference {
                machine: machine.machine.clone(),
                costs_of: machine.costs_of.clone(),
                kernel: "v6.0".to_owned(),
            },
            machines: vec![machine],
            subjects: subjects.to_vec(),
            release: None,
            workload: long('w'),
            runs: 10_000,
            least_runs: 10_000,
            seed: u64::MAX - 10_000,
            quick: false,
            missing: Vec::new(),
            rows: subjects.iter().map(figure).collect(),
            stats: subjects.iter().map(|subject| row(why, None, subject)).collect(),
            why: Vec::new(),
            tell_all: true,
            load_balance: Vec::new(),
            command: vec![format!("--workload {}", long('w')), "--runs 10000".to_owned()],
        }
    }

    #[test]
    fn no_line_has_80_columns() {
        for length in [1, 10, 31, 60, 79, 200] {
            let text = render(&comparison(length));
            for line in text.lines() {
                assert!(line.chars().count() < 80, "{length}: {line}");
            }
        }
    }

    #[test]
    fn the_shell_reads_the_broken_command_as_it_was() {
        let options = ["--workload".to_owned(), format!("/tmp/{}", "x".repeat(150))];
        let text = command(&[options.join(" "), "--runs 5".to_owned()]);
        let words = shell_words::split(&text).unwrap();
        assert_eq!(words[2..], [&options[..], &["--runs".into(), "5".into()]].concat());
    }
}
