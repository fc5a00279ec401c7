//! A scope is a place in a site where the same actions and filters apply: the site itself, or one of its routes.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rocknet_config::model::{Fallback, Priority, RequestBuffering, Settings, Symlinks};
use rocknet_io::beneath::{self, Root};

use crate::accounts::Account;
use crate::handler::Handler;
use crate::handler::application::Application;
use crate::handler::cgi::Programs;
use crate::handler::controller::Controller;
use crate::handler::files::shared_pages::SharedPages;
use crate::handler::gateway::backend::Backend;
use crate::handler::php;
use crate::handler::proxy::Proxy;
use crate::open_folder::Folder;
use crate::preload::Preloads;
use crate::routing::{Redirects, RouteTrie};
use crate::services::Services;

/// Settings made ready for use.
pub struct Scope {
    /// Never used twice in a server: cached answers carry it.
    pub id: u32,
    pub action: Action,
    pub headers: BTreeMap<String, String>,
    pub errors: BTreeMap<u16, String>,
    /// Where the pages of `errors` are, if not among the files that are served here: in the root of a site whose requests
    /// somebody else answers.
    pub pages: Option<Arc<Scope>>,
    pub redirects: Redirects,
    /// What pages need; empty where a route takes back what its site says.
    preloads: RouteTrie<Option<Arc<Preloads>>>,
    pub priority: Priority,
    pub compress: bool,
    /// Nobody may ask for what is here: applications name it.
    pub internal: bool,
    /// Largest request content, in bytes.
    pub body_size: u64,
    /// Request body that is held in memory while it is received whole.
    pub body_memory: u64,
    /// Longest wait for an answer.
    pub answer_timeout: Duration,
    /// Largest file whose content is kept in memory.
    pub max_cached_file: u64,
    /// Content of files that answer for many paths.
    pub shared_pages: SharedPages,
}

/// What answers here.
pub enum Action {
    Files(FileTree),
    /// Another server does.
    Proxy(Proxy),
    /// An application does, by FastCGI, SCGI or uwsgi.
    Application(Box<Application>),
    /// A function of a shared library.
    Controller(Arc<Controller>),
    /// The page of a fresh install.
    Welcome,
    /// Nothing: every answer is 404.
    Nothing,
    /// Something brought in by the program that embeds the server.
    Custom(Arc<dyn Handler>),
}

/// The site of a scope, for the log.
#[derive(Debug, Clone, Default)]
pub struct Label {
    pub site: Arc<str>,
    /// Whether the site is being worked on, so that its writer wants to know what is missing.
    pub is_dev: bool,
}

/// A folder and how its files are served.
pub struct FileTree {
    pub label: Label,
    folder: Folder,
    pub index: Vec<String>,
    pub browse: bool,
    pub fallback: Fallback,
    pub try_paths: Vec<String>,
    pub symlinks: beneath::Symlinks,
    /// Who runs the scripts in it; `None`: they are files as any other.
    pub php: Option<Arc<Backend>>,
    /// Its programs, and where they are.
    pub programs: Option<Programs>,
}

impl Scope {
    pub fn new(settings: &Settings, max_cached_file: u64, services: &Services) -> Result<Scope, Box<dyn Error>> {
        if settings.runs_programs() {
            // Refused before it acts, and not for each script. Without scripts `user` has no effect, whatever it names.
            let user = settings.user.as_deref();
            let of = user.map_or_else(|| "scripts".to_owned(), |user| format!("user = \"{user}\""));
            Account::of_scripts(user).map_err(|error| format!("{of}: {error}"))?;
        }
        let action = if let Some(wanted) = &settings.controller {
            Action::Controller(Arc::new(Controller::new(wanted, settings, &services.libraries)?))
        } else if let Some(wanted) = &settings.application {
            let root = settings.root.as_deref();
            Action::Application(Box::new(Application::new(wanted, root, &services.backends)))
        } else if let Some(proxy) = &settings.proxy {
            Action::Proxy(Proxy::new(proxy, &services.upstreams)?)
        } else if let Some(folder) = &settings.root {
            Action::Files(FileTree::new(folder, settings, services))
        } else if settings.default_page {
            Action::Welcome
        } else {
            Action::Nothing
        };
        let pages = Scope::pages_beside(&action, settings, max_cached_file, services);
        Ok(Scope {
            pages,
            redirects: Redirects::new(&settings.redirects)?,
            ..Scope::bare(settings, action, max_cached_file, services)
        })
    }

    /// Returns whether request bodies are received whole here before an application or server is asked.
    pub fn receives_bodies_whole(&self) -> bool {
        match &self.action {
            Action::Files(tree) => tree.php.is_some() || tree.programs.is_some(),
            Action::Application(_) => true,
            Action::Proxy(proxy) => proxy.request_buffering == RequestBuffering::Whole,
            Action::Controller(_) | Action::Welcome | Action::Nothing | Action::Custom(_) => false,
        }
    }

    pub fn custom(settings: &Settings, handler: Arc<dyn Handler>, max_cached_file: u64, services: &Services) -> Scope {
        let action = Action::Custom(handler);
        Scope {
            pages: Scope::pages_beside(&action, settings, max_cached_file, services),
            ..Scope::bare(settings, action, max_cached_file, services)
        }
    }

