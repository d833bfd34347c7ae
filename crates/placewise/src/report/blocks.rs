//! Tables with more columns than a line holds are told in blocks, each with the first columns again.

use std::ops::Range;

/// Blanks and a line between two columns.
const GAP: usize = 3;

/// Which of the `columns`, given by their widths, stand in each block beside first columns of these
/// widths; at least one does.
pub fn blocks(first: &[usize], columns: &[usize], width: usize) -> Vec<Range<usize>> {
    let needed = |widths: &[usize]| widths.iter().map(|width| width + GAP).sum::<usize>();
    let mut blocks = Vec::new();
    let mut begin = 0;
    for end in 1..=columns.len() {
        if end - begin > 1 && needed(first) + needed(&columns[begin..end]) > width {
            blocks.push(begin..end - 1);
            begin = end - 1;
        }
    }
    if begin < columns.len() {
        blocks.push(begin..columns.len());
    }
    blocks
}

/// `why, means of groups=1 (2 of 3)`
pub fn heading(heading: &str, block: usize, of: usize) -> String {
    match of {
        1 => heading.to_owned(),
        _ => format!("{heading} ({} of {of})", block + 1),
    }
}

/// The widest of some texts.
pub fn widest<'a>(texts: impl IntoIterator<Item = &'a String>) -> usize {
    texts.into_iter().map(|text| text.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_block_is_wider_than_the_line_unless_a_column_is() {
        let ends = |columns: &[usize], width| -> Vec<usize> {
            blocks(&[10], columns, width).into_iter().map(|block| block.end).collect()
        };
        assert_eq!(ends(&[7, 7, 7], 43), [3]);
        assert_eq!(ends(&[7, 7, 7], 42), [2, 3]);
        assert_eq!(ends(&[7, 90, 7], 42), [1, 2, 3]);
        assert!(ends(&[], 42).is_empty());
        assert_eq!(ends(&[7, 7], usize::MAX), [2]);
    }
}
