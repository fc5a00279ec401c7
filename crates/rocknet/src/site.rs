//! A site made ready: its routes, each with the endpoint that answers there.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use rocknet_config::model;

use crate::certificates::SecureSite;
use crate::endpoint::{Endpoint, EndpointContext};
use crate::files::tree::Tree;
use crate::guard;
use crate::handler::Handler;
use crate::log::SinkId;
use crate::registries::Registries;
use crate::route::{ServerSettings, SiteLabel};
use crate::routing::{MatchKind, RouteTrie, Rules};

pub struct Site {
    pub name: String,
    /// Its certificates and whom it trusts; `None`: in the clear.
    pub secure: Option<SecureSite>,
    /// The port that requests in the clear are sent to, under https://.
    pub redirect: Option<u16>,
    /// What requests meet before they are looked up; `None`: nothing.
    pub rules: Option<Rules>,
    routes: SiteRoutes,
    /// The same for visitors in the clear, where those under TLS are told what counts under TLS alone.
    cleartext_routes: Option<SiteRoutes>,
    pub access: Option<SinkId>,
}

/// The endpoints of a site by path.
pub struct SiteRoutes {
    /// Answers where no route says otherwise.
    pub root: Arc<Endpoint>,
    trie: RouteTrie<Arc<Endpoint>>,
}

/// Everything that sites are made of besides their own part of the configuration.
pub struct SiteContext<'a> {
    pub config: &'a model::Config,
    pub server: &'a Arc<ServerSettings>,
    pub registries: &'a Registries,
}

impl Site {
    /// Makes a site ready.
    ///
    /// # Errors
    ///
    /// The message names the site and tells the operator what cannot be used.
    pub fn new(
        site: &model::Site,
        context: &SiteContext<'_>,
        access: Option<SinkId>,
        secure: Option<SecureSite>,
    ) -> Result<Site, String> {
        let label = context.label(site);
        let endpoint_context = context.endpoint_context(site, &label);
        let routes = |tls: Option<&model::SiteTls>| {
            SiteRoutes::new(site, &endpoint_context, tls).map_err(|error| format!("site {}: {error}", site.name))
        };
        let hsts = site.tls.as_ref().filter(|tls| !tls.hsts.is_zero());
        let has_cleartext = site.listen.iter().any(|listen| !site.secure.contains(listen));
        Ok(Site {
            name: site.name.clone(),
            secure,
            redirect: redirect(site),
            rules: Rules::new(&site.rules).map_err(|error| format!("site {}: {error}", site.name))?,
            cleartext_routes: (hsts.is_some() && has_cleartext).then(|| routes(None)).transpose()?,
            routes: routes(hsts)?,
            access,
        })
    }

    /// Puts a handler of the embedding program at a route.
    pub fn mount(
        &mut self,
        site: &model::Site,
        pattern: &model::Pattern,
        handler: &Arc<dyn Handler>,
        context: &SiteContext<'_>,
    ) -> Result<(), String> {
        let label = context.label(site);
        let endpoint_context = EndpointContext {
            max_cached_file: 0,
            ..context.endpoint_context(site, &label)
        };
        let named_error = |error: &dyn std::fmt::Display| format!("site {}: {error}", site.name);
        let hsts = site.tls.as_ref().filter(|tls| !tls.hsts.is_zero());
        for (routes, tls) in self
            .cleartext_routes
            .iter_mut()
            .map(|routes| (routes, None))
            .chain([(&mut self.routes, hsts)])
        {
            let headers = headers(&site.settings, tls);
            let endpoint = Endpoint::embedded(Arc::clone(handler), &site.settings, headers, &endpoint_context);
            let endpoint = endpoint.map_err(|error| named_error(&*error))?;
            routes
                .trie
                .insert(pattern, Arc::new(endpoint))
                .map_err(|error| named_error(&error))?;
        }
        Ok(())
    }

    /// Whether anything of the site answers requests with something other than 404.
    pub fn serves(&self) -> bool {
        self.rules.is_some() || self.endpoints().any(|endpoint| endpoint.serves())
    }

    /// Returns true if no route of the site has a guard.
    pub fn is_open(&self) -> bool {
        self.routes.root.route.is_unguarded
    }

    /// What applies to visitors under TLS, or to those in the clear.
    pub fn routes(&self, is_secure: bool) -> &SiteRoutes {
        self.cleartext_routes
            .as_ref()
            .filter(|_| !is_secure)
            .unwrap_or(&self.routes)
    }

