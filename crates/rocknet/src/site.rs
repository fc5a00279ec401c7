//! A site made ready: its routes, each with the scope that applies there.

use std::sync::Arc;

use rocknet_config::model;

use crate::handler::Handler;
use crate::log::SinkId;
use crate::routing::RouteTrie;
use crate::scope::Scope;

pub struct Site {
    pub name: String,
    /// What applies where no route says otherwise.
    pub scope: Arc<Scope>,
    routes: RouteTrie<Arc<Scope>>,
    /// Largest request content, in bytes.
    pub body_size: u64,
    pub access: Option<SinkId>,
}

impl Site {
    pub fn new(site: &model::Site, cache: &model::Cache, access: Option<SinkId>) -> Result<Site, String> {
        let max_file = if cache.memory == 0 { 0 } else { cache.max_file };
        let told = |error: &dyn std::fmt::Display| format!("site {}: {error}", site.name);
        let scope = Arc::new(Scope::new(&site.settings, max_file).map_err(|error| told(&error))?);
        let mut routes = RouteTrie::new();
        for route in &site.routes {
            let scope = Arc::new(Scope::new(&route.settings, max_file).map_err(|error| told(&error))?);
            routes.insert(&route.pattern, scope).map_err(|error| told(&error))?;
        }
        Ok(Site {
            name: site.name.clone(),
            scope,
            routes,
            body_size: site.body_size,
            access,
        })
    }

    /// Puts a handler of the embedding program at a route.
    pub fn mount(
        &mut self,
        pattern: &model::Pattern,
        settings: &model::Settings,
        handler: Arc<dyn Handler>,
    ) -> Result<(), String> {
        let scope = Arc::new(Scope::custom(settings, handler, 0));
        self.routes
            .insert(pattern, scope)
            .map_err(|error| format!("site {}: {error}", self.name))
    }

    /// What applies at a decoded path.
    pub fn scope(&self, path: &str) -> &Arc<Scope> {
        self.routes.find(path).map_or(&self.scope, |(scope, _)| scope)
    }

    pub fn scopes(&self) -> impl Iterator<Item = &Arc<Scope>> {
        std::iter::once(&self.scope).chain(self.routes.values())
    }
}
