//! Forward authentication: an authorization service decides about each request (`auth = { forward = "…" }`).
//!
//! The service receives a GET request with the header fields of the client and with fields that describe the request.
//! A response from 200 to 299 admits the request, and its fields become the identity of the client. Any other response
//! is sent to the client. Without a response, the request is not admitted.

mod description;
mod sign_in;

use std::cell::OnceCell;
use std::error::Error;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rocknet_config::model::{self, AddressRewrites, ForwardAuth, UpstreamRole, WeightedUpstream};
use rocknet_handler::guard::{Admission, Admitted, Check, GuardContext, Identity, with_own_fields};
use rocknet_proto::request::OwnedRequest;
use rocknet_proto::semantics::cgi_names;
use rocknet_proto::status::Status;
use tracing::Level;

use self::description::{NOT_SENT, description};
use self::sign_in::{SignInPage, sign_in};
use super::authenticator::Authenticator;
use super::route::GuardRoute;
use crate::exchange::{CacheKey, Exchange, RequestBody, RequestId};
use crate::fixed;
use crate::forwarded;
use crate::handler::{Handler, HandlerOutput};
use crate::interim::InterimSender;
use crate::log::throttle::Cause;
use crate::metrics::ForwardOutcome;
use crate::outcomes::OutcomeCounters;
use crate::proxy::{Proxy, ProxyHandler};
use crate::response::{Body, ErrorPage, FieldList, Response};
use crate::route::Route;
use crate::services::Services;

/// Maximum number of body bytes of an admitting response that are received, so that its connection can be reused. For
/// a longer body, a new connection costs less.
const MAX_DRAINED: usize = 64 * 1024;

/// Maximum size of the fields that become the identity of a client, in bytes. Applications accept heads of this size.
const MAX_IDENTITY: usize = 16 * 1024;

/// Query about a request. It is kept with the request, so that guards of further routes with the same authorization
/// service use its result.
struct Query {
    auth_service: Arc<AuthService>,
    /// Empty until the service has admitted the request.
    admitted: Rc<OnceCell<Admitted>>,
}

/// Authorization service of a route.
struct AuthService {
    model: ForwardAuth,
    proxy: ProxyHandler,
    route: Arc<Route>,
    /// Path and query of the request to the service.
    target: Box<[u8]>,
    /// Names of the fields of the response that are copied to requests.
    names: Arc<[Box<str>]>,
    user_field: Box<str>,
    sign_in: Option<SignInPage>,
    timeout: Duration,
    /// Identity of clients that are admitted without a query.
    anonymous: Arc<Identity>,
    counters: Arc<OutcomeCounters<ForwardOutcome>>,
}

/// Creates the authorization service of a route.
///
/// # Errors
///
/// As [`AuthService::new`].
pub(super) fn make(model: &ForwardAuth, route: &GuardRoute<'_>) -> Result<Arc<dyn Authenticator>, Box<dyn Error>> {
    Ok(Arc::new(AuthService::new(model, route)?))
}

impl Authenticator for AuthService {
    /// Removes the fields of an identity that the client has sent, and adds none.
    fn anonymous(&self, _context: &GuardContext<'_>, admitted: Admitted) -> Admitted {
        Admitted {
            identity: Some(Arc::clone(&self.anonymous)),
            ..admitted
        }
    }

    /// Queries the authorization service about a request, once for all routes of the site that the request leads to.
    fn check(self: Arc<Self>, context: &GuardContext<'_>) -> Check {
        let is_same =
            |other: &AuthService| other.model == self.model && other.route.label.site == self.route.label.site;
        let earlier = context.held.find(|query: &Query| {
            let admitted = query.admitted.get().filter(|_| is_same(&query.auth_service));
            admitted.cloned()
        });
        if let Some(admitted) = earlier {
            return Check::Decided(Ok(admitted));
        }
        let page = self.sign_in.as_ref().map(|page| page.location(context)).transpose();
        let Ok(page) = page else {
            return Check::Decided(Err(Box::new(fixed::error(Status::BAD_REQUEST))));
        };
        let exchange = self.exchange(context);
        let (auth_service, admitted) = (Arc::clone(&self), Rc::default());
        context.held.keep(Query {
            auth_service: self,
            admitted: Rc::clone(&admitted),
        });
        Check::Deferred(Box::pin(async move {
            let admission = auth_service.query(exchange, page.flatten()).await;
            if let Ok(result) = &admission {
                let _ = admitted.set(result.clone());
            }
            admission
        }))
    }
}

