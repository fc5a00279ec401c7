//! Settings of a site or route, as meant.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::access::Access;
use super::application::Application;
use super::auth::Auth;
use super::cgi::Cgi;
use super::controller::{Controller, RunOn};
use super::limits::Limits;
use super::pattern::Pattern;
use super::php::Php;
use super::proxy::Proxy;
use super::source_span::SourceSpan;
use super::with_defaults::with_defaults;
use crate::choice::choice;

choice! {
    /// The symbolic links that are followed.
    #[derive(Copy)]
    pub enum Symlinks {
        Inside = "inside", "while they stay inside the root";
        Owner = "owner", "anywhere, if link and target belong to the same user";
        All = "all", "anywhere; dangerous where others may make links";
    }
    default Inside
}

choice! {
    /// The order in which work is done.
    #[derive(Copy, PartialOrd, Ord)]
    pub enum Priority {
        High = "high", "before all others";
        Normal = "normal", "in between";
        Low = "low", "behind all others, yet never starved";
    }
    default Normal
}

with_defaults! {
    /// Actions and filters, as they apply at one place.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Settings {
        pub root: Option<PathBuf> = None,
        /// Answers `/` with the default page where nothing else answers: set only where there is no configuration file.
        pub default_page: bool = false,
        pub index: Vec<String> = Settings::default_index(false),
        pub browse: bool = false,
        pub fallback: Fallback = Fallback::default(),
        /// Tried in order; `{path}` is the request's path. Empty: the path itself.
        pub try_paths: Vec<String> = Vec::new(),
        pub symlinks: Symlinks = Symlinks::default(),
        /// `None`: scripts are served as files.
        pub php: Option<Php> = None,
        /// Account that scripts run as; `None`: the account of all sites.
        pub user: Option<String> = None,
        /// Upstreams that answer in place of files.
        pub proxy: Option<Proxy> = None,
        /// An application that answers in place of files.
        pub application: Option<Application> = None,
        /// Answers in place of files.
        pub controller: Option<Controller> = None,
        pub run_on: RunOn = RunOn::default(),
        /// The controller runs in a process of its own.
        pub isolate: bool = false,
        pub compress: bool = true,
        /// Programs that are run by CGI.
        pub cgi: Option<Cgi> = None,
        /// Sent only where an application names it.
        pub internal: bool = false,
        /// Client addresses that may enter.
        pub access: Access = Access::default(),
        /// Users that may enter; `None`: no password is needed.
        pub auth: Option<Auth> = None,
        /// Added to every answer; an empty value removes the field.
        pub headers: BTreeMap<String, String> = BTreeMap::new(),
        /// Status to a path within the site, or a file.
        pub errors: BTreeMap<u16, String> = BTreeMap::new(),
        pub redirects: Vec<Redirect> = Vec::new(),
        /// Files that are sent along with a page, as decoded paths.
        pub push: BTreeMap<Pattern, Vec<String>> = BTreeMap::new(),
        pub priority: Priority = Priority::default(),
        /// Largest request content, in bytes.
        pub body_size: u64 = Limits::default().body_size,
        /// Request body that is held in memory while it is received whole, in bytes.
        pub body_memory: u64 = Limits::default().body_memory,
        /// Longest wait for a response.
        pub answer_timeout: Duration = Limits::default().answer_timeout,
        /// SourceSpan of each key that was written, for `explain`: `root`, `headers.X-A`, `redirects./old`.
        pub key_spans: BTreeMap<String, SourceSpan> = BTreeMap::new(),
    }
}

/// File that is served when nothing else matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Fallback {
    /// The front controller where scripts are run, elsewhere none.
    #[default]
    Default,
    /// No file, with scripts or without.
    Off,
    Path(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    pub from: Pattern,
    /// Path, or absolute URL; `{*}` stands for what the `*` matched.
    pub to: String,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}

impl Redirect {
    /// Status of a redirect that names none.
    pub(crate) const STATUS: u16 = 308;
}

impl Settings {
    /// Returns true if requests need no check: there is neither `allow`, `deny` nor `auth`.
    pub fn is_open(&self) -> bool {
        self.access.is_open() && self.auth.is_none()
    }

    /// Returns whether RockNet starts programs for requests here: CGI programs, or a php-fpm of its own.
    pub fn runs_programs(&self) -> bool {
        self.cgi.is_some() || matches!(self.php, Some(Php::Managed { .. }))
    }

    /// Returns the files that are looked up for a folder where `index` is not written.
    pub(crate) fn default_index(php: bool) -> Vec<String> {
        let script = php.then_some("index.php");
        let names = script.into_iter().chain(["index.html", "index.htm"]);
        names.map(str::to_owned).collect()
    }
}
