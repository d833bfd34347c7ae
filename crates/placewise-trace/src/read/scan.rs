//! The first steps into a text. The standard library's search for a character is made for long
//! texts; here it ends after a few bytes, of which eight are looked at at once, as are the digits of
//! most numbers.

/// Numbers of so many digits fit into 64 bits.
const FIT: usize = 19;

/// In each of eight bytes: `0`, the highest bit, and what carries into that from 10 on.
const ZEROS: u64 = 0x3030_3030_3030_3030;
const HIGHEST: u64 = 0x8080_8080_8080_8080;
const CARRY: u64 = 0x7676_7676_7676_7676;

const SPACES: u64 = repeated(b' ');

/// The same byte eight times.
const fn repeated(byte: u8) -> u64 {
    byte as u64 * (u64::MAX / 0xff)
}

/// The highest bit of each of eight bytes that is 0.
fn zero_bytes(bytes: u64) -> u64 {
    !(((bytes & !HIGHEST) + !HIGHEST) | bytes) & HIGHEST
}

/// What stands before `at` and from there on. Only for where one of the searches below has found an ASCII byte, or
/// the end of some: a character begins there, which nobody has to look for.
#[inline(always)]
fn cut(text: &str, at: usize) -> (&str, &str) {
    debug_assert!(text.is_char_boundary(at));
    // SAFETY: the byte at `at`, or the one before it, is ASCII, or it is an end of the text.
    unsafe { (text.get_unchecked(..at), text.get_unchecked(at..)) }
}

/// The number at the start, `u64::MAX` when it does not fit, and what follows.
#[inline(always)]
pub(super) fn digits(text: &str) -> Option<(u64, &str)> {
    let Some(first) = text.as_bytes().first_chunk() else {
        return Some(with_digits(0, text)).filter(|(_, rest)| rest.len() < text.len());
    };
    let (digits, others) = eight_digits(*first);
    match others.trailing_zeros() as usize / 8 {
        0 => None,
        length @ 1..8 => Some((value(digits << (64 - 8 * length)), cut(text, length).1)),
        _ => Some(with_digits(value(digits), cut(text, 8).1)),
    }
}

/// The number with the digits at the start behind it, and what follows these.
fn with_digits(mut number: u64, mut text: &str) -> (u64, &str) {
    while let Some(digit @ b'0'..=b'9') = text.as_bytes().first() {
        number = number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
        text = cut(text, 1).1;
    }
    (number, text)
}

/// What stands before the number at the end, and that number, if it fits.
#[inline(always)]
pub(super) fn last_number(text: &str) -> Option<(&str, u64)> {
    if let Some(last) = text.as_bytes().last_chunk() {
        let (digits, others) = eight_digits(*last);
        let length = others.leading_zeros() as usize / 8;
        if (1..8).contains(&length) {
            let number = value(digits & u64::MAX << (64 - 8 * length));
            return Some((cut(text, text.len() - length).0, number));
        }
    }
    any_last_number(text)
}

fn any_last_number(text: &str) -> Option<(&str, u64)> {
    let (before, number) = last_digits(text);
    if number.len() <= FIT { Some((before, number.parse().ok()?)) } else { None }
}

/// The values of eight digits, the first in the lowest byte, and a bit in each byte that is none.
fn eight_digits(text: [u8; 8]) -> (u64, u64) {
    let digits = u64::from_le_bytes(text) ^ ZEROS;
    let others = (((digits & !HIGHEST) + CARRY) | digits) & HIGHEST;
    (digits, others)
}

