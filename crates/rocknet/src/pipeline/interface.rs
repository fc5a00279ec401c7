//! The interface between the pipeline and a protocol version: calls for a new request, and the result of the pipeline.

use std::rc::Rc;

use rocknet_proto::refusal::Refusal;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use super::context::RequestContext;
use super::pending::PendingResponse;
use crate::exchange::RequestBody;
use crate::files::cache::front::Known;
use crate::files::entry::Variant;
use crate::preload::Preloads;
use crate::response::Response;
use rocknet_proto::PreparedHeads;

/// The calls that a protocol version implements for a request that begins.
pub trait PipelineIo {
    /// Sends a response that was prepared beforehand; `None`: its head is all of it.
    fn send(&mut self, head: &PreparedHeads, variant: Option<(&Known, &Variant)>);

    /// The response that is sent next is a page that needs these: they are pushed, or announced, where the version has a
    /// way to.
    fn announce_preloads(&mut self, _request: &Request<'_>, _preloads: &Preloads) {}

    /// Bounds the request body, in bytes.
    ///
    /// # Errors
    ///
    /// The client has announced more.
    fn limit_body(&mut self, limit: u64) -> Result<(), Refusal>;

    /// Begins to receive the request body.
    fn open_body(&mut self) -> RequestBody;
}

/// Result of the pipeline for a request.
pub enum Outcome {
    /// It was answered by [`PipelineIo::send`] with what the worker cache holds.
    Sent {
        status: Status,
        site: u32,
    },
    Started(StartedExchange),
}

/// A request that is answered by more than the worker cache.
pub struct StartedExchange {
    pub context: Rc<RequestContext>,
    pub state: ResponseState,
    /// The rest of the request body is not wanted: a connection that carries nothing else ends with the response.
    pub close: bool,
}

/// The continuation of a response.
pub enum ResponseState {
    /// It was sent by [`PipelineIo::send`].
    Sent(Status),
    /// It is here, and has passed all phases.
    Ready(Box<Response>),
    Pending(PendingResponse),
}
