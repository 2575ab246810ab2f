//! The stages of the library, as the invariants of ARCHITECTURE.md state them, read off its source.
//!
//! A stage is a folder or file of `src`. Paths `crate::stage::..` and chains of `super` that leave a stage are its
//! imports; code under `#[cfg(test)]`, comments and documentation do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What every stage may use.
const FOUNDATIONS: [&str; 8] =
    ["number", "linear_algebra", "double_double", "random", "interrupt", "checksum", "container", "json"];

/// The stages in order, each with the stages that it may use besides the foundations.
const STAGES: [(&str, &[&str]); 9] = [
    ("formula", &[]),
    ("polynomial", &["formula"]),
    ("shapes", &["formula"]),
    ("region", &["formula"]),
    ("moments", &["formula", "polynomial", "region"]),
    ("wmi", &["formula", "polynomial", "region", "moments"]),
    ("density", &["formula", "polynomial", "region", "moments"]),
    ("query", &["formula", "polynomial", "region", "moments", "density"]),
    ("kernel", &["formula", "polynomial", "region", "density", "query"]),
];

/// Where a stage may use only some items of another one: names of variables, and membership as a test of points that
/// does not show the formula behind it.
const ONLY: [(&str, &str, &[&str]); 2] =
    [("polynomial", "formula", &["Linear", "Var"]), ("moments", "formula", &["Membership", "MembershipError", "Var"])];

/// The foundations among themselves.
const FOUNDATION_EDGES: [(&str, &str); 3] =
    [("linear_algebra", "number"), ("double_double", "number"), ("container", "checksum")];

/// What is not a stage: the front page and the tutorials, which show all of them.
const PAGES: [&str; 2] = ["lib", "tutorials"];

/// Where JSON is read: maps, WMI problems, the headers of files, which safetensors defines as JSON, and the settings of
/// families in them.
const JSON: [&str; 4] = ["formula/geojson", "wmi/problem", JSON_WRITERS[0], JSON_WRITERS[1]];

/// The only places that write JSON.
const JSON_WRITERS: [&str; 2] = ["container", "density/file"];

fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// One file of the library without its tests and comments.
struct Source {
    /// The path from `src`, without the extension.
    name: String,
    /// The path of its module: `["region", "search"]`.
    module: Vec<String>,
    code: String,
}

/// All files but those of tests.
fn sources() -> Vec<Source> {
    let root = source_folder();
    let mut paths = Vec::new();
    rust_files(&root, &mut paths);
    paths.sort();
    let mut sources = Vec::new();
    for path in paths {
        let name = path.strip_prefix(&root).unwrap().with_extension("").to_str().unwrap().replace('\\', "/");
        let mut module: Vec<String> = name.split('/').map(str::to_string).collect();
        if module.iter().any(|part| part == "tests") {
            continue;
        }
        if module.last().unwrap() == "mod" {
            module.pop();
        }
        sources.push(Source { name, module, code: without_tests_and_comments(&fs::read_to_string(&path).unwrap()) });
    }
    sources
}

fn without_tests_and_comments(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            let item = lines.next().unwrap();
            // A module of its own file ends with the line; anything else ends with a closing bracket in the first
            // column.
            if !item.ends_with(';') {
                lines.by_ref().find(|line| *line == "}").expect("rustfmt closes items in the first column");
            }
            continue;
        }
        code.push_str(line.split("//").next().unwrap());
        code.push('\n');
    }
    code
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The positions after every occurrence of a word or path that is not part of a longer word.
fn occurrences<'c>(code: &'c str, word: &'c str) -> impl Iterator<Item = usize> + 'c {
    code.match_indices(word).filter_map(move |(at, _)| {
        let end = at + word.len();
        let open = word.ends_with(is_word);
        let inside = code[..at].ends_with(is_word) || open && code[end..].starts_with(is_word);
        (!inside).then_some(end)
    })
}

