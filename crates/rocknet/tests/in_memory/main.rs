//! Connections without a socket: every split of the bytes gives the same responses, over virtual time.

mod access;
mod deadlines;
mod ended;
#[allow(dead_code)] // shared with tests that use more of it
#[path = "../server/support/folder.rs"]
mod folder;
mod http2;
#[allow(dead_code)] // shared with tests that use more of it
#[path = "../server/support/library.rs"]
mod library;
mod life;
mod limits;
mod proxied;
mod remembered;
mod splits;
mod to_https;
#[allow(dead_code)] // shared with tests that use more of it
#[path = "../wire/mod.rs"]
mod wire;
mod world;

use folder::Folder;

/// An ordinary request.
const GET: &str = "GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n";
