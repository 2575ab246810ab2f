//! Which known name was probably meant.

use crate::formula::Var;

/// Longer names are not compared: the cost is quadratic, and nobody misspells a name of that length.
const LONGEST: usize = 64;

/// The known name that is the fewest edits away, if that is few for its length.
pub(super) fn nearest<'a>(name: &str, known: &'a [Var]) -> Option<&'a Var> {
    let letters: Vec<char> = name.chars().take(LONGEST + 1).collect();
    let candidates = known.iter().filter_map(|variable| {
        let other: Vec<char> = variable.name().chars().take(LONGEST + 1).collect();
        let length = letters.len().max(other.len());
        if length > LONGEST {
            return None;
        }
        let distance = edits(&letters, &other);
        (2 * distance <= length).then_some((distance, variable))
    });
    candidates.min_by_key(|(distance, _)| *distance).map(|(_, variable)| variable)
}

/// Insertions, deletions and replacements, a change of case being none.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(!x.eq_ignore_ascii_case(y));
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_is_offered_and_a_stranger_is_not() {
        let known = ["speed", "height", "x"].map(Var::new);
        let near = |name| nearest(name, &known).map(Var::name);
        assert_eq!(near("sped"), Some("speed"));
        assert_eq!(near("Hieght"), Some("height"));
        assert_eq!(near("X"), Some("x"));
        assert_eq!(near("q"), None);
        assert_eq!(near(&"s".repeat(100_000)), None);
    }
}
