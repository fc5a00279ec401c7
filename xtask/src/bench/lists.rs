//! Creates folders with many files, whose listings take long to generate.

use std::fs;
use std::io;
use std::path::Path;

/// Number of files in each of the two folders. A listing occupies a thread for milliseconds, as image scaling by a
/// script does.
const FILES: usize = 1000;

/// Creates the folders `high` and `low` below `folder`.
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