impl AuthService {
    /// Prepares the authorization service of a route.
    ///
    /// # Errors
    ///
    /// Fails if the service is reached over TLS, and the system has no CA certificates, or the host name of the service
    /// cannot be in a certificate.
    fn new(model: &ForwardAuth, route: &GuardRoute<'_>) -> Result<AuthService, Box<dyn Error>> {
        let send_timeout = route.route.server.send_timeout;
        let proxy = Proxy::new(&proxy_model(model), &route.registries.upstreams, send_timeout)?;
        let names: Arc<[Box<str>]> = model.headers.iter().map(|name| name.as_str().into()).collect();
        Ok(AuthService {
            model: model.clone(),
            proxy: ProxyHandler::new(proxy),
            route: Arc::clone(route.route),
            target: model.target.as_bytes().into(),
            anonymous: Arc::new(Identity {
                names: identity_names(model).into(),
                ..Identity::default()
            }),
            names,
            user_field: model.user_field.as_str().into(),
            sign_in: model.sign_in.as_ref().map(SignInPage::new).transpose()?,
            timeout: model.timeout,
            counters: route.registries.auth_counters.forward.of_site(route.site),
        })
    }

    /// Sends a query, evaluates its response, and counts it. `page`: target of the redirect of a client that has to
    /// sign in.
    async fn query(self: Arc<Self>, exchange: Exchange, page: Option<String>) -> Admission {
        let services = Rc::clone(&exchange.services);
        let deadline = services.wheel.deadline();
        deadline.set(services.wheel.ticks(self.timeout));
        let mut work = pin!(self.admit(exchange, page));
        let result = poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Pending if deadline.poll_past(context.waker()) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
            Poll::Ready(admission) => Poll::Ready(Some(admission)),
        });
        let admission = result.await.unwrap_or_else(|| {
            self.log("the authorization service of `forward` takes longer than `timeout`");
            Err(Box::new(fixed::error(Status::GATEWAY_TIMEOUT)))
        });
        self.counters.count(&services, ForwardOutcome::of(&admission));
        admission
    }

    async fn admit(&self, exchange: Exchange, page: Option<String>) -> Admission {
        let mut response = match self.proxy.handle(exchange).await {
            HandlerOutput::Response(response) => response,
            // Only handlers of files return cache entries.
            HandlerOutput::Cached(_) => Box::new(fixed::error(Status::INTERNAL_SERVER_ERROR)),
        };
        match response.status.code() {
            200..=299 => self.identity(&response.fields).inspect(|_| drain(&mut response)),
            // An interim or upgrade response, or a 304 although the query has no precondition.
            ..=199 | 304 => {
                self.log("the authorization service of `forward` responds with a status that decides nothing");
                Err(Box::new(fixed::error(Status::BAD_GATEWAY)))
            }
            401 if self.sign_in.is_some() => Err(Box::new(sign_in(page, *response))),
            _ => {
                // An error without a body gets the page of the route.
                response.error_page = ErrorPage::IfEmpty;
                Err(response)
            }
        }
    }

    /// Returns the admission by a response of the authorization service with these fields.
    fn identity(&self, fields: &FieldList) -> Admission {
        let mut identity = Identity {
            names: Arc::clone(&self.anonymous.names),
            identifies_client: true,
            ..Identity::default()
        };
        let (mut user, mut size) = (None, 0);
        for (name, value) in fields.bytes() {
            let is = |own: &str| name.eq_ignore_ascii_case(own.as_bytes());
            if let Some(copied) = self.names.iter().find(|own| is(own)) {
                size += copied.len() + value.len();
                identity.fields.push((copied.clone(), value.into()));
            }
            if is(&self.user_field) && user.is_none() {
                user = std::str::from_utf8(value).ok().filter(|user| is_user(user));
            }
            if is("Set-Cookie")
                && let Ok(cookie) = std::str::from_utf8(value)
            {
                identity.cookies.add("Set-Cookie", cookie);
            }
        }
        if size > MAX_IDENTITY {
            self.log("the fields that the authorization service of `forward` returns are longer than 16 KiB");
            return Err(Box::new(fixed::error(Status::BAD_GATEWAY)));
        }
        Ok(Admitted {
            user: user.map(Into::into),
            identity: Some(Arc::new(identity)),
        })
    }

    /// Returns the exchange of a query. Values that a proxy does not read, such as the cache key, are placeholders.
    fn exchange(&self, context: &GuardContext<'_>) -> Exchange {
        let request = Rc::new(self.request(context));
        Exchange {
            services: Rc::<Services>::clone(context.services),
            body: RequestBody::empty(),
            interim: InterimSender::default(),
            path: String::from_utf8_lossy(request.view().path).into(),
            request,
            is_file_path: true,
            route: Arc::clone(&self.route),
            cache_key: CacheKey { site: 0, generation: 0 },
            client: context.client,
            peer: context.peer,
            tls: context.tls.cloned(),
            user: None,
            is_identified: true,
            id: RequestId::default(),
        }
    }

    /// Returns the request that describes the request of a client.
    fn request(&self, context: &GuardContext<'_>) -> OwnedRequest {
        let request = context.request;
        let server = &self.route.server.server;
        let reported = forwarded::is_trusted(server, context.peer)
            .then(|| forwarded::resolve(server, context.peer, request.fields));
        let own_scheme: &[u8] = if context.tls.is_some() { b"https" } else { b"http" };
        let scheme = reported.as_ref().and_then(|info| info.proto.as_deref());
        let host = reported.as_ref().and_then(|info| info.host.as_deref());
        let host = host.unwrap_or(request.authority);
        let description = description(request, scheme.unwrap_or(own_scheme), host);
        let is_own = |name: &[u8], own: &str| cgi_names::are_same(name, own.as_bytes());
        let is_removed = |name: &[u8]| {
            NOT_SENT.iter().any(|own| is_own(name, own)) || self.anonymous.names.iter().any(|own| is_own(name, own))
        };
        let added = description.iter().map(|(name, value)| (name.as_bytes(), &value[..]));
        let query = OwnedRequest::get_like(request, &self.target);
        with_own_fields(&query, is_removed, added)
    }

    /// Logs a problem of the authorization service, at most once a second for each route.
    #[cold]
    fn log(&self, what: &'static str) {
        let cause = Cause {
            level: Level::ERROR,
            what,
            site: &self.route.label.site,
            subject: &self.route.pattern,
        };
        if cause.may_be_logged() {
            tracing::error!(site = %self.route.label.site, route = %self.route.pattern, "{what}");
        }
    }
}

