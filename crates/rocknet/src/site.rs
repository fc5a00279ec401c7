//! Site that is ready to serve: its routes, each with its endpoint.

use std::borrow::Cow;
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
use crate::routing::{FileRules, MatchKind, RouteTrie, Rules};
use crate::secure_fields::{self, SecureFields};

/// A site that is ready to serve.
pub struct Site {
    /// Name of the site in the configuration.
    pub name: String,
    /// Certificates and TLS policy; `None` without TLS.
    pub secure: Option<SecureSite>,
    /// Port of the HTTPS URLs to which plain-HTTP requests are redirected; `None` if they are not redirected.
    pub https_redirect_port: Option<u16>,
    /// Rules applied to requests that the guards of their path have admitted. After a rewrite the route is looked up
    /// again.
    pub rules: Option<Rules>,
    /// True if a route of the site has a guard.
    pub has_guards: bool,
    /// Endpoints for connections with TLS, or for all connections.
    routes: SiteRoutes,
    /// Endpoints for connections without TLS. Set if the site has such connections, and its TLS responses carry fields
    /// that must not be sent without TLS (see [`secure_fields`]). Otherwise `None`: `routes` then has the endpoints for
    /// all connections.
    cleartext_routes: Option<SiteRoutes>,
    /// Access log of the site, if it has one.
    pub access_log: Option<SinkId>,
}

/// The endpoints of a site by path, for connections with or without TLS.
pub struct SiteRoutes {
    /// Endpoint of paths without a route of their own.
    pub root: Arc<Endpoint>,
    trie: RouteTrie<Arc<Endpoint>>,
    /// Rules of the site that also apply to the file that a request leads to; `None` if it has none.
    pub file_rules: Option<Arc<FileRules>>,
}

/// Inputs of [`Site::new`] that are the same for all sites.
pub struct SiteContext<'a> {
    /// The whole configuration.
    pub config: &'a model::Config,
    /// Settings of the server that handlers use.
    pub server: &'a Arc<ServerSettings>,
    /// State that all sites share and that survives reloads: back ends, libraries, open folders, access control.
    pub registries: &'a Registries,
    /// Returns true if an address serves HTTP/3.
    pub serves_quic: &'a dyn Fn(&model::Listen) -> bool,
}

impl Site {
    /// Prepares a site. `access_log`: its access log, if it has one. `secure`: its certificates and TLS policy; `None`
    /// without TLS.
    ///
    /// # Errors
    ///
    /// The message names the site and the setting that cannot be used.
    pub fn new(
        site: &model::Site,
        context: &SiteContext<'_>,
        access_log: Option<SinkId>,
        secure: Option<SecureSite>,
    ) -> Result<Site, String> {
        let label = context.label(site);
        let endpoint_context = context.endpoint_context(site, &label);
        let rule_error = |error| format!("site {}: {error}", site.name);
        let file_rules = FileRules::new(&site.rules).map_err(rule_error)?.map(Arc::new);
        let routes = |secure_fields: &SecureFields| {
            SiteRoutes::new(site, &endpoint_context, secure_fields, file_rules.clone())
                .map_err(|error| format!("site {}: {error}", site.name))
        };
        let secure_fields = context.secure_fields(site);
        let has_cleartext = site.listen.iter().any(|listen| !site.secure.contains(listen));
        Ok(Site {
            name: site.name.clone(),
            secure,
            https_redirect_port: redirect_port(site),
            rules: Rules::new(&site.rules).map_err(rule_error)?,
            has_guards: !settings_of(site).all(guard::is_unguarded),
            cleartext_routes: (!secure_fields.is_empty() && has_cleartext)
                .then(|| routes(&Vec::new()))
                .transpose()?,
            routes: routes(&secure_fields)?,
            access_log,
        })
    }

