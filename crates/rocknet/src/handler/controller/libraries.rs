//! Loaded shared libraries of controllers: one for each file, used by all routes that name the file. Files are not
//! watched: a changed library is loaded when the configuration is reloaded.

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

/// Maximum size of a library in bytes. Statically linked libraries with symbols reach 100 MB.
const MAX_LIBRARY_SIZE: u64 = 512 * 1024 * 1024;

/// Error of loading a controller.
#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read, or its private copy cannot be written.
    Io(io::Error),
    /// The file exceeds the size limit.
    TooLarge,
    /// The file is not a usable library.
    Library(host::LoadError),
    /// The process of an isolated library could not be started, or it could not load the library. The text is the
    /// reason.
    Isolated(String),
    /// The library has no controller of this name.
    NoController {
        /// Names of the controllers that the library has.
        has: Vec<String>,
    },
}

/// Identity of one version of a file: device, inode, modification time and size.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileStamp([u64; 4]);

impl FileStamp {
    fn of(file: &Metadata) -> FileStamp {
        let modified_ns = file.mtime().cast_unsigned().wrapping_mul(1_000_000_000);
        let modified_ns = modified_ns.wrapping_add(file.mtime_nsec().cast_unsigned());
        FileStamp([file.dev(), file.ino(), modified_ns, file.size()])
    }
}

/// Loaded libraries by path, each with the version of the file that was loaded. The library of an entry exists as long
/// as a snapshot or request uses it; the entry itself is removed when another library is loaded.
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
    /// Returns a controller that runs in this process, and loads its library unless the current version is loaded.
    ///
    /// # Errors
    ///
    /// Fails if the library cannot be loaded or does not have the controller.
    pub fn in_process(&self, configured: &model::Controller) -> Result<host::LoadedController, LoadError> {
        let path = &configured.library;
        let library = self.in_process.library(path, |copy| {
            private_copy::library(&copy, &path.to_string_lossy(), response_builder::log).map_err(LoadError::Library)
        })?;
        host::LoadedController::find(&library, &configured.name).ok_or_else(|| LoadError::NoController {
            has: library.names().map(str::to_owned).collect(),
        })
    }

    /// Returns a controller that runs in a separate process, and starts that process unless it runs the current version
    /// of the library.
    ///
    /// # Errors
    ///
    /// Fails like [`Libraries::in_process`], or if the process cannot be started.
    pub fn isolated(&self, configured: &model::Controller) -> Result<isolated::IsolatedController, LoadError> {
        let path = &configured.library;
        let load = |copy| IsolatedLibrary::load(path, copy, &self.supervisors).map_err(LoadError::Isolated);
        let library = self.isolated.library(path, load)?;
        isolated::IsolatedController::find(&library, &configured.name).ok_or_else(|| LoadError::NoController {
            has: library.names().map(str::to_owned).collect(),
        })
    }

    /// Ends the process of each isolated library. Returns true if all have ended by `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.supervisors.stop(deadline)
    }
}

impl<L> LibraryTable<L> {
    /// Returns the library of a file, and loads it from a copy unless the current version is loaded.
    fn library(&self, path: &Path, load: impl FnOnce(File) -> Result<L, LoadError>) -> Result<Arc<L>, LoadError> {
        let file = File::open(path).map_err(LoadError::Io)?;
        let stamp = FileStamp::of(&file.metadata().map_err(LoadError::Io)?);
        // Locked while a library is loaded, so that two routes that need it at the same time share it.
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

/// Copies the file into a private file.
fn copy(file: &File) -> Result<File, LoadError> {
    let (copy, size) = private_copy::copy(file, MAX_LIBRARY_SIZE).map_err(LoadError::Io)?;
    if size > MAX_LIBRARY_SIZE {
        return Err(LoadError::TooLarge);
    }
    Ok(copy)
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Io(error) => error.fmt(f),
            LoadError::TooLarge => write!(f, "the library is larger than {} MiB", MAX_LIBRARY_SIZE >> 20),
            LoadError::Library(error) => error.fmt(f),
            LoadError::Isolated(why) => f.write_str(why),
            LoadError::NoController { has } if has.is_empty() => {
                f.write_str("the library has no controller of this name; it has none at all")
            }
            LoadError::NoController { has } => write!(
                f,
                "the library has no controller of this name; its controllers are `{}`",
                has.join("`, `")
            ),
        }
    }
}

impl std::error::Error for LoadError {}
