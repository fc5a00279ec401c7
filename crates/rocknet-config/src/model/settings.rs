//! Settings of a site or route.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::access::{Access, Satisfy};
use super::alias::Alias;
use super::application::Application;
use super::auth::Auth;
use super::browse::Browse;
use super::cgi::Cgi;
use super::controller::{Controller, RunOn};
use super::cors::Cors;
use super::limit::{Amount, BandwidthLimit, Limit};
use super::limits::Limits;
use super::pattern::Pattern;
use super::php::Php;
use super::proxy::Proxy;
use super::response_cache::ResponseCache;
use super::source_span::SourceSpan;
use super::with_defaults::with_defaults;
use crate::choice::choice;

choice! {
    /// Symbolic links that are followed.
    #[derive(Copy)]
    pub enum Symlinks {
        Inside = "inside", "links whose targets are inside the root";
        Owner = "owner", "links whose targets have the same owner as the link, wherever they are";
        All = "all", "all links; dangerous if untrusted users can create links";
    }
    default Inside
}

choice! {
    /// Priority of blocking work, and of requests in the queue for an upstream.
    #[derive(Copy, PartialOrd, Ord)]
    pub enum Priority {
        High = "high", "before all others";
        Normal = "normal", "after high priority";
        Low = "low", "after all others, but never starved";
    }
    default Normal
}

with_defaults! {
    /// Handlers and filters of a site or route.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Settings {
        /// Folder whose files are served; `None`: no files are served.
        pub root: Option<PathBuf> = None,
        /// Path of the site that leads to `root`; `None`: the whole path of a request is looked up below `root`.
        pub alias: Option<Alias> = None,
        /// Serves the welcome page for `/` if nothing else matches. It is set only if there is no configuration file.
        pub welcome_page: bool = false,
        /// Names of files that are served for a folder, tried in order.
        pub index: Vec<String> = Settings::default_index(false),
        /// Listings of folders without an index file; `None`: folders are not listed.
        pub browse: Option<Browse> = None,
        /// File that is served if nothing else matches.
        pub fallback: Fallback = Fallback::default(),
        /// Paths that are tried in order; `{path}` stands for the path of the request. Empty: only the path of the
        /// request is tried.
        pub try_paths: Vec<String> = Vec::new(),
        /// Media types of files by their extension, in lower case and without a dot. `*`: files of unknown type.
        pub types: BTreeMap<String, String> = BTreeMap::new(),
        /// Symbolic links that are followed.
        pub symlinks: Symlinks = Symlinks::default(),
        /// Application that runs PHP scripts; `None`: scripts are served as files.
        pub php: Option<Php> = None,
        /// User that scripts run as; `None`: `Server::script_user`.
        pub user: Option<String> = None,
        /// Proxy that handles requests in place of files.
        pub proxy: Option<Proxy> = None,
        /// Application that handles requests in place of files.
        pub application: Option<Application> = None,
        /// Controller that handles requests in place of files.
        pub controller: Option<Controller> = None,
        /// Threads that run the controller.
        pub run_on: RunOn = RunOn::default(),
        /// Runs the controller in a process of its own.
        pub isolate: bool = false,
        /// Compresses responses for clients that accept it.
        pub compress: bool = true,
        /// Cache of the responses of the handler; `None`: no response is stored.
        pub cache: Option<ResponseCache> = None,
        /// Programs that are run by CGI; `None`: no programs.
        pub cgi: Option<Cgi> = None,
        /// Sends files only if an application names them, by `X-Accel-Redirect` or `X-Sendfile`.
        pub internal: bool = false,
        /// Allowed and denied client addresses.
        pub access: Access = Access::default(),
        /// Restrictions that a client has to meet if there are lists of addresses and passwords.
        pub satisfy: Satisfy = Satisfy::default(),
        /// Authentication of clients; `None`: no client has to authenticate itself.
        pub auth: Option<Auth> = None,
        /// Limits of requests, all of which apply; empty: requests are not limited.
        pub limits: Vec<Limit> = Vec::new(),
        /// Header fields added to every response; an empty value removes a field.
        pub headers: BTreeMap<String, String> = BTreeMap::new(),
        /// Permission for pages of other origins to read responses; `None`: browsers deny it.
        pub cors: Option<Cors> = None,
        /// Adds header fields by which browsers limit attacks.
        pub harden: bool = false,
        /// Error pages: paths below the site by status.
        pub errors: BTreeMap<u16, String> = BTreeMap::new(),
        /// Redirects, sorted by the derived order of [`Pattern`].
        pub redirects: Vec<Redirect> = Vec::new(),
        /// Decoded paths of files that are pushed with a page, by pattern of the page.
        pub push: BTreeMap<Pattern, Vec<String>> = BTreeMap::new(),
        /// Priority of blocking work, and of requests in the queue for an upstream.
        pub priority: Priority = Priority::default(),
        /// Maximum size of a request body, in bytes.
        pub body_size: u64 = Limits::default().body_size,
        /// Maximum size of a buffered request body that is held in memory, in bytes; a larger body goes to disk.
        pub body_memory: u64 = Limits::default().body_memory,
        /// Timeout for a handler to produce a response, or its next part.
        pub answer_timeout: Duration = Limits::default().answer_timeout,
        /// Position of each key that was written, for `explain`. A key within a table has the name of the table as its
        /// prefix: `root`, `headers.X-A`, `redirects./old`.
        pub key_spans: BTreeMap<String, SourceSpan> = BTreeMap::new(),
    }
}

