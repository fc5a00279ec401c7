//! A request as it stands in the buffers of its connection, and what its connection says of it.

use std::net::IpAddr;
use std::rc::Rc;

use rocknet_proto::request::{OwnedRequest, Request};

use crate::exchange::Client;
use crate::forwarded;
use crate::handshake::Handshake;
use crate::worker::Worker;

pub struct IncomingRequest<'a, F> {
    pub request: &'a Request<'a>,
    /// Makes the request that outlives those buffers: a copy, which responses on the spot do without.
    pub owned: F,
    /// The request has a body, or is an extended CONNECT, whose data follows.
    pub has_body: bool,
    /// The other end of the connection.
    pub peer: Client,
    /// `None` for a connection in the clear.
    pub secure: Option<&'a Rc<Handshake>>,
    /// The address of this machine that the connection came in on, where sites differ by it.
    pub local: Option<IpAddr>,
}

impl<'a, F: Fn() -> Rc<OwnedRequest>> IncomingRequest<'a, F> {
    /// The same connection with another request: what a rule has made of the first.
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
        }
    }

    /// The address that the connection came in on, and whether it is under TLS.
    #[inline]
    pub fn local_and_tls(&self) -> (Option<IpAddr>, bool) {
        (self.local, self.is_secure())
    }

    #[inline]
    pub fn is_secure(&self) -> bool {
        self.secure.is_some()
    }

    /// The client that sent the request: the other end of the connection, or whom trusted proxies name.
    #[inline]
    pub fn client(&self, worker: &Worker) -> Client {
        match worker.trusts_proxies.get() {
            true => forwarded::client(&worker.config().snapshot.config.server, self.peer, self.request.fields),
            false => self.peer,
        }
    }
}
