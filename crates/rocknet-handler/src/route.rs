//! A route: the settings that apply to the paths it covers, whichever handler answers them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rocknet_config::model::{Priority, Server, Settings};
use rocknet_routing::{Redirects, RouteTrie};

use crate::preload::Preloads;
use crate::spool::Bounds;

/// The settings of one route, or of a site where no route says otherwise.
pub struct Route {
    pub label: SiteLabel,
    pub server: Arc<ServerSettings>,
    /// True if no route of the site has a guard, so that no request is checked.
    pub is_unguarded: bool,
    pub headers: BTreeMap<String, String>,
    /// Paths of error pages, by status.
    pub errors: BTreeMap<u16, String>,
    pub redirects: Redirects,
    /// Resources that pages need. An empty entry revokes that of the site.
    preloads: RouteTrie<Option<Arc<Preloads>>>,
    pub priority: Priority,
    pub compress: bool,
    /// Clients get 404; applications may name the files of the route.
    pub internal: bool,
    /// Largest request body, in bytes.
    pub body_size: u64,
    /// Largest part of a request body that is held in memory while it is received whole, in bytes.
    pub body_memory: u64,
    /// Longest wait for a response.
    pub answer_timeout: Duration,
}

/// The site of a route, for log lines and error pages.
#[derive(Debug, Clone, Default)]
pub struct SiteLabel {
    pub site: Arc<str>,
    /// The mode is `dev`: error pages say how to fix what is wrong.
    pub is_dev: bool,
}

/// Settings of the whole server that handlers use.
pub struct ServerSettings {
    pub server: Server,
    /// Bounds of request bodies that are received whole.
    pub spool: Bounds,
    /// Longest time that a client may take no bytes of a response.
    pub send_timeout: Duration,
}

impl Default for ServerSettings {
    fn default() -> ServerSettings {
        let server = Server::default();
        ServerSettings {
            spool: Bounds::new(&server.spool),
            server,
            send_timeout: Duration::ZERO,
        }
    }
}

impl Route {
    /// Prepares the settings of a route. `headers`: those of the settings, with what the server adds to them.
    ///
    /// # Errors
    ///
    /// The message names a redirect that cannot be compiled.
    pub fn new(
        settings: &Settings,
        headers: BTreeMap<String, String>,
        label: SiteLabel,
        server: Arc<ServerSettings>,
    ) -> Result<Route, String> {
        Ok(Route {
            label,
            server,
            is_unguarded: false,
            compress: settings.compress && !forbids_transforming(&headers),
            headers,
            errors: settings.errors.clone(),
            redirects: Redirects::new(&settings.redirects).map_err(|error| error.to_string())?,
            preloads: preloads(settings),
            priority: settings.priority,
            internal: settings.internal,
            body_size: settings.body_size,
            body_memory: settings.body_memory,
            answer_timeout: settings.answer_timeout,
        })
    }

    /// Returns the resources that the page at a decoded path needs.
    pub fn preloads(&self, path: &str) -> Option<&Arc<Preloads>> {
        self.preloads.find(path)?.0.as_ref()
    }
}

/// Returns the resources of pages by pattern. The patterns of a map differ from each other, so each of them can be inserted.
fn preloads(settings: &Settings) -> RouteTrie<Option<Arc<Preloads>>> {
    let mut trie = RouteTrie::new();
    for (page, paths) in &settings.push {
        let _ = trie.insert(page, Preloads::new(paths).map(Arc::new));
    }
    trie
}

/// Returns whether `Cache-Control` of the configuration forbids a content coding (RFC 9111 §5.2.2.6).
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
