//! Folders of this computer, as the worker lists them for the chooser of folders.

use std::path::PathBuf;

/// Folders in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// Path of the listed folder.
    pub path: PathBuf,
    /// Names of the folders in it, in the order of the alphabet.
    pub folders: Vec<String>,
    /// Number of entries that were not looked at, because there are too many.
    pub left_out: usize,
}

/// Reason why a folder cannot be listed or created, or is not yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FolderTrouble {
    /// There is no such folder.
    Missing,
    /// This account has no right to it.
    Denied,
    /// There is a file or folder with this name.
    Exists,
    /// The folder has not replied yet. The result follows.
    Waiting,
    /// The folder was not looked at, because too many others do not reply.
    NotTried,
    /// An error of this program has ended the job.
    Crashed,
    /// Another error of the system.
    Other(String),
}
