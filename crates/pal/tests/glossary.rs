//! The glossary for users says the same as the one for whoever changes the code.

use std::collections::BTreeMap;

const USERS: &str = include_str!("../../../docs/glossary.md");
const ARCHITECTURE: &str = include_str!("../../../ARCHITECTURE.md");

/// The rows of the first table with the columns "word" and "meaning".
fn glossary(page: &str) -> BTreeMap<&str, &str> {
    let table = page.lines().skip_while(|line| *line != "| word | meaning |").skip(2);
    let rows = table.take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| {
        let row = row.strip_prefix('|').and_then(|row| row.strip_suffix('|')).expect("a row ends with a bar");
        row.split_once('|').expect("a row has two cells")
    });
    cells.map(|(word, meaning)| (word.trim(), meaning.trim())).collect()
}

#[test]
fn every_word_means_the_same_to_users_and_in_the_architecture() {
    let (users, all) = (glossary(USERS), glossary(ARCHITECTURE));
    assert!(users.len() >= 20, "{} words", users.len());
    for (word, meaning) in users {
        assert_eq!(all.get(word), Some(&meaning), "{word}");
    }
}
