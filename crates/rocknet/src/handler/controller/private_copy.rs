//! Private copies of libraries, and their names for the dynamic loader.
//!
//! A loaded library is mapped into memory, so a process that overwrites its file would overwrite running code. The
//! dynamic loader also returns an already loaded library if it gets the same file name again, so a changed file would
//! not be loaded. A private copy with a name of its own avoids both problems.

use std::fs::File;
use std::io;
use std::path::Path;

use rocknet_controller::Level;
use rocknet_controller::host::{LoadError, LoadedLibrary};

#[cfg(target_os = "linux")]
#[path = "private_copy/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "private_copy/portable.rs"]
mod system;
// The code for other systems is tested on Linux too.
#[cfg(all(test, target_os = "linux"))]
mod portable;

/// Copies at most `max_size` + 1 bytes of `file`. Returns the copy and its size. A size above `max_size` means that the
/// file is too large.
pub fn copy(file: &File, max_size: u64) -> io::Result<(File, u64)> {
    let mut copy = system::file()?;
    let copied = io::copy(&mut io::Read::take(file, max_size + 1), &mut copy)?;
    Ok((copy, copied))
}

/// Loads a library from `image`, a copy of its file. Errors name the file by `known_as`, its configured path. `log`
/// receives the log lines of the library that belong to no request.
pub fn library(image: &File, known_as: &str, log: fn(Level, &[u8])) -> Result<LoadedLibrary, LoadError> {
    let load = |name: &Path| {
        LoadedLibrary::load(name, log).map_err(|error| match error {
            LoadError::NotLoaded(text) => LoadError::NotLoaded(text.replace(&*name.to_string_lossy(), known_as)),
            error => error,
        })
    };
    system::named(image, load).unwrap_or_else(|error| Err(LoadError::NotLoaded(format!("{known_as}: {error}"))))
}
