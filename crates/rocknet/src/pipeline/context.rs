//! Request context: the data that the phases after the handler and the access log need.

use std::cell::{Cell, OnceCell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use rocknet_handler::guard::{Guard, Held, Identity};
use rocknet_proto::fields::KnownField;
use rocknet_proto::method::Method;
use rocknet_proto::request::{OwnedRequest, Request};
use rocknet_proto::status::Status;
use rocknet_telemetry::RequestTrace;

use super::incoming::IncomingRequest;
use crate::bans::CountedLogin;
use crate::endpoint::Endpoint;
use crate::exchange::{Client, RequestId};
use crate::files::cache::l1::{CachedEndpoint, CachedEntry};
use crate::files::tree::Tree;
use crate::handshake::Handshake;
use crate::log::SinkId;
use crate::metrics::OTHER;
use crate::response::{Response, UpstreamTiming};
use crate::route::Route;
use crate::values::RequestValues;
use crate::worker::{Worker, WorkerConfig};

/// Context of one request in the pipeline. A reload during the request does not change it.
pub struct RequestContext {
    /// The configuration that was current when the request was routed.
    pub config: Rc<WorkerConfig>,
    /// Number of the site in that configuration; `None` if the host belongs to no site, or the request could not be
    /// parsed.
    pub site: Option<u32>,
    /// Route that applies to the request. `None` if the request is to no site, or could not be parsed. Also `None` for
    /// a prepared response of the worker cache, because no later phase of such a response needs the route.
    pub route: Option<Arc<Route>>,
    /// Number of the route in the metrics. Requests without a route use the number of the site's root route, and
    /// requests without a site use [`OTHER`].
    pub route_number: u32,
    /// Route of a file that an application has named, such as by `X-Accel-Redirect`. Set only if that route limits the
    /// bandwidth.
    pub bandwidth_route: OnceCell<Arc<Route>>,
    /// Tree with the error pages of the route, if it has some.
    pub pages: Option<Arc<Tree>>,
    /// True if the request arrived over TLS.
    pub is_secure: bool,
    /// Access log of the site, or of the default site if the host belongs to no site. `None` if that site has no access
    /// log.
    pub access_log: Option<SinkId>,
    /// Copy of the request, set if a handler, the access log or a trace needs it. `None` if none of them does, or if
    /// the received bytes are not a request.
    pub request: Option<Rc<OwnedRequest>>,
    /// Request without the signature of its URL, if a guard of a further route (`further_routes.rs`) has verified it.
    pub admitted_request: OnceCell<Rc<OwnedRequest>>,
    /// Second context of a request that is started again, after a wait for a guard or for a lookup on disk. It has the
    /// user, and the request in the form that the guards have admitted. The connection keeps only the first context,
    /// and reaches the second one by this field.
    pub resumed: OnceCell<Rc<RequestContext>>,
    /// Login that was counted as failed until its response is known.
    pub login: Option<Rc<CountedLogin>>,
    /// Client that sent the request; set for requests that reach a handler, and if the server trusts a proxy.
    pub client: Option<Client>,
    /// Client and connection; set only if the header fields of the route have placeholders, or the site has guards.
    connection: Option<ContextConnection>,
    /// Identifier of the request. It is known here if a placeholder of the configuration needs it.
    pub id: RequestId,
    /// Authenticated user; set once the request has passed access control.
    user: OnceCell<Arc<str>>,
    /// Guards that have admitted the request. Each guard decides once about a request.
    pub guards: RefCell<Vec<Arc<dyn Guard>>>,
    /// Identities that guards have returned. Their cookies are added to the response.
    pub identities: RefCell<Vec<Arc<Identity>>>,
    /// Values that the guards keep until the request ends.
    pub held: Rc<Held>,
    /// True once the status of the response has been examined for an offence of the client.
    pub is_status_noted: Cell<bool>,
    /// Time at which the request was routed.
    pub started: Instant,
    /// Bytes of the request body received so far.
    pub received: Cell<u64>,
    /// Upstream that sent the response, with its timing.
    pub upstream: OnceCell<UpstreamTiming>,
    /// Trace of the request; set only if requests are traced.
    pub trace: OnceCell<Box<RequestTrace>>,
    /// Outcome of the request in the response cache, such as `HIT`; empty without a cache.
    pub cache_status: Cell<&'static str>,
    /// Time at which the response of an upstream arrived; set only if requests are traced.
    pub upstream_responded: Cell<Option<Instant>>,
}

/// Client and connection of a request, for placeholders of header fields and of guards of further routes.
struct ContextConnection {
    client: Client,
    peer: Client,
    secure: Option<Rc<Handshake>>,
}

/// Route of a request, with the tree of its error pages.
#[derive(Clone, Copy)]
pub struct AppliedRoute<'a> {
    route: &'a Arc<Route>,
    pages: Option<&'a Arc<Tree>>,
}

