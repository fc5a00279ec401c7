//! Reads open files: whole, in part, into a socket, or only as far as they are in the page cache.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;

#[cfg(target_os = "linux")]
#[path = "file/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "file/portable.rs"]
mod system;

#[cfg(test)]
mod tests;

/// Error of reading or sending a file whose size was queried before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileError {
    /// The expected byte at offset `at` is beyond the end of the file, which was truncated after its size was queried.
    /// The response cannot be completed. Its connection or stream has to be reset, so that the client does not mistake
    /// the part for the whole.
    Truncated {
        /// Offset of the first missing byte.
        at: u64,
    },
    /// The system call failed. When a file is sent, `AGAIN` means that the socket is full.
    System(Errno),
}

impl FileError {
    /// Returns whether the socket is full.
    pub fn would_block(self) -> bool {
        self == Self::System(Errno::AGAIN)
    }
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

/// Conversion for callers that distinguish only a full socket from other errors; a truncated file becomes EIO.
impl From<FileError> for Errno {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Truncated { .. } => Self::IO,
            FileError::System(errno) => errno,
        }
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Truncated { .. } => Self::new(io::ErrorKind::UnexpectedEof, error),
            FileError::System(errno) => errno.into(),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { at } => write!(f, "the file was cut short at byte {at} while it was being read or sent"),
            Self::System(errno) => errno.fmt(f),
        }
    }
}

impl std::error::Error for FileError {}

/// Reads the file from its start to its end, but at most `max` bytes. The position of the file is neither used nor
/// moved.
///
/// To learn whether the file is longer than `n` bytes, request `n + 1`.
///
/// # Errors
///
/// Fails if reading does.
pub fn read_at_most(file: &File, max: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    loop {
        let at = content.len();
        // The buffer doubles as bytes are read, so that a `max` far above the size of the file costs nothing. After
        // `max` bytes the room is 0, and so is the number of bytes read.
        let room = at.max(FIRST_ALLOCATION).min(max - at);
        content.resize(at + room, 0);
        let read = retry(|| rustix::io::pread(file, &mut content[at..], at as u64))?;
        content.truncate(at + read);
        if read == 0 {
            break;
        }
    }
    Ok(content)
}

/// Fills `buffer` from `offset`.
///
/// # Errors
///
/// [`FileError::Truncated`] if the file ends before the buffer is full; [`FileError::System`] if reading fails.
pub fn read_range(file: &File, offset: u64, buffer: &mut [u8]) -> Result<(), FileError> {
    let mut filled = 0;
    while filled < buffer.len() {
        let at = offset + filled as u64;
        match retry(|| rustix::io::pread(file, &mut buffer[filled..], at))? {
            0 => return Err(FileError::Truncated { at }),
            read => filled += read,
        }
    }
    Ok(())
}

/// Reads at `offset` without waiting for the disk, and returns the number of bytes read. Returns `None` if reading
/// would block, or if the file system or the kernel cannot tell whether it would.
///
/// `Some(0)` is the end of the file. If only the first bytes are in the page cache, only these are read.
///
/// # Errors
///
/// Fails if reading does.
pub fn read_resident(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    some_if_resident(retry(|| system::read_resident(file.as_fd(), offset, buffer)))
}

/// Reads at most `max` bytes into a new vector, like [`read_resident`]. Returns an empty vector at the end of the
/// file.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub fn read_resident_vec(file: &File, offset: u64, max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::with_capacity(max);
    let read = retry(|| system::append_resident(file.as_fd(), offset, &mut content));
    // The allocator may have given the vector more capacity, which is filled.
    content.truncate(max);
    Ok(some_if_resident(read)?.map(|()| content))
}

/// Reads like [`read_at_most`], but without waiting for the disk. Returns `None` if reading any of the bytes would
/// block, or if the file system or the kernel cannot tell. A file on a file system in memory is read in any case.
///
/// # Errors
///
/// Fails if reading does.
pub fn read_at_most_resident(file: &File, max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::with_capacity(max);
    while content.len() < max {
        let at = content.len();
        match retry(|| system::append_resident(file.as_fd(), at as u64, &mut content)) {
            // The file system does not support RWF_NOWAIT. A file system in memory waits for a disk only if its pages
            // were swapped out, which is accepted.
            Err(Errno::OPNOTSUPP) if system::is_memory_backed(file.as_fd()) => {
                return read_at_most(file, max).map(Some);
            }
            read => {
                if some_if_resident(read)?.is_none() {
                    return Ok(None);
                }
            }
        }
        if content.len() == at {
            break;
        }
    }
    // The vector may have more capacity than requested.
    content.truncate(max);
    Ok(Some(content))
}

