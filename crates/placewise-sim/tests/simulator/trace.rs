//! Reads ftrace text back, by the layout that the kernel prints.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

static LINE: LazyLock<Regex> = LazyLock::new(|| {
    let line =
        r"^ *(.+)-(\d+) +\[(\d{3})\] ([dD.][N.][Hhs.][\d.]\.) +(\d+)\.(\d{6}): (sched_\w+): (.*)$";
    Regex::new(line).expect("the expression is valid")
});
static FIELD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(\w+)=(\S+)").expect("the expression is valid"));

/// One event of a trace.
#[derive(Debug)]
pub struct Line {
    pub cpu: u32,
    pub micros: u64,
    pub event: String,
    fields: BTreeMap<String, String>,
}

impl Line {
    pub fn number(&self, field: &str) -> u32 {
        self.text(field).parse().expect("a number")
    }

    pub fn text(&self, field: &str) -> &str {
        self.fields.get(field).unwrap_or_else(|| panic!("no {field} in {self:?}"))
    }
}

/// All events; panics at a line that the kernel would not print.
pub fn parse(text: &str) -> Vec<Line> {
    text.lines().filter(|line| !line.starts_with('#')).map(parse_line).collect()
}

fn parse_line(line: &str) -> Line {
    let parts = LINE.captures(line).unwrap_or_else(|| panic!("not a line of ftrace: {line}"));
    let number = |at: usize| parts[at].parse::<u64>().expect("digits");
    let fields = FIELD.captures_iter(&parts[8]);
    Line {
        cpu: number(3) as u32,
        micros: number(5) * 1_000_000 + number(6),
        event: parts[7].to_string(),
        fields: fields.map(|field| (field[1].to_string(), field[2].to_string())).collect(),
    }
}
