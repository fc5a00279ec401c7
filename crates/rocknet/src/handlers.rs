//! The table of handlers: name, keys, constructor and description of each.
//!
//! [`choose`] selects the handler of a route, and `Endpoint::entry_for` the handler of a path. The server and the
//! command `explain` use both.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use rocknet_config::model::Settings;
use rocknet_control::SiteKind;

use crate::files::handler::FileHandler;
use crate::files::tree::Tree;
use crate::gateway::application::{ApplicationGroup, ApplicationHandler};
use crate::gateway::cgi::{CgiHandler, Programs};
use crate::gateway::fpm::{self, PhpHandler};
use crate::handler::Handler;
use crate::handler::controller::ControllerHandler;
use crate::handler::not_found::NotFound;
use crate::handler::welcome::Welcome;
use crate::proxy::{Proxy, ProxyHandler};
use crate::registries::Registries;
use crate::route::Route;

/// A kind of handler: an entry of the table.
pub struct HandlerEntry {
    /// Name of the handler.
    pub name: &'static str,
    /// Keys that a route must have to get this handler. Of `fastcgi`, `scgi` and `uwsgi`, one is enough.
    pub keys: &'static [&'static str],
    /// Kind of a site with this handler, as the command `sites` shows it.
    pub kind: SiteKind,
    /// True if the handler looks paths up in a directory tree, to serve files or to run scripts.
    pub serves_files: bool,
    /// True if the handler makes responses that the response cache may store.
    pub makes_responses: bool,
    /// Returns true if a route with these settings gets this handler, unless an earlier one of [`HANDLERS`] is chosen.
    is_chosen: fn(&Settings) -> bool,
    /// Builds the handler. It is called only if the settings that it needs are present, so its 404 for missing settings
    /// is a fallback.
    make: fn(&HandlerContext<'_>) -> HandlerResult,
    /// Returns the description for `explain`; `None` if it depends on the path, if the handler responds with 404, or if
    /// the embedding program passes the handler.
    pub describe: fn(&Settings) -> Option<String>,
}

type HandlerResult = Result<Arc<dyn Handler>, Box<dyn Error>>;

/// The values from which a handler is built.
pub struct HandlerContext<'a> {
    /// Settings of the route in the configuration.
    pub settings: &'a Settings,
    /// The prepared route.
    pub route: &'a Arc<Route>,
    /// Directory tree of the route, if it serves files.
    pub tree: Option<&'a Arc<Tree>>,
    /// Registries of the server.
    pub registries: &'a Registries,
    /// Main file of the configuration; `None` if the configuration was built in memory.
    pub config_file: Option<&'a Path>,
}

/// All handlers that a configuration can choose for a route, in order of precedence. The last one matches every route.
pub const HANDLERS: &[&HandlerEntry] = &[
    &CONTROLLER,
    &APPLICATION,
    &PROXY,
    &PHP,
    &FILES,
    &WELCOME,
    &REDIRECT,
    &NOTHING,
];

/// Returns the handler entry for a route with these settings.
pub fn choose(settings: &Settings) -> &'static HandlerEntry {
    HANDLERS
        .iter()
        .find(|entry| (entry.is_chosen)(settings))
        .unwrap_or(&&NOTHING)
}

impl HandlerEntry {
    /// Builds the handler.
    ///
    /// # Errors
    ///
    /// The error names the setting that cannot be used.
    pub fn make(&self, context: &HandlerContext<'_>) -> HandlerResult {
        (self.make)(context)
    }

    /// Returns true if the handler responds to every request with 404.
    pub fn is_not_found(&self) -> bool {
        matches!(self.kind, SiteKind::Nothing | SiteKind::Redirect)
    }
}

const CONTROLLER: HandlerEntry = HandlerEntry {
    name: "controller",
    keys: &["controller"],
    kind: SiteKind::Controller,
    serves_files: false,
    makes_responses: true,
    is_chosen: |settings| settings.controller.is_some(),
    make: |context| {
        let Some(configured) = &context.settings.controller else {
            return not_found();
        };
        let handler = ControllerHandler::new(configured, context.settings, &context.registries.libraries)?;
        Ok(Arc::new(handler))
    },
    describe: |settings| Some(format!("the controller {}", settings.controller.as_ref()?)),
};

const APPLICATION: HandlerEntry = HandlerEntry {
    name: "application",
    keys: &["fastcgi", "scgi", "uwsgi"],
    kind: SiteKind::Application,
    serves_files: false,
    makes_responses: true,
    is_chosen: |settings| settings.application.is_some(),
    make: |context| {
        let Some(configured) = &context.settings.application else {
            return not_found();
        };
        let root = context.settings.document_root();
        let application = ApplicationGroup::new(configured, root, &context.registries.backends);
        Ok(Arc::new(ApplicationHandler::new(application)))
    },
    describe: |settings| {
        let application = settings.application.as_ref()?;
        let addresses: Vec<String> = application.to.iter().map(ToString::to_string).collect();
        Some(format!(
            "an application by {} at {}",
            application.protocol,
            addresses.join(" or ")
        ))
    },
};

