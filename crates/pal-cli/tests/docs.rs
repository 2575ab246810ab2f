//! The examples of `docs/cli.md`.
#![cfg(unix)]

mod common;

use common::Folder;
use common::console::{self, line_matches, lines_match};

#[test]
fn the_page_is_true() {
    let folder = Folder::new("docs");
    let examples = console::run(include_str!("../../../docs/cli.md"), &folder);
    assert!(examples >= 12);
    assert_eq!(&folder.read("triangle.png")[1..4], b"PNG");
}

#[test]
fn wildcards() {
    assert!(line_matches("a...c...", "abcd") && line_matches("...", "") && line_matches("x", "x"));
    assert!(!line_matches("a...d", "abc") && !line_matches("x", "xy"));
    assert!(lines_match(&["a", "...", "d"], &["a", "b", "c", "d"]) && !lines_match(&["a", "..."], &["b"]));
}
