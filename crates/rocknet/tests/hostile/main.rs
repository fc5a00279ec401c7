//! Hostile clients and file systems: the server continues to run, leaks nothing, and serves other clients.

#[path = "../child/mod.rs"]
mod child;
mod descriptors;
mod files;
mod garbage;
mod http2;
mod http3;
mod initials;
mod migration;
mod quic;
mod secure;
mod slow;
#[path = "../server/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "other tests use the rest of this shared module")]
mod support;
#[allow(dead_code)] // other tests use the rest of this shared module
#[path = "../wire/mod.rs"]
mod wire;

/// Contents of `/small.txt`.
const SMALL: &[u8] = b"Hello, world!";
