//! Reading an opened file: whole, in part, straight into a socket, or only as far as it is in memory.

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

/// Why promised bytes of a file could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileError {
    /// The file ends at `at`, before the promised bytes: it was cut short since its size was told. The answer cannot be
    /// saved any more; its connection or stream is to be cut, so that the client does not take a part for the whole.
    Truncated { at: u64 },
    /// The system call failed; `AGAIN` says that the socket is full.
    System(Errno),
}

impl FileError {
    pub fn would_block(self) -> bool {
        self == Self::System(Errno::AGAIN)
    }
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

/// For callers that treat every failure but a full socket alike; a file cut short becomes EIO.
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
            Self::Truncated { at } => write!(f, "the file was cut short at byte {at} while it was being sent"),
            Self::System(errno) => errno.fmt(f),
        }
    }
}

impl std::error::Error for FileError {}

/// The file from its start to its end, or to `max` bytes if it is longer. The file's own position is neither used nor moved.
///
/// Who must know whether the file is longer than `n` asks for `n + 1`.
pub fn read_at_most(file: &File, max: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    loop {
        let at = content.len();
        // Doubles with what was found, so that a `max` far above the size costs no more than the file does.
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

/// Fills `buffer` with what the file holds from `offset` on; a file that ends before is [`FileError::Truncated`].
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

/// Reads what is in memory at `offset`, and waits for no disk: `None` says that reading on would have to.
///
/// `Some(0)` is the end of the file. A part of what was wanted is given where only that part is in memory.
pub fn read_resident(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    some_if_resident(retry(|| system::read_resident(file.as_fd(), offset, buffer)))
}

/// As `read_resident`, `most` bytes into memory of their own.
pub fn read_resident_vec(file: &File, offset: u64, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::with_capacity(most);
    let read = retry(|| system::append_resident(file.as_fd(), offset, &mut content));
    Ok(some_if_resident(read)?.map(|()| content))
}

/// As `read_at_most`, and waits for no disk: `None` says that it would have to.
pub fn read_at_most_resident(file: &File, max: usize) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::with_capacity(max);
    while content.len() < max {
        let at = content.len();
        match retry(|| system::append_resident(file.as_fd(), at as u64, &mut content)) {
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
    // There may be more room than was asked for.
    content.truncate(max);
    Ok(Some(content))
}

fn some_if_resident<T>(read: Result<T, Errno>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        // EOPNOTSUPP, ENOSYS, EINVAL: a file system or kernel that cannot say; then the answer is to take no risk.
        Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether the page at `offset` is in memory. A file system that cannot tell, and one that fails, say no: then the
/// file is read where waiting is allowed, and an error is met there. One that has no disk says yes.
pub fn is_resident(file: &File, offset: u64) -> bool {
    // Of what is not there nothing has to be waited for.
    check_resident(file, offset).unwrap_or(true)
}

/// As `is_resident`, of a byte that must be there: a file that ends before it is [`FileError::Truncated`].
pub fn check_resident(file: &File, offset: u64) -> Result<bool, FileError> {
    match retry(|| system::read_resident(file.as_fd(), offset, &mut [0])) {
        Ok(0) => Err(FileError::Truncated { at: offset }),
        Ok(_) => Ok(true),
        Err(Errno::OPNOTSUPP) => Ok(system::is_memory_backed(file.as_fd())),
        Err(_) => Ok(false),
    }
}

/// Has the kernel bring a range into memory, and waits for it. What goes wrong here shows again when it is sent.
///
/// The file is read from the range's start to its end, so that the kernel reads ahead of us. To advise it of the whole range
/// before (`POSIX_FADV_WILLNEED`) made a megabyte dearer by half: it is then read into single pages instead of large ones.
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

/// As `load_into_page_cache`, where content cannot be passed by without a copy.
fn read_and_discard(file: &File, mut at: u64, end: u64) {
    let mut buffer = vec![0; DISCARD_BUFFER];
    while at < end {
        let wanted = (end - at).min(buffer.len() as u64) as usize;
        match retry(|| rustix::io::pread(file, &mut buffer[..wanted], at)) {
            Ok(0) | Err(_) => return,
            Ok(read) => at += read as u64,
        }
    }
}

/// Stays in the processor's cache.
const DISCARD_BUFFER: usize = 64 * 1024;

/// Sends at most `count` bytes of a file from `offset` into a stream socket and moves `offset` on by what was taken.
///
/// An error of `AGAIN` says that the socket is full. A file that ends at `offset` is [`FileError::Truncated`].
pub fn sendfile(socket: impl AsFd, file: impl AsFd, offset: &mut u64, count: u64) -> Result<usize, FileError> {
    if count == 0 {
        return Ok(0);
    }
    // The kernel takes less than 2 GiB a call in any case.
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    match retry(|| system::sendfile(socket.as_fd(), file.as_fd(), offset, count))? {
        0 => Err(FileError::Truncated { at: *offset }),
        sent => Ok(sent),
    }
}

/// A signal that interrupts a call is no reason to give it up.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// What is allocated before anything is read: holds all that the cache takes by default, and wastes little on a caller
/// whose `max` is a bound and not the size.
const FIRST_ALLOCATION: usize = 64 * 1024;