    pub fn endpoints(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        self.cleartext_routes
            .iter()
            .chain([&self.routes])
            .flat_map(SiteRoutes::endpoints)
    }
}

impl SiteContext<'_> {
    /// The site in the words of log lines.
    fn label(&self, site: &model::Site) -> SiteLabel {
        SiteLabel {
            site: site.name.as_str().into(),
            is_dev: self.config.server.mode == model::Mode::Dev,
        }
    }

    fn endpoint_context<'a>(&'a self, site: &model::Site, label: &'a SiteLabel) -> EndpointContext<'a> {
        let mut settings = std::iter::once(&site.settings).chain(site.routes.iter().map(|route| &route.settings));
        let cache = &self.config.cache;
        EndpointContext {
            label,
            server: self.server,
            max_cached_file: if cache.memory == 0 { 0 } else { cache.max_file },
            registries: self.registries,
            config_file: self.config.files.first().map(PathBuf::as_path),
            is_open: settings.all(guard::is_open),
        }
    }
}

impl SiteRoutes {
    fn new(
        site: &model::Site,
        endpoint_context: &EndpointContext<'_>,
        tls: Option<&model::SiteTls>,
    ) -> Result<SiteRoutes, Box<dyn Error>> {
        let build = |settings: &model::Settings| -> Result<Arc<Endpoint>, Box<dyn Error>> {
            Ok(Arc::new(Endpoint::new(
                settings,
                headers(settings, tls),
                endpoint_context,
            )?))
        };
        let root = build(&site.settings)?;
        let mut trie = RouteTrie::new();
        for route in &site.routes {
            trie.insert(&route.pattern, build(&route.settings)?)?;
        }
        Ok(SiteRoutes { root, trie })
    }

    /// Returns the endpoint of a decoded path.
    pub fn endpoint(&self, path: &str) -> &Arc<Endpoint> {
        self.trie.find(path).map_or(&self.root, |(endpoint, _)| endpoint)
    }

    /// Returns the endpoint at the path of a file of `tree`, if it is not that of the tree. The same path in another folder is
    /// another file.
    pub fn endpoint_of_file(&self, tree: &Arc<Tree>, file: &str) -> Option<&Arc<Endpoint>> {
        let own = self.endpoint(file);
        let is_elsewhere = |own: &Arc<Tree>| Arc::ptr_eq(own, tree) || own.folder() != tree.folder();
        (!own.tree.as_ref().is_some_and(is_elsewhere)).then_some(own)
    }

    /// Returns the endpoint that a route has for the path with a slash at its end, or without it, because many applications take
    /// both for one. `None` for a path that a route names itself.
    pub fn endpoint_with_other_slash(&self, path: &str) -> Option<&Arc<Endpoint>> {
        let other = match path.strip_suffix('/') {
            Some(without) => Cow::Borrowed(without),
            None => Cow::Owned(format!("{path}/")),
        };
        match self.by_pattern(path) {
            Some(_) => None,
            None => self.by_pattern(&other),
        }
    }

    /// Returns the endpoint of the route whose pattern is this path, with or without a `*` after it.
    fn by_pattern(&self, path: &str) -> Option<&Arc<Endpoint>> {
        let (endpoint, matched) = self.trie.find(path)?;
        let is_named = match matched.kind {
            MatchKind::Exact => true,
            MatchKind::Prefix => matched.star.is_empty(),
            MatchKind::Glob => false,
        };
        is_named.then_some(endpoint)
    }

    /// Whether a route is for this decoded path alone.
    pub fn has_exact_route(&self, path: &str) -> bool {
        let found = self.trie.find(path);
        found.is_some_and(|(_, matched)| matched.kind == MatchKind::Exact)
    }

    pub fn endpoints(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        std::iter::once(&self.root).chain(self.trie.values())
    }
}

/// The fields that the configuration adds to responses. Under TLS, browsers are told to come by https:// alone unless the
/// configuration says something itself. In the clear, where anybody could have put it into the response, it must not be said
/// (RFC 6797 §7.2).
fn headers(settings: &model::Settings, tls: Option<&model::SiteTls>) -> BTreeMap<String, String> {
    let mut headers = settings.headers.clone();
    if let Some(tls) = tls
        && !headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case(STRICT_TRANSPORT_SECURITY))
    {
        headers.insert(
            STRICT_TRANSPORT_SECURITY.to_owned(),
            format!("max-age={}", tls.hsts.as_secs()),
        );
    }
    headers
}

const STRICT_TRANSPORT_SECURITY: &str = "Strict-Transport-Security";

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
