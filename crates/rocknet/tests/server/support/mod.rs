//! Support for the tests: folders with files, a server started from TOML, clients, and scripted upstreams.

pub mod background;
#[allow(dead_code, reason = "tests/tls uses all of it")]
pub mod certs;
pub mod client;
pub mod fastcgi;
pub mod folder;
pub mod gateway;
pub mod handlers;
pub mod http2;
pub mod http2_upstream;
#[allow(dead_code, reason = "tests/tls uses all of it")]
pub mod http3;
pub mod http3_stream;
pub mod library;
pub mod peer;
#[allow(dead_code, reason = "tests/server uses it")]
pub mod refusing_port;
#[cfg(target_os = "linux")]
pub mod reset;
pub mod running;
#[allow(dead_code, reason = "tests/tls uses all of it")]
pub mod tls_client;
pub mod tunnels;
pub mod upstream;
pub mod version;

use std::time::Duration;

pub use client::{Client, ReceivedResponse};
pub use folder::Folder;
pub use running::Running;

/// Time limit of every wait, ample even for a machine that builds at the same time. A test that reaches it fails.
pub const DEADLINE: Duration = Duration::from_secs(20);
