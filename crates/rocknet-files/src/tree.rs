//! File tree of a route: a folder, and how its files are served.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rocknet_config::model::{Fallback, Settings, Symlinks};
use rocknet_io::confined_fs::{self, Root};

use crate::open_folder::{Folder, OpenFolders};
use crate::shared_pages::SharedPages;
use rocknet_handler::filter::Filters;
use rocknet_handler::headers::Headers;
use rocknet_handler::route::{Route, SiteLabel};

/// The files of one route: their folder, and the settings with which they are served.
pub struct Tree {
    /// Number of the tree, part of the cache's keys. A server never reuses a number.
    pub id: u32,
    /// Settings of the route.
    pub route: Arc<Route>,
    /// Filters, applied to heads when they are rendered for the cache.
    pub filters: Filters,
    folder: Folder,
    /// Names of index files, in order of preference.
    pub index: Vec<String>,
    /// True if directories without an index file are listed.
    pub browse: bool,
    /// File that is served if no file is found for a path.
    pub fallback: Fallback,
    /// Templates of the paths to try (`try`).
    pub try_paths: Vec<String>,
    /// Symbolic links that are followed.
    pub symlinks: confined_fs::Symlinks,
    /// True if scripts are run. Otherwise they are ordinary files.
    pub runs_scripts: bool,
    /// Path of the folder of CGI programs below the root, with a leading and without a trailing slash; `None` without
    /// CGI programs.
    programs: Option<Box<str>>,
    /// Maximum size of a file whose content is cached in memory, in bytes.
    pub max_cached_file: u64,
    /// Shared content of files that are served for many paths.
    pub shared_pages: SharedPages,
}

impl Tree {
    /// Creates the tree of the files in `folder`. `id` is a number that no other tree of the server has had, and
    /// `folders` counts the folder while it is open.
    pub fn new(
        id: u32,
        folder: &Path,
        settings: &Settings,
        route: Arc<Route>,
        filters: &Filters,
        max_cached_file: u64,
        folders: &Arc<OpenFolders>,
    ) -> Tree {
        Tree {
            id,
            route,
            filters: Arc::clone(filters),
            folder: Folder::new(folder, folders),
            index: settings.index.clone(),
            browse: settings.browse,
            fallback: settings.fallback.clone(),
            try_paths: settings.try_paths.clone(),
            symlinks: match settings.symlinks {
                Symlinks::Inside => confined_fs::Symlinks::Inside,
                Symlinks::Owner => confined_fs::Symlinks::Owner,
                Symlinks::All => confined_fs::Symlinks::All,
            },
            runs_scripts: settings.php.is_some(),
            programs: settings.cgi.as_ref().map(|cgi| cgi.folder.as_str().into()),
            max_cached_file,
            shared_pages: SharedPages::default(),
        }
    }

    /// Creates a tree that belongs to no server, for tests of the file cache.
    ///
    /// # Errors
    ///
    /// Returns a message that names the redirect if a redirect cannot be compiled.
    pub fn standalone(settings: &Settings, max_cached_file: u64) -> Result<Tree, String> {
        let (headers, label) = (settings.headers.clone(), SiteLabel::default());
        let route = Arc::new(Route::new(settings, headers, label, Arc::default())?);
        let root = settings.root.as_deref().unwrap_or(Path::new("/"));
        let folders = Arc::new(OpenFolders::new(1));
        let filters: Filters = Arc::new([Box::new(Headers)]);
        Ok(Tree::new(0, root, settings, route, &filters, max_cached_file, &folders))
    }

    /// Restricts the tree to single files, for error pages of routes with another handler. The tree still recognizes
    /// scripts and CGI programs, so that their source is not sent as a page.
    pub fn for_pages(self) -> Tree {
        Tree {
            browse: false,
            fallback: Fallback::Off,
            try_paths: Vec::new(),
            ..self
        }
    }

    /// Returns true if a path of the site leads to a CGI program.
    pub fn is_program(&self, path: &str) -> bool {
        let rest = self.programs().and_then(|folder| path.strip_prefix(folder));
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// Like [`Tree::is_program`], for a path below the root without a leading slash.
    pub fn contains_program(&self, relative: &[u8]) -> bool {
        // `relative` has no leading slash.
        let programs = self.programs().map(|folder| &folder.as_bytes()[1..]);
        let rest = programs.and_then(|programs| relative.strip_prefix(programs));
        rest.is_some_and(|rest| rest.starts_with(b"/"))
    }

    /// Returns the path of the folder of CGI programs, with a leading and without a trailing slash; `None` without CGI
    /// programs.
    pub fn programs(&self) -> Option<&str> {
        self.programs.as_deref()
    }

    /// Returns the path of the folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the open folder; see [`Folder::root`].
    pub fn root(&self) -> io::Result<Arc<Root>> {
        self.folder.root()
    }

    /// Returns the open folder without blocking; see [`Folder::root_non_blocking`].
    pub fn root_non_blocking(&self) -> Option<Arc<Root>> {
        self.folder.root_non_blocking()
    }
}
