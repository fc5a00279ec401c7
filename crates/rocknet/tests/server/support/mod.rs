//! Support shared by the tests: folders with files, a server started from TOML, and a client that sees every byte.

pub mod client;
pub mod fastcgi;
pub mod folder;
pub mod gateway;
pub mod handlers;
pub mod http2;
pub mod http2_upstream;
pub mod library;
pub mod peer;
#[cfg(target_os = "linux")]
pub mod reset;
pub mod running;
pub mod upstream;

use std::time::Duration;

pub use client::{Client, ReceivedResponse};
pub use folder::Folder;
pub use running::Running;

/// Time limit of any wait. Far above what is needed, because a machine that builds at the same time is slow; a test
/// that reaches it has failed.
pub const DEADLINE: Duration = Duration::from_secs(20);
