//! Borrowed request with data of its connection. The request is in the receive buffer, or in a copy if it was deferred.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::rc::Rc;

use rocknet_handler::guard::Held;
use rocknet_proto::request::{OwnedRequest, Request};

use crate::bans::CountedLogin;
use crate::exchange::{Client, RequestId};
use crate::forwarded;
use crate::handshake::Handshake;
use crate::values::RequestValues;
use crate::worker::{Worker, WorkerConfig};

/// Borrowed request with data of its connection.
pub struct IncomingRequest<'a, F> {
    pub request: &'a Request<'a>,
    /// Creates a copy of the request that outlives the buffer. Immediate responses do not need the copy.
    pub owned: F,
    /// True if the request has a body, or is an extended CONNECT followed by tunnel data.
    pub has_body: bool,
    /// Peer of the connection: the client, or a proxy that forwards its requests.
    pub peer: Client,
    /// `None` for a connection in clear text.
    pub secure: Option<&'a Rc<Handshake>>,
    /// Local address of the connection, set only if sites are selected by it.
    pub local: Option<IpAddr>,
    /// Identifier of the request. A reference, so that all phases have the same one.
    pub id: &'a RequestId,
    /// Values that guards keep for a request until its response is sent, such as permits of limits. Used only while the
    /// request can be served from the worker cache. If a context is created for the request, it takes the values. A
    /// reference, so that a rewritten request has the same ones.
    pub held: &'a Held,
    /// Login that was counted as failed until its response is known; empty for other requests.
    pub login: OnceCell<Rc<CountedLogin>>,
}

impl<'a, F: Fn() -> Rc<OwnedRequest>> IncomingRequest<'a, F> {
    /// Returns the data of the same connection with another request, such as a rewritten one.
    pub(super) fn with<'b, G>(&self, request: &'b Request<'b>, owned: G) -> IncomingRequest<'b, G>
    where
        'a: 'b,
    {
        IncomingRequest {
            request,
            owned,
            has_body: self.has_body,
            peer: self.peer,
            secure: self.secure,
            local: self.local,
            id: self.id,
            held: self.held,
            login: self.login.clone(),
        }
    }

    /// Returns the values of the request for placeholders. `site`: name of the site. `user`: user whom the guards have
    /// authenticated.
    pub(super) fn values<'v>(
        &'v self,
        worker: &'v Worker,
        config: &'v WorkerConfig,
        site: &'v str,
        user: Option<&'v str>,
    ) -> RequestValues<'v> {
        RequestValues {
            services: worker,
            server: &config.snapshot.config.server,
            request: self.request,
            client: None,
            peer: self.peer,
            tls: self.secure.map(|secure| &**secure.tls_info()),
            user,
            site,
            id: self.id,
            status: None,
            upstream: None,
        }
    }

    /// Returns the local address of the connection, and true if the connection uses TLS.
    #[inline]
    pub fn local_and_tls(&self) -> (Option<IpAddr>, bool) {
        (self.local, self.is_secure())
    }

    /// Returns true if the connection uses TLS.
    #[inline]
    pub fn is_secure(&self) -> bool {
        self.secure.is_some()
    }

    /// Returns the client that sent the request: the peer of the connection, or the address that a trusted proxy names.
    #[inline]
    pub fn client(&self, worker: &Worker) -> Client {
        match worker.trusts_proxies.get() {
            true => forwarded::client(&worker.config().snapshot.config.server, self.peer, self.request.fields),
            false => self.peer,
        }
    }
}