impl<'a> From<&'a Arc<Endpoint>> for AppliedRoute<'a> {
    fn from(endpoint: &'a Arc<Endpoint>) -> AppliedRoute<'a> {
        AppliedRoute {
            route: &endpoint.route,
            pages: endpoint.pages.as_ref(),
        }
    }
}

impl<'a> From<&'a CachedEntry> for AppliedRoute<'a> {
    fn from(cached: &'a CachedEntry) -> AppliedRoute<'a> {
        AppliedRoute {
            route: &cached.tree.route,
            pages: Some(&cached.tree),
        }
    }
}

impl<'a> From<&'a CachedEndpoint> for AppliedRoute<'a> {
    fn from(cached: &'a CachedEndpoint) -> AppliedRoute<'a> {
        AppliedRoute {
            route: &cached.route,
            pages: cached.pages.as_ref(),
        }
    }
}

impl RequestContext {
    /// Creates the context of received bytes that are not a request. They are logged for the default site. `local`:
    /// local address of the connection, set only if sites are selected by it.
    pub fn unparsed(config: &Rc<WorkerConfig>, local: Option<IpAddr>) -> Rc<RequestContext> {
        Rc::new(RequestContext {
            config: Rc::clone(config),
            site: None,
            route: None,
            route_number: OTHER,
            bandwidth_route: OnceCell::new(),
            pages: None,
            is_secure: config.is_secure,
            access_log: access_log(config, config.default_site(local)),
            request: None,
            admitted_request: OnceCell::new(),
            resumed: OnceCell::new(),
            login: None,
            client: None,
            connection: None,
            id: RequestId::default(),
            user: OnceCell::new(),
            guards: RefCell::default(),
            identities: RefCell::default(),
            held: Rc::default(),
            is_status_noted: Cell::default(),
            started: Instant::now(),
            received: Cell::default(),
            upstream: OnceCell::new(),
            trace: OnceCell::new(),
            cache_status: Cell::default(),
            upstream_responded: Cell::default(),
        })
    }

    /// Creates the context of a request. `site`: number of its site, if any. `applied`: its route, if one is known.
    pub fn new<F: Fn() -> Rc<OwnedRequest>>(
        worker: &Worker,
        config: &Rc<WorkerConfig>,
        incoming: &IncomingRequest<'_, F>,
        site: Option<u32>,
        applied: Option<AppliedRoute<'_>>,
    ) -> RequestContext {
        let mut context = RequestContext::without_route(config, site, incoming.local_and_tls(), &incoming.owned);
        context.held = Rc::new(incoming.held.take());
        if config.snapshot.uses_request_id {
            let server = &config.snapshot.config.server;
            incoming.id.get(worker, server, incoming.peer, incoming.request);
            context.id = incoming.id.clone();
        }
        if incoming.request.method == Method::Post && worker.shared.registries.bans.has_login_paths() {
            // The path decides later whether the request was a login.
            context.request.get_or_insert_with(&incoming.owned);
            context.login = incoming.login.get().cloned();
        }
        if worker.trusts_proxies.get() {
            context.client = Some(incoming.client(worker));
        }
        let Some(applied) = applied else {
            return context;
        };
        if applied.route.has_placeholders || !applied.route.is_unguarded {
            context.connection = Some(ContextConnection {
                client: incoming.client(worker),
                peer: incoming.peer,
                secure: incoming.secure.cloned(),
            });
        }
        if applied.route.has_placeholders {
            context.request.get_or_insert_with(&incoming.owned);
        }
        context.route_number = applied.route.number;
        context.pages = applied.pages.cloned();
        context.route = Some(Arc::clone(applied.route));
        context
    }

