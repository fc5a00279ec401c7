//! An endpoint: a route with the handler that answers there.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use rocknet_config::model::Settings;

use crate::files::tree::Tree;
use crate::gateway::accounts::Account;
use crate::guard::{self, Guards};
use crate::handler::Handler;
use crate::handlers::{self, HandlerContext, HandlerEntry};
use crate::registries::Registries;
use crate::route::{Route, ServerSettings, SiteLabel};

/// What answers the requests of a route.
pub struct Endpoint {
    pub route: Arc<Route>,
    /// Check requests before anything else of the route acts.
    pub guards: Guards,
    /// The row of the handler in the table, but for programs.
    pub entry: &'static HandlerEntry,
    handler: Arc<dyn Handler>,
    /// Answers below the folder of programs, if there is one.
    programs: Option<Arc<dyn Handler>>,
    /// The files that are served here.
    pub tree: Option<Arc<Tree>>,
    /// The files that error pages come from.
    pub pages: Option<Arc<Tree>>,
    /// True if responses may switch protocols.
    pub takes_tunnels: bool,
}

/// Facts about a site that all of its endpoints share.
pub struct EndpointContext<'a> {
    pub label: &'a SiteLabel,
    pub server: &'a Arc<ServerSettings>,
    /// Largest file whose content is kept in memory, in bytes.
    pub max_cached_file: u64,
    pub registries: &'a Registries,
    /// The file that the configuration was read from.
    pub config_file: Option<&'a Path>,
    /// No route of the site has a guard.
    pub is_open: bool,
}

impl Endpoint {
    /// Makes the endpoint of a route. `headers`: those of the settings, with what the server adds to them.
    ///
    /// # Errors
    ///
    /// The error tells the operator what in the settings cannot be used.
    pub fn new(
        settings: &Settings,
        headers: BTreeMap<String, String>,
        context: &EndpointContext<'_>,
    ) -> Result<Endpoint, Box<dyn Error>> {
        if settings.runs_programs() {
            // Refused before it acts, and not for each script. Without scripts `user` has no effect, whatever it names.
            let user = settings.user.as_deref();
            let of = user.map_or_else(|| "scripts".to_owned(), |user| format!("user = \"{user}\""));
            Account::of_scripts(user).map_err(|error| format!("{of}: {error}"))?;
        }
        let entry = handlers::choose(settings);
        let route = Arc::new(context.route(settings, headers)?);
        let root = settings.root.as_deref();
        let tree = root
            .filter(|_| entry.serves_files)
            .map(|root| Arc::new(context.tree(root, settings, &route)));
        let handler_context = HandlerContext {
            settings,
            route: &route,
            tree: tree.as_ref(),
            registries: context.registries,
            config_file: context.config_file,
        };
        let handler = entry.make(&handler_context)?;
        let has_programs = tree.is_some() && settings.cgi.is_some();
        let programs = has_programs.then(|| handlers::CGI.make(&handler_context)).transpose()?;
        Ok(Endpoint {
            guards: guard::of_route(settings, context.registries)?,
            takes_tunnels: handler.accepts_tunnels(),
            pages: tree.clone().or_else(|| context.pages(settings, &route)),
            route,
            entry,
            handler,
            programs,
            tree,
        })
    }

    /// Puts a handler of the embedding program at a route.
    ///
    /// # Errors
    ///
    /// As [`Endpoint::new`].
    pub fn embedded(
        handler: Arc<dyn Handler>,
        settings: &Settings,
        headers: BTreeMap<String, String>,
        context: &EndpointContext<'_>,
    ) -> Result<Endpoint, Box<dyn Error>> {
        // The redirects of a site are for the paths that it serves itself.
        let settings = &Settings {
            redirects: Default::default(),
            ..settings.clone()
        };
        let route = Arc::new(context.route(settings, headers)?);
        Ok(Endpoint {
            guards: guard::of_route(settings, context.registries)?,
            pages: context.pages(settings, &route),
            route,
            entry: &handlers::EMBEDDED,
            handler,
            programs: None,
            tree: None,
            takes_tunnels: true,
        })
    }

    /// Returns the handler of a decoded path.
    pub fn handler(&self, path: &str) -> &Arc<dyn Handler> {
        self.programs_at(path).unwrap_or(&self.handler)
    }

    /// Returns the row of the handler of a decoded path.
    pub fn entry_for(&self, path: &str) -> &'static HandlerEntry {
        self.programs_at(path).map_or(self.entry, |_| &handlers::CGI)
    }

    fn programs_at(&self, path: &str) -> Option<&Arc<dyn Handler>> {
        let is_program = self.tree.as_ref().is_some_and(|tree| tree.is_program(path));
        self.programs.as_ref().filter(|_| is_program)
    }

    /// Returns whether any request is answered with something other than 404.
    pub fn serves(&self) -> bool {
        !self.entry.is_not_found() || !self.route.redirects.is_empty()
    }

    /// Returns whether request bodies are received whole here before a handler passes them on.
    pub fn receives_bodies_whole(&self) -> bool {
        let handlers = std::iter::once(&self.handler).chain(&self.programs);
        handlers.into_iter().any(|handler| handler.buffers_request_body())
    }

    /// The files of the endpoint, those of error pages among them.
    pub fn trees(&self) -> impl Iterator<Item = &Arc<Tree>> {
        // Where files are served, the pages are among them.
        self.tree.as_ref().or(self.pages.as_ref()).into_iter()
    }
}

impl EndpointContext<'_> {
    fn route(&self, settings: &Settings, headers: BTreeMap<String, String>) -> Result<Route, String> {
        let mut route = Route::new(settings, headers, self.label.clone(), Arc::clone(self.server))?;
        route.is_unguarded = self.is_open;
        Ok(route)
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

    /// The files that error pages come from, where something other than files answers.
    fn pages(&self, settings: &Settings, route: &Arc<Route>) -> Option<Arc<Tree>> {
        let root = settings.root.as_deref().filter(|_| !settings.errors.is_empty())?;
        Some(Arc::new(self.tree(root, settings, route).for_pages()))
    }
}
