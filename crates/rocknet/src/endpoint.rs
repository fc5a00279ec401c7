//! Endpoint: a route with its handler and its guards.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use rocknet_cache::CacheHandler;
use rocknet_config::model::{Pattern, Settings};

use crate::files::tree::Tree;
use crate::gateway::accounts::Account;
use rocknet_handler::guard::Guard;

use crate::guard::{self, GuardRoute, Guards, Restrictions};
use crate::handler::Handler;
use crate::handlers::{self, HandlerContext, HandlerEntry};
use crate::metrics::RouteLabel;
use crate::registries::Registries;
use crate::route::{ROOT_PATTERN, Route, ServerSettings, SiteLabel};

/// A route with its guards, its handler, and the directory trees that it serves.
pub struct Endpoint {
    /// Settings of the route.
    pub route: Arc<Route>,
    /// Guards of the route. They check a request before any other part of the route acts.
    pub guards: Guards,
    /// Restrictions that the guards apply; `None` if every client may enter without a limit.
    pub restrictions: Option<Box<Restrictions>>,
    /// Entry of `handler` in the table of handlers. CGI programs have another entry, so [`Endpoint::entry_for`] returns
    /// the entry of a path.
    pub entry: &'static HandlerEntry,
    /// Handler of every path that does not lead to a CGI program.
    handler: Arc<dyn Handler>,
    /// Handler of CGI programs, if the route has some.
    programs: Option<Arc<dyn Handler>>,
    /// Directory tree that is served; `None` if the handler serves no files.
    pub tree: Option<Arc<Tree>>,
    /// Directory tree of the error pages, and of the files that rules look up. If the handler serves files, it is the
    /// same as `tree`. Otherwise it is `None` if the route has no root, or if nothing needs the tree.
    pub pages: Option<Arc<Tree>>,
    /// True if responses may upgrade the connection to a tunnel.
    pub accepts_tunnels: bool,
}

/// Inputs of [`Endpoint::new`] that are the same for all endpoints of a site.
pub struct EndpointContext<'a> {
    /// Label of the site in log lines.
    pub label: &'a SiteLabel,
    /// Settings of the server that handlers use.
    pub server: &'a Arc<ServerSettings>,
    /// Maximum size in bytes of a file whose content is cached.
    pub max_cached_file: u64,
    /// Registries of the server.
    pub registries: &'a Registries,
    /// Main file of the configuration; `None` if the configuration was built in memory.
    pub config_file: Option<&'a Path>,
    /// Settings of the site itself, which its routes inherit.
    pub site_settings: &'a Settings,
    /// Guard of all routes of the site that removes identity fields sent by clients; `None` if no route has an
    /// authorization service (`auth = { forward = "…" }`).
    pub anonymity: Option<Arc<dyn Guard>>,
    /// Guard of all routes of the site that responds at the paths of logins; `None` if the site has no login.
    pub login_endpoints: Option<Arc<dyn Guard>>,
    /// True if no route of the site has a guard, and no rule applies to files, so that no request is checked.
    pub is_unguarded: bool,
    /// True if a rule of the site depends on the existence of files.
    pub checks_existence: bool,
}

