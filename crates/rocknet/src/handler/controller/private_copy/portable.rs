//! Private copies as unnamed temporary files, for systems other than Linux. The dynamic loader of these systems needs a
//! file name, so a copy gets a name while it is loaded. The name is random, so that no other process can create a file
//! of that name first.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use tempfile::Builder;

/// Maximum bytes per read while a copy is made.
const READ: usize = 64 * 1024;

/// Creates an empty file for a copy.
pub fn file() -> io::Result<File> {
    tempfile::tempfile()
}

/// Calls `load` with the name of a copy of `image`. The name is removed when this function returns or `load` panics.
pub fn named<T>(image: &File, load: impl FnOnce(&Path) -> T) -> io::Result<T> {
    let mut copy = Builder::new().prefix("rocknet-controller-").tempfile()?;
    copy_from_start(image, copy.as_file_mut())?;
    Ok(load(copy.path()))
}

/// Copies `image` from its start without moving its file position, because other threads read the same file.
fn copy_from_start(image: &File, copy: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; READ];
    let mut at = 0;
    loop {
        match image.read_at(&mut buffer, at)? {
            0 => return Ok(()),
            read => {
                io::Write::write_all(copy, &buffer[..read])?;
                at += u64::try_from(read).map_err(io::Error::other)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_copy_has_a_private_name_only_while_it_is_loaded() {
        let mut image = file().expect("a file");
        assert_eq!(image.metadata().expect("metadata").nlink(), 0, "the file has a name");
        let bytes: Vec<u8> = (0..3 * READ + 7).map(|at| at.to_le_bytes()[0]).collect();
        image.write_all(&bytes).expect("a written file");
        let mut names = Vec::new();
        for _ in 0..2 {
            let seen = named(&image, |name| {
                let mode = fs::metadata(name).expect("metadata").mode();
                (name.to_owned(), mode & 0o777, fs::read(name).expect("file content"))
            });
            let (name, mode, content) = seen.expect("a name");
            assert_eq!(mode, 0o600);
            assert!(content == bytes);
            assert!(!name.exists());
            names.push(name);
        }
        assert_ne!(names[0], names[1]);
        let mut name = PathBuf::new();
        let load = |path: &Path| {
            name = path.to_owned();
            panic!("a loader that fails");
        };
        assert!(catch_unwind(AssertUnwindSafe(|| named(&image, load))).is_err());
        assert!(name.is_absolute() && !name.exists());
    }
}
