//! Sites and their routes, as meant.

use std::net::IpAddr;
use std::path::PathBuf;

use super::log::AccessLog;
use super::pattern::{HostPattern, Pattern};
use super::rule::Rule;
use super::settings::Settings;
use super::source_span::SourceSpan;
use super::tls::SiteTls;

#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// As written: `example.com`, `*.example.com`, `:8081`, `10.0.0.1`, `default`.
    pub name: String,
    /// Host names of the site, in lower case and without port: the name itself (unless port-based) and its aliases.
    /// Empty for a port-based site, which answers to every name on its listeners.
    pub names: Vec<HostPattern>,
    pub listen: Vec<Listen>,
    /// Listeners of `listen` that speak TLS.
    pub secure: Vec<Listen>,
    /// True if the listeners were written, false if they are the default for this kind of site.
    pub listen_given: bool,
    /// `None`: in the clear.
    pub tls: Option<SiteTls>,
    pub access: AccessLog,
    /// Settings outside of the routes.
    pub settings: Settings,
    pub routes: Vec<Route>,
    /// In the order they were written.
    pub rules: Vec<Rule>,
    pub span: SourceSpan,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Listen {
    /// No address: every IPv4 and IPv6 address of the machine.
    Tcp {
        address: Option<IpAddr>,
        port: u16,
    },
    Unix(PathBuf),
}

/// A route's settings are whole: the site's, with what the route writes merged over them.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    pub pattern: Pattern,
    pub settings: Settings,
    pub span: SourceSpan,
}
