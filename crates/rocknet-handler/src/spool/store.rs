//! What the bodies of all requests hold together: memory, disk space and files, each with its bound.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rocknet_config::model;
use rocknet_io::descriptors;
use rocknet_io::temp_file::{self, is_full, is_resource_exhausted};
use tracing::Level;

use rocknet_blocking::{JobError, Pool};
use rocknet_log::throttle::Cause;

/// Reservation of the process's descriptors that spooled bodies may take, and what it is at least and at most: connections come first, and
/// thousands of large uploads at once are bounded by the disk rather than by their number.
const FILE_SHARE: u64 = 16;
const MIN_FILES: u64 = 16;
const MAX_FILES: u64 = 4096;

/// Reason why a body cannot be kept. The log has the details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// The disk is full, or `server.spool.disk` is reached.
    Full,
    /// Too many bodies are kept at once, or the pool has too much to do.
    Busy,
    /// The folder cannot be used, or the disk has failed.
    Failed,
}

/// Bounds of the configuration, and the folder.
#[derive(Debug, Clone)]
pub struct Bounds {
    pub folder: Arc<Path>,
    pub memory: u64,
    pub disk: u64,
}

impl Bounds {
    pub fn new(model: &model::Spool) -> Bounds {
        Bounds {
            folder: folder(model).into(),
            memory: model.memory,
            disk: model.disk,
        }
    }

    /// Returns why no file can be created in the folder, if so. Blocks on the disk.
    pub fn check_folder(&self) -> Option<String> {
        let error = temp_file::create_unnamed(&self.folder).err()?;
        Some(format!(
            "request bodies above limits.body_memory cannot be kept in {}: {error}. Make the folder writable for the user that RockNet \
             runs as, or set server.spool.folder",
            self.folder.display()
        ))
    }
}

/// Returns the folder for files: /var/tmp unless another one is set, because /tmp is in memory on many systems.
fn folder(model: &model::Spool) -> PathBuf {
    const USUAL: &str = "/var/tmp";
    if let Some(folder) = &model.folder {
        return folder.clone();
    }
    let asked = std::env::var_os("TMPDIR").map(PathBuf::from);
    asked.filter(|path| path.is_absolute()).unwrap_or_else(|| {
        let usual = PathBuf::from(USUAL);
        if usual.is_dir() { usual } else { std::env::temp_dir() }
    })
}

/// Shared by all workers; all clones are one store.
#[derive(Clone)]
pub struct Store {
    pool: Pool,
    usage: Arc<Usage>,
}

#[derive(Default)]
struct Usage {
    memory: AtomicU64,
    disk: AtomicU64,
    files: AtomicU64,
}

impl Store {
    pub fn new(pool: Pool) -> Store {
        Store {
            pool,
            usage: Arc::default(),
        }
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns the bytes in memory and on disk, and the number of files, as of now.
    pub fn usage(&self) -> (u64, u64, u64) {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (now(&self.usage.memory), now(&self.usage.disk), now(&self.usage.files))
    }

    pub(super) fn memory(&self) -> Reservation {
        self.reservation(|usage| &usage.memory)
    }

    /// Reserves a place for one more file, with no bytes yet.
    pub(super) fn file(&self) -> Result<FileReservation, Error> {
        let mut reservation = self.reservation(|usage| &usage.files);
        let most = most_files();
        if !reservation.grow_to(1, most) {
            if may_be_logged("too many request bodies on disk") {
                tracing::error!(
                    "a request body was refused with 503: {most} bodies are on disk already. The bound is a {FILE_SHARE}th of the limit \
                     of open files"
                );
            }
            return Err(Error::Busy);
        }
        Ok(FileReservation {
            _file: reservation,
            bytes: self.reservation(|usage| &usage.disk),
        })
    }

    fn reservation(&self, of: fn(&Usage) -> &AtomicU64) -> Reservation {
        Reservation {
            usage: Arc::clone(&self.usage),
            of,
            count: 0,
        }
    }
}

/// Maximum number of bodies on disk at once, by the current limits of the process.
pub fn most_files() -> u64 {
    (descriptors::limit() / FILE_SHARE).clamp(MIN_FILES, MAX_FILES)
}

/// The share of one file in the bounds of the store; returned when dropped.
pub(super) struct FileReservation {
    _file: Reservation,
    bytes: Reservation,
}

impl FileReservation {
    /// Counts the bytes of the file.
    pub(super) fn grow_to(&mut self, bytes: u64, bounds: &Bounds) -> Result<(), Error> {
        if self.bytes.grow_to(bytes, bounds.disk) {
            return Ok(());
        }
        if may_be_logged("too many bytes of request bodies on disk") {
            tracing::error!(
                folder = %bounds.folder.display(),
                "a request body was refused with 507: all bodies on disk together would be more than server.spool.disk ({} bytes). Raise \
                 it if the disk has room",
                bounds.disk
            );
        }
        Err(Error::Full)
    }
}

/// A part of one of the counts; returned when dropped.
pub(super) struct Reservation {
    usage: Arc<Usage>,
    of: fn(&Usage) -> &AtomicU64,
    count: u64,
}

impl Reservation {
    /// Makes the share larger, unless the count would become more than `most`.
    pub(super) fn grow_to(&mut self, count: u64, most: u64) -> bool {
        let more = count.saturating_sub(self.count);
        let total = (self.of)(&self.usage);
        let grown = total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
            now.checked_add(more).filter(|sum| *sum <= most)
        });
        self.count += if grown.is_ok() { more } else { 0 };
        grown.is_ok()
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn shrink_to(&mut self, count: u64) {
        let less = self.count.saturating_sub(count);
        (self.of)(&self.usage).fetch_sub(less, Ordering::Relaxed);
        self.count -= less;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// Creates a file for a body. Blocks on the disk.
pub(super) fn create(folder: &Path) -> Result<File, Error> {
    temp_file::create_unnamed(folder).map_err(|error| failed(&error, folder, "written"))
}

/// Returns whether a line about `what` may be logged now; one that may not is counted.
fn may_be_logged(what: &'static str) -> bool {
    let cause = Cause {
        level: Level::ERROR,
        what,
        site: "",
        subject: "",
    };
    cause.may_be_logged()
}

/// Classifies a failed call on a file of the folder, and logs it, once a second at most.
pub(super) fn failed(error: &io::Error, folder: &Path, doing: &str) -> Error {
    let (kind, status, cure) = if is_full(error) {
        (
            Error::Full,
            507,
            "Free space there, or set server.spool.folder to a larger disk",
        )
    } else if is_resource_exhausted(error) {
        (Error::Busy, 503, "Raise the limit of open files")
    } else {
        (
            Error::Failed,
            500,
            "See that the folder exists and is writable, or set server.spool.folder",
        )
    };
    if may_be_logged("a request body cannot be kept on disk") {
        tracing::error!(
            folder = %folder.display(),
            "a request body was refused with {status}: it cannot be {doing} there: {error}. {cure}"
        );
    }
    kind
}

impl From<JobError> for Error {
    fn from(error: JobError) -> Error {
        match error {
            JobError::Panicked => Error::Failed,
            JobError::Rejected | JobError::Stopped => Error::Busy,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Full => "there is no space left for it on the disk",
            Error::Busy => "too many request bodies are kept at once",
            Error::Failed => "it cannot be kept on the disk",
        })
    }
}
