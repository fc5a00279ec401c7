//! Isolated controllers: a library runs in a separate process. If that process dies, requests get 502 and the server
//! continues.
//!
//! ```text
//!   server                                             one process per library
//!   call.rs ── frames on one connection per request ── child_main.rs: a thread for each connection ⇄ the library
//!   permits.rs: limit of concurrent calls                 │
//!   supervisor.rs: thread per library ── control.rs ──────┘ library, connections, reports, log lines
//!        └─ process.rs: starts, observes and ends the process, which the supervisor restarts after a crash
//! ```
//! The process is another instance of this program. It has the privileges that the server has when the process is
//! started. It inherits no descriptor of the server except one end of the control socket and one end of the pipe for
//! its output. Each connection is passed to it over the control socket. The process ends when the server ends, even if
//! the server is killed.

mod body;
mod call;
mod child_main;
mod control;
mod exchange;
mod library;
mod lock;
mod permits;
mod process;
mod program;
mod supervisor;
mod supervisors;

use std::ffi::OsStr;
use std::process::ExitCode;

use self::program::RUN_LIBRARY_ARGUMENT;

pub use self::exchange::answer;
pub use self::library::{IsolatedController, IsolatedLibrary};
pub use self::program::set_program;
pub use self::supervisors::Supervisors;

/// Runs the library and returns the exit code if this process was started to run a library. `main` must call this
/// first.
pub fn run_if_child() -> Option<ExitCode> {
    let is_child = std::env::args_os().nth(1).as_deref() == Some(OsStr::new(RUN_LIBRARY_ARGUMENT));
    is_child.then(child_main::run)
}
