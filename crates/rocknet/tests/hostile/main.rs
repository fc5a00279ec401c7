//! Hostile clients and file systems: the server goes on, leaks nothing, and other clients do not notice.

#[path = "../child/mod.rs"]
mod child;
mod descriptors;
mod files;
mod garbage;
mod http2;
mod slow;
#[allow(dead_code)] // shared with tests that use more of it
#[path = "../wire/mod.rs"]
mod wire;

/// Contents of `/small.txt`.
const SMALL: &[u8] = b"Hello, world!";
