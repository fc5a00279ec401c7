//! Route whose guards are created.

use std::sync::Arc;

use rocknet_config::model::Settings;

use crate::registries::Registries;
use crate::route::ROOT_PATTERN;

/// Route whose guards are created.
pub struct GuardRoute<'a> {
    /// Settings of the route.
    pub settings: &'a Settings,
    /// Settings of its site.
    pub site_settings: &'a Settings,
    /// Name of the site.
    pub site: &'a Arc<str>,
    /// Pattern of its paths; [`ROOT_PATTERN`] for the site itself.
    pub pattern: &'a Arc<str>,
    /// Registries of the server.
    pub registries: &'a Registries,
}

impl GuardRoute<'_> {
    /// Returns the pattern of the route that the limits are written in. Routes that inherit the limits of their site
    /// count together.
    pub fn limit_scope(&self) -> Arc<str> {
        let position = |settings: &Settings| settings.key_spans.get("limit").cloned();
        let is_inherited = self.settings.limits == self.site_settings.limits
            && position(self.settings) == position(self.site_settings);
        match is_inherited {
            true => ROOT_PATTERN.into(),
            false => Arc::clone(self.pattern),
        }
    }
}
