//! Clients and file systems that mean no good: the server goes on, leaks nothing, and others do not notice.

#[path = "../child/mod.rs"]
mod child;
mod descriptors;
mod files;
mod garbage;
mod slow;

/// What `/small.txt` holds.
const SMALL: &[u8] = b"Hello, world!";
