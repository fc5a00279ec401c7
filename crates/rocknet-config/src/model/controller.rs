//! Controllers, as meant.

use std::fmt;
use std::path::PathBuf;

use crate::choice::choice;

choice! {
    /// The threads that run a controller.
    #[derive(Copy)]
    pub enum RunOn {
        Worker = "worker", "in the pool of blocking threads, by the `priority` of the route";
        Network = "network", "on the thread of the connection, which serves nobody else meanwhile: for what takes microseconds";
    }
    default Worker
}

/// A function in a shared library.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Controller {
    pub library: PathBuf,
    /// Name in the library.
    pub name: String,
}

/// Formats the value as it is written.
impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.library.display(), self.name)
    }
}
