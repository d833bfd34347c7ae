//! What the simplest predictors say: that nothing changes, and that what changed on another machine
//! changes here. A model that does no better is not worth its time.

use std::collections::BTreeSet;

use placewise_workload::Case;

use super::study::Published;

/// The change published for the nearest case of the same workload, metric and policy on another
/// machine; `None` where there is none. Of cases as near, the first.
pub fn change_of_nearest_case<'a>(
    row: &Published,
    published: impl IntoIterator<Item = &'a Published>,
) -> Option<f64> {
    let own: Case = row.ran_as.case.parse().ok()?;
    let is_same = |other: &&Published| {
        other.ran_as.machine != row.ran_as.machine
            && [&other.ran_as.workload, &other.ran_as.metric, &other.ran_as.policy]
                == [&row.ran_as.workload, &row.ran_as.metric, &row.ran_as.policy]
    };
    let with_distance = |other: &Published| {
        let (change, case) = (other.change_pct?, other.ran_as.case.parse().ok()?);
        Some((distance(&own, &case), change))
    };
    let elsewhere = published.into_iter().filter(is_same).filter_map(with_distance);
    let nearest = elsewhere.min_by(|(one, _), (other, _)| one.total_cmp(other));
    nearest.map(|(_, change)| change)
}

/// The settings that differ, each 1, but for numbers: those by the logarithm of their ratio.
fn distance(one: &Case, other: &Case) -> f64 {
    let keys: BTreeSet<&str> = one.iter().chain(other.iter()).map(|(key, _)| key).collect();
    let apart = |key: &str| match (one.get(key), other.get(key)) {
        (Some(one), Some(other)) if one == other => 0.0,
        (Some(one), Some(other)) => match (one.parse::<f64>(), other.parse::<f64>()) {
            (Ok(one), Ok(other)) if one > 0.0 && other > 0.0 => (one / other).ln().abs(),
            _ => 1.0,
        },
        _ => 1.0,
    };
    keys.into_iter().map(apart).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::study::row;

    fn with_change(machine: &str, case: &str, policy: &str, change_pct: f64) -> Published {
        Published { change_pct: Some(change_pct), ..row("s", machine, "hackbench", case, policy) }
    }

    #[test]
    fn the_nearest_case_is_by_the_ratio_of_its_numbers() {
        let published = [
            with_change("near", "groups=4", "p", 1.0),
            with_change("other", "groups=1", "p", 2.0),
            with_change("other", "groups=12", "p", 3.0),
            with_change("other", "groups=4", "q", 4.0),
            with_change("other", "groups=4;ipc=pipe;tasks=process", "p", 5.0),
        ];
        let nearest =
            |case| change_of_nearest_case(&with_change("near", case, "p", 0.0), &published);
        // 4 is 1.39 from 1, 1.10 from 12, and twice 1 from the case with two more settings.
        assert_eq!(nearest("groups=4"), Some(3.0));
        assert_eq!(nearest("groups=2"), Some(2.0));
        assert_eq!(nearest("groups=4;ipc=pipe;tasks=thread"), Some(5.0));
        let of_other = with_change("near", "groups=4", "r", 0.0);
        assert_eq!(change_of_nearest_case(&of_other, &published), None);
    }
}
