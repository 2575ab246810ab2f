//! The nearest name, for errors that say what was probably meant.

/// The candidate that differs from `name` by the fewest single-character edits, if it is near enough to be meant.
/// Ties go to the alphabetically first, so that messages do not depend on the order of a hash map.
pub(super) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    let ranked = candidates.filter_map(|other| Some((distance(name, other, allowed)?, other)));
    ranked.min().map(|(_, other)| other)
}

/// Edit distance with adjacent swaps, or nothing when it exceeds `limit`.
fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    let edits = above.last().copied().unwrap_or(0);
    // A name all of whose characters were replaced is a different name, however short.
    (edits <= limit && edits < a.len().max(b.len())).then_some(edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typos_and_nothing_far_away() {
        let names = || ["width", "height", "x"].into_iter();
        assert_eq!(nearest("widht", names()), Some("width"));
        assert_eq!(nearest("heigt", names()), Some("height"));
        assert_eq!(nearest("depth", names()), None);
        assert_eq!(nearest("y", names()), None);
    }
}
