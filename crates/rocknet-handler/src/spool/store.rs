//! Accounts for the memory, disk space and files of all spooled request bodies, and enforces their bounds.

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

/// Divisor of the process's descriptor limit: bodies on disk use at most 1/16, because most descriptors are for
/// connections.
const FILE_SHARE: u64 = 16;
/// Number of bodies that may be on disk even with a low descriptor limit.
const MIN_FILES: u64 = 16;
/// Maximum number of bodies on disk, regardless of the descriptor limit. With thousands of concurrent large uploads,
/// the disk is the bottleneck, not the number of files.
const MAX_FILES: u64 = 4096;

/// Reason why a body cannot be stored. The log has the details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// The disk is full, or `server.spool.disk` is reached.
    Full,
    /// Too many bodies are stored at the same time, descriptors or memory are exhausted, or the pool does not accept
    /// the job.
    Busy,
    /// The folder cannot be used, or a disk operation failed.
    Failed,
}

/// Bounds and folder of the spool, from `server.spool` of the configuration.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Folder of the files.
    pub folder: Arc<Path>,
    /// Maximum number of bytes of all bodies in memory.
    pub memory: u64,
    /// Maximum number of bytes of all bodies on disk.
    pub disk: u64,
}

impl Bounds {
    /// Reads the bounds from the configuration.
    pub fn new(model: &model::Spool) -> Bounds {
        Bounds {
            folder: folder(model).into(),
            memory: model.memory,
            disk: model.disk,
        }
    }

    /// Creates a file in the folder as a test. Returns a message for the operator if that fails. Blocks on the disk.
    pub fn check_folder(&self) -> Option<String> {
        let error = temp_file::create_unnamed(&self.folder).err()?;
        Some(format!(
            "request bodies above limits.body_memory cannot be stored in {}: {error}. Make the folder writable for the \
             user that RockNet runs as, or set server.spool.folder",
            self.folder.display()
        ))
    }
}

/// Returns the folder of the files: the configured one, else `TMPDIR` if that is an absolute path, else `/var/tmp`. The
/// last choice is `/tmp`, because it is in memory on many systems.
fn folder(model: &model::Spool) -> PathBuf {
    const VAR_TMP: &str = "/var/tmp";
    if let Some(folder) = &model.folder {
        return folder.clone();
    }
    let temporary = std::env::var_os("TMPDIR").map(PathBuf::from);
    temporary.filter(|path| path.is_absolute()).unwrap_or_else(|| {
        let var_tmp = PathBuf::from(VAR_TMP);
        if var_tmp.is_dir() {
            var_tmp
        } else {
            PathBuf::from("/tmp")
        }
    })
}

/// Store of spooled bodies, shared by all workers. Clones share the same totals.
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
    /// Creates a store whose files are written and read by `pool`.
    pub fn new(pool: Pool) -> Store {
        Store {
            pool,
            usage: Arc::default(),
        }
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns the current number of bytes in memory, bytes on disk, and files.
    pub fn usage(&self) -> (u64, u64, u64) {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (now(&self.usage.memory), now(&self.usage.disk), now(&self.usage.files))
    }

    /// Returns a reservation of memory, which is empty until it grows.
    pub(super) fn memory_reservation(&self) -> Reservation {
        self.reservation(|usage| &usage.memory)
    }

    /// Reserves one more file, without reserving bytes.
    pub(super) fn reserve_file(&self) -> Result<FileReservation, Error> {
        let mut reservation = self.reservation(|usage| &usage.files);
        let most = most_files();
        if !reservation.grow_to(1, most) {
            if may_be_logged("too many request bodies on disk") {
                tracing::error!(
                    "a request body was refused with 503: {most} bodies are on disk already. Raise the limit of open \
                     files: 1/{FILE_SHARE} of it is the limit for bodies, but at least {MIN_FILES} and at most \
                     {MAX_FILES}"
                );
            }
            return Err(Error::Busy);
        }
        Ok(FileReservation {
            _file: reservation,
            bytes: self.reservation(|usage| &usage.disk),
        })
    }

    /// Returns an empty reservation of the total that `of` selects.
    fn reservation(&self, of: fn(&Usage) -> &AtomicU64) -> Reservation {
        Reservation {
            usage: Arc::clone(&self.usage),
            of,
            count: 0,
        }
    }
}

/// Returns the maximum number of concurrent bodies on disk, derived from the current descriptor limit of the process.
pub fn most_files() -> u64 {
    (descriptors::limit() / FILE_SHARE).clamp(MIN_FILES, MAX_FILES)
}

/// Reservation of one file and its bytes, released on drop.
pub(super) struct FileReservation {
    _file: Reservation,
    bytes: Reservation,
}

impl FileReservation {
    /// Grows the reservation to `bytes`, the new size of the file. Fails if that exceeds `server.spool.disk`.
    pub(super) fn grow_to(&mut self, bytes: u64, bounds: &Bounds) -> Result<(), Error> {
        if self.bytes.grow_to(bytes, bounds.disk) {
            return Ok(());
        }
        if may_be_logged("too many bytes of request bodies on disk") {
            tracing::error!(
                folder = %bounds.folder.display(),
                "a request body was refused with 507: all bodies on disk together would be more than \
                 server.spool.disk ({} bytes). Raise it if the disk has room",
                bounds.disk
            );
        }
        Err(Error::Full)
    }
}

/// A share of one total of the store (memory, disk or files), released on drop.
pub(super) struct Reservation {
    usage: Arc<Usage>,
    /// Selects the total.
    of: fn(&Usage) -> &AtomicU64,
    /// Size of the share: bytes, or a number of files.
    count: u64,
}

impl Reservation {
    /// Grows the reservation to `count`, unless the total would exceed `most`. Returns true on success.
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
    temp_file::create_unnamed(folder).map_err(|error| failed(&error, folder, "written to"))
}

/// Returns true if a line about `what` may be logged now. Suppressed lines are counted.
fn may_be_logged(what: &'static str) -> bool {
    let cause = Cause {
        level: Level::ERROR,
        what,
        site: "",
        subject: "",
    };
    cause.may_be_logged()
}

/// Classifies a failed call on a file of the folder, and logs it at most once a second. `action` is "written to" or
/// "read from".
pub(super) fn failed(error: &io::Error, folder: &Path, action: &str) -> Error {
    let (kind, status, hint) = if is_full(error) {
        (
            Error::Full,
            507,
            "Free space in it, or set server.spool.folder to a larger disk",
        )
    } else if is_resource_exhausted(error) {
        (Error::Busy, 503, "Raise the limit of open files")
    } else {
        (
            Error::Failed,
            500,
            "Check that the folder exists and is writable, or set server.spool.folder",
        )
    };
    if may_be_logged("a request body cannot be stored on disk") {
        tracing::error!(
            folder = %folder.display(),
            "a request body was refused with {status}: it cannot be {action} the spool folder: {error}. {hint}"
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
            Error::Full => "no space is left for it on the disk",
            Error::Busy => "too many request bodies are stored at once",
            Error::Failed => "it cannot be stored on the disk",
        })
    }
}
