//! The terminal examples of `README.md` and `docs/terminal.md`. Their Rust examples are doc tests of the library.
#![cfg(unix)]

mod common;

use common::{Folder, console};

const README: &str = include_str!("../../../README.md");

#[test]
fn the_readme_is_true() {
    let folder = Folder::new("readme");
    let examples = console::run(README, &folder);
    assert!(examples >= 5);
    assert_eq!(&folder.read("room.png")[1..4], b"PNG");
}

#[test]
fn the_tour_is_true() {
    let folder = Folder::new("terminal");
    let examples = console::run(include_str!("../../../docs/terminal.md"), &folder);
    assert!(examples >= 12);
    assert_eq!(&folder.read("room.png")[1..4], b"PNG");
}

/// Links to files of the repository lead somewhere.
#[test]
fn links_lead_somewhere() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let targets = README.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let files: Vec<&str> = targets.filter(|target| !target.contains("://")).collect();
    assert!(files.len() >= 6);
    for link in files {
        let (file, heading) = link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
        assert!(root.join(file).exists(), "{link}");
        if let Some(heading) = heading {
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            let mut headings = text.lines().filter(|line| line.starts_with('#'));
            let name = |line: &str| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            assert!(headings.any(|line| name(line) == heading), "{link}");
        }
    }
}
