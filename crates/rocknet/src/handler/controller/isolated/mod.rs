//! Isolated controllers: a library runs in a process of its own, whose death is an answer of 502 and not the server's.
//!
//! ```text
//!   server                                                 a process for each library
//!   conversation.rs ── frames on a connection of its own ── inside.rs: a thread for each connection ⇄ the library
//!   place.rs: how many at once                               │
//!   supervisor.rs: a thread for each ─── control.rs ─────────┘ loads, tells what it has, logs
//!        └─ process.rs: started, listened to, ended; started again when it dies
//! ```
//! The process is this program, started anew: it has the rights that the server has at that moment, and of its descriptors
//! none but an end of each of these sockets. It ends with the server, however that ends.

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

/// Whether this process was started to run a library, and how it ended then. To be asked before anything else is done.
pub fn run_if_child() -> Option<ExitCode> {
    let is_meant = std::env::args_os().nth(1).as_deref() == Some(OsStr::new(RUN_LIBRARY_ARGUMENT));
    is_meant.then(child_main::run)
}
