//! The declared name that is nearest to an unknown one, for errors that say what was probably meant.

/// The candidate that differs from `name` by the fewest edits of characters, if it is near enough to be meant. Of
/// several equally near candidates it is the alphabetically first, so that messages do not depend on the order of a
/// hash map.
pub(super) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    let ranked = candidates.filter_map(|other| Some((distance(name, other, allowed)?, other)));
    ranked.min().map(|(_, other)| other)
}

/// The number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`, or nothing when
/// it exceeds `limit` or when no character of the names would remain.
fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let lengths = [a, b].map(|name| name.chars().count());
    // The distance is at least the difference of the lengths, which is much faster to compute.
    if lengths[0].abs_diff(lengths[1]) > limit {
        return None;
    }
    let edits = strsim::osa_distance(a, b);
    // A name all of whose characters were replaced is a different name, however short.
    (edits <= limit && edits < lengths[0].max(lengths[1])).then_some(edits)
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
