//! One request, with the values that a handler needs to respond to it, independent of the HTTP version.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::request::{OwnedRequest, Request};

use crate::interim::InterimSender;
use crate::route::Route;
use crate::services::Services;
use crate::values::RequestValues;

pub use crate::client::Client;
pub use crate::request_body::{BodyChannel, BodyError, BodyTee, RequestBody};
pub use crate::tls_info::{ClientCertificate, TlsInfo};
pub use crate::values::RequestId;

/// Identifies a site of one configuration in the worker cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheKey {
    /// Number of the site. The worker cache sets a flag in it for paths to which rules have been applied.
    pub site: u32,
    /// Number of the configuration that defines the site's number.
    pub generation: u64,
}

/// A request, with the values that its handler needs to respond.
pub struct Exchange {
    /// Services that the worker lends to handlers.
    pub services: Rc<Services>,
    /// Method, target and header fields.
    pub request: Rc<OwnedRequest>,
    /// Request body.
    pub body: RequestBody,
    /// Sends interim responses.
    pub interim: InterimSender,
    /// Path of the request, decoded and normalized.
    pub path: Box<str>,
    /// True if a file can have this path. It is false, for example, for a path with a backslash.
    pub is_file_path: bool,
    /// Route of the path.
    pub route: Arc<Route>,
    /// Identifies the site under which the worker cache looks the request's path up.
    pub cache_key: CacheKey,
    /// Client: the one that a trusted proxy reports, else the peer.
    pub client: Client,
    /// Other end of the connection.
    pub peer: Client,
    /// Parameters of the TLS handshake. `None` for a connection without TLS.
    pub tls: Option<Rc<TlsInfo>>,
    /// User whom `auth` of the route has authenticated: by password, client certificate, authorization service
    /// (`auth = { forward = "…" }`) or login provider. `None` without an authenticated user.
    pub user: Option<Arc<str>>,
    /// True if a client certificate, an authorization service or a login provider identifies the client. A login by
    /// password sets only `user`. The response is for this client alone if either is set.
    pub is_identified: bool,
    /// Identifier of the request.
    pub id: RequestId,
}

impl Exchange {
    /// Returns the values of the request for placeholders. `request`: view of the request of the exchange.
    pub fn values<'a>(&'a self, request: &'a Request<'a>) -> RequestValues<'a> {
        RequestValues {
            services: &self.services,
            server: &self.route.server.server,
            request,
            client: Some(self.client),
            peer: self.peer,
            tls: self.tls.as_deref(),
            user: self.user.as_deref(),
            site: &self.route.label.site,
            id: &self.id,
            status: None,
            upstream: None,
        }
    }
}
