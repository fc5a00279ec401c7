//! A library that runs in a process of its own, and its controllers.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::control::Entry;
use super::program::program;
use super::supervisor::Supervised;
use super::supervisors::Supervisors;

/// A library that runs in a process of its own, for as long as this is held.
pub struct Isolated {
    pub(super) supervised: Arc<Supervised>,
    entries: Vec<Entry>,
}

/// A controller of it.
#[derive(Clone)]
pub struct Controller {
    pub(super) library: Arc<Isolated>,
    pub(super) number: u16,
    pub(super) takes: bool,
    pub(super) gives: bool,
}

impl Isolated {
    /// Starts a process and has it load the library, of which `image` is a copy that nobody changes. The error says what
    /// was wrong.
    pub fn load(path: &Path, image: File, supervisors: &Supervisors) -> Result<Isolated, String> {
        if program().is_none() {
            return Err("this program cannot run libraries in processes of their own: remove `isolate`".to_owned());
        }
        let (supervised, entries) = supervisors.start(path, image)?;
        Ok(Isolated { supervised, entries })
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }
}

impl Drop for Isolated {
    fn drop(&mut self) {
        self.supervised.end();
    }
}

impl Controller {
    pub fn find(library: &Arc<Isolated>, name: &str) -> Option<Controller> {
        let found = library.entries.iter().position(|entry| entry.name == name)?;
        let Entry { takes, gives, .. } = library.entries[found];
        Some(Controller {
            library: Arc::clone(library),
            number: u16::try_from(found).ok()?,
            takes,
            gives,
        })
    }
}
