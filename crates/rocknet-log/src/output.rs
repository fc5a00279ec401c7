//! Open log: a file, pipe, socket or terminal, which is written without waiting for its reader.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::SendFlags;

/// File mode: readable by the group (an operator, a log shipper) but not by all users, because logs contain addresses
/// and names.
const MODE: u32 = 0o640;

/// Number of bytes that a pipe accepts without blocking once it is reported as writable, as POSIX guarantees
/// (`_POSIX_PIPE_BUF`).
const PIPE_CHUNK: usize = 512;

/// Destination of a log, by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum OutputTarget {
    Stdout,
    Stderr,
    File(PathBuf),
}

pub(super) struct Output {
    file: File,
    kind: OutputKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputKind {
    /// A regular file: it can be rotated, and writing fills the page cache without blocking.
    Regular,
    /// A pipe, terminal or device, opened with O_NONBLOCK only for this process.
    Stream,
    /// A socket, written with flags that prevent blocking.
    Socket,
    /// A file description shared with other processes, whose flags must not be changed. It is polled before each write.
    Shared,
}

/// Flags of a non-blocking send. MSG_NOSIGNAL turns SIGPIPE into an error. Rust ignores the signal, but a loaded
/// library may change that. Apple's systems do not have the flag.
#[cfg(not(target_vendor = "apple"))]
const NON_BLOCKING: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(target_vendor = "apple")]
const NON_BLOCKING: SendFlags = SendFlags::DONTWAIT;

impl Output {
    /// Opens a log for appending. Creates the file if it does not exist, but not its directory.
    pub(super) fn open(target: &OutputTarget) -> io::Result<Output> {
        match target {
            OutputTarget::Stdout => Output::standard(io::stdout().as_fd().try_clone_to_owned()?, 1),
            OutputTarget::Stderr => Output::standard(io::stderr().as_fd().try_clone_to_owned()?, 2),
            OutputTarget::File(path) => {
                let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
                let flags = flags.bits().cast_signed();
                let file = OpenOptions::new()
                    .append(true)
                    .create(true)
                    .mode(MODE)
                    .custom_flags(flags)
                    .open(path)?;
                let kind = if file.metadata()?.is_file() {
                    OutputKind::Regular
                } else {
                    OutputKind::Stream
                };
                Ok(Output { file, kind })
            }
        }
    }

    /// Opens the standard stream with the descriptor number `number`. `descriptor` is a duplicate of it.
    fn standard(descriptor: OwnedFd, number: u8) -> io::Result<Output> {
        let file = File::from(descriptor);
        let kind = file.metadata()?.file_type();
        if kind.is_file() {
            return Ok(Output {
                file,
                kind: OutputKind::Regular,
            });
        }
        if kind.is_socket() {
            return Ok(Output {
                file,
                kind: OutputKind::Socket,
            });
        }
        // O_NONBLOCK belongs to the open file description, which the parent shell shares. A second description of the
        // same pipe or terminal can be non-blocking without affecting others.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let own = OpenOptions::new()
            .write(true)
            .custom_flags(flags)
            .open(format!("/proc/self/fd/{number}"));
        Ok(match own {
            Ok(own) => Output {
                file: own,
                kind: OutputKind::Stream,
            },
            Err(_) => Output {
                file,
                kind: OutputKind::Shared,
            },
        })
    }

