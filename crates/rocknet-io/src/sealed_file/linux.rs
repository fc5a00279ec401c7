//! Sealed files in memory (`memfd_create`).

use std::fs::File;
use std::io;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// Creates an empty file in memory that can be sealed later.
pub(super) fn create() -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    Ok(memfd_create("rocknet", flags)?.into())
}

/// Makes the content final, because receivers could otherwise open the file for writing by its path.
pub(super) fn seal(file: &File) -> io::Result<()> {
    let all = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    Ok(fcntl_add_seals(file, all)?)
}

/// Returns the path by which a process can open its own descriptor `number`.
pub(super) fn path(number: i32) -> PathBuf {
    format!("/proc/self/fd/{number}").into()
}