/// The paths that begin here: one, or all alternatives of a list in braces, nested ones included.
fn paths(text: &str) -> Vec<Vec<String>> {
    let Some(list) = text.strip_prefix('{') else {
        let name: String = text.chars().take_while(|c| is_word(*c)).collect();
        let Some(after) = text[name.len()..].strip_prefix("::") else { return vec![vec![name]] };
        let prepend = |path: Vec<String>| [name.clone()].into_iter().chain(path).collect();
        return paths(after).into_iter().map(prepend).collect();
    };
    let (mut depth, mut start, mut all) = (0usize, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                let item = list[start..at].trim();
                if !item.is_empty() {
                    all.extend(paths(item));
                }
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    all
}

/// Paths from the root of the library that a file mentions: `crate::a::b`, and `super` as often as it takes.
fn mentioned(source: &Source) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> =
        occurrences(&source.code, "crate::").flat_map(|at| paths(&source.code[at..])).collect();
    let up = "super::".repeat(source.module.len());
    all.extend(occurrences(&source.code, &up).flat_map(|at| paths(&source.code[at..])));
    all
}

/// Which stage uses which others, with the files and items.
fn edges() -> BTreeMap<(String, String), BTreeSet<(String, String)>> {
    let mut edges: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for source in sources() {
        let from = source.module[0].clone();
        for path in mentioned(&source) {
            if path[0] != from && path[0] != "self" {
                let item = path.get(1).cloned().unwrap_or_default();
                edges.entry((from.clone(), path[0].clone())).or_default().insert((source.name.clone(), item));
            }
        }
    }
    edges
}

fn allowed(from: &str, to: &str) -> bool {
    if FOUNDATIONS.contains(&from) {
        return FOUNDATION_EDGES.contains(&(from, to));
    }
    let (_, stages) = STAGES.iter().find(|(stage, _)| *stage == from).unwrap_or_else(|| panic!("no stage {from}"));
    FOUNDATIONS.contains(&to) || stages.contains(&to)
}

#[test]
fn every_module_has_its_place() {
    let known: BTreeSet<&str> =
        FOUNDATIONS.into_iter().chain(STAGES.iter().map(|(stage, _)| *stage)).chain(PAGES).collect();
    for source in sources() {
        assert!(known.contains(&source.module[0][..]), "put `{}` among the stages of this test", source.module[0]);
    }
}

