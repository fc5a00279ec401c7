//! The helper: a process that keeps the right to start programs as other accounts when the server drops root's rights.
//!
//! ```text
//!   server, an account without rights                      helper, root with CAP_SETUID, CAP_SETGID and CAP_KILL
//!   client.rs ── requests and descriptors, one at a time ──▶ serve.rs ─▶ php-fpm, CGI programs
//!                              protocol.rs: message formats
//! ```
//!
//! The server sends a list of accounts before it drops its rights, and the helper starts programs only as these
//! accounts: never as root, and never as the account of the server. The helper opens no file by a path and reads no
//! configuration. It ends when the server ends.
//!
//! After an upgrade of the server, the helper has two clients: the old process, which finishes its requests, and the
//! new one. The helper itself stays the same process, because no other process can have root's rights.

mod client;
mod programs;
mod protocol;
mod serve;

use std::ffi::OsStr;
use std::process::ExitCode;

pub use self::client::{Helper, HelperProcess};
use self::protocol::HELPER_ARGUMENT;
pub use self::protocol::{HELPER_VERSION, MAX_ACCOUNTS};

/// Runs the helper if this process was started as a helper, and returns its exit code; otherwise returns `None`. `main`
/// has to call this function first.
pub fn run_if_helper() -> Option<ExitCode> {
    let is_helper = std::env::args_os().nth(1).as_deref() == Some(OsStr::new(HELPER_ARGUMENT));
    is_helper.then(serve::run)
}
