//! What a signal does to temporary files: in a process of its own, because it concerns all of them.

use std::fs;
use std::io::{self, Write};

use pal_system::files;

#[test]
fn temporaries_can_be_removed_while_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    let written = files::replace_with(&path, |out| {
        out.write_all(b"new")?;
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the temporary file");
        files::remove_temporaries();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        Ok::<(), io::Error>(())
    });
    assert!(written.is_err(), "there is nothing left to rename");
}
