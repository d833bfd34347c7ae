//! With which command a row was made, where its table does not say: a table has what varies, and leaves
//! the rest to the text around it.
//!
//! `studies/commands.toml` has the commands of each series. Settings of the row itself are never overruled; names
//! are, where the command has others.

use std::sync::LazyLock;

use placewise_workload::Case;
use serde::Deserialize;

use super::names::Names;
use super::rows::Rows;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    rows: Vec<Rows>,
    /// A setting of the table for which others stand.
    without: Option<String>,
    #[serde(rename = "as", default)]
    ran_as: RanAs,
    #[expect(dead_code, reason = "for who reads the file")]
    why: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RanAs {
    machine: Option<String>,
    kernel: Option<String>,
    workload: Option<String>,
    metric: Option<String>,
    policy: Option<String>,
    case: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Commands {
    command: Vec<Command>,
}

static COMMANDS: LazyLock<Commands> = LazyLock::new(|| {
    let text = include_str!("../../../../studies/commands.toml");
    toml::from_str(text).expect("studies/commands.toml is as a test has read it")
});

/// What a row of a series is simulated as. A case that cannot be read stays as it is, to be refused.
pub fn ran_as(series: &str, written: &Names) -> Names {
    let is_of = |command: &&Command| command.rows.iter().any(|rows| rows.contain(series, written));
    let commands: Vec<&Command> = COMMANDS.command.iter().filter(is_of).collect();
    let mut names = written.clone();
    let Ok(own) = written.case.parse::<Case>() else { return names };
    let mut case = own.clone();
    for command in commands {
        command.name(&mut names);
        case = command.settings(&own, case);
    }
    names.case = case.to_string();
    names
}

impl Command {
    fn name(&self, names: &mut Names) {
        let RanAs { machine, kernel, workload, metric, policy, case: _ } = &self.ran_as;
        let named = [
            (machine, &mut names.machine),
            (kernel, &mut names.kernel),
            (workload, &mut names.workload),
            (metric, &mut names.metric),
            (policy, &mut names.policy),
        ];
        for (to, name) in named {
            if let Some(to) = to {
                name.clone_from(to);
            }
        }
    }

    fn settings(&self, own: &Case, case: Case) -> Case {
        let case = self.without.iter().fold(case, |case, key| case.without(key));
        let added = self.ran_as.case.as_deref().unwrap_or_default().parse::<Case>();
        let added = added.expect("studies/commands.toml is as a test has read it");
        added.iter().fold(case, |case, (key, value)| match case.get(key) {
            None => case.with(key, filled_in(value, own)),
            Some(_) => case,
        })
    }
}

/// `256000/{groups}` with the groups of the row: `64000`.
fn filled_in(value: &str, own: &Case) -> String {
    let fill = |text: String, (key, value)| text.replace(&format!("{{{key}}}"), value);
    let filled = own.iter().fold(value.to_owned(), fill);
    let divided = || {
        let (all, parts) = filled.split_once('/')?;
        all.parse::<u64>().ok()?.checked_div(parts.parse().ok()?)
    };
    divided().map_or_else(|| filled.clone(), |part| part.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::study::{self, row};

    fn ran(series: &str, machine: &str, workload: &str, case: &str) -> Names {
        ran_as(series, &row(series, machine, workload, case, "baseline").written)
    }

    #[test]
    fn a_table_is_run_as_its_series_was() {
        let case = |series, machine, workload, case| ran(series, machine, workload, case).case;
        let groups = "tasks=process;ipc=pipe;groups=4";
        let settled = case("sis-util", "spr-112", "hackbench", groups);
        assert_eq!(settled, format!("{groups};fds=14;loops=1000000"));
        assert_eq!(case("hints", "zen3-2s-nps1", "hackbench", "groups=4"), "groups=4");
        let divided = case("lb-rework", "arm64-224", "hackbench", "groups=16");
        assert_eq!(divided, "groups=16;tasks=process;ipc=socket;loops=16000");
        let bound = case("numaimb-affinity", "icx-2s", "stream", "threads=16;pin=cpus-0-15");
        assert_eq!(bound, "threads=16;cpus=0-15");
        let free = case("numaimb-affinity", "icx-2s", "stream", "threads=16;pin=none");
        assert_eq!(free, "threads=16");
    }

    #[test]
    fn commands_of_one_row_add_up() {
        let names = ran("cache-aware-v1", "milan-2n128", "schbench", "workers=4");
        assert_eq!(
            (names.workload.as_str(), names.case.as_str()),
            ("schbench2", "workers=4;messengers=2")
        );
        let names = ran("cache-aware-v1", "spr-2s-120", "netperf", "pairs=60");
        assert_eq!((names.machine.as_str(), names.case.as_str()), ("spr-2s-240", "threads=60"));
    }

    #[test]
    fn what_a_row_says_is_not_overruled() {
        let names = ran("sis-util", "spr-112", "hackbench", "fds=20;groups=4");
        assert_eq!(names.case, "fds=20;groups=4;loops=1000000");
        let unread = ran("sis-util", "spr-112", "hackbench", "groups");
        assert_eq!(unread.case, "groups");
    }

    /// A command that changes no row of its tables is out of date.
    #[test]
    fn each_command_has_rows() {
        let studies = study::all();
        for command in &COMMANDS.command {
            for rows in &command.rows {
                let found = studies.iter().any(|row| rows.contain(&row.series, &row.written));
                assert!(found, "{rows:?}");
            }
        }
    }
}
