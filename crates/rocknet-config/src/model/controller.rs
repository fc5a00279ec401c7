//! Controllers, as meant.

use std::fmt;
use std::path::PathBuf;

pub use crate::keys::controller::RunOn;

/// A function in a shared library.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Controller {
    pub library: PathBuf,
    /// What the library calls it.
    pub name: String,
}

/// As it is written.
impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.library.display(), self.name)
    }
}
