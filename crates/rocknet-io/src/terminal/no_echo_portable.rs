//! Replacement for systems on which RockNet cannot turn the echo off.

use std::io;

/// Fails with `Unsupported`, because the line would be echoed.
pub fn read_without_echo(_max_bytes: usize) -> io::Result<Vec<u8>> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "input cannot be hidden on this system; send it through a pipe",
    ))
}
