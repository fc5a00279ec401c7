//! Sites, their listeners and their routes.

use super::http3::Http3;
use super::listen::Listen;
use super::log::AccessLog;
use super::pattern::{HostPattern, Pattern};
use super::rule::Rule;
use super::settings::Settings;
use super::source_span::SourceSpan;
use super::tls::SiteTls;

/// Site: the settings for requests with certain host names at certain listeners.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// Name as in the configuration: `example.com`, `*.example.com`, `:8081`, `10.0.0.1` or `default`.
    pub name: String,
    /// Host names of the site, in lower case and without port: its own name, then its aliases. Empty for a site that is
    /// named by address or port, or is named `default`. A site without names serves the host names that no other site
    /// on its listeners has.
    pub names: Vec<HostPattern>,
    /// Listeners.
    pub listen: Vec<Listen>,
    /// Listeners of `listen` that use TLS.
    pub secure: Vec<Listen>,
    /// Listeners of `listen` that accept HTTP/2 without TLS, from clients with prior knowledge.
    pub h2c: Vec<Listen>,
    /// True if the configuration has `listen`, false if the listeners are the default.
    pub listen_given: bool,
    /// TLS settings; `None`: without TLS.
    pub tls: Option<SiteTls>,
    /// HTTP/3 at the listeners of `secure`.
    pub http3: Http3,
    /// Access log.
    pub access: AccessLog,
    /// Settings of the site itself, for paths that match none of `routes`.
    pub settings: Settings,
    /// Routes, sorted by the derived order of [`Pattern`]. This order is not the precedence: the most specific pattern
    /// that matches takes effect.
    pub routes: Vec<Route>,
    /// Rules, in the order of the configuration.
    pub rules: Vec<Rule>,
    /// Position of the site in the configuration.
    pub span: SourceSpan,
}

impl Site {
    /// Returns true if the site is served by HTTP/3 at a listener.
    pub fn serves_http3(&self, listen: &Listen) -> bool {
        self.secure.contains(listen) && self.http3.is_enabled_at(listen)
    }
}

/// Site with `enabled = false`, which is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisabledSite {
    /// Name as in the configuration.
    pub name: String,
    /// Position of the site in the configuration.
    pub span: SourceSpan,
}

/// Settings for the paths of a site that match a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Pattern of the paths.
    pub pattern: Pattern,
    /// Complete settings: the settings of the site, overridden by the keys of the route.
    pub settings: Settings,
    /// Position of the route in the configuration.
    pub span: SourceSpan,
}
