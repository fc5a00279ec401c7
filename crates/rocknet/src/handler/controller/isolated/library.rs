//! A library that runs in a separate process, and its controllers.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::control::ControllerEntry;
use super::program::program;
use super::supervisor::SupervisedProcess;
use super::supervisors::Supervisors;

/// A library that runs in a separate process. Dropping it ends the process.
pub struct IsolatedLibrary {
    pub(super) supervised: Arc<SupervisedProcess>,
    entries: Vec<ControllerEntry>,
}

/// A controller of an isolated library.
#[derive(Clone)]
pub struct IsolatedController {
    pub(super) library: Arc<IsolatedLibrary>,
    /// Position of the controller in the list that the process has reported, by which the process finds it.
    pub(super) number: u16,
    /// True if the controller receives the request body in pieces.
    pub(super) takes: bool,
    /// True if the controller produces the response body in pieces.
    pub(super) gives: bool,
}

impl IsolatedLibrary {
    /// Starts a process that loads the library from `image`, a private copy of its file.
    ///
    /// # Errors
    ///
    /// The message is the reason why the library cannot be used.
    pub fn load(path: &Path, image: File, supervisors: &Supervisors) -> Result<IsolatedLibrary, String> {
        if program().is_none() {
            return Err("this program cannot run libraries in separate processes: remove `isolate`".to_owned());
        }
        let (supervised, entries) = supervisors.start(path, image)?;
        Ok(IsolatedLibrary { supervised, entries })
    }

    /// Returns the names of the controllers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }
}

impl Drop for IsolatedLibrary {
    fn drop(&mut self) {
        self.supervised.stop();
    }
}

impl IsolatedController {
    /// Returns the controller with this name, if the library has one.
    pub fn find(library: &Arc<IsolatedLibrary>, name: &str) -> Option<IsolatedController> {
        let found = library.entries.iter().position(|entry| entry.name == name)?;
        let ControllerEntry { takes, gives, .. } = library.entries[found];
        Some(IsolatedController {
            library: Arc::clone(library),
            number: u16::try_from(found).ok()?,
            takes,
            gives,
        })
    }
}
