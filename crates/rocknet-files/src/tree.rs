//! File tree of a route: a folder, and how its files are served.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rocknet_config::model::{Browse, Fallback, Settings, Symlinks};
use rocknet_io::confined_fs::{self, Root};

use crate::media_types::MediaTypes;
use crate::open_folder::{Folder, OpenFolders};
use crate::place::Place;
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
    /// Path of the site that an `alias` maps to the folder. `None` without an alias: a path of the site is then also
    /// the path in the folder.
    place: Option<Place>,
    /// Tree of the error pages whose paths are outside of `place`.
    pages: Option<Arc<Tree>>,
    /// Names of index files, in order of preference.
    pub index: Vec<String>,
    /// Listings of directories without an index file; `None`: they are not listed.
    pub browse: Option<Browse>,
    /// File that is served if no file is found for a path.
    pub fallback: Fallback,
    /// Templates of the paths to try (`try`).
    pub try_paths: Vec<String>,
    /// Media types of the files.
    pub types: MediaTypes,
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
            place: settings.alias.as_ref().map(Place::new),
            pages: None,
            index: settings.index.clone(),
            browse: settings.browse.clone(),
            fallback: settings.fallback.clone(),
            try_paths: settings.try_paths.clone(),
            types: MediaTypes::new(&settings.types),
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
            browse: None,
            fallback: Fallback::Off,
            try_paths: Vec::new(),
            ..self
        }
    }

    /// Sets the tree of the error pages that are not below the alias of this tree.
    pub fn with_pages(self, pages: Option<Arc<Tree>>) -> Tree {
        Tree { pages, ..self }
    }

    /// Removes the alias, for a tree whose folder is the document root.
    pub fn without_alias(self) -> Tree {
        Tree { place: None, ..self }
    }

    /// Returns the tree of an error page with this path of the site.
    pub fn page_tree<'t>(self: &'t Arc<Tree>, path: &str) -> &'t Arc<Tree> {
        self.pages
            .as_ref()
            .filter(|_| self.inside(path).is_none())
            .unwrap_or(self)
    }

    /// Returns the tree of the error pages outside of the alias, if there is one.
    pub fn pages(&self) -> Option<&Arc<Tree>> {
        self.pages.as_ref()
    }

    /// Returns the path in the folder that a path of the site leads to: empty or with a leading slash. `None` if the
    /// path is outside of the alias.
    pub fn inside<'p>(&'p self, path: &'p str) -> Option<&'p str> {
        match &self.place {
            None => Some(path),
            Some(place) => place.inside(path),
        }
    }

    /// Returns the path of the site that leads to a path in the folder, which is empty or has a leading slash.
    pub fn of_site(&self, inside: &str) -> String {
        match &self.place {
            None => inside.to_owned(),
            Some(place) => place.of_site(inside),
        }
    }

    /// Returns the path of the site that an `alias` maps to the folder; `None` without an alias.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// Returns true if a path of the site leads to the same file in both trees.
    pub fn is_at_same_place(&self, other: &Tree) -> bool {
        self.folder() == other.folder() && self.place == other.place
    }

    /// Returns true if a path of the site leads to a CGI program.
    pub fn is_program(&self, path: &str) -> bool {
        let rest = self.programs().and_then(|folder| path.strip_prefix(folder));
        rest.is_some_and(|rest| rest.starts_with('/'))
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