    /// Creates the context of a request whose route is not known or not needed. `site`: number of its site, if any.
    /// `local`: local address of its connection. `is_secure`: true if the connection uses TLS. `owned` is called if the
    /// access log or a trace needs the request.
    pub fn without_route(
        config: &Rc<WorkerConfig>,
        site: Option<u32>,
        (local, is_secure): (Option<IpAddr>, bool),
        owned: impl FnOnce() -> Rc<OwnedRequest>,
    ) -> RequestContext {
        let access_log = access_log(config, site.or_else(|| config.default_site(local)));
        RequestContext {
            config: Rc::clone(config),
            is_secure,
            site,
            route: None,
            route_number: number_of_site(config, site),
            bandwidth_route: OnceCell::new(),
            pages: None,
            access_log,
            request: (access_log.is_some() || config.tracer.is_some()).then(owned),
            admitted_request: OnceCell::new(),
            resumed: OnceCell::new(),
            login: None,
            client: None,
            connection: None,
            id: RequestId::default(),
            user: OnceCell::new(),
            guards: RefCell::default(),
            identities: RefCell::default(),
            held: Rc::default(),
            is_status_noted: Cell::default(),
            started: Instant::now(),
            received: Cell::default(),
            upstream: OnceCell::new(),
            trace: OnceCell::new(),
            cache_status: Cell::default(),
            upstream_responded: Cell::default(),
        }
    }

