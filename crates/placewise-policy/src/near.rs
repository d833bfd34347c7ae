//! What an unknown name may have meant.

/// "; known: a, b": the names that are near, or all when none is.
pub fn near<T: AsRef<str>>(name: &str, known: Vec<T>) -> String {
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    let close = |candidate: &&&str| strsim::jaro_winkler(name, candidate) > 0.8;
    let mut near: Vec<&str> = known.iter().filter(close).copied().collect();
    if near.is_empty() {
        near = known;
    }
    format!("; known: {}", near.join(", "))
}
