//! A site made ready: its routes, each with the scope that applies there.

use std::collections::BTreeMap;
use std::sync::Arc;

use rocknet_config::model;

use crate::certificates::SecureSite;
use crate::handler::Handler;
use crate::log::SinkId;
use crate::routing::RouteTrie;
use crate::scope::Scope;

pub struct Site {
    pub name: String,
    /// Its certificates and whom it trusts; `None`: in the clear.
    pub secure: Option<SecureSite>,
    /// The port that requests in the clear are sent to, under https://.
    pub redirect: Option<u16>,
    /// What applies where no route says otherwise.
    pub scope: Arc<Scope>,
    routes: RouteTrie<Arc<Scope>>,
    /// Largest request content, in bytes.
    pub body_size: u64,
    pub access: Option<SinkId>,
}

impl Site {
    pub fn new(
        site: &model::Site,
        cache: &model::Cache,
        access: Option<SinkId>,
        secure: Option<SecureSite>,
    ) -> Result<Site, String> {
        let max_file = if cache.memory == 0 { 0 } else { cache.max_file };
        let told = |error: &dyn std::fmt::Display| format!("site {}: {error}", site.name);
        let ready = |settings: &model::Settings| -> Result<Arc<Scope>, String> {
            let mut scope = Scope::new(settings, max_file).map_err(|error| told(&error))?;
            strict_transport(site, &mut scope.headers);
            Ok(Arc::new(scope))
        };
        let scope = ready(&site.settings)?;
        let mut routes = RouteTrie::new();
        for route in &site.routes {
            routes
                .insert(&route.pattern, ready(&route.settings)?)
                .map_err(|error| told(&error))?;
        }
        Ok(Site {
            name: site.name.clone(),
            secure,
            redirect: redirect(site),
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

/// Says that browsers are to come by https:// alone, unless the configuration says something itself.
fn strict_transport(site: &model::Site, headers: &mut BTreeMap<String, String>) {
    let Some(tls) = site.tls.as_ref().filter(|tls| !tls.hsts.is_zero()) else {
        return;
    };
    if !headers.keys().any(|name| name.eq_ignore_ascii_case(STRICT_TRANSPORT)) {
        headers.insert(STRICT_TRANSPORT.to_owned(), format!("max-age={}", tls.hsts.as_secs()));
    }
}

const STRICT_TRANSPORT: &str = "Strict-Transport-Security";

/// The port of the site's first listener under TLS, the web's own before all others.
fn redirect(site: &model::Site) -> Option<u16> {
    let ports = site.secure.iter().filter_map(|listen| match listen {
        model::Listen::Tcp { port, .. } if *port != 0 => Some(*port),
        _ => None,
    });
    let wanted = site.tls.as_ref().is_some_and(|tls| tls.redirect);
    ports.min_by_key(|port| *port != HTTPS_PORT).filter(|_| wanted)
}

/// The port that a browser takes for https:// when none is named.
pub const HTTPS_PORT: u16 = 443;
