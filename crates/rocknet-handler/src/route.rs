//! The settings of a route (a part of a site's paths), independent of its handler.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rocknet_config::model::{BandwidthLimit, Cors, Priority, Server, Settings};
use rocknet_config::template::{Scope, Template};
use rocknet_routing::{Redirects, RouteTrie};

use crate::preload::Preloads;
use crate::shared_bandwidth::SharedBandwidth;
use crate::spool::Bounds;

/// Pattern of the root route of a site.
pub const ROOT_PATTERN: &str = "/*";

/// Settings of one route. The settings of the site itself form its root route.
pub struct Route {
    /// Site of the route.
    pub label: SiteLabel,
    /// Pattern of its paths as in the configuration; [`ROOT_PATTERN`] for the site itself.
    pub pattern: Arc<str>,
    /// Number of the route in the metrics of the server; 0 for a route that has no separate metrics.
    pub number: u32,
    /// Settings of the whole server.
    pub server: Arc<ServerSettings>,
    /// True if no route of the site has a guard, and no rule applies to files, so that no request is checked.
    pub is_unguarded: bool,
    /// True if the route has a response cache.
    pub is_cached: bool,
    /// Header fields added to responses; an empty template removes the field.
    pub headers: BTreeMap<String, Template>,
    /// Limit of the bandwidth of each response.
    pub bandwidth: Option<BandwidthLimit>,
    /// Limits of the bandwidth that responses share.
    pub shared_bandwidth: Vec<Arc<dyn SharedBandwidth>>,
    /// Permission for pages of other origins to read responses.
    pub cors: Option<Cors>,
    /// True if responses get the fields of `harden`.
    pub harden: bool,
    /// True if a value in `headers` has placeholders, or if `cors`, `bandwidth` or `shared_bandwidth` is set. The
    /// response then passes the filters with the values of its request, and no prepared response is sent.
    pub has_placeholders: bool,
    /// Paths of error pages by status.
    pub errors: BTreeMap<u16, String>,
    /// Redirects.
    pub redirects: Redirects,
    /// Resources to send with a page, by the path pattern of the page. `None`: an empty list, by which a route revokes
    /// the resources that its site has for the pattern.
    preloads: RouteTrie<Option<Arc<Preloads>>>,
    /// Priority of jobs in the blocking pool.
    pub priority: Priority,
    /// True if responses may get a content coding.
    pub compress: bool,
    /// True if clients get 404 for the files of the route, and only applications can name these files
    /// (`X-Accel-Redirect`).
    pub internal: bool,
    /// Maximum size of a request body, in bytes.
    pub body_size: u64,
    /// Maximum number of bytes of a spooled request body in memory. A larger body is stored on disk.
    pub body_memory: u64,
    /// Response timeout.
    pub answer_timeout: Duration,
}

/// Site of a route, for log lines and error pages.
#[derive(Debug, Clone, Default)]
pub struct SiteLabel {
    /// Name of the site.
    pub site: Arc<str>,
    /// True in `dev` mode, in which error pages state how to fix the problem.
    pub is_dev: bool,
}

/// Settings of the whole server.
pub struct ServerSettings {
    /// The section `[server]` of the configuration.
    pub server: Server,
    /// Bounds of spooled request bodies.
    pub spool: Bounds,
    /// Send timeout: maximum time without progress while a response is sent.
    pub send_timeout: Duration,
}

impl Default for ServerSettings {
    fn default() -> ServerSettings {
        let server = Server::default();
        ServerSettings {
            spool: Bounds::new(&server.spool),
            server,
            // No response is sent with these defaults: `rocknet explain` uses them without a server.
            send_timeout: Duration::ZERO,
        }
    }
}

impl Route {
    /// Prepares the settings of a root route. The caller sets `pattern` for another route, and `number`, `is_unguarded`
    /// and `shared_bandwidth` for each route. `headers`: the header fields of the settings, and the header fields that
    /// the server adds.
    ///
    /// # Errors
    ///
    /// Returns an error if a redirect or the template of a header field cannot be compiled. The message names it.
    pub fn new(
        settings: &Settings,
        headers: BTreeMap<String, String>,
        label: SiteLabel,
        server: Arc<ServerSettings>,
    ) -> Result<Route, String> {
        let compress = settings.compress && !forbids_transforming(&headers);
        let headers = headers.into_iter().map(|(name, value)| {
            let template = Template::parse(&value, Scope::Response);
            match template {
                Ok(template) => Ok((name, template)),
                Err(error) => Err(format!("header field {name}: {}; {}", error.message, error.help)),
            }
        });
        let headers: BTreeMap<_, _> = headers.collect::<Result<_, String>>()?;
        Ok(Route {
            label,
            pattern: ROOT_PATTERN.into(),
            number: 0,
            server,
            is_unguarded: false,
            is_cached: settings.cache.is_some(),
            compress,
            has_placeholders: settings.cors.is_some()
                || settings.bandwidth().is_some()
                || settings.shared_bandwidth().next().is_some()
                || headers.values().any(|template| template.as_constant().is_none()),
            bandwidth: settings.bandwidth(),
            shared_bandwidth: Vec::new(),
            cors: settings.cors.clone(),
            harden: settings.harden,
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

    /// Returns true if the bandwidth of responses is limited.
    pub fn limits_bandwidth(&self) -> bool {
        self.bandwidth.is_some() || !self.shared_bandwidth.is_empty()
    }

    /// Returns the resources of the page at a decoded path; `None` if the page has none.
    pub fn preloads(&self, path: &str) -> Option<&Arc<Preloads>> {
        self.preloads.find(path)?.0.as_ref()
    }
}

/// Returns the resources of pages by pattern. The patterns are keys of a map and therefore differ, so each insertion
/// succeeds.
fn preloads(settings: &Settings) -> RouteTrie<Option<Arc<Preloads>>> {
    let mut trie = RouteTrie::new();
    for (page, paths) in &settings.push {
        let _ = trie.insert(page, Preloads::new(paths).map(Arc::new));
    }
    trie
}

/// Returns true if `Cache-Control` of the configuration forbids content codings (`no-transform`, RFC 9111 §5.2.2.6).
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
