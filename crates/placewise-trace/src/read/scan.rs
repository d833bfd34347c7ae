//! The first steps into a text. The standard library's search for a character is made for long
//! texts; here it ends after a few bytes, and these loops take half of the time.

/// Numbers of so many digits fit into 64 bits.
pub(super) const FIT: usize = 19;

/// The number at the start, `u64::MAX` when it does not fit, and what follows.
pub(super) fn digits(text: &str) -> Option<(u64, &str)> {
    let mut number = 0u64;
    let mut length = 0;
    for digit in text.bytes().map(|byte| byte.wrapping_sub(b'0')).take_while(|&digit| digit < 10) {
        number = match length {
            ..FIT => number * 10 + u64::from(digit),
            _ => number.saturating_mul(10).saturating_add(u64::from(digit)),
        };
        length += 1;
    }
    (length > 0).then(|| (number, &text[length..]))
}

/// What stands before the digits at the end, and these.
#[inline]
pub(super) fn last_digits(text: &str) -> (&str, &str) {
    let mut before = text.as_bytes();
    while let [rest @ .., b'0'..=b'9'] = before {
        before = rest;
    }
    text.split_at(before.len())
}

pub(super) fn skip_spaces(mut text: &str) -> &str {
    // Tools print columns.
    while let Some(rest) = text.strip_prefix("        ") {
        text = rest;
    }
    let start = text.bytes().position(|byte| byte != b' ').unwrap_or(text.len());
    &text[start..]
}

/// What stands before and after the first such byte, which is ASCII.
pub(super) fn split_once(text: &str, separator: u8) -> Option<(&str, &str)> {
    let at = text.bytes().position(|byte| byte == separator)?;
    Some((&text[..at], &text[at + 1..]))
}

pub(super) fn first_word(text: &str) -> &str {
    split_once(text, b' ').map_or(text, |(word, _)| word)
}

/// What stands before the last space, and the last word.
pub(super) fn split_last_word(text: &str) -> Option<(&str, &str)> {
    let at = text.bytes().rposition(|byte| byte == b' ')?;
    Some((&text[..at], &text[at + 1..]))
}
