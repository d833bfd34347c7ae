//! How figures are written for people: four digits that count, and never a `-0`.

/// 0.01234, 4.310, 37.00, 125665
pub fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 999.95 || v == 0.0 => 0,
        v if v >= 99.995 => 1,
        v if v >= 9.9995 => 2,
        v if v >= 0.99995 => 3,
        _ => 4,
    };
    without_negative_zero(format!("{value:.decimals$}"))
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
    fn changes_have_a_sign_unless_nothing_is_left_of_them() {
        assert_eq!([1.616, -0.23, -0.001].map(change), ["+1.62", "-0.23", "0.00"]);
    }
}
