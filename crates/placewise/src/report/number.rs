//! How figures are written for people: three digits that count and more, and never a `-0`.

/// 0.00123, 0.0123, 4.310, 37.00, 125665
pub fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 999.95 || v == 0.0 => 0,
        v if v >= 99.995 => 1,
        v if v >= 9.9995 => 2,
        v if v >= 0.99995 => 3,
        v if v >= 0.01 => 4,
        _ => return three_digits(value),
    };
    without_negative_zero(format!("{value:.decimals$}"))
}

/// 1.23e-7, 0.00123, 0.230, 1.62, 62.3, 143, 11405
pub fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 || v == 0.0 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        v if v >= 1e-4 => 2 + (-v.log10()).ceil() as usize,
        _ => return format!("{value:.2e}"),
    };
    format!("{value:.decimals$}")
}

pub fn percent(value: f64) -> String {
    without_negative_zero(format!("{value:.2}"))
}

/// With its sign: +1.62, -0.23, 0.00
pub fn change(value: f64) -> String {
    let text = percent(value);
    match text.starts_with('-') || text == "0.00" {
        true => text,
        false => format!("+{text}"),
    }
}

fn without_negative_zero(text: String) -> String {
    let is_zero = text.chars().all(|c| matches!(c, '-' | '0' | '.'));
    match is_zero {
        true => text.trim_start_matches('-').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_count() {
        let texts = [0.0, 0.01234, 4.31, 37.0, 339.53, 999.96, 125665.4].map(figure);
        assert_eq!(texts, ["0", "0.0123", "4.310", "37.00", "339.5", "1000", "125665"]);
    }

    #[test]
    fn three_digits_count_at_least() {
        let values =
            [0.0, 1.234e-7, 0.001234, 0.01, 0.23, 0.1, 1.616, -62.34, 99.96, 143.2, 11405.56];
        let texts = values.map(three_digits);
        let expected = [
            "0", "1.23e-7", "0.00123", "0.0100", "0.230", "0.100", "1.62", "-62.3", "100", "143",
            "11406",
        ];
        assert_eq!(texts, expected);
        assert_eq!(figure(0.000312), "0.000312");
    }

    #[test]
    fn changes_have_a_sign_unless_nothing_is_left_of_them() {
        assert_eq!([1.616, -0.23, -0.001].map(change), ["+1.62", "-0.23", "0.00"]);
    }
}
