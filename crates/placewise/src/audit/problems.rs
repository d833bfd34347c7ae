//! What is wrong with a trace, what that means for the report, and where the report is a guess.

use placewise_audit::{Audit, Tally};
use placewise_trace::Header;

use super::percent::percent;

/// Marks within the trace, and what its header says, tell of the same events.
pub fn lost(audit: &Audit) -> u64 {
    audit.losses.lost_events.max(audit.losses.overrun)
}

/// One line each.
pub fn problems(header: &Header, audit: &Audit) -> Vec<String> {
    let (losses, repairs) = (&audit.losses, &audit.repairs);
    let mut problems = Vec::new();
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            problems.push(format!("{count} {what}"));
        }
    };
    say(lost(audit), "events lost while recording");
    say(losses.gaps, "places where events are missing");
    let first = losses.first_malformed.as_ref();
    let first = first.map(|first| format!(", first line {}: {}", first.line, first.reason));
    say(losses.malformed_lines, &format!("lines cannot be read{}", first.unwrap_or_default()));
    say(u64::from(losses.truncated_last_line), "line, the last, is cut off and left out");
    say(u64::from(losses.truncated_file), "compressed file ends too early");
    say(losses.clock_steps, "times lie before the one in front of them");
    say(losses.cpus_out_of_range, "events name a CPU beyond those that the policies have room for");
    say(
        repairs.impossible_events,
        "events name a CPU that the machine lacks, or a pid that cannot be",
    );
    say(
        repairs.silences,
        &format!(
            "times no CPU had an event for more than 10 s: {:.0} s, which are left out",
            repairs.silent_ns as f64 / 1e9
        ),
    );
    say(
        repairs.missing_switches,
        "switches are missing: since when a task ran there, and who waited behind it, is not known",
    );
    say(
        repairs.missing_idle_exits,
        "switches from idle are missing: each is taken to be as long after its wakeup as others are",
    );
    say(
        repairs.wakeups_without_end,
        "wakeups have no end: where they went is not known, and they are not judged",
    );
    say(
        repairs.forgotten_tasks,
        "tasks were forgotten for want of room: what they were known to do before is lost",
    );
    if let Some(first) = header.problems.first() {
        say(
            header.problems.len() as u64,
            &format!("lines of the header cannot be read, first {first}"),
        );
    }
    problems
}

/// An explanation is only as good as the foresight of the policy that gives it.
pub fn cautions(kernel: &str, audit: &Audit) -> Vec<String> {
    let of_wakeups = ("wakeups", "the previous CPU", &audit.agreement.wakeups);
    let of_forks = ("forks", "the CPU of the parent", &audit.agreement.forks);
    [of_wakeups, of_forks].into_iter().filter_map(|of| trivial(kernel, of)).collect()
}

fn trivial(kernel: &str, (what, trivial, tally): (&str, &str, &Tally)) -> Option<String> {
    let foreseen = percent(tally.exact, tally.decisions)?;
    let trivially = percent(tally.prev_exact, tally.decisions)?;
    let guesses = tally.exact <= tally.prev_exact && tally.exact < tally.decisions;
    guesses.then(|| {
        format!(
            "the policy of {kernel} foresees {foreseen:.1} % of the {what}, and always {trivial} \
             would {trivially:.1} %: its explanations of them are guesses"
        )
    })
}