    /// Adds a route with a handler of the embedding program.
    ///
    /// # Errors
    ///
    /// The message names the site and the pattern or setting that cannot be used.
    pub fn mount(
        &mut self,
        site: &model::Site,
        pattern: &model::Pattern,
        handler: &Arc<dyn Handler>,
        context: &SiteContext<'_>,
    ) -> Result<(), String> {
        let label = context.label(site);
        // The handler belongs to the embedding program and serves no files of the site, so no files of its route are
        // cached.
        let endpoint_context = EndpointContext {
            max_cached_file: 0,
            ..context.endpoint_context(site, &label)
        };
        let named_error = |error: &dyn std::fmt::Display| format!("site {}: {error}", site.name);
        for (routes, secure_fields) in self
            .cleartext_routes
            .iter_mut()
            .map(|routes| (routes, Vec::new()))
            .chain([(&mut self.routes, context.secure_fields(site))])
        {
            let headers = secure_fields::with_configured(&site.settings, &secure_fields);
            let endpoint = Endpoint::embedded(Arc::clone(handler), pattern, &site.settings, headers, &endpoint_context);
            let endpoint = endpoint.map_err(|error| named_error(&*error))?;
            routes
                .trie
                .insert(pattern, Arc::new(endpoint))
                .map_err(|error| named_error(&error))?;
        }
        Ok(())
    }

    /// Returns false if the response to every request for the site is 404.
    pub fn serves(&self) -> bool {
        self.rules.is_some() || self.endpoints().any(|endpoint| endpoint.serves())
    }

    /// Returns the endpoints for connections with TLS (`is_secure`) or without.
    pub fn routes(&self, is_secure: bool) -> &SiteRoutes {
        self.cleartext_routes
            .as_ref()
            .filter(|_| !is_secure)
            .unwrap_or(&self.routes)
    }

    /// Returns all endpoints, both for connections with TLS and without.
    pub fn endpoints(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        self.cleartext_routes
            .iter()
            .chain([&self.routes])
            .flat_map(SiteRoutes::endpoints)
    }
}

impl SiteContext<'_> {
    /// Returns the label of the site in log lines.
    fn label(&self, site: &model::Site) -> SiteLabel {
        SiteLabel {
            site: site.name.as_str().into(),
            is_dev: self.config.server.mode == model::Mode::Dev,
        }
    }

    /// Returns the header fields that only responses with TLS carry.
    fn secure_fields(&self, site: &model::Site) -> SecureFields {
        secure_fields::of_site(site, self.serves_quic)
    }

    /// Returns the inputs of the endpoints of a site.
    fn endpoint_context<'a>(&'a self, site: &'a model::Site, label: &'a SiteLabel) -> EndpointContext<'a> {
        let settings = settings_of(site);
        let has_file_rules = site.rules.iter().any(FileRules::is_resolved);
        let cache = &self.config.cache;
        EndpointContext {
            label,
            server: self.server,
            max_cached_file: if cache.memory == 0 { 0 } else { cache.max_file },
            registries: self.registries,
            config_file: self.config.files.first().map(PathBuf::as_path),
            site_settings: &site.settings,
            anonymity: guard::anonymity(settings.clone()),
            login_endpoints: guard::login_endpoints(settings.clone(), &label.site, self.server, self.registries),
            is_unguarded: !has_file_rules && settings.clone().all(guard::is_unguarded),
            checks_existence: (site.rules.iter().flat_map(model::Rule::all_conditions))
                .any(|when| when.existence.is_some()),
        }
    }
}

/// Returns the settings of a site and of its routes.
fn settings_of(site: &model::Site) -> impl Iterator<Item = &model::Settings> + Clone {
    std::iter::once(&site.settings).chain(site.routes.iter().map(|route| &route.settings))
}

