//! The helper: a process that keeps root's right to start programs as other accounts when the server gives it up.
//!
//! ```text
//!   server, an account without rights                      helper, root with three capabilities
//!   client.rs ── requests and descriptors, one at a time ──▶ serve.rs ─▶ php-fpm, CGI programs
//!                              protocol.rs: what both sides say
//! ```
//! It knows a list of accounts, sent to it before the server gives up its rights, and starts programs as those alone: never as
//! root, and never as the server. It opens no file, reads no configuration, and ends with the server.

mod client;
mod protocol;
mod serve;

use std::ffi::OsStr;
use std::process::ExitCode;

pub use self::client::{Helper, HelperProcess};
use self::protocol::HELPER_ARGUMENT;

/// Runs the helper if this process was started as one, and returns its exit code. Called before anything else.
pub fn run_if_helper() -> Option<ExitCode> {
    let is_helper = std::env::args_os().nth(1).as_deref() == Some(OsStr::new(HELPER_ARGUMENT));
    is_helper.then(serve::run)
}
