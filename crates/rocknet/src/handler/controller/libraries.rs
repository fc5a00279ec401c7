//! Libraries in use: one for each file, shared by all who name it, and loaded anew when the file has changed.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use rocknet_config::model;
use rocknet_controller::host::{self, LoadedLibrary};

use super::isolated::{IsolatedLibrary, Supervisors};
use super::{isolated, private_copy, response_builder};

/// Bytes of a library: with everything linked into it and its symbols there are some of a hundred million.
const MAX_LIBRARY_SIZE: u64 = 512 * 1024 * 1024;

/// Why a controller is not to be had.
#[derive(Debug)]
pub enum LoadError {
    Unreadable(io::Error),
    TooLarge,
    Library(host::LoadError),
    /// What the process of an isolated one says.
    Isolated(String),
    NoController {
        has: Vec<String>,
    },
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileStamp([u64; 4]);

impl FileStamp {
    fn of(file: &Metadata) -> FileStamp {
        let changed = file.mtime().cast_unsigned().wrapping_mul(1_000_000_000);
        let changed = changed.wrapping_add(file.mtime_nsec().cast_unsigned());
        FileStamp([file.dev(), file.ino(), changed, file.size()])
    }
}

/// Libraries that are held by some snapshot or request, as they were when they were loaded.
struct LibraryTable<L>(Mutex<BTreeMap<PathBuf, (FileStamp, Weak<L>)>>);

impl<L> Default for LibraryTable<L> {
    fn default() -> LibraryTable<L> {
        LibraryTable(Mutex::default())
    }
}

/// The libraries of one server.
#[derive(Default)]
pub struct Libraries {
    in_process: LibraryTable<LoadedLibrary>,
    isolated: LibraryTable<IsolatedLibrary>,
    supervisors: Supervisors,
}

impl Libraries {
    /// Returns a controller, and loads its library unless the current version is loaded.
    ///
    /// # Errors
    ///
    /// Fails if the library cannot be loaded or does not have the controller.
    pub fn controller(&self, wanted: &model::Controller) -> Result<host::LoadedController, LoadError> {
        let path = &wanted.library;
        let library = self.in_process.library(path, |image| {
            private_copy::library(&image, &path.to_string_lossy(), response_builder::log).map_err(LoadError::Library)
        })?;
        host::LoadedController::find(&library, &wanted.name).ok_or_else(|| LoadError::NoController {
            has: library.names().map(str::to_owned).collect(),
        })
    }

    /// The same in a process of its own.
    pub fn isolated(&self, wanted: &model::Controller) -> Result<isolated::IsolatedController, LoadError> {
        let path = &wanted.library;
        let load = |image| IsolatedLibrary::load(path, image, &self.supervisors).map_err(LoadError::Isolated);
        let library = self.isolated.library(path, load)?;
        isolated::IsolatedController::find(&library, &wanted.name).ok_or_else(|| LoadError::NoController {
            has: library.names().map(str::to_owned).collect(),
        })
    }

    /// Ends the process of each isolated library. Returns whether all had ended at `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.supervisors.stop(deadline)
    }
}

impl<L> LibraryTable<L> {
    /// The library of a file, loaded of a copy of it if it is not yet as it is now.
    fn library(&self, path: &Path, load: impl FnOnce(File) -> Result<L, LoadError>) -> Result<Arc<L>, LoadError> {
        let file = File::open(path).map_err(LoadError::Unreadable)?;
        let stamp = FileStamp::of(&file.metadata().map_err(LoadError::Unreadable)?);
        // Held while a library begins: two who want the same one get the same one.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((loaded, library)) = all.get(path)
            && let (true, Some(library)) = (*loaded == stamp, library.upgrade())
        {
            return Ok(library);
        }
        let library = Arc::new(load(copy(&file)?)?);
        all.retain(|_, (_, library)| library.strong_count() > 0);
        all.insert(path.to_owned(), (stamp, Arc::downgrade(&library)));
        Ok(library)
    }
}

/// A copy of the file that nobody else has.
fn copy(file: &File) -> Result<File, LoadError> {
    let (copy, size) = private_copy::copy(file, MAX_LIBRARY_SIZE).map_err(LoadError::Unreadable)?;
    if size > MAX_LIBRARY_SIZE {
        return Err(LoadError::TooLarge);
    }
    Ok(copy)
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unreadable(error) => error.fmt(f),
            LoadError::TooLarge => write!(f, "it has more than {} MiB", MAX_LIBRARY_SIZE >> 20),
            LoadError::Library(error) => error.fmt(f),
            LoadError::Isolated(why) => f.write_str(why),
            LoadError::NoController { has } => write!(f, "it has no such controller, but `{}`", has.join("`, `")),
        }
    }
}

impl std::error::Error for LoadError {}
