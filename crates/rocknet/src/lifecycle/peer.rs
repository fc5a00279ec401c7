//! The client of a connection, and the record of each of its exchanges.

use std::net::IpAddr;
use std::rc::Rc;

use rocknet_proto::fields::Known;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use crate::exchange::Client;
use crate::forwarded;
use crate::handshake::Handshake;
use crate::log::{Record, SinkId};
use crate::pipeline::RequestContext;
use crate::worker::Worker;

/// One client, and how it is connected.
pub struct Peer {
    pub client: Client,
    /// `None`: in the clear.
    pub secure: Option<Rc<Handshake>>,
    /// The address that the connection came in on, where sites differ by it. Boxed, as the next field is: every byte here is
    /// paid for by each idle connection.
    local: Option<Box<IpAddr>>,
    /// The client's address as text, once it has been logged.
    text: Option<Box<str>>,
}

impl Peer {
    pub fn new(client: Client, local: Option<Box<IpAddr>>) -> Peer {
        Peer {
            client,
            secure: None,
            local,
            text: None,
        }
    }

    /// The address that the connection came in on, where sites differ by it.
    #[inline]
    pub fn local(&self) -> Option<IpAddr> {
        self.local.as_deref().copied()
    }

    /// As [`Peer::answered`], for a request whose context is kept.
    pub fn record(&mut self, worker: &Worker, context: &RequestContext, status: Status, sent: u64) {
        let request = context.request.as_ref().map(|request| request.view());
        self.answered(worker, context.access, request.as_ref(), status, sent);
    }

    /// Counts a response, and writes its line in the access log if the site keeps one. `request`: `None` for what could not
    /// be parsed, of which nothing gets into the log. `sent`: bytes of the response body.
    #[inline]
    pub fn answered(
        &mut self,
        worker: &Worker,
        access: Option<SinkId>,
        request: Option<&Request<'_>>,
        status: Status,
        sent: u64,
    ) {
        worker.counters.answered(status);
        let Some(sink) = access else { return };
        let forwarded = match request {
            Some(request) if worker.believes.get() => self.forwarded(worker, request),
            _ => None,
        };
        let client = match &forwarded {
            Some(text) => text,
            None => &**self.text.get_or_insert_with(|| self.client.to_string().into()),
        };
        worker.log.borrow_mut().record(
            sink,
            &Record {
                client,
                user: None,
                method: request.map_or(b"", |request| request.method_name),
                target: request.map_or(b"", |request| request.target),
                version: request.map_or("", |request| request.version.as_str()),
                status: status.code(),
                content_bytes: sent,
                referer: request.and_then(|request| request.fields.get(Known::Referer)),
                user_agent: request.and_then(|request| request.fields.get(Known::UserAgent)),
                host: request.map_or(b"", |request| request.authority),
                duration_us: None,
            },
        );
    }

    /// The client that a trusted proxy names, as text.
    #[cold]
    fn forwarded(&self, worker: &Worker, request: &Request<'_>) -> Option<String> {
        let client = forwarded::client(&worker.view().snapshot.config.server, self.client, request.fields);
        (client != self.client).then(|| client.to_string())
    }
}
