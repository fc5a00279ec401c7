//! What the kernel for tests does with files.

use std::ffi::c_char;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::types::OpenHow;

/// As the system call tells it.
#[allow(unsafe_code)]
pub(super) fn read(file: BorrowedFd<'_>, into: *mut u8, length: usize, offset: u64) -> i32 {
    // SAFETY: whoever pushed the operation promised that this memory lives until its completion.
    let read = unsafe { libc::pread(file.as_raw_fd(), into.cast(), length, offset as i64) };
    read as i32
}

/// A descriptor, or what is in its way.
#[allow(unsafe_code)]
pub(super) fn open(directory: BorrowedFd<'_>, path: *const c_char, how: *const OpenHow) -> i32 {
    let (directory, size) = (directory.as_raw_fd(), size_of::<OpenHow>());
    // SAFETY: whoever pushed the operation promised that both live until its completion.
    let opened = unsafe { libc::syscall(libc::SYS_openat2, directory, path, how, size) };
    match opened {
        0.. => opened as i32,
        _ => -std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
    }
}
