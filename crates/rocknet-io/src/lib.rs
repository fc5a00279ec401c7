//! Sockets, files and time: the one home of system calls and of `unsafe`. Knows nothing of HTTP.

#[cfg(unix)]
pub mod beneath;
#[cfg(unix)]
pub mod descriptors;
#[cfg(unix)]
pub mod file;
#[cfg(unix)]
pub mod holder;
#[cfg(unix)]
pub mod rights;
#[cfg(unix)]
pub mod socket;
pub mod terminal;
