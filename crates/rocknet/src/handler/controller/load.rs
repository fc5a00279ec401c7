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

use super::isolated::{Isolated, Supervisors};
use super::{draft, image, isolated};

/// Bytes of a library: with everything linked into it and its symbols there are some of a hundred million.
const MAX_LIBRARY: u64 = 512 * 1024 * 1024;

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
struct Stamp([u64; 4]);

impl Stamp {
    fn of(file: &Metadata) -> Stamp {
        let changed = file.mtime().cast_unsigned().wrapping_mul(1_000_000_000);
        let changed = changed.wrapping_add(file.mtime_nsec().cast_unsigned());
        Stamp([file.dev(), file.ino(), changed, file.size()])
    }
}

/// Libraries that are held by some snapshot or request, as they were when they were loaded.
struct Shelf<L>(Mutex<BTreeMap<PathBuf, (Stamp, Weak<L>)>>);

impl<L> Default for Shelf<L> {
    fn default() -> Shelf<L> {
        Shelf(Mutex::default())
    }
}

/// The libraries of one server.
#[derive(Default)]
pub struct Libraries {
    here: Shelf<LoadedLibrary>,
    isolated: Shelf<Isolated>,
    supervisors: Supervisors,
}

impl Libraries {
    /// The controller that is meant, its library loaded if it is not yet as it is now.
    pub fn controller(&self, wanted: &model::Controller) -> Result<host::LoadedController, LoadError> {
        let path = &wanted.library;
        let library = self.here.library(path, |image| {
            image::library(&image, &path.to_string_lossy(), draft::log).map_err(LoadError::Library)
        })?;
        host::LoadedController::find(&library, &wanted.name).ok_or_else(|| LoadError::NoController {
            has: library.names().map(str::to_owned).collect(),
        })
    }

    /// The same in a process of its own.
    pub fn isolated(&self, wanted: &model::Controller) -> Result<isolated::Controller, LoadError> {
        let path = &wanted.library;
        let load = |image| Isolated::load(path, image, &self.supervisors).map_err(LoadError::Isolated);
        let library = self.isolated.library(path, load)?;
        isolated::Controller::find(&library, &wanted.name).ok_or_else(|| LoadError::NoController {
            has: library.names().map(str::to_owned).collect(),
        })
    }

    /// Ends the process of each isolated library. Returns whether all had ended at `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.supervisors.stop(deadline)
    }
}

impl<L> Shelf<L> {
    /// The library of a file, loaded of a copy of it if it is not yet as it is now.
    fn library(&self, path: &Path, load: impl FnOnce(File) -> Result<L, LoadError>) -> Result<Arc<L>, LoadError> {
        let file = File::open(path).map_err(LoadError::Unreadable)?;
        let stamp = Stamp::of(&file.metadata().map_err(LoadError::Unreadable)?);
        // Held while a library begins: two who want the same one get the same one.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, library)) = all.get(path)
            && let (true, Some(library)) = (*known == stamp, library.upgrade())
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
    let (copy, size) = image::copy(file, MAX_LIBRARY).map_err(LoadError::Unreadable)?;
    if size > MAX_LIBRARY {
        return Err(LoadError::TooLarge);
    }
    Ok(copy)
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unreadable(error) => error.fmt(f),
            LoadError::TooLarge => write!(f, "it has more than {} MiB", MAX_LIBRARY >> 20),
            LoadError::Library(error) => error.fmt(f),
            LoadError::Isolated(why) => f.write_str(why),
            LoadError::NoController { has } => write!(f, "it has no such controller, but `{}`", has.join("`, `")),
        }
    }
}

impl std::error::Error for LoadError {}
