//! How far a cost figure may be from what the machine file says, by the first word of its source: what
//! `compare --uncertain` varies it by, and `calibrate` fits it within.

use placewise_machine::Machine;

/// What the source of a figure begins with; a colon, blank or semicolon ends it.
pub fn word(source: &str) -> &str {
    source.split([':', ' ', ';']).next().unwrap_or_default()
}

/// The most that the figure may be multiplied or divided by; `None` where it stands as it is. Borrowed
/// figures count as assumed.
pub fn of(machine: &Machine, figure: &str) -> Option<f64> {
    // What a kernel was built with, and a spread of the simulator's own.
    if ["hz", "jitter_pct"].contains(&figure) {
        return None;
    }
    if machine.costs_of != "its own" {
        return Some(2.0);
    }
    match word(machine.cost_sources.get(figure)?) {
        "measured" => None,
        "published" => Some(1.25),
        "calibrated" => Some(1.5),
        _ => Some(2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(figure: &str, source: &str, costs_of: &str) -> Option<f64> {
        let mut machine = placewise_machine::load("uma-8").unwrap();
        machine.cost_sources.insert(figure.to_owned(), source.to_owned());
        machine.costs_of = costs_of.to_owned();
        of(&machine, figure)
    }

    #[test]
    fn borrowed_costs_count_as_assumed_whatever_their_source() {
        assert_eq!(bound("syscall_ns", "measured: perf", "those of icx-2s"), Some(2.0));
        let own = |source| bound("syscall_ns", source, "its own");
        assert_eq!(own("measured: perf"), None);
        assert_eq!(own("published: a table"), Some(1.25));
        assert_eq!(own("calibrated: a baseline"), Some(1.5));
        assert_eq!(own("assumed"), Some(2.0));
        assert_eq!(bound("hz", "assumed", "those of icx-2s"), None);
    }

    #[test]
    fn the_first_word_of_a_source_counts() {
        let words = ["assumed; as elsewhere", "published: it; calibrated: that", "calibrated"];
        assert_eq!(words.map(word), ["assumed", "published", "calibrated"]);
    }
}