    /// Writes as many bytes as are accepted immediately, and returns their number; `WouldBlock` if none are accepted.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self.kind {
            OutputKind::Regular | OutputKind::Stream => self.file.write(bytes)?,
            OutputKind::Socket => rustix::net::send(&self.file, bytes, NON_BLOCKING)?,
            OutputKind::Shared => {
                wait_writable(&[self.file.as_fd()], Duration::ZERO)?;
                self.file.write(&bytes[..bytes.len().min(PIPE_CHUNK)])?
            }
        };
        if written == 0 {
            Err(io::ErrorKind::WouldBlock.into())
        } else {
            Ok(written)
        }
    }

    pub(super) fn is_regular(&self) -> bool {
        self.kind == OutputKind::Regular
    }

    /// Returns whether `path` still names the open file.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        match (self.file.metadata(), std::fs::metadata(path)) {
            (Ok(open), Ok(named)) => open.dev() == named.dev() && open.ino() == named.ino(),
            _ => false,
        }
    }

    /// Returns the length, and the age since creation. The age is 0 if the file system does not record the creation
    /// time.
    pub(super) fn size_and_age(&self) -> (u64, Duration) {
        let Ok(metadata) = self.file.metadata() else {
            return (0, Duration::ZERO);
        };
        let born = metadata.created().unwrap_or_else(|_| SystemTime::now());
        // A creation time in the future means that the clock was set back, so the age is counted from now.
        (
            metadata.len(),
            SystemTime::now().duration_since(born).unwrap_or_default(),
        )
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Waits until one of `descriptors` is writable. Returns `WouldBlock` if none becomes writable within `limit`, or if a
/// signal ends the wait.
pub(super) fn wait_writable(descriptors: &[BorrowedFd<'_>], limit: Duration) -> io::Result<()> {
    let mut polled: Vec<PollFd<'_>> = descriptors
        .iter()
        .map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::OUT))
        .collect();
    let limit = Timespec::try_from(limit).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut polled, Some(&limit)) {
        Ok(0) | Err(Errno::INTR) => Err(io::ErrorKind::WouldBlock.into()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether opening failed only because the pipe has no reader yet.
pub(super) fn is_unread_pipe(target: &OutputTarget, error: &io::Error) -> bool {
    match target {
        OutputTarget::File(path) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
        }
        _ => false,
    }
}

/// Describes for the error log why a log cannot be written.
pub(super) fn reason(error: &io::Error) -> String {
    let text = match error.kind() {
        io::ErrorKind::WouldBlock => "its reader does not keep up",
        io::ErrorKind::BrokenPipe => "its reader is gone",
        io::ErrorKind::StorageFull => "no space left on device",
        io::ErrorKind::QuotaExceeded => "disk quota exceeded",
        _ if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => "the pipe has no reader",
        _ => {
            // Uses the message of the operating system without the number that the standard library appends.
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default();
            let mut chars = text.chars();
            return match chars.next() {
                Some(first) => first.to_lowercase().chain(chars).collect(),
                None => "unknown error".to_owned(),
            };
        }
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_described_for_the_operator() {
        let os = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        for (error, expected) in [
            (os(Errno::NOSPC), "no space left on device"),
            (os(Errno::AGAIN), "its reader does not keep up"),
            (os(Errno::PIPE), "its reader is gone"),
            (os(Errno::NXIO), "the pipe has no reader"),
            (os(Errno::IO), "input/output error"),
            (io::Error::other("Plain text"), "plain text"),
        ] {
            assert_eq!(reason(&error), expected);
        }
    }

    #[test]
    fn files_are_created_private_and_appended_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = OutputTarget::File(folder.path().join("a.log"));
        for text in ["one\n", "two\n"] {
            let mut output = Output::open(&target).expect("opens");
            assert!(output.is_regular() && output.is_at(&folder.path().join("a.log")));
            assert_eq!(output.write(text.as_bytes()).expect("writes"), 4);
        }
        let path = folder.path().join("a.log");
        assert_eq!(std::fs::read_to_string(&path).expect("reads"), "one\ntwo\n");
        // 0o7137 are the bits that `MODE` does not contain.
        assert_eq!(
            std::fs::metadata(&path).expect("is there").mode() & 0o7137,
            0,
            "the file has more permissions than `MODE`"
        );
    }

    #[test]
    fn a_full_pipe_fails_instead_of_blocking() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let mut shared = Output {
            file: File::from(OwnedFd::from(writer)),
            kind: OutputKind::Shared,
        };
        let mut taken = 0;
        let refusal = loop {
            match shared.write(&[b'x'; 4096]) {
                Ok(written) => taken += written,
                Err(error) => break error,
            }
            assert!(taken < 1 << 24, "a pipe holds at most a few megabytes");
        };
        assert_eq!(refusal.kind(), io::ErrorKind::WouldBlock);
        drop(reader);
        assert_eq!(
            shared.write(b"x").expect_err("no reader").kind(),
            io::ErrorKind::BrokenPipe
        );
    }
}
