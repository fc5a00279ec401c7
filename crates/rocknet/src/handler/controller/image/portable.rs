//! Files that nobody else may open, in the folder for such. Each has a name only for as long as it takes to load it: loaders of
//! other systems want one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Names that others have taken, before it is told that there is none.
const TRIES: u32 = 1000;
const READ: usize = 64 * 1024;

pub fn file() -> io::Result<File> {
    let (file, name) = create()?;
    fs::remove_file(name)?;
    Ok(file)
}

pub fn named<T>(image: &File, load: impl FnOnce(&Path) -> T) -> io::Result<T> {
    let (mut copy, name) = create()?;
    let loaded = copy_from_its_begin(image, &mut copy).map(|()| load(&name));
    let _ = fs::remove_file(&name);
    loaded
}

/// A new file that is nobody else's.
fn create() -> io::Result<(File, PathBuf)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let folder = std::env::temp_dir();
    let process = std::process::id();
    for _ in 0..TRIES {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = folder.join(format!("rocknet-controller-{process}-{number}"));
        let created = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&name);
        match created {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (file, name)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Others read the same file, so its place is left alone.
fn copy_from_its_begin(image: &File, copy: &mut File) -> io::Result<()> {
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
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_copy_has_a_name_while_it_is_loaded_and_is_nobody_elses() {
        let mut image = file().expect("a file");
        let bytes: Vec<u8> = (0..3 * READ + 7).map(|at| at.to_le_bytes()[0]).collect();
        image.write_all(&bytes).expect("its content");
        let mut names = Vec::new();
        for _ in 0..2 {
            let seen = named(&image, |name| {
                let mode = fs::metadata(name).expect("its state").mode();
                (name.to_owned(), mode & 0o777, fs::read(name).expect("its content"))
            });
            let (name, mode, content) = seen.expect("a name");
            assert_eq!(mode, 0o600);
            assert!(content == bytes);
            assert!(!name.exists());
            names.push(name);
        }
        assert_ne!(names[0], names[1]);
    }
}