const PROXY: HandlerEntry = HandlerEntry {
    name: "proxy",
    keys: &["proxy"],
    kind: SiteKind::Proxy,
    serves_files: false,
    makes_responses: true,
    is_chosen: |settings| settings.proxy.is_some(),
    make: |context| {
        let Some(configured) = &context.settings.proxy else {
            return not_found();
        };
        let send_timeout = context.route.server.send_timeout;
        let proxy = Proxy::new(configured, &context.registries.upstreams, send_timeout)?;
        Ok(Arc::new(ProxyHandler::new(proxy)))
    },
    describe: |settings| {
        let servers = &settings.proxy.as_ref()?.to;
        let names: Vec<String> = servers.iter().map(|to| to.upstream.to_string()).collect();
        Some(format!("passed on to {}", names.join(" or ")))
    },
};

/// PHP scripts and static files, both looked up in the same directory tree.
const PHP: HandlerEntry = HandlerEntry {
    name: "php",
    keys: &["root", "php"],
    kind: SiteKind::Files,
    serves_files: true,
    makes_responses: true,
    is_chosen: |settings| settings.root.is_some() && settings.php.is_some(),
    make: |context| {
        let (Some(tree), Some(php)) = (context.tree, &context.settings.php) else {
            return not_found();
        };
        let backend = fpm::backend(php, &context.registries.backends);
        Ok(Arc::new(PhpHandler::new(Arc::clone(tree), backend)))
    },
    describe: |_| None,
};

const FILES: HandlerEntry = HandlerEntry {
    name: "files",
    keys: &["root"],
    kind: SiteKind::Files,
    serves_files: true,
    makes_responses: false,
    is_chosen: |settings| settings.root.is_some(),
    make: |context| {
        let Some(tree) = context.tree else { return not_found() };
        Ok(Arc::new(FileHandler::new(Arc::clone(tree))))
    },
    describe: |_| None,
};

/// CGI programs. The path selects this handler within a route that serves files.
pub const CGI: HandlerEntry = HandlerEntry {
    name: "cgi",
    keys: &["root", "cgi"],
    kind: SiteKind::Files,
    serves_files: true,
    makes_responses: true,
    is_chosen: |_| false,
    make: |context| {
        let (Some(tree), Some(cgi)) = (context.tree, &context.settings.cgi) else {
            return not_found();
        };
        let user = context.settings.user.as_deref();
        let programs = Programs::new(tree.folder(), cgi, user, &context.registries.programs);
        Ok(Arc::new(CgiHandler::new(Arc::clone(tree), programs)))
    },
    describe: |_| None,
};

/// The welcome page of a new installation. No key selects it: only the configuration that the server uses without a
/// configuration file sets `welcome_page`. That configuration has no response cache.
const WELCOME: HandlerEntry = HandlerEntry {
    name: "welcome",
    keys: &[],
    kind: SiteKind::Welcome,
    serves_files: false,
    makes_responses: false,
    is_chosen: |settings| settings.welcome_page,
    make: |context| Ok(Arc::new(Welcome::new(context.config_file))),
    describe: |_| Some("the welcome page".to_owned()),
};

/// Routes that have only redirects. The redirects belong to the route and are applied before its handler, so the
/// handler itself responds with 404.
const REDIRECT: HandlerEntry = HandlerEntry {
    name: "redirect",
    keys: &["redirects"],
    kind: SiteKind::Redirect,
    serves_files: false,
    makes_responses: false,
    is_chosen: |settings| !settings.redirects.is_empty(),
    make: |_| not_found(),
    describe: |_| None,
};

const NOTHING: HandlerEntry = HandlerEntry {
    name: "nothing",
    keys: &[],
    kind: SiteKind::Nothing,
    serves_files: false,
    makes_responses: false,
    is_chosen: |_| true,
    make: |_| not_found(),
    describe: |_| None,
};

/// A handler that the embedding program mounts. No key selects it. The program passes the handler itself, so `make` is
/// not called. The response cache does not store its responses.
pub const EMBEDDED: HandlerEntry = HandlerEntry {
    name: "embedded",
    keys: &[],
    kind: SiteKind::Other,
    serves_files: false,
    makes_responses: false,
    is_chosen: |_| false,
    make: |_| not_found(),
    describe: |_| None,
};

/// Returns the handler that responds to every request with 404.
fn not_found() -> HandlerResult {
    Ok(Arc::new(NotFound))
}

#[cfg(test)]
mod tests {
    use rocknet_config::keys::{Section, find};

    use super::*;

    #[test]
    fn names_differ_and_keys_exist() {
        for (number, entry) in HANDLERS.iter().enumerate() {
            let others = HANDLERS[number + 1..].iter();
            assert!(others.clone().all(|other| other.name != entry.name), "{}", entry.name);
            for key in entry.keys {
                assert!(find(Section::Site, key).is_some(), "{}: {key}", entry.name);
            }
        }
    }

    #[test]
    fn the_first_match_is_chosen() {
        let none = Settings::default();
        let files = Settings {
            root: Some("/srv".into()),
            welcome_page: true,
            ..Settings::default()
        };
        let welcome = Settings {
            welcome_page: true,
            ..Settings::default()
        };
        let php = Settings {
            php: Some(rocknet_config::model::Php::External(rocknet_config::model::Host::Unix(
                "/run/php.sock".into(),
            ))),
            ..files.clone()
        };
        for (settings, expected) in [
            (&none, "nothing"),
            (&files, "files"),
            (&php, "php"),
            (&welcome, "welcome"),
        ] {
            assert_eq!(choose(settings).name, expected);
        }
    }
}
