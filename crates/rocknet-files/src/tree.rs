//! A folder and how its files are served.

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

/// The files of one route.
pub struct Tree {
    /// Never used twice in a server: entries of the cache carry it.
    pub id: u32,
    pub route: Arc<Route>,
    /// Applied to heads of the cache when they are rendered.
    pub filters: Filters,
    folder: Folder,
    pub index: Vec<String>,
    pub browse: bool,
    pub fallback: Fallback,
    pub try_paths: Vec<String>,
    pub symlinks: confined_fs::Symlinks,
    /// Files that are scripts are run. Otherwise they are files as any other.
    pub runs_scripts: bool,
    /// The path of the folder of programs, below the root and without a slash at its end.
    programs: Option<Box<str>>,
    /// Largest file whose content is kept in memory, in bytes.
    pub max_cached_file: u64,
    /// Content of files that answer for many paths.
    pub shared_pages: SharedPages,
}

impl Tree {
    /// The files at `folder`. `id`: a number that no other tree of the server has had.
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

    /// A tree outside of any server, for programs that look up files by themselves.
    ///
    /// # Errors
    ///
    /// The message names a redirect that cannot be compiled.
    pub fn standalone(settings: &Settings, max_cached_file: u64) -> Result<Tree, String> {
        let (headers, label) = (settings.headers.clone(), SiteLabel::default());
        let route = Arc::new(Route::new(settings, headers, label, Arc::default())?);
        let root = settings.root.as_deref().unwrap_or(Path::new("/"));
        let folders = Arc::new(OpenFolders::new(1));
        let filters: Filters = Arc::new([Box::new(Headers)]);
        Ok(Tree::new(0, root, settings, route, &filters, max_cached_file, &folders))
    }

    /// Restricts the tree to single files, for error pages where something other than files answers. What is run elsewhere
    /// is not sent as a page.
    pub fn for_pages(self) -> Tree {
        Tree {
            browse: false,
            fallback: Fallback::Off,
            try_paths: Vec::new(),
            ..self
        }
    }

    /// Returns whether a path of the site leads to a program that is to be run.
    pub fn is_program(&self, path: &str) -> bool {
        let rest = self.programs().and_then(|folder| path.strip_prefix(folder));
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// The same by the path below the root, which has no slash in front.
    pub fn contains_program(&self, relative: &[u8]) -> bool {
        let programs = self.programs().map(|folder| &folder.as_bytes()[1..]);
        let rest = programs.and_then(|programs| relative.strip_prefix(programs));
        rest.is_some_and(|rest| rest.starts_with(b"/"))
    }

    /// Returns the path of the folder of programs, with a slash in front and none at its end.
    pub fn programs(&self) -> Option<&str> {
        self.programs.as_deref()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The open folder; see [`Folder::root`].
    pub fn root(&self) -> io::Result<Arc<Root>> {
        self.folder.root()
    }

    /// See [`Folder::root_non_blocking`].
    pub fn root_non_blocking(&self) -> Option<Arc<Root>> {
        self.folder.root_non_blocking()
    }
}
