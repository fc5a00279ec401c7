//! File operations of the simulated kernel.

use std::ffi::c_char;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::types::OpenHow;

/// Reads like `pread(2)`. Returns the number of bytes read, or -1.
#[allow(unsafe_code)]
pub(super) fn read(file: BorrowedFd<'_>, into: *mut u8, length: usize, offset: u64) -> i32 {
    // SAFETY: `Kernel::push` requires that this memory lives until the completion.
    let read = unsafe { libc::pread(file.as_raw_fd(), into.cast(), length, offset as i64) };
    read as i32
}

/// Opens like `openat2(2)`. Returns the descriptor or a negative error number.
#[allow(unsafe_code)]
pub(super) fn open(directory: BorrowedFd<'_>, path: *const c_char, how: *const OpenHow) -> i32 {
    let (directory, size) = (directory.as_raw_fd(), size_of::<OpenHow>());
    // SAFETY: the driver's table of file operations owns the path and `how` until the completion.
    let opened = unsafe { libc::syscall(libc::SYS_openat2, directory, path, how, size) };
    match opened {
        0.. => opened as i32,
        _ => -std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
    }
}
