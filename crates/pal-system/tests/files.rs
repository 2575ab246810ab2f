//! Files are replaced completely or not at all, links are followed, and what is no ordinary file is written to.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use pal_system::files;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_failure_leaves_the_old_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    fs::write(&path, "old").unwrap();
    let failing = files::replace_with(&path, |out| {
        out.write_all(b"new")?;
        Err(io::Error::other("the disk is full"))
    });
    assert_eq!(failing.unwrap_err().to_string(), "the disk is full");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["a.txt"]);
    files::replace(&path, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["a.txt"]);
    assert!(files::replace(&folder.path().join("nowhere/a.txt"), b"new").is_err());
    assert!(files::replace(folder.path(), b"new").is_err());
}

#[test]
fn names_that_lead_to_one_place_are_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a.txt", "b.txt"].map(|name| folder.path().join(name));
    let again = folder.path().join(".").join("a.txt");
    assert!(files::is_same_place(&a, &again) && !files::is_same_place(&a, &b));
    assert!(!files::is_same_file(&a, &again), "there is no file yet");
    fs::write(&a, "").unwrap();
    assert!(files::is_same_file(&a, &again));
    fs::hard_link(&a, &b).unwrap();
    assert!(files::is_same_file(&a, &b) && files::is_same_place(&a, &b));
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::process::Command;

    use super::*;

    #[test]
    fn links_are_followed_and_stay_links() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("elsewhere")).unwrap();
        fs::write(at("elsewhere/file"), "old").unwrap();
        symlink("elsewhere/file", at("link")).unwrap();
        symlink("link", at("chain")).unwrap();
        symlink("elsewhere/later", at("dangling")).unwrap();
        symlink("loop", at("loop")).unwrap();
        files::replace(&at("chain"), b"new").unwrap();
        assert_eq!(fs::read(at("elsewhere/file")).unwrap(), b"new");
        files::replace(&at("dangling"), b"first").unwrap();
        assert_eq!(fs::read(at("elsewhere/later")).unwrap(), b"first");
        for link in ["link", "chain", "dangling"] {
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink(), "{link}");
        }
        assert!(files::replace(&at("loop"), b"new").is_err());
        assert_eq!(names(&at("elsewhere")), ["file", "later"]);
        assert!(files::is_same_place(&at("chain"), &at("elsewhere/file")));
    }

    #[test]
    fn permissions_are_kept_and_new_files_are_ordinary() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
        fs::write(at("plain"), "").unwrap();
        files::replace(&at("new"), b"").unwrap();
        assert_eq!(mode("new"), mode("plain"));
        fs::set_permissions(at("plain"), fs::Permissions::from_mode(0o640)).unwrap();
        files::replace(&at("plain"), b"new").unwrap();
        assert_eq!(mode("plain"), 0o640);
    }

    #[test]
    fn devices_and_pipes_are_written_to() {
        files::replace(Path::new("/dev/null"), b"nothing").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        files::replace(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(names(folder.path()), ["pipe"]);
    }
}
