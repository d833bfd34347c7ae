//! What can be wrong with a machine description: one line that names the place and the remedy.

/// Why a machine could not be read or modelled. The text is one line, fit to be shown to the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct MachineError {
    place: String,
    problem: String,
}

impl MachineError {
    /// `place` is a file, a field or an argument; `problem` says what was expected there.
    pub(crate) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            place: place.into().replace(char::is_control, " "),
            problem: one_line(&problem.into()),
        }
    }

    /// The same problem, seen from further out: `file` is put before the place.
    pub(crate) fn within(self, file: &str) -> Self {
        Self { place: format!("{file}: {}", self.place), problem: self.problem }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