impl Endpoint {
    /// Creates the endpoint of a route. `pattern`: the paths of the route; `None` for the site itself. `headers`: the
    /// configured response header fields, and those that the server adds.
    ///
    /// # Errors
    ///
    /// The error names the setting that cannot be used.
    pub fn new(
        pattern: Option<&Pattern>,
        settings: &Settings,
        headers: BTreeMap<String, String>,
        context: &EndpointContext<'_>,
    ) -> Result<Endpoint, Box<dyn Error>> {
        // CGI programs, and scripts of the PHP that the server starts, run under an account.
        if settings.runs_programs() {
            // The account is checked here once instead of for each request. If the route runs no programs or scripts,
            // `user` has no effect and is not checked.
            let user = settings.user.as_deref();
            let subject = user.map_or_else(|| "scripts".to_owned(), |user| format!("user = \"{user}\""));
            Account::for_scripts(user).map_err(|error| format!("{subject}: {error}"))?;
        }
        let entry = handlers::choose(settings);
        let route = Arc::new(context.route(pattern, settings, headers)?);
        let root = settings.root.as_deref();
        let tree = root.filter(|_| entry.serves_files).map(|root| {
            // Error pages are paths of the site. Those outside of an alias are files of the document root, such as
            // `/404.html` for a route `/docs/*` with an alias.
            let pages = settings.alias.as_ref().and_then(|_| context.pages(settings, &route));
            Arc::new(context.tree(root, settings, &route).with_pages(pages))
        });
        let handler_context = HandlerContext {
            settings,
            route: &route,
            tree: tree.as_ref(),
            registries: context.registries,
            config_file: context.config_file,
        };
        let handler = context.cached(entry.make(&handler_context)?, entry, settings, &route);
        let has_programs = tree.is_some() && settings.cgi.is_some();
        let programs = has_programs.then(|| handlers::CGI.make(&handler_context)).transpose()?;
        let programs = programs.map(|handler| context.cached(handler, &handlers::CGI, settings, &route));
        Ok(Endpoint {
            guards: context.guards(settings, &route)?,
            restrictions: Restrictions::of(settings),
            accepts_tunnels: handler.accepts_tunnels(),
            pages: tree.clone().or_else(|| context.pages(settings, &route)),
            route,
            entry,
            handler,
            programs,
            tree,
        })
    }

    /// Creates the endpoint of a handler of the embedding program.
    ///
    /// # Errors
    ///
    /// Fails like [`Endpoint::new`].
    pub fn embedded(
        handler: Arc<dyn Handler>,
        pattern: &Pattern,
        settings: &Settings,
        headers: BTreeMap<String, String>,
        context: &EndpointContext<'_>,
    ) -> Result<Endpoint, Box<dyn Error>> {
        // The redirects of a site do not apply to the paths of an embedded handler.
        let settings = &Settings {
            redirects: Default::default(),
            ..settings.clone()
        };
        let route = Arc::new(context.route(Some(pattern), settings, headers)?);
        Ok(Endpoint {
            guards: context.guards(settings, &route)?,
            restrictions: Restrictions::of(settings),
            pages: context.pages(settings, &route),
            route,
            entry: &handlers::EMBEDDED,
            handler,
            programs: None,
            tree: None,
            // True whatever `Handler::accepts_tunnels` returns, because an embedding program need not implement that
            // method.
            accepts_tunnels: true,
        })
    }

    /// Returns the handler of a decoded path.
    pub fn handler(&self, path: &str) -> &Arc<dyn Handler> {
        self.programs_at(path).unwrap_or(&self.handler)
    }

    /// Returns the table entry of the handler of a decoded path.
    pub fn entry_for(&self, path: &str) -> &'static HandlerEntry {
        self.programs_at(path).map_or(self.entry, |_| &handlers::CGI)
    }

    /// Returns the handler of CGI programs if the path leads to a program.
    fn programs_at(&self, path: &str) -> Option<&Arc<dyn Handler>> {
        let is_program = self.tree.as_ref().is_some_and(|tree| tree.is_program(path));
        self.programs.as_ref().filter(|_| is_program)
    }

    /// Returns false if the response to every request is 404.
    pub fn serves(&self) -> bool {
        !self.entry.is_not_found() || !self.route.redirects.is_empty()
    }

    /// Returns true if one of the handlers receives request bodies completely before it passes them on.
    pub fn buffers_request_body(&self) -> bool {
        let handlers = std::iter::once(&self.handler).chain(&self.programs);
        handlers.into_iter().any(|handler| handler.buffers_request_body())
    }

    /// Returns the directory trees of the endpoint, including the tree of its error pages.
    pub fn trees(&self) -> impl Iterator<Item = &Arc<Tree>> {
        // If files are served, `pages` is the same tree as `tree`. A tree with an alias has a further tree for the
        // error pages outside of the alias.
        let own = self.tree.as_ref().or(self.pages.as_ref());
        own.into_iter().chain(own.and_then(|tree| tree.pages()))
    }
}

