//! Route whose guards are created.

use std::sync::Arc;

use rocknet_config::model::Settings;
use rocknet_handler::guard::Guard;

use crate::registries::Registries;
use crate::route::{ROOT_PATTERN, Route};

/// Route whose guards are created.
pub struct GuardRoute<'a> {
    /// Settings of the route.
    pub settings: &'a Settings,
    /// Settings of its site.
    pub site_settings: &'a Settings,
    /// Name of the site.
    pub site: &'a Arc<str>,
    /// The prepared route.
    pub route: &'a Arc<Route>,
    /// Pattern of its paths; [`ROOT_PATTERN`] for the site itself.
    pub pattern: &'a Arc<str>,
    /// Guard of all routes of the site that removes forged identity fields, if an authenticator of the site has such
    /// fields.
    pub anonymity: Option<&'a Arc<dyn Guard>>,
    /// Guard of all routes of the site, if users log in at a provider.
    pub login_endpoints: Option<&'a Arc<dyn Guard>>,
    /// Registries of the server.
    pub registries: &'a Registries,
}

impl GuardRoute<'_> {
    /// Returns the pattern of the route that the limits are written in.
    pub(super) fn limit_scope(&self) -> Arc<str> {
        limit_scope(self.settings, self.site_settings, self.pattern)
    }
}

/// Returns the pattern of the route that the limits of a route are written in. Routes that inherit the limits of their
/// site count together. `pattern`: that of the route itself.
pub fn limit_scope(settings: &Settings, site_settings: &Settings, pattern: &Arc<str>) -> Arc<str> {
    let position = |settings: &Settings| settings.key_spans.get("limit").cloned();
    let is_inherited = settings.limits == site_settings.limits && position(settings) == position(site_settings);
    match is_inherited {
        true => ROOT_PATTERN.into(),
        false => Arc::clone(pattern),
    }
}
