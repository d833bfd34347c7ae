//! Which rows stand in one table, and the heading of those of a case.

use std::collections::BTreeMap;

/// The rows with the same key together; keys in the order they first come.
pub fn grouped<'a, T, K: Ord>(rows: &'a [T], key: impl Fn(&'a T) -> K) -> Vec<Vec<&'a T>> {
    let mut places = BTreeMap::new();
    let mut groups: Vec<Vec<&T>> = Vec::new();
    for row in rows {
        let place = *places.entry(key(row)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(row);
    }
    groups
}

/// `why, means of groups=1`, where the case is called so
pub fn heading_of_case(what: &str, case: &str) -> String {
    match case {
        "" => format!("{what}, means"),
        case => format!("{what}, means of {case}"),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn groups_are_in_the_order_they_first_come() {
        let rows = ["b1", "a1", "b2", "c1", "a2"];
        let groups = grouped(&rows, |row| &row[..1]);
        assert_eq!(groups, [vec![&"b1", &"b2"], vec![&"a1", &"a2"], vec![&"c1"]]);
    }

    /// However many groups there are.
    #[test]
    fn each_row_is_looked_at_once() {
        let rows: Vec<u32> = (0..1_000).collect();
        let looks = Cell::new(0);
        let groups = grouped(&rows, |row| {
            looks.set(looks.get() + 1);
            row
        });
        assert_eq!((groups.len(), looks.get()), (1_000, 1_000));
    }
}
