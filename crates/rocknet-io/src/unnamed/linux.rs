//! Files in memory.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};

pub(super) fn file() -> io::Result<File> {
    Ok(memfd_create("rocknet", MemfdFlags::CLOEXEC)?.into())
}

pub(super) fn path(number: i32) -> PathBuf {
    format!("/proc/self/fd/{number}").into()
}
