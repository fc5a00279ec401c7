//! Hostile clients and file systems: the server continues to run, leaks nothing, and serves other clients.

#[path = "../child/mod.rs"]
mod child;
mod descriptors;
mod files;
mod garbage;
mod http2;
mod slow;
#[allow(dead_code)] // other tests use the rest of this shared module
#[path = "../wire/mod.rs"]
mod wire;

/// Contents of `/small.txt`.
const SMALL: &[u8] = b"Hello, world!";
