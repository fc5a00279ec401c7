//! Controllers, as meant.

use std::fmt;
use std::path::PathBuf;

/// A function in a shared library.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Controller {
    pub library: PathBuf,
    /// What the library calls it.
    pub name: String,
}

/// Which threads run a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunOn {
    /// The pool of blocking threads.
    #[default]
    Worker,
    /// The thread of the connection.
    Network,
}

/// As it is written.
impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.library.display(), self.name)
    }
}