    /// The files that error pages come from, where something other than files answers.
    fn pages_beside(
        action: &Action,
        settings: &Settings,
        max_cached_file: u64,
        services: &Services,
    ) -> Option<Arc<Scope>> {
        let folder = settings.root.as_ref().filter(|_| !settings.errors.is_empty())?;
        if matches!(action, Action::Files(_)) {
            return None;
        }
        let files = Action::Files(FileTree::of_pages(folder, settings, services));
        Some(Arc::new(Scope::bare(settings, files, max_cached_file, services)))
    }

    #[cfg(test)]
    pub fn empty(services: &Services) -> Scope {
        Scope::bare(&Settings::default(), Action::Welcome, 0, services)
    }

    fn bare(settings: &Settings, action: Action, max_cached_file: u64, services: &Services) -> Scope {
        Scope {
            id: services.next_scope_id(),
            action,
            headers: settings.headers.clone(),
            errors: settings.errors.clone(),
            pages: None,
            redirects: Redirects::default(),
            preloads: preloads(settings),
            priority: settings.priority,
            internal: settings.internal,
            compress: settings.compress && !forbids_transforming(&settings.headers),
            body_size: settings.body_size,
            body_memory: settings.body_memory,
            answer_timeout: settings.answer_timeout,
            max_cached_file,
            shared_pages: SharedPages::default(),
        }
    }
}

/// The patterns of a map differ from each other, so all of them find a place.
fn preloads(settings: &Settings) -> RouteTrie<Option<Arc<Preloads>>> {
    let mut trie = RouteTrie::new();
    for (page, paths) in &settings.push {
        let _ = trie.insert(page, Preloads::new(paths).map(Arc::new));
    }
    trie
}

/// Whether the operator's own `Cache-Control` says that content is to stay as it is (RFC 9111 §5.2.2.6).
fn forbids_transforming(headers: &BTreeMap<String, String>) -> bool {
    let mut values = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("Cache-Control"))
        .map(|(_, value)| value);
    values.any(|value| {
        value
            .split(',')
            .any(|directive| directive.trim().eq_ignore_ascii_case("no-transform"))
    })
}

impl Scope {
    /// Names the site for the log. Called before the scope is shared.
    pub fn set_label(&mut self, label: &Label) {
        if let Action::Files(tree) = &mut self.action {
            tree.label = label.clone();
        }
        if let Some(pages) = self.pages.as_mut().and_then(Arc::get_mut) {
            pages.set_label(label);
        }
    }

    /// Whether what answers here may agree to another protocol.
    pub fn takes_tunnels(&self) -> bool {
        match self.action {
            Action::Custom(_) | Action::Proxy(_) => true,
            Action::Files(_) | Action::Application(_) | Action::Controller(_) | Action::Welcome | Action::Nothing => {
                false
            }
        }
    }

    /// What the page at a decoded path needs.
    pub fn preloads(&self, path: &str) -> Option<&Arc<Preloads>> {
        self.preloads.find(path)?.0.as_ref()
    }
}

impl FileTree {
    fn new(folder: &Path, settings: &Settings, services: &Services) -> FileTree {
        FileTree {
            label: Label::default(),
            folder: Folder::new(folder, &services.folders),
            index: settings.index.clone(),
            browse: settings.browse,
            fallback: settings.fallback.clone(),
            try_paths: settings.try_paths.clone(),
            symlinks: match settings.symlinks {
                Symlinks::Inside => beneath::Symlinks::Inside,
                Symlinks::Owner => beneath::Symlinks::Owner,
                Symlinks::All => beneath::Symlinks::All,
            },
            php: settings.php.as_ref().map(|php| php::backend(php, &services.backends)),
            programs: settings
                .cgi
                .as_ref()
                .map(|cgi| Programs::new(folder, cgi, settings.user.as_deref(), &services.programs)),
        }
    }

    /// The same folder where only single files are looked for. What is run elsewhere is not sent as a file here: a page that
    /// is a script is none.
    fn of_pages(folder: &Path, settings: &Settings, services: &Services) -> FileTree {
        let plain = Settings {
            browse: false,
            fallback: Fallback::Nothing,
            try_paths: Vec::new(),
            ..settings.clone()
        };
        FileTree::new(folder, &plain, services)
    }

    /// Whether a path of the site leads to a program that is to be run.
    pub fn is_program(&self, path: &str) -> bool {
        let rest = self
            .programs
            .as_ref()
            .and_then(|programs| path.strip_prefix(&*programs.folder));
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// The same by the path below the root, which has no slash in front.
    pub fn holds_program(&self, relative: &[u8]) -> bool {
        let programs = self.programs.as_ref().map(|programs| &programs.folder.as_bytes()[1..]);
        let rest = programs.and_then(|programs| relative.strip_prefix(programs));
        rest.is_some_and(|rest| rest.starts_with(b"/"))
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The open folder; see [`Folder::root`].
    pub fn root(&self) -> io::Result<Arc<Root>> {
        self.folder.root()
    }

    /// See [`Folder::root_in_memory`].
    pub fn root_in_memory(&self) -> Option<Arc<Root>> {
        self.folder.root_in_memory()
    }
}
