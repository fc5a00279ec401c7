//! What the tests share: folders with files, a server started from TOML, and a client that sees every byte.

pub mod client;
pub mod fastcgi;
#[cfg(target_os = "linux")]
pub mod fate;
pub mod folder;
pub mod gateway;
pub mod handlers;
pub mod http2;
pub mod http2_upstream;
pub mod library;
pub mod peer;
pub mod running;
pub mod upstream;

use std::time::Duration;

pub use client::{Answer, Client};
pub use folder::Folder;
pub use running::Running;

/// Longest wait for anything that must come. Far more than it takes, because a machine that builds beside the tests is
/// slow; a test that meets it has failed.
pub const DEADLINE: Duration = Duration::from_secs(20);
