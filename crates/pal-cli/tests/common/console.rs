//! Pages with examples: the `console` blocks of a page, run in order in one folder.
//!
//! `$ cat FILE` with what follows makes the file; any other `$ command` must print what follows it, standard error included.
//! `...` stands for anything, a line of its own for any number of lines.

use std::path::Path;
use std::process::Command;

use super::Folder;

/// Commands with the lines expected after them.
fn examples(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found = Vec::new();
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for line in block.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => found.push((command, Vec::new())),
                None => found.last_mut().unwrap().1.push(line),
            }
        }
    }
    found
}

/// Runs the examples of a page and returns how many there were.
pub fn run(page: &str, folder: &Folder) -> usize {
    let here = Path::new(env!("CARGO_BIN_EXE_pal")).parent().unwrap();
    let path = format!("{}:{}", here.display(), std::env::var("PATH").unwrap());
    let examples = examples(page);
    for (command, want) in &examples {
        if let Some(name) = command.strip_prefix("cat ") {
            folder.write(name, want.join("\n"));
            continue;
        }
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{{ {command}; }} 2>&1")).env("PATH", &path).current_dir(folder.path());
        let output = String::from_utf8(shell.output().unwrap().stdout).unwrap();
        let got: Vec<&str> = output.lines().collect();
        assert!(lines_match(want, &got), "$ {command}\n{output}\nwanted:\n{}", want.join("\n"));
    }
    examples.len()
}

pub fn lines_match(want: &[&str], got: &[&str]) -> bool {
    match (want, got) {
        ([], []) => true,
        (["...", rest @ ..], _) => {
            lines_match(rest, got) || got.split_first().is_some_and(|(_, tail)| lines_match(want, tail))
        }
        ([w, want @ ..], [g, got @ ..]) => line_matches(w, g) && lines_match(want, got),
        _ => false,
    }
}

pub fn line_matches(want: &str, got: &str) -> bool {
    let parts: Vec<&str> = want.split("...").collect();
    let [first, middle @ .., last] = &parts[..] else { return want == got };
    let Some(mut rest) = got.strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}