/// Returns the names of the fields by which an authorization service identifies clients.
pub(super) fn identity_names(model: &ForwardAuth) -> Vec<Box<str>> {
    let names = model.headers.iter().chain([&model.user_field]);
    names.map(|name| name.as_str().into()).collect()
}

/// Returns the settings of the proxy by which an authorization service is reached.
fn proxy_model(model: &ForwardAuth) -> model::Proxy {
    let mut proxy = model::Proxy::to(vec![WeightedUpstream {
        upstream: model.to.clone(),
        weight: 1,
        role: UpstreamRole::Active,
    }]);
    // The service is addressed by its own name. `X-Forwarded-Host` contains the host of the client's request.
    let url = model.to.to_string();
    let host = url.split_once("://").map_or("localhost", |(_, host)| host);
    proxy.headers.insert("Host".to_owned(), host.to_owned());
    // Some services admit clients by their address in this field.
    proxy.headers.insert("X-Real-IP".to_owned(), "{client.ip}".to_owned());
    // The addresses and cookies in the responses belong to the site of the service, so they are not rewritten.
    proxy.redirects = AddressRewrites::OFF;
    proxy.cookie_paths = AddressRewrites::OFF;
    proxy.cookie_domains = AddressRewrites::OFF;
    // Failures do not take the service out of rotation, so that each request is tried.
    proxy.fails = 0;
    proxy.queue = proxy.queue.min(model.timeout);
    proxy.connect = proxy.connect.min(model.timeout);
    proxy.first_byte = model.timeout;
    proxy
}

/// Returns true for the name of a user that can be logged, and passed on to applications.
fn is_user(name: &str) -> bool {
    (1..=model::MAX_USER_BYTES).contains(&name.len()) && !name.contains(char::is_control)
}

/// Receives the rest of a small body in the background, so that its connection can be reused.
fn drain(response: &mut Response) {
    let Body::Stream(mut stream) = std::mem::take(&mut response.body) else {
        return;
    };
    if stream.length().is_some_and(|length| length > MAX_DRAINED as u64) {
        return;
    }
    rocknet_io::runtime::spawn(async move {
        let mut size = 0;
        while let Some(Ok(chunk)) = stream.next().await {
            size += chunk.len();
            if size > MAX_DRAINED {
                return;
            }
        }
    });
}
