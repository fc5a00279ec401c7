//! A scope is a place in a site where the same actions and filters apply: the site itself, or one of its routes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rocknet_config::model::{Priority, Settings, Symlinks};
use rocknet_io::beneath::{self, Root};

use crate::handler::Handler;
use crate::routing::{BadRedirect, Redirects};

/// Settings made ready for use.
pub struct Scope {
    /// Never used twice in a process: cached answers carry it.
    pub id: u32,
    pub action: Action,
    pub headers: BTreeMap<String, String>,
    pub errors: BTreeMap<u16, String>,
    pub redirects: Redirects,
    pub priority: Priority,
    pub compress: bool,
    /// Largest file whose content is kept in memory.
    pub max_cached_file: u64,
}

/// What answers here.
pub enum Action {
    Files(FileTree),
    /// The page of a fresh install.
    Welcome,
    /// Something brought in by the program that embeds the server.
    Custom(Arc<dyn Handler>),
}

/// A folder and how its files are served.
pub struct FileTree {
    folder: PathBuf,
    /// Opened at first use, and again while it cannot be: a folder may come later than the server.
    root: Mutex<Option<Arc<Root>>>,
    pub index: Vec<String>,
    pub browse: bool,
    pub fallback: Option<String>,
    pub try_paths: Vec<String>,
    pub symlinks: beneath::Symlinks,
}

impl Scope {
    pub fn new(settings: &Settings, max_cached_file: u64) -> Result<Scope, BadRedirect> {
        let action = match &settings.root {
            Some(folder) => Action::Files(FileTree::new(folder, settings)),
            None => Action::Welcome,
        };
        Ok(Scope { redirects: Redirects::new(&settings.redirects)?, ..Scope::bare(settings, action, max_cached_file) })
    }

    pub fn custom(settings: &Settings, handler: Arc<dyn Handler>, max_cached_file: u64) -> Scope {
        Scope::bare(settings, Action::Custom(handler), max_cached_file)
    }

    #[cfg(test)]
    pub fn empty() -> Scope {
        Scope::bare(&Settings::default(), Action::Welcome, 0)
    }

    fn bare(settings: &Settings, action: Action, max_cached_file: u64) -> Scope {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Scope {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            action,
            headers: settings.headers.clone(),
            errors: settings.errors.clone(),
            redirects: Redirects::default(),
            priority: settings.priority,
            compress: settings.compress,
            max_cached_file,
        }
    }
}

impl FileTree {
    fn new(folder: &Path, settings: &Settings) -> FileTree {
        FileTree {
            folder: folder.to_path_buf(),
            root: Mutex::new(None),
            index: settings.index.clone(),
            browse: settings.browse,
            fallback: settings.fallback.clone(),
            try_paths: settings.try_paths.clone(),
            symlinks: match settings.symlinks {
                Symlinks::Inside => beneath::Symlinks::Inside,
                Symlinks::Owner => beneath::Symlinks::Owner,
                Symlinks::All => beneath::Symlinks::All,
            },
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The open folder. May wait for the disk.
    pub fn root(&self) -> io::Result<Arc<Root>> {
        let mut root = self.root.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = &*root {
            return Ok(Arc::clone(root));
        }
        let opened = Arc::new(Root::open(&self.folder)?);
        *root = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// Forgets the open folder, so that one put in its place is found.
    pub fn reopen(&self) {
        *self.root.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
