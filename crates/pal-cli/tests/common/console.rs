//! Pages with examples: the `console` blocks of a page, run in order in one folder.
//!
//! `$ cat FILE` with the lines that follow makes the file; any other `$ command` is run by a shell and must print what
//! follows it, standard error included. `...` stands for any text within a line, and on a line of its own for any
//! number of lines. `snapbox` does the comparison; `trycmd`, which would also find and run the commands, has no shell
//! and thus no pipes.

use std::path::Path;
use std::process::Command;

use snapbox::{Assert, IntoData};

use super::Folder;

/// Commands with the text expected after them.
fn examples(page: &str) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().expect("a split has a first part");
        for line in block.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => found.push((command, String::new())),
                None => {
                    let (_, text) = found.last_mut().expect("a block begins with a command");
                    *text += line;
                    *text += "\n";
                }
            }
        }
    }
    found
}

/// The same text with wildcards as `snapbox` writes them.
fn pattern(text: &str) -> String {
    let line = |line: &str| if line == "..." { line.to_string() } else { line.replace("...", "[..]") };
    text.lines().map(|text| line(text) + "\n").collect()
}

/// Compares what a command printed with what the page says; an error shows the difference.
pub fn compare(command: &str, wanted: &str, printed: &str) -> Result<(), String> {
    let assert = Assert::new().normalize_paths(false);
    let wanted = pattern(wanted).into_data();
    assert.try_eq(Some(&command), printed.into_data(), wanted).map_err(|error| error.to_string())
}

/// Runs the examples of a page and returns how many there were.
pub fn run(page: &str, folder: &Folder) -> usize {
    let here = Path::new(env!("CARGO_BIN_EXE_pal")).parent().expect("a program lies in a folder");
    let path = format!("{}:{}", here.display(), std::env::var("PATH").expect("shells have a search path"));
    let examples = examples(page);
    for (command, wanted) in &examples {
        if let Some(name) = command.strip_prefix("cat ") {
            folder.write(name, wanted);
            continue;
        }
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{{ {command}; }} 2>&1")).env("PATH", &path).current_dir(folder.path());
        let printed = String::from_utf8(shell.output().unwrap().stdout).unwrap();
        if let Err(difference) = compare(command, wanted, &printed) {
            panic!("$ {command}\n{difference}");
        }
    }
    examples.len()
}
