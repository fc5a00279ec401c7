//! Decides whether a request uses the cache, and looks up its response.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use rocknet_config::model::Existence;
use rocknet_handler::ExchangeRef;
use rocknet_handler::client::Client;
use rocknet_handler::services::Services;
use rocknet_proto::fields::KnownField;
use rocknet_proto::method::Method;
use rocknet_proto::request::Request;
use rocknet_proto::semantics::safe_path::SafePath;
use rocknet_routing::rules::{LookupError, RequestConditions, RequestFacts};

use crate::cache_control::Directives;
use crate::cached_route::CachedRoute;
use crate::cookies;
use crate::key::{self, Key};
use crate::policy::{self, Use};
use crate::status::Forwarded;
use crate::stored::StoredResponse;

/// Use of the cache for one request. The key is not boxed, because a box would be an allocation for each request.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Plan {
    /// The request is forwarded.
    Bypass(Forwarded),
    /// The request is forwarded, and invalidates what is stored for its URI.
    Invalidate,
    /// A response is looked up under this key.
    Lookup(Key),
}

/// Result of a lookup.
pub(crate) enum Found {
    /// The response may be sent.
    Usable(Arc<StoredResponse>, Freshness),
    /// The request is forwarded for this reason, with the validators of the stored response if there is one.
    Missing(Forwarded, Option<Arc<StoredResponse>>),
}

/// Freshness of a response that may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    Fresh,
    /// The response has to be validated in the background.
    Stale,
}

/// Data about a request for conditions.
struct Facts<'a>(&'a ExchangeRef<'a>);

impl RequestFacts for Facts<'_> {
    fn is_secure(&self) -> bool {
        self.0.tls.is_some()
    }

    fn client(&self) -> Option<IpAddr> {
        match self.0.client {
            Client::Ip { address, .. } => Some(address),
            Client::Local => None,
        }
    }

    fn existence(&self, _: &str) -> Result<Existence, LookupError> {
        // The configuration does not permit conditions on files here, because a lookup does not wait for the disk.
        Err(LookupError::Failed)
    }
}

/// Returns the decoded path that conditions test. If no file can have the path, it is decoded as for rules.
fn condition_path<'p>(exchange: &ExchangeRef<'p>) -> Cow<'p, str> {
    match exchange.is_file_path {
        true => Cow::Borrowed(exchange.path),
        false => SafePath::for_rules(exchange.request.path).map_or(Cow::Borrowed(exchange.path), Cow::Owned),
    }
}

impl CachedRoute {
    /// Decides on the use of the cache.
    pub fn plan(&self, exchange: &ExchangeRef<'_>) -> Plan {
        let request = exchange.request;
        match request.method {
            Method::Get | Method::Head => {}
            Method::Options | Method::Trace | Method::Connect => return Plan::Bypass(Forwarded::Method),
            _ => return Plan::Invalidate,
        }
        if self.is_bypassed(exchange) {
            return Plan::Bypass(Forwarded::Bypass);
        }
        match key::of_request(exchange, &self.route, self.key.as_ref()) {
            Some(key) => Plan::Lookup(key),
            None => Plan::Bypass(Forwarded::Bypass),
        }
    }

    /// Returns true if the route does not use the cache for a request.
    pub fn is_bypassed(&self, exchange: &ExchangeRef<'_>) -> bool {
        let request = exchange.request;
        let matches = |bypass: &RequestConditions| bypass.matches(request, &condition_path(exchange), &Facts(exchange));
        exchange.has_body
            || request.upgrade.is_some()
            || exchange.user.is_some()
            || exchange.is_identified
            // The application may know the user by the certificate.
            || exchange.tls.is_some_and(|tls| tls.client.is_some())
            || cookies::has_any(&self.settings.bypass_cookies, &request.fields)
            || self.bypass.as_ref().is_some_and(matches)
    }

    /// Returns the directives of a request if they are obeyed.
    pub fn obeyed<'d>(&self, directives: &'d Directives) -> Option<&'d Directives> {
        self.settings.obey_clients.then_some(directives)
    }

    /// Looks up the response to a request in memory.
    pub fn look_up(&self, key: &[u8], request: &Request<'_>, services: &Services) -> Found {
        let Some(resource) = self.memory.get(key) else {
            return Found::Missing(Forwarded::UriMiss, None);
        };
        let Some(stored) = resource.select(&request.fields) else {
            let reason = if resource.variants.is_empty() {
                Forwarded::UriMiss
            } else {
                Forwarded::VaryMiss
            };
            return Found::Missing(reason, None);
        };
        if self.is_changed(stored) {
            return Found::Missing(Forwarded::UriMiss, None);
        }
        self.judge(Arc::clone(stored), request, services)
    }

    /// Decides on the use of a stored response that a request selects.
    pub fn judge(&self, stored: Arc<StoredResponse>, request: &Request<'_>, services: &Services) -> Found {
        if request.fields.contains(KnownField::Authorization) && !stored.is_for_authorization() {
            return Found::Missing(Forwarded::Request, None);
        }
        let now_ms = services.clock.uptime_ms();
        let directives = self
            .settings
            .obey_clients
            .then(|| policy::RequestFacts::of(&request.fields).directives);
        match stored.terms.permitted(now_ms, directives.as_ref()) {
            Use::Fresh => Found::Usable(stored, Freshness::Fresh),
            Use::StaleWhileRevalidate => Found::Usable(stored, Freshness::Stale),
            Use::AfterValidation => {
                let is_fresh = stored.terms.is_fresh(now_ms);
                let reason = if is_fresh { Forwarded::Request } else { Forwarded::Stale };
                Found::Missing(reason, Some(stored))
            }
        }
    }
}