/// Of eight digits at once: neighbours become pairs, these fours, and these the number.
fn value(digits: u64) -> u64 {
    let pairs = (digits.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// What stands before the digits at the end, and these.
#[inline]
pub(super) fn last_digits(text: &str) -> (&str, &str) {
    let mut before = text.as_bytes();
    while let [rest @ .., b'0'..=b'9'] = before {
        before = rest;
    }
    cut(text, before.len())
}

#[inline]
pub(super) fn skip_spaces(mut text: &str) -> &str {
    while let Some(first) = text.as_bytes().first_chunk() {
        let length = (u64::from_le_bytes(*first) ^ SPACES).trailing_zeros() as usize / 8;
        text = cut(text, length).1;
        if length < 8 {
            return text;
        }
    }
    text.trim_start_matches(' ')
}

/// Where the first such byte is.
#[inline]
pub(crate) fn position(bytes: &[u8], byte: u8) -> Option<usize> {
    let (eights, rest) = bytes.as_chunks();
    for (at, eight) in eights.iter().enumerate() {
        let found = zero_bytes(u64::from_le_bytes(*eight) ^ repeated(byte));
        if found != 0 {
            return Some(at * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|&other| other == byte)?;
    Some(eights.len() * 8 + at)
}

#[inline]
fn last_space(text: &str) -> Option<usize> {
    let (rest, eights) = text.as_bytes().as_rchunks();
    for (at, eight) in eights.iter().enumerate().rev() {
        let found = zero_bytes(u64::from_le_bytes(*eight) ^ SPACES);
        if found != 0 {
            return Some(rest.len() + at * 8 + 7 - found.leading_zeros() as usize / 8);
        }
    }
    rest.iter().rposition(|&byte| byte == b' ')
}

/// What stands before and after the first such byte, which is ASCII.
pub(super) fn split_once(text: &str, separator: u8) -> Option<(&str, &str)> {
    splits(text, separator).next()
}

pub(super) fn first_word(text: &str) -> &str {
    split_once(text, b' ').map_or(text, |(word, _)| word)
}

/// Every way to cut the text at a byte, which is ASCII: what stands before and after it, the first occurrence first.
#[inline]
pub(super) fn splits(text: &str, separator: u8) -> impl Iterator<Item = (&str, &str)> {
    assert!(separator.is_ascii());
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + position(&text.as_bytes()[from..], separator)?;
        from = at + 1;
        Some((cut(text, at).0, cut(text, from).1))
    })
}

/// Every way to cut the text at `key`, which starts with a space: what stands before and after
/// it, the last occurrence first.
#[inline(always)]
pub(super) fn rsplits<'a>(
    text: &'a str,
    key: &'static str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut before = text;
    std::iter::from_fn(move || {
        loop {
            let (start, from) = cut(text, last_space(before)?);
            before = start;
            if let Some(after) = from.strip_prefix(key) {
                return Some((before, after));
            }
        }
    })
}

/// What stands before the last space, and the last word.
#[inline]
pub(super) fn split_last_word(text: &str) -> Option<(&str, &str)> {
    let at = last_space(text)?;
    Some((cut(text, at).0, cut(text, at + 1).1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length_are_read_from_both_ends() {
        for number in (0..20).map(|length| 10u64.saturating_pow(length) / 9 * 8) {
            for behind in ["", " ", ": sched_switch", "/:;\u{e9}"] {
                let text = format!("{number}{behind}");
                assert_eq!(digits(&text), Some((number, behind)), "{text}");
            }
            for before in ["", " ", "prev_prio=", "/:;\u{e9}"] {
                let text = format!("{before}{number}");
                let fits = number.to_string().len() <= FIT;
                assert_eq!(last_number(&text), fits.then_some((before, number)), "{text}");
            }
        }
    }

    #[test]
    fn spaces_are_found_wherever_they_are() {
        for length in 0..40 {
            for at in 0..length {
                // A byte more than a space, and one with the highest bit.
                let text = format!("{}!", "\u{e9}".repeat(length));
                let (before, after) = (&text[..2 * at], &text[2 * at..]);
                let text = format!("{before} {after}");
                assert_eq!(position(text.as_bytes(), b' '), Some(2 * at));
                assert_eq!(last_space(&text), Some(2 * at));
                assert_eq!(skip_spaces(&format!("{}{after}", " ".repeat(at))), after);
            }
            assert_eq!((position(b"", b' '), last_space(&"!".repeat(length))), (None, None));
        }
    }

    #[test]
    fn what_does_not_fit_is_the_largest_and_no_last_number() {
        let text = "123456789012345678901234567890";
        assert_eq!(digits(text), Some((u64::MAX, "")));
        assert_eq!(last_number(text), None);
    }

    #[test]
    fn no_digit_is_no_number() {
        for text in ["", "a", " 1 ", "sched_switch: "] {
            assert_eq!((digits(text), last_number(text)), (None, None), "{text}");
        }
    }
}
