//! Connections without a socket, over virtual time: timeouts, limits, HTTP/2, and every split of the input.

mod access;
mod bandwidth;
mod closed_clients;
mod deadlines;
#[allow(dead_code)] // shared with tests that use more of it
#[path = "../server/support/folder.rs"]
mod folder;
mod http2;
mod https_redirect;
#[allow(dead_code)] // shared with tests that use more of it
#[path = "../server/support/library.rs"]
mod library;
mod lifecycle;
mod limits;
mod proxied;
mod slow_disk;
mod splits;
mod test_server;
#[allow(dead_code)] // shared with tests that use more of it
#[path = "../wire/mod.rs"]
mod wire;
mod worker_cache;

use folder::Folder;

/// An ordinary request.
const GET: &str = "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n";