#[test]
fn no_stage_uses_a_later_one() {
    let mut wrong = Vec::new();
    let edges = edges();
    for ((from, to), places) in &edges {
        if !PAGES.contains(&&from[..]) && !allowed(from, to) {
            let files: BTreeSet<&str> = places.iter().map(|(file, _)| &file[..]).collect();
            wrong.push(format!("{from} uses {to}, in {files:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The reader of this test sees what there is to see.
    for edge in [("region", "formula"), ("moments", "region"), ("wmi", "moments"), ("query", "density")] {
        assert!(edges.contains_key(&(edge.0.to_string(), edge.1.to_string())), "{edge:?} was overlooked");
    }
}

#[test]
fn stages_that_may_know_only_names_know_only_names() {
    let edges = edges();
    for (from, to, items) in ONLY {
        for (file, item) in &edges[&(from.to_string(), to.to_string())] {
            assert!(items.contains(&&item[..]), "{file} uses {to}::{item}; of {to}, {from} may use {items:?}");
        }
    }
}

/// The folder of each kind of family, and how the names of its types begin.
const KINDS: [(&str, &str); 3] =
    [("density/spline/", "Spline"), ("density/sum_of_squares/", "SumOfSquares"), ("density/histogram/", "Histogram")];

#[test]
fn kinds_of_families_stay_in_their_folders() {
    for (folder, prefix) in KINDS {
        let mut own = 0;
        for source in sources() {
            let named = source.code.match_indices(prefix).any(|(at, _)| !source.code[..at].ends_with(is_word));
            let list = ["density/registry", "density/mod"].contains(&&source.name[..]);
            own += usize::from(named && source.name.starts_with(folder));
            assert!(!named || list || source.name.starts_with(folder), "{} names {prefix}..", source.name);
        }
        assert!(own > 0, "{folder} was overlooked");
    }
}

#[test]
fn the_library_does_no_input_or_output() {
    for source in sources() {
        // A cursor over bytes in memory, which decoders ask for, opens nothing.
        let code = source.code.replace("std::io::Cursor", "");
        for word in ["std::fs", "std::io", "std::env", "std::net", "std::process", "File::open", "File::create"] {
            assert_eq!(occurrences(&code, word).count(), 0, "{word} in {}", source.name);
        }
        for call in ["println!", "print!", "eprintln!", "eprint!", "dbg!"] {
            assert_eq!(occurrences(&source.code, call).count(), 0, "{call} in {}", source.name);
        }
    }
}

#[test]
fn json_is_read_in_four_places_and_written_in_two() {
    for source in sources() {
        let here = JSON.iter().any(|place| source.name.starts_with(place));
        let count = occurrences(&source.code, "serde_json").count();
        assert!(here || count == 0, "{} uses serde_json; only {JSON:?} may", source.name);
        for writer in ["to_string", "to_vec", "to_writer", "json!"] {
            let path = format!("serde_json::{writer}");
            let writes = occurrences(&source.code, &path).count() > 0;
            assert!(!writes || JSON_WRITERS.contains(&source.name.as_str()), "{} writes JSON", source.name);
        }
    }
}

/// One name has one concept: no two types or traits of the library have the same name.
#[test]
fn every_type_has_a_name_of_its_own() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources() {
        for keyword in ["struct", "enum", "trait"] {
            for at in occurrences(&source.code, keyword) {
                let after = source.code[at..].trim_start();
                let name: String = after.chars().take_while(|c| is_word(*c)).collect();
                if name.starts_with(|c: char| c.is_ascii_uppercase()) {
                    places.entry(name).or_default().push(source.name.clone());
                }
            }
        }
    }
    assert!(places.len() > 100, "{} types", places.len());
    let doubled: Vec<_> = places.iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(doubled.is_empty(), "{doubled:?}");
}

#[test]
fn nothing_is_unsafe() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let manifest = fs::read_to_string(crates.join("../Cargo.toml")).unwrap();
    assert!(manifest.contains("unsafe_code = \"forbid\""), "the workspace forbids unsafe code");
    for member in fs::read_dir(crates).unwrap() {
        let member = member.unwrap().path();
        let mut files = Vec::new();
        rust_files(&member.join("src"), &mut files);
        assert!(!files.is_empty(), "{}", member.display());
        for file in files {
            let code = without_tests_and_comments(&fs::read_to_string(&file).unwrap());
            for start in ["unsafe {", "unsafe fn", "unsafe impl", "unsafe trait", "unsafe extern"] {
                assert_eq!(occurrences(&code, start).count(), 0, "{start} in {}", file.display());
            }
        }
    }
}

#[test]
fn paths_are_read_as_rust_reads_them() {
    let flat = |text: &str| paths(text).into_iter().map(|path| path.join("::")).collect::<Vec<_>>();
    assert_eq!(
        flat("region::{Cell, space::{Space, Vertex}}; use x"),
        ["region::Cell", "region::space::Space", "region::space::Vertex"]
    );
    assert_eq!(flat("{a, b::c}"), ["a", "b::c"]);
    assert_eq!(flat("number::factorial(3) + 1"), ["number::factorial"]);
    let text = "use a;\n#[cfg(test)]\nmod tests;\nfn f() {} // no crate::b\n\
                #[cfg(test)]\nmod more {\n    use crate::c;\n}\nuse d;\n";
    assert_eq!(without_tests_and_comments(text), "use a;\nfn f() {} \nuse d;\n");
    assert_eq!(occurrences("my_crate::a crate::b", "crate::").count(), 1);
}
