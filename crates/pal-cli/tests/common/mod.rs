//! Running the program on inputs written for the occasion.
#![allow(dead_code)]

#[cfg(unix)]
pub mod console;
pub mod density;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// `[-1,1]^2` without the triangle `x >= 0, y >= 0, x + y <= 1`: area 4 - 1/2.
pub const SQUARE_WITHOUT_TRIANGLE: &str = "\
(declare-const x Real)
(declare-const y Real)
(assert (and (<= (- 1) x 1) (<= (- 1) y 1)))
(assert (not (and (>= x 0) (>= y 0) (<= (+ x y) 1))))
";

/// Two obstacles of areas 2 * 3 and 1/2 in a frame of area 100.
pub const MAP: &str = r#"{"type": "FeatureCollection", "bounds": [0, 0, 10, 10], "features": [
{"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [[[1,1],[3,1],[3,4],[1,4],[1,1]]]}},
{"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [[[5,5],[6,5],[5,6],[5,5]]]}}
]}"#;

/// A directory of its own for every test, removed at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Folder {
        fs::write(self.0.join(name), bytes).unwrap();
        self
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap()
    }

    /// Runs `pal` here.
    pub fn pal(&self, arguments: &[&str]) -> Run {
        self.pal_reading(arguments, "")
    }

    /// Runs `pal` here with the given standard input.
    pub fn pal_reading(&self, arguments: &[&str], input: &str) -> Run {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        // A program that does not read its input may be gone already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        Run::of(child.wait_with_output().unwrap())
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pal"));
        command.args(arguments).current_dir(&self.0).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a run left behind.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    pub fn of(output: Output) -> Run {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The run succeeded and said nothing on standard error.
    pub fn done(self) -> Run {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{self:?}");
        self
    }

    /// The run failed with exit code 2, one line on standard error that starts like this, and nothing on standard
    /// output.
    pub fn failed(self, start: &str) -> Run {
        assert_eq!((self.code, self.out.as_str()), (2, ""), "{self:?}");
        assert!(self.err.starts_with(start) && self.err.lines().count() == 1, "{self:?}");
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }

    pub fn json_lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
