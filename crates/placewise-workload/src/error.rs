//! What can be wrong with a case or an rt-app file: one line that names the place and the remedy.

/// Why a workload could not be built. The text is one line, fit to be shown to the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct WorkloadError {
    place: String,
    problem: String,
}

impl WorkloadError {
    /// `place` is a file and line, a field or an argument; `problem` says what was expected there.
    pub(crate) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into() }
    }

    /// The same problem, seen from further out: `outer` is put before the place.
    pub(crate) fn within(self, outer: &str) -> Self {
        Self { place: format!("{outer}: {}", self.place), problem: self.problem }
    }
}

/// Bad input is quoted in messages on one line, and not at any length.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    format!("`{shown}`")
}

/// `; did you mean X?` if one of the `known` names is near to `name`, else all that are known.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> String {
    /// Names less alike than this are not offered.
    const ALIKE: f64 = 0.6;
    let short: String = name.chars().take(60).collect();
    let nearest = known
        .iter()
        .map(|candidate| (strsim::normalized_damerau_levenshtein(&short, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((_, candidate)) => format!("did you mean `{candidate}`?"),
        None => format!("expected one of {}", known.join(", ")),
    }
}