/// Returns the names of fields that the proxy of a route sets in requests, in lower case. A response whose `Vary` names
/// one of them is not stored, because the cache compares the field that the client sent, not the one that was set.
fn replaced_fields(settings: &Settings) -> Vec<String> {
    let names = settings.proxy.iter().flat_map(|proxy| proxy.headers.keys());
    names.map(|name| name.to_ascii_lowercase()).collect()
}

impl EndpointContext<'_> {
    fn route(
        &self,
        pattern: Option<&Pattern>,
        settings: &Settings,
        headers: BTreeMap<String, String>,
    ) -> Result<Route, String> {
        let mut route = Route::new(settings, headers, self.label.clone(), Arc::clone(self.server))?;
        route.is_unguarded = self.is_unguarded;
        route.pattern = pattern.map_or_else(|| ROOT_PATTERN.into(), |pattern| pattern.to_string().into());
        // Routes that inherit the limits of their site share its bandwidth.
        let scope = guard::limit_scope(settings, self.site_settings, &route.pattern);
        let shared = settings.shared_bandwidth();
        let shared = shared.map(|limit| {
            let limits = &self.registries.limits;
            limits.shared_bandwidth(&self.label.site, &scope, limit)
        });
        route.shared_bandwidth = shared.collect::<Result<_, String>>()?;
        route.number = self.registries.routes.number(&RouteLabel {
            site: Arc::clone(&self.label.site),
            route: Arc::clone(&route.pattern),
        });
        Ok(route)
    }

    /// Puts the response cache in front of a handler that makes responses, if the route has a response cache. A handler
    /// of scripts makes responses and serves files as well; its files are in the file cache instead. The memory is that
    /// of the site, because all routes of a site share it.
    fn cached(
        &self,
        handler: Arc<dyn Handler>,
        entry: &HandlerEntry,
        settings: &Settings,
        route: &Arc<Route>,
    ) -> Arc<dyn Handler> {
        match &settings.cache {
            Some(cache) if entry.makes_responses => Arc::new(CacheHandler::new(
                handler,
                cache.clone(),
                Arc::clone(route),
                Arc::clone(&self.registries.responses),
                entry.serves_files,
                replaced_fields(settings),
                self.site_settings.cache.as_ref().and_then(|cache| cache.memory),
            )),
            _ => handler,
        }
    }

    fn guards(&self, settings: &Settings, route: &Arc<Route>) -> Result<Guards, Box<dyn Error>> {
        guard::of_route(&GuardRoute {
            settings,
            site_settings: self.site_settings,
            site: &self.label.site,
            route,
            pattern: &route.pattern,
            anonymity: self.anonymity.as_ref(),
            login_endpoints: self.login_endpoints.as_ref(),
            registries: self.registries,
        })
    }

    fn tree(&self, root: &Path, settings: &Settings, route: &Arc<Route>) -> Tree {
        let folders = &self.registries.folders;
        let id = self.registries.next_tree_id();
        Tree::new(
            id,
            root,
            settings,
            Arc::clone(route),
            &self.registries.filters,
            self.max_cached_file,
            folders,
        )
    }

    /// Creates the directory tree of the document root, for error pages and for the files that rules look up. Called
    /// for a handler that serves no files, and for one that serves an alias, whose own tree is not the document root.
    /// Returns `None` if the route has no root, or if nothing needs the tree.
    fn pages(&self, settings: &Settings, route: &Arc<Route>) -> Option<Arc<Tree>> {
        let is_needed = self.checks_existence || !settings.errors.is_empty();
        let root = settings.document_root().filter(|_| is_needed)?;
        Some(Arc::new(self.tree(root, settings, route).without_alias().for_pages()))
    }
}