impl SiteRoutes {
    /// Creates the endpoints of a site. `secure_fields`: fields that only responses with TLS carry; empty for the
    /// endpoints of connections without TLS. `file_rules`: rules of the site that also apply to files.
    fn new(
        site: &model::Site,
        endpoint_context: &EndpointContext<'_>,
        secure_fields: &SecureFields,
        file_rules: Option<Arc<FileRules>>,
    ) -> Result<SiteRoutes, Box<dyn Error>> {
        let build =
            |pattern: Option<&model::Pattern>, settings: &model::Settings| -> Result<Arc<Endpoint>, Box<dyn Error>> {
                Ok(Arc::new(Endpoint::new(
                    pattern,
                    settings,
                    secure_fields::with_configured(settings, secure_fields),
                    endpoint_context,
                )?))
            };
        let root = build(None, &site.settings)?;
        let mut trie = RouteTrie::new();
        for route in &site.routes {
            trie.insert(&route.pattern, build(Some(&route.pattern), &route.settings)?)?;
        }
        Ok(SiteRoutes { root, trie, file_rules })
    }

    /// Returns the endpoint of a decoded path.
    pub fn endpoint(&self, path: &str) -> &Arc<Endpoint> {
        self.trie.find(path).map_or(&self.root, |(endpoint, _)| endpoint)
    }

    /// Returns the endpoint of another route that applies to `file`, a path in `tree`, such as the route
    /// `/docs/index.html` after a request for `/docs/`. The guards of that route apply to the file too. Returns `None`
    /// if `file` and `tree` have the same route. Also returns `None` if the route of `file` serves another folder or
    /// has another alias, because the same path is a different file there.
    pub fn endpoint_of_file(&self, tree: &Arc<Tree>, file: &str) -> Option<&Arc<Endpoint>> {
        let endpoint = self.endpoint(file);
        let is_excluded = |other: &Arc<Tree>| Arc::ptr_eq(other, tree) || !other.is_at_same_place(tree);
        (!endpoint.tree.as_ref().is_some_and(is_excluded)).then_some(endpoint)
    }

    /// Returns the endpoint of a route for the path with its final slash added or removed, because many applications
    /// treat both as one path. `None` if there is no such route, or if a route names the path itself.
    pub fn endpoint_with_toggled_trailing_slash(&self, path: &str) -> Option<&Arc<Endpoint>> {
        let other = match path.strip_suffix('/') {
            Some(without) => Cow::Borrowed(without),
            None => Cow::Owned(format!("{path}/")),
        };
        match self.by_pattern(path) {
            Some(_) => None,
            None => self.by_pattern(&other),
        }
    }

    /// Returns the endpoint of the route whose pattern is this path, with or without a `*` after it, if there is one.
    fn by_pattern(&self, path: &str) -> Option<&Arc<Endpoint>> {
        let (endpoint, matched) = self.trie.find(path)?;
        let is_named = match matched.kind {
            MatchKind::Exact => true,
            MatchKind::Prefix => matched.star.is_empty(),
            MatchKind::Glob | MatchKind::Regex => false,
        };
        is_named.then_some(endpoint)
    }

    /// Returns true if a route matches exactly this decoded path.
    pub fn has_exact_route(&self, path: &str) -> bool {
        let found = self.trie.find(path);
        found.is_some_and(|(_, matched)| matched.kind == MatchKind::Exact)
    }

    /// Returns all endpoints.
    pub fn endpoints(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        std::iter::once(&self.root).chain(self.trie.values())
    }
}

/// Returns the port for redirects to HTTPS: 443 if the site has TLS at that port, otherwise its first TLS port. Ports
/// that the kernel chooses (0) are left out. Returns `None` if redirects are disabled or there is no such port.
pub fn redirect_port(site: &model::Site) -> Option<u16> {
    let ports = site.secure.iter().filter_map(|listen| match listen {
        model::Listen::Tcp { port, .. } if *port != 0 => Some(*port),
        _ => None,
    });
    let is_enabled = site.tls.as_ref().is_some_and(|tls| tls.redirect);
    ports.min_by_key(|port| *port != HTTPS_PORT).filter(|_| is_enabled)
}

/// Default port of `https` URLs.
pub const HTTPS_PORT: u16 = 443;
