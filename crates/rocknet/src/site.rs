//! A site made ready: its routes, each with the scope that applies there.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use rocknet_config::model;

use crate::certificates::SecureSite;
use crate::handler::Handler;
use crate::log::SinkId;
use crate::routing::{Kind, RouteTrie, Rules};
use crate::scope::{Action, Label, Scope};
use crate::services::Services;

pub struct Site {
    pub name: String,
    /// Its certificates and whom it trusts; `None`: in the clear.
    pub secure: Option<SecureSite>,
    /// The port that requests in the clear are sent to, under https://.
    pub redirect: Option<u16>,
    /// What requests meet before they are looked up; `None`: nothing.
    pub rules: Option<Rules>,
    places: Places,
    /// The same for visitors in the clear, where those under TLS are told what counts under TLS alone.
    in_clear: Option<Places>,
    pub access: Option<SinkId>,
}

/// What applies where in a site.
pub struct Places {
    /// What applies where no route says otherwise.
    pub scope: Arc<Scope>,
    routes: RouteTrie<Arc<Scope>>,
}

impl Site {
    pub fn new(
        site: &model::Site,
        config: &model::Config,
        access: Option<SinkId>,
        secure: Option<SecureSite>,
        services: &Services,
    ) -> Result<Site, String> {
        let cache = &config.cache;
        let max_file = if cache.memory == 0 { 0 } else { cache.max_file };
        let label = Label {
            site: site.name.as_str().into(),
            is_dev: config.server.mode == model::Mode::Dev,
        };
        let places = |tls: Option<&model::SiteTls>| {
            Places::new(site, &label, max_file, tls, services).map_err(|error| format!("site {}: {error}", site.name))
        };
        let strict = site.tls.as_ref().filter(|tls| !tls.hsts.is_zero());
        let is_in_clear = site.listen.iter().any(|listen| !site.secure.contains(listen));
        Ok(Site {
            name: site.name.clone(),
            secure,
            redirect: redirect(site),
            rules: Rules::new(&site.rules).map_err(|error| format!("site {}: {error}", site.name))?,
            in_clear: (strict.is_some() && is_in_clear).then(|| places(None)).transpose()?,
            places: places(strict)?,
            access,
        })
    }

    /// Puts a handler of the embedding program at a route.
    pub fn mount(
        &mut self,
        site: &model::Site,
        pattern: &model::Pattern,
        handler: &Arc<dyn Handler>,
        services: &Services,
    ) -> Result<(), String> {
        let told = |error: &dyn std::fmt::Display| format!("site {}: {error}", site.name);
        let strict = site.tls.as_ref().filter(|tls| !tls.hsts.is_zero());
        for (places, tls) in self
            .in_clear
            .iter_mut()
            .map(|places| (places, None))
            .chain([(&mut self.places, strict)])
        {
            let mut scope = Scope::custom(&site.settings, Arc::clone(handler), 0, services);
            strict_transport(tls, &mut scope.headers);
            places
                .routes
                .insert(pattern, Arc::new(scope))
                .map_err(|error| told(&error))?;
        }
        Ok(())
    }

    /// Whether anything of the site answers requests with something other than 404.
    pub fn serves(&self) -> bool {
        let answers = |scope: &Arc<Scope>| !matches!(scope.action, Action::Nothing) || !scope.redirects.is_empty();
        self.rules.is_some() || self.scopes().any(answers)
    }

    /// What applies to visitors under TLS, or to those in the clear.
    pub fn places(&self, is_secure: bool) -> &Places {
        self.in_clear.as_ref().filter(|_| !is_secure).unwrap_or(&self.places)
    }

    pub fn scopes(&self) -> impl Iterator<Item = &Arc<Scope>> {
        self.in_clear.iter().chain([&self.places]).flat_map(Places::scopes)
    }
}

impl Places {
    fn new(
        site: &model::Site,
        label: &Label,
        max_file: u64,
        tls: Option<&model::SiteTls>,
        services: &Services,
    ) -> Result<Places, Box<dyn Error>> {
        let ready = |settings: &model::Settings| -> Result<Arc<Scope>, Box<dyn Error>> {
            let mut scope = Scope::new(settings, max_file, services)?;
            scope.set_label(label);
            strict_transport(tls, &mut scope.headers);
            Ok(Arc::new(scope))
        };
        let scope = ready(&site.settings)?;
        let mut routes = RouteTrie::new();
        for route in &site.routes {
            routes.insert(&route.pattern, ready(&route.settings)?)?;
        }
        Ok(Places { scope, routes })
    }

    /// What applies at a decoded path.
    pub fn scope(&self, path: &str) -> &Arc<Scope> {
        self.routes.find(path).map_or(&self.scope, |(scope, _)| scope)
    }

    /// Whether a route is for this decoded path alone.
    pub fn names(&self, path: &str) -> bool {
        let found = self.routes.find(path);
        found.is_some_and(|(_, matched)| matched.kind == Kind::Exact)
    }

    pub fn scopes(&self) -> impl Iterator<Item = &Arc<Scope>> {
        std::iter::once(&self.scope).chain(self.routes.values())
    }
}

/// Says that browsers are to come by https:// alone, unless the configuration says something itself. In the clear, where
/// anybody could have put it into the answer, it must not be said (RFC 6797 §7.2).
fn strict_transport(tls: Option<&model::SiteTls>, headers: &mut BTreeMap<String, String>) {
    let Some(tls) = tls else { return };
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
