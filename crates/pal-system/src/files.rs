//! Files that are written completely or not at all.
//!
//! A file is written under a random name in the folder where it belongs, forced to the disk, and renamed. Whoever looks
//! at its name sees the old file or the new one, whatever happens in between: a full disk, a signal, a failure of power.
//! A symbolic link is followed, and the file that it points to is replaced. What is no ordinary file, such as a FIFO or
//! a device, is written to as it is.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::{Builder, NamedTempFile};

/// The names of temporary files that are being written, so that a signal can remove them.
static TEMPORARIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Puts a complete file at `path`; an existing one is replaced completely or stays as it was.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("numbers.txt");
/// pal_system::files::replace(&path, b"1 2 3")?;
/// assert_eq!(std::fs::read(&path)?, b"1 2 3");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, |out| out.write_all(bytes))
}

/// Like [`replace`], for a file that `fill` writes in parts. If it fails, the existing file stays as it was.
pub fn replace_with<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    if is_special(path) {
        let mut out = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        fill(&mut out)?;
        return Ok(out.flush()?);
    }
    let target = followed(path)?;
    let folder = folder_of(&target);
    let temporary = Temporary::new(&folder, &target)?;
    let mut out = BufWriter::with_capacity(1 << 16, temporary.file.as_file().try_clone()?);
    fill(&mut out)?;
    out.flush()?;
    out.get_ref().sync_all()?;
    // Some systems insist that a file is closed before it is renamed.
    drop(out);
    temporary.persist(&target)?;
    // The new name is on the disk when its folder is. Not all systems can open a folder.
    if let Ok(folder) = File::open(&folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Removes the temporary files that are being written: for the end of a process by a signal.
pub fn remove_temporaries() {
    for path in TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = fs::remove_file(path);
    }
}

/// Whether two names belong to the same file. A file that does not exist is the same as none.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    same_file::is_same_file(a, b).unwrap_or(false)
}

/// Whether two names would be written to the same place, whether there are files yet or not.
pub fn is_same_place(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| -> io::Result<(PathBuf, OsString)> {
        let target = followed(path)?;
        Ok((fs::canonicalize(folder_of(&target))?, target.file_name().unwrap_or_default().to_os_string()))
    };
    is_same_file(a, b) || matches!((place(a), place(b)), (Ok(a), Ok(b)) if a == b)
}

/// Whether a name belongs to something that is written to as it is: a FIFO, a device, a socket.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir())
}

/// The longest chain of symbolic links that is followed.
const MOST_LINKS: usize = 40;

/// The file that a chain of symbolic links leads to, whether it exists or not.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::symlink_metadata(&target) {
            Ok(about) if about.is_symlink() => target = folder_of(&target).join(fs::read_link(&target)?),
            _ => return Ok(target),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// A temporary file that is removed unless it is given its name.
struct Temporary {
    file: NamedTempFile,
    _registered: Registered,
}

/// An entry of [`TEMPORARIES`].
struct Registered(PathBuf);

impl Registered {
    fn new(path: &Path) -> Registered {
        TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_path_buf());
        Registered(path.to_path_buf())
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| *other != self.0);
    }
}

impl Temporary {
    fn new(folder: &Path, target: &Path) -> io::Result<Temporary> {
        let name = target.file_name().ok_or_else(|| io::Error::other("this is not the name of a file"))?;
        let mut prefix = OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        // Names are limited to 255 bytes on most systems.
        if prefix.len() > 200 {
            prefix = OsString::from(".pal.");
        }
        let mut builder = Builder::new();
        builder.prefix(&prefix).suffix(".tmp");
        // As any other program would make it, and not for its owner alone.
        #[cfg(unix)]
        let builder = {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666))
        };
        let file = builder.tempfile_in(folder)?;
        let registered = Registered::new(file.path());
        if let Ok(existing) = fs::metadata(target) {
            file.as_file().set_permissions(existing.permissions())?;
        }
        Ok(Temporary { file, _registered: registered })
    }

    fn persist(self, target: &Path) -> io::Result<()> {
        self.file.persist(target).map(|_| ()).map_err(|error| error.error)
    }
}
