//! What an unknown name may have meant.

/// "; known: a, b": the names that are near, or, when none is, what prints all of a `kind`.
pub fn near<T: AsRef<str>>(name: &str, known: impl IntoIterator<Item = T>, kind: &str) -> String {
    let is_near = |candidate: &T| strsim::jaro_winkler(name, candidate.as_ref()) > 0.8;
    let near: Vec<T> = known.into_iter().filter(is_near).collect();
    match near.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", ").as_str() {
        "" => format!("; `placewise list {kind}` prints those there are"),
        near => format!("; known: {near}"),
    }
}
