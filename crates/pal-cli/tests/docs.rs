//! The examples of `docs/cli.md`.
#![cfg(unix)]

mod common;

use common::Folder;
use common::console::{self, compare};

#[test]
fn the_page_is_true() {
    let folder = Folder::new("docs");
    let examples = console::run(include_str!("../../../docs/cli.md"), &folder);
    assert!(examples >= 12);
    assert_eq!(&folder.read("triangle.png")[1..4], b"PNG");
}

#[test]
fn wildcards() {
    let same = |wanted: &str, printed: &str| compare("pal", wanted, printed).is_ok();
    assert!(same("a...c...\n", "abcd\n") && same("...\n", "") && same("x\n", "x\n"));
    assert!(!same("a...d\n", "abc\n") && !same("x\n", "xy\n") && !same("", "x\n"));
    assert!(same("a\n...\nd\n", "a\nb\nc\nd\n") && !same("a\n...\n", "b\n"));
    let difference = compare("pal check", "status  bounded\n", "status  empty\n").unwrap_err();
    assert!(difference.contains("bounded") && difference.contains("empty"), "{difference}");
}
