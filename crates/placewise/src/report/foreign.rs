//! Text that others wrote: names of tasks, machines, files, cases and cgroups.
//!
//! It may hold anything: an escape sequence that the terminal obeys, a line break, a character that
//! turns the text around, a `|` that ends a Markdown cell. So nothing of it is printed as it is.
//! Tables, CSV and JSON pass all they print through here ([`super::cells`], [`super::csv`],
//! [`super::json`]); lines are passed whole by whoever prints them.
//!
//! Limits: a name that spells an escape out (`\u{1b}`) looks like one that has it. Markdown still
//! makes links of addresses. A spreadsheet takes a CSV field that begins with `=` for a formula.

/// For a terminal, a mail or a CSV field: what does not show is spelt out, such as `\n` or `\u{1b}`.
pub fn visible(text: &str) -> String {
    // A trace has many lines, and nearly all are so.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let mut spelt = String::new();
    for character in text.chars() {
        match shows(character) {
            true => spelt.push(character),
            false => spelt.extend(character.escape_debug()),
        }
    }
    spelt
}

/// The same for Markdown, as text without markup.
pub fn in_markdown(text: &str) -> String {
    let mut escaped = String::new();
    for character in visible(text).chars() {
        if r"\`*[]<&|".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// JSON that says the same without a character that does not show.
pub fn in_json(json: &str) -> String {
    let mut escaped = String::new();
    for character in json.chars() {
        if shows(character) || character == '\n' {
            escaped.push(character);
        } else {
            let units = &mut [0; 2];
            escaped
                .extend(character.encode_utf16(units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    escaped
}

/// Not so control characters, bidirectional overrides, and what else has no shape of its own.
fn shows(character: char) -> bool {
    match character {
        ' '..='~' => true,
        // Behind a letter: there is where accents are.
        _ => format!("a{character}").escape_debug().count() == 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal escape, a line break, C1 and DEL, an override, an isolate, a space without width,
    /// a line separator.
    const HOSTILE: &str = "\x1b[31m\n\u{9b}\x7f\u{202e}\u{2066}\u{200b}\u{2028}";

    #[test]
    fn what_does_not_show_is_spelt_out() {
        let spelt = r"\u{1b}[31m\n\u{9b}\u{7f}\u{202e}\u{2066}\u{200b}\u{2028}";
        assert_eq!(visible(HOSTILE), spelt);
        assert_eq!(visible(spelt), spelt, "once is enough");
    }

    #[test]
    fn what_shows_stays() {
        for text in ["kworker/0:1-events", r#"'a' "b" \c | <d>"#, "café cafe\u{301} 日本 हिन्दी 💡"]
        {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn markdown_takes_it_for_text() {
        assert_eq!(in_markdown("a|b `c` <d>"), r"a\|b \`c\` \<d>");
        assert_eq!(in_markdown(r"\|"), r"\\\|");
        assert_eq!(in_markdown("\n# x"), r"\\n# x");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({ "name": format!("{HOSTILE}\u{e0041}é\"") });
        let json = in_json(&serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), value);
        assert!(json.chars().all(|c| shows(c) || c == '\n'), "{json}");
        assert!(json.contains(r"\u009b\u007f\u202e"), "{json}");
    }
}
