//! The helper: a process that keeps the right to start programs as other accounts when the server drops root's rights.
//!
//! ```text
//!   server, an account without rights                      helper, root with three capabilities
//!   client.rs ── requests and descriptors, one at a time ──▶ serve.rs ─▶ php-fpm, CGI programs
//!                              protocol.rs: message formats
//! ```
//!
//! The server sends a list of accounts before it drops its rights, and the helper starts programs only as those: never
//! as root, and never as the server. It opens no file, reads no configuration, and ends with the server.

mod client;
mod protocol;
mod serve;

use std::ffi::OsStr;
use std::process::ExitCode;

pub use self::client::{Helper, HelperProcess};
use self::protocol::HELPER_ARGUMENT;

/// Runs the helper if this process was started as one, and returns its exit code. `main` has to call it first.
pub fn run_if_helper() -> Option<ExitCode> {
    let is_helper = std::env::args_os().nth(1).as_deref() == Some(OsStr::new(HELPER_ARGUMENT));
    is_helper.then(serve::run)
}
