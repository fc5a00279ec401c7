//! Interface between the pipeline and a protocol version: the calls for a new request, and the outcome of the pipeline.

use std::rc::Rc;

use rocknet_io::queue::SharedBytes;
use rocknet_proto::refusal::Refusal;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use super::context::RequestContext;
use super::pending::PendingResponse;
use crate::exchange::RequestBody;
use crate::files::cache::l1::CachedEntry;
use crate::files::entry::Variant;
use crate::preload::Preloads;
use crate::response::Response;
use rocknet_proto::PreparedHeads;

/// Calls that a protocol version implements for a new request.
pub trait PipelineIo {
    /// Sends a prepared response, whose head was rendered in advance except for its date. `variant`: its body; `None`
    /// if the head is the whole response.
    fn send(&mut self, head: &PreparedHeads, variant: Option<(&CachedEntry, &Variant)>);

    /// Returns true if a response with a body of this length in memory is queued as a whole by one call, and the system
    /// usually takes it at once. Its exchange then ends before the worker continues, so it needs no permit of a limit.
    fn ends_at_once(&self, _body_length: u64) -> bool {
        false
    }

    /// Sends a prepared response whose body is in memory.
    fn send_bytes(&mut self, head: &PreparedHeads, body: &SharedBytes);

    /// Pushes or announces the files that a page needs. The page itself is sent next. Does nothing if the protocol
    /// version supports neither.
    fn announce_preloads(&mut self, _request: &Request<'_>, _preloads: &Preloads) {}

    /// Limits the request body to a number of bytes.
    ///
    /// # Errors
    ///
    /// Fails if the length that the client has announced (`Content-Length`) exceeds the limit.
    fn limit_body(&mut self, limit: u64) -> Result<(), Refusal>;

    /// Starts receiving the request body, and returns the object from which the handler reads the body.
    fn open_body(&mut self) -> RequestBody;
}

/// Outcome of the pipeline for a request.
pub enum Outcome {
    /// The response was in the worker cache, and was passed to [`PipelineIo::send`] or [`PipelineIo::send_bytes`]. The
    /// exchange has no context, because these values are enough to record the response.
    Sent {
        /// Status of the response.
        status: Status,
        /// Number of the site in the configuration.
        site: u32,
        /// Number of the route in the metrics.
        route: u32,
        /// Outcome of the request in the response cache; empty for a file.
        cache_status: &'static str,
    },
    /// The exchange has a context. Its response was sent, is complete, or is pending.
    Started(StartedExchange),
}

/// Exchange after the pipeline: its context, and the state of its response.
pub struct StartedExchange {
    pub context: Rc<RequestContext>,
    pub state: ResponseState,
    /// True if an HTTP/1 connection must be closed after the response: the request failed, the rest of its body is not
    /// read, or the peer is banned.
    pub close: bool,
}

/// State of a response when the pipeline returns.
pub enum ResponseState {
    /// The response has this status, came from a cache entry, and was passed to [`PipelineIo::send`]. Unlike after
    /// [`Outcome::Sent`], the exchange has a context, for instance because the request has a user.
    Sent(Status),
    /// The response is complete and has passed all phases.
    Ready(Box<Response>),
    /// The response is not complete yet.
    Pending(PendingResponse),
}