/// Returns `None` for the errors after which reading without `RWF_NOWAIT` might block.
fn some_if_resident<T>(read: Result<T, Errno>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        // EOPNOTSUPP, ENOSYS, EINVAL: the file system or kernel cannot tell, so reading might block.
        Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns whether the page at `offset` is in memory. Files on a file system in memory count as resident, although
/// their pages may be swapped out.
///
/// The result is false if the file system cannot tell or reports an error. The caller then reads the file where
/// blocking is allowed, and the error occurs again there.
pub fn is_resident(file: &File, offset: u64) -> bool {
    // Reading beyond the end of the file never blocks.
    check_resident(file, offset).unwrap_or(true)
}

/// Returns whether the byte at `offset` is in memory. The file has to contain this byte. Like [`is_resident`], returns
/// false if the file system cannot tell or reports an error.
///
/// # Errors
///
/// [`FileError::Truncated`] if the file ends at or before `offset`.
pub fn check_resident(file: &File, offset: u64) -> Result<bool, FileError> {
    match retry(|| system::read_resident(file.as_fd(), offset, &mut [0])) {
        Ok(0) => Err(FileError::Truncated { at: offset }),
        Ok(_) => Ok(true),
        Err(Errno::OPNOTSUPP) => Ok(system::is_memory_backed(file.as_fd())),
        Err(_) => Ok(false),
    }
}

/// Loads a range into the page cache. Blocks on the disk. Errors are ignored, because they occur again when the range
/// is sent.
///
/// The range is read from its start to its end, so that the kernel reads ahead. Announcing the whole range first
/// (`POSIX_FADV_WILLNEED`) increased the cost of loading a megabyte by half, because the kernel then reads it into
/// single pages instead of large ones.
pub fn load_into_page_cache(file: &File, offset: u64, length: u64) {
    let (mut at, end) = (offset, offset.saturating_add(length));
    while at < end {
        let count = usize::try_from(end - at).unwrap_or(usize::MAX);
        match retry(|| system::sendfile_to_null(file.as_fd(), &mut at, count)) {
            Ok(0) => return,
            Ok(_) => {}
            Err(_) => return read_and_discard(file, at, end),
        }
    }
}

/// Loads a range like [`load_into_page_cache`], by copies into a buffer, where sending to `/dev/null` fails.
fn read_and_discard(file: &File, mut at: u64, end: u64) {
    let mut buffer = vec![0; DISCARD_BUFFER];
    while at < end {
        let count = (end - at).min(buffer.len() as u64) as usize;
        match retry(|| rustix::io::pread(file, &mut buffer[..count], at)) {
            Ok(0) | Err(_) => return,
            Ok(read) => at += read as u64,
        }
    }
}

/// Size in bytes of the buffer for bytes to discard. It fits into the CPU cache.
const DISCARD_BUFFER: usize = 64 * 1024;

/// Sends at most `count` bytes of a file from `offset` into a stream socket, and advances `offset` by the number sent.
///
/// # Errors
///
/// [`FileError::System`] if the system call fails, with `AGAIN` if the socket is full; [`FileError::Truncated`] if
/// `count` is not 0 and the file ends at or before `offset`.
pub fn sendfile(socket: impl AsFd, file: impl AsFd, offset: &mut u64, count: u64) -> Result<usize, FileError> {
    if count == 0 {
        return Ok(0);
    }
    // A count reduced to `usize` does no harm, because the kernel sends less than 2 GiB per call in any case.
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    match retry(|| system::sendfile(socket.as_fd(), file.as_fd(), offset, count))? {
        0 => Err(FileError::Truncated { at: *offset }),
        sent => Ok(sent),
    }
}

/// Repeats a call interrupted by a signal.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Size of the first allocation in bytes. It is enough for every file that the cache accepts by default, and wastes
/// little if the file is much smaller than `max`.
const FIRST_ALLOCATION: usize = 64 * 1024;
