//! Reads a line that is typed at the terminal, where the system has no way to hide it.

use std::io;

/// Refuses, because the line would be shown.
pub fn read_without_echo(_max_bytes: usize) -> io::Result<Vec<u8>> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "input cannot be hidden on this system; send it through a pipe",
    ))
}
