//! Settings of controllers, which are functions in shared libraries.

use std::fmt;
use std::path::PathBuf;

use crate::choice::choice;

choice! {
    /// Threads that run a controller.
    #[derive(Copy)]
    pub enum RunOn {
        Worker = "worker", "in the pool of blocking threads, by the `priority` of the route";
        Network = "network", "on the thread of the connection, which blocks all other connections of that thread: only for calls that take microseconds";
    }
    default Worker
}

/// Function in a shared library that handles requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Controller {
    /// Path of the shared library.
    pub library: PathBuf,
    /// Name of the function in the library.
    pub name: String,
}

/// Formats the value as in the configuration: `library:name`.
impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.library.display(), self.name)
    }
}
