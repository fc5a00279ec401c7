//! Folders of many files, for listings that take long.

use std::fs;
use std::io;
use std::path::Path;

/// Files in each of the two folders that are listed: a listing takes milliseconds of a thread, as scripts and pictures that
/// are made smaller do.
const FILES: usize = 1000;

/// The folders that are listed, below `folder`.
pub fn create_lists(folder: &Path) -> io::Result<()> {
    for name in ["high", "low"] {
        let list = folder.join(name);
        fs::create_dir_all(&list)?;
        for number in 0..FILES {
            fs::write(list.join(format!("{number}.txt")), "")?;
        }
    }
    Ok(())
}