/// File that is served if nothing else matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Fallback {
    /// `/index.php` if PHP is configured, else no file.
    #[default]
    Default,
    /// No file, with or without PHP.
    Off,
    /// Path below the site.
    Path(String),
}

/// Redirect of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// Pattern of the redirected paths.
    pub from: Pattern,
    /// Target: a path or an absolute URL. `{*}` stands for the part of the path that the first `*` matched.
    pub to: String,
    /// Status: 301, 302, 303, 307 or 308.
    pub status: u16,
}

impl Redirect {
    /// Default status of a redirect.
    pub(crate) const STATUS: u16 = 308;
}

impl Settings {
    /// Returns true if access is not restricted: neither `allow`, `deny` nor `auth` is set.
    pub fn is_open(&self) -> bool {
        self.access.is_open() && self.auth.is_none()
    }

    /// Returns the limit of the bandwidth of each response; `None` if it is not limited.
    pub fn bandwidth(&self) -> Option<BandwidthLimit> {
        self.limits.iter().find_map(|limit| match limit.amount {
            Amount::Bandwidth(limit) if !limit.is_shared => Some(limit),
            Amount::Rate(_) | Amount::Connections(_) | Amount::Bandwidth(_) => None,
        })
    }

    /// Returns the limits of the bandwidth that responses share.
    pub fn shared_bandwidth(&self) -> impl Iterator<Item = (&Limit, BandwidthLimit)> {
        self.limits.iter().filter_map(|limit| match limit.amount {
            Amount::Bandwidth(bandwidth) if bandwidth.is_shared => Some((limit, bandwidth)),
            Amount::Rate(_) | Amount::Connections(_) | Amount::Bandwidth(_) => None,
        })
    }

    /// Returns the folder or file of `alias`; `None` without an alias.
    pub fn alias_target(&self) -> Option<PathBuf> {
        let (root, alias) = (self.root.as_ref()?, self.alias.as_ref()?);
        Some(alias.file.as_ref().map_or_else(|| root.clone(), |file| root.join(file)))
    }

    /// Returns the root of the route; for a route with an alias, the root that it would have without the alias.
    pub fn document_root(&self) -> Option<&Path> {
        let own = self.alias.as_ref().map_or(&self.root, |alias| &alias.document_root);
        own.as_deref()
    }

    /// Returns true if RockNet itself starts programs for requests: CGI programs, or php-fpm.
    pub fn runs_programs(&self) -> bool {
        self.cgi.is_some() || matches!(self.php, Some(Php::Managed { .. }))
    }

    /// Returns the default of `index`, with `index.php` first if PHP is configured.
    pub(crate) fn default_index(php: bool) -> Vec<String> {
        let script = php.then_some("index.php");
        let names = script.into_iter().chain(["index.html", "index.htm"]);
        names.map(str::to_owned).collect()
    }
}
