//! Finds the known variable name that was probably meant by an unknown one.

use crate::formula::Var;

/// Names with more characters than this are not compared: the cost is quadratic in the length.
const MAX_COMPARED_CHARS: usize = 64;

/// Returns the known variable whose name is the fewest edits away from `name`, ignoring the case of ASCII letters.
///
/// Edits are insertions, deletions and replacements of one character. A known name is considered only if the edits are
/// at most half as many as the characters of the longer of the two names.
pub(super) fn nearest<'a>(name: &str, known: &'a [Var]) -> Option<&'a Var> {
    let wanted = comparable(name)?;
    let candidates = known.iter().filter_map(|variable| {
        let other = comparable(variable.name())?;
        let length = wanted.chars().count().max(other.chars().count());
        let distance = strsim::levenshtein(&wanted, &other);
        (2 * distance <= length).then_some((distance, variable))
    });
    candidates.min_by_key(|(distance, _)| *distance).map(|(_, variable)| variable)
}

/// Returns the name with its ASCII letters in lower case, or `None` if it is too long to be compared.
fn comparable(name: &str) -> Option<String> {
    name.chars().nth(MAX_COMPARED_CHARS).is_none().then(|| name.to_ascii_lowercase())
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