    /// Returns the values for placeholders of header fields and of keys of limits. `None` if the route has no
    /// placeholders and `bandwidth_route` is not set. `request`: view of the request of the context.
    pub(super) fn values<'v>(
        &'v self,
        worker: &'v Worker,
        request: &'v Request<'v>,
        status: Status,
        upstream: Option<&'v UpstreamTiming>,
    ) -> Option<RequestValues<'v>> {
        let has_placeholders = self.route.as_ref().is_some_and(|route| route.has_placeholders);
        if !has_placeholders && self.bandwidth_route.get().is_none() {
            return None;
        }
        Some(RequestValues {
            status: Some(status),
            upstream,
            ..self.guard_values(worker, self.client()?, request)
        })
    }

    /// Returns the request for the access log and for traces.
    pub fn logged_request(&self) -> Option<&Rc<OwnedRequest>> {
        let resumed = self.resumed.get().and_then(|resumed| resumed.logged_request());
        resumed.or_else(|| self.admitted_request.get().or(self.request.as_ref()))
    }

    /// Calls `keep` with the values that guards keep, in this context and in [`Self::resumed`].
    pub fn for_each_held(&self, mut keep: impl FnMut(&Rc<Held>)) {
        let mut next = Some(self);
        while let Some(context) = next {
            if !context.held.is_empty() {
                keep(&context.held);
            }
            next = context.resumed.get().map(|resumed| &**resumed);
        }
    }

    /// Returns the authenticated user.
    pub fn user(&self) -> Option<&Arc<str>> {
        let resumed = self.resumed.get().and_then(|resumed| resumed.user());
        resumed.or_else(|| self.user.get())
    }

    /// Returns the client; `None` if it was not needed until now.
    pub(super) fn client(&self) -> Option<Client> {
        let of_connection = || self.connection.as_ref().map(|connection| connection.client);
        self.client.or_else(of_connection)
    }

    /// Returns the values for guards that check the request at a further route. `client` and `request`: those of the
    /// context.
    pub(super) fn guard_values<'v>(
        &'v self,
        worker: &'v Worker,
        client: Client,
        request: &'v Request<'v>,
    ) -> RequestValues<'v> {
        let (peer, secure) = self.peer_and_handshake(client);
        RequestValues {
            services: worker,
            server: &self.config.snapshot.config.server,
            request,
            client: Some(client),
            peer,
            tls: secure.map(|secure| &**secure.tls_info()),
            user: self.user().map(|user| &**user),
            site: self.site_name(),
            id: &self.id,
            status: None,
            upstream: None,
        }
    }

    /// Adds the cookies of the identities, such as those of an authorization service.
    pub(super) fn add_cookies(&self, response: &mut Response) {
        for identity in self.identities.borrow().iter() {
            for (name, value) in identity.cookies.iter() {
                response.fields.add(name, value);
            }
        }
    }

    /// Keeps a response with cookies of an identity or of a login out of shared caches, which would give the session of
    /// a user to others. Called after all filters, so that no setting of the route undoes it.
    pub(super) fn protect_cookies(&self, response: &mut Response) {
        let is_of_identity = self
            .identities
            .borrow()
            .iter()
            .any(|identity| !identity.cookies.is_empty());
        let is_of_login = || {
            let mut fields = response.fields.iter();
            response.fields.contains(KnownField::SetCookie)
                && fields.any(|(name, value)| {
                    name.eq_ignore_ascii_case("set-cookie") && rocknet_oidc::cookies::is_own(value.as_bytes())
                })
        };
        let wanted = match is_of_identity {
            // The browser may store a page of its user, and has to revalidate it.
            true => "private, no-cache",
            // A redirect of a login is for one use.
            false if is_of_login() => "no-store",
            false => return,
        };
        let fields = &mut response.fields;
        let is_private = fields.iter().any(|(name, value)| {
            let mut directives = value.split(',').map(str::trim);
            name.eq_ignore_ascii_case("cache-control")
                && directives.any(|one| one.eq_ignore_ascii_case("private") || one.eq_ignore_ascii_case("no-store"))
        });
        if !is_private {
            fields.set("Cache-Control", wanted);
        }
        // Some shared caches prefer these to `Cache-Control` (RFC 9213).
        for name in ["CDN-Cache-Control", "Surrogate-Control"] {
            fields.remove(name);
        }
    }

    /// Returns true if a prepared response cannot be sent, because fields of this request are added to the response.
    pub(super) fn has_own_fields(&self, tree: &Tree) -> bool {
        let has_cookies = |identities: &[Arc<Identity>]| identities.iter().any(|identity| !identity.cookies.is_empty());
        tree.route.has_placeholders || has_cookies(&self.identities.borrow())
    }

    /// Returns the other end of the connection, and its TLS handshake. Without a known connection, it returns `client`
    /// and no handshake.
    pub(super) fn peer_and_handshake(&self, client: Client) -> (Client, Option<&Rc<Handshake>>) {
        let connection = self.connection.as_ref();
        let secure = connection.and_then(|connection| connection.secure.as_ref());
        (connection.map_or(client, |connection| connection.peer), secure)
    }

    /// Stores the user, unless one is stored already: the first user that guards have found remains.
    pub fn set_user(&self, user: Option<Arc<str>>) {
        if let Some(user) = user {
            let _ = self.user.set(user);
        }
    }

    /// Returns the name of the site for log lines; empty if the host belongs to no site.
    pub fn site_name(&self) -> &str {
        let site = self
            .site
            .and_then(|number| self.config.snapshot.sites.get(number as usize));
        site.map_or("", |site| site.name.as_str())
    }
}

/// Returns the number of the root route of a site in the metrics.
fn number_of_site(config: &WorkerConfig, site: Option<u32>) -> u32 {
    let site = site.and_then(|number| config.snapshot.sites.get(number as usize));
    site.map_or(OTHER, |site| site.routes(config.is_secure).root.route.number)
}

/// Returns the access log of the site with this number, if there is a site and it has a log.
#[inline]
pub fn access_log(config: &WorkerConfig, site: Option<u32>) -> Option<SinkId> {
    config.snapshot.sites.get(site? as usize)?.access_log
}
