//! Writes HTTP/2 responses into the send queue, as frames.

use rocknet_io::queue::{SendQueue, SharedBytes};
use rocknet_proto::h2::{BodyDelivery, ErrorCode, SendError, ServerConnection, StreamId};
use rocknet_proto::refusal::Refusal;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use super::push_state::{PendingPage, PromisedStream, PushState};
use super::streams::RequestStream;
use crate::exchange;
use crate::files::cache::l1::CachedEntry;
use crate::files::entry::{Content, Variant};
use crate::interim::InterimResponse;
use crate::lifecycle::body::{BodySource, Delivery};
use crate::lifecycle::body_receiver::BodyReceiver;
use crate::lifecycle::responder::{
    HeadResult, PieceResult, PreparedResult, Responder, UnsendableField, is_connection_specific,
};
use crate::pipeline::PipelineIo;
use crate::preload::{self, Preloads};
use crate::response::{Body, FieldList, Text};
use crate::worker::Worker;
use rocknet_proto::PreparedHeads;

/// Writer of one response.
pub struct H2Responder<'a> {
    pub engine: &'a mut ServerConnection,
    pub pushes: &'a mut PushState,
    pub scheme: &'static [u8],
    pub output: &'a mut SendQueue,
    pub id: StreamId,
    /// Value of the `Date` field.
    pub date: [u8; 29],
    /// True if the request was HEAD.
    pub head_only: bool,
    /// Length of the send queue in bytes at which a body has to wait for its turn by priority.
    bound: u64,
    pub body: RequestBody,
    /// Files to push with the response, if it is a page.
    page: Option<&'a PendingPage>,
    pub written: Written,
}

/// Source of a request body.
pub enum RequestBody {
    /// The request has no body, or the response needs none of it.
    None,
    /// The body arrives on the stream.
    Stream {
        /// True if the client waits for 100 (Continue) before it sends the body.
        expects_continue: bool,
    },
    /// Data after an extended CONNECT is for the tunnel, not a body.
    Tunnel,
    /// The request was held: it was read while the socket was blocked, and starts only now. A part of its body may have
    /// been received since. `None` if it has no body.
    Held(Option<exchange::RequestBody>),
}

/// Outcome of writing the response.
#[derive(Default)]
pub struct Written {
    /// Result of [`PipelineIo::send`].
    prepared: PreparedResult,
    /// Streams promised with the response.
    pub promised: Vec<PromisedStream>,
    /// Receiver of the request body or tunnel data; `None` if it was not opened, or if the request was held.
    pub receiver: Option<BodyReceiver>,
}

impl<'a> H2Responder<'a> {
    /// Creates the writer of the response on `stream`. `bound`: length of the send queue in bytes at which a body has
    /// to wait for its turn by priority.
    pub fn new(
        engine: &'a mut ServerConnection,
        pushes: &'a mut PushState,
        scheme: &'static [u8],
        output: &'a mut SendQueue,
        worker: &Worker,
        stream: &'a RequestStream,
        bound: u64,
        body: RequestBody,
    ) -> H2Responder<'a> {
        H2Responder {
            engine,
            pushes,
            scheme,
            output,
            id: stream.id,
            date: worker.clock.date(),
            head_only: stream.head_only,
            bound,
            body,
            page: stream.page.as_deref(),
            written: Written::default(),
        }
    }

    /// Writes a prepared head. `length`: bytes of the body; 0 without a body. Returns when to write the body.
    #[inline]
    fn send_prepared(&mut self, head: &PreparedHeads, length: u64) -> Result<BodyDelivery, SendError> {
        if length > 0 && self.output.len() >= self.bound {
            return self.send_prepared_later(head, length);
        }
        self.engine
            .respond_prepared(self.id, &head.h2, &self.date, length, self.output.buffer())
    }

    /// Writes a prepared response with a body in memory.
    #[inline]
    fn send_memory(&mut self, head: &PreparedHeads, body: &SharedBytes) {
        let length = head.length as usize;
        match self.send_prepared(head, head.length) {
            Ok(BodyDelivery::Now) => self.output.push_shared(body, 0, length),
            Ok(BodyDelivery::Later) => self.written.prepared.body = Some(BodySource::shared(body, length)),
            Ok(BodyDelivery::Done) | Err(_) => return,
        }
        self.written.prepared.bytes = head.length;
    }

    /// Writes a prepared head, and queues its body, which is written once its priority allows.
    fn send_prepared_later(&mut self, head: &PreparedHeads, length: u64) -> Result<BodyDelivery, SendError> {
        let out = self.output.buffer();
        // The head does not end the stream (`false`), and the queued body does (`true`).
        self.engine
            .respond_prepared_head(self.id, &head.h2, &self.date, false, out)?;
        self.engine.queue_body(self.id, length, true, out)?;
        Ok(BodyDelivery::Later)
    }
}

impl PipelineIo for H2Responder<'_> {
    #[inline]
    fn send(&mut self, head: &PreparedHeads, variant: Option<(&CachedEntry, &Variant)>) {
        if self.id.is_promised() && !self.pushes.reserve(head.status, Some(head.length)) {
            return self.engine.reset(self.id, ErrorCode::Cancel, self.output.buffer());
        }
        let Some((cached, variant)) = variant.filter(|_| !self.head_only && head.length > 0) else {
            // An error means that the stream is gone and needs no response.
            let _ = self.send_prepared(head, 0);
            return;
        };
        match (&variant.content, cached.content(variant)) {
            (Content::Memory(_), Some(bytes)) => self.send_memory(head, bytes),
            (Content::File(file), _) => {
                // `false`: the head does not end the stream, because the body follows.
                let begun =
                    self.engine
                        .respond_prepared_head(self.id, &head.h2, &self.date, false, self.output.buffer());
                if begun.is_ok() {
                    // The last parameter, the uptime, is used only for direct delivery.
                    self.written.prepared.body = Some(BodySource::file(file, Delivery::Framed, 0));
                }
            }
            // This case cannot occur: `content` returns the bytes of every variant in memory.
            (Content::Memory(_), None) => {}
        }
    }

    #[inline]
    fn send_bytes(&mut self, head: &PreparedHeads, body: &SharedBytes) {
        if self.id.is_promised() && !self.pushes.reserve(head.status, Some(head.length)) {
            return self.engine.reset(self.id, ErrorCode::Cancel, self.output.buffer());
        }
        if self.head_only || head.length == 0 {
            // An error means that the stream is gone and needs no response.
            let _ = self.send_prepared(head, 0);
            return;
        }
        self.send_memory(head, body);
    }

    #[cold]
    fn announce_preloads(&mut self, request: &Request<'_>, preloads: &Preloads) {
        let out = self.output.buffer();
        if self.engine.may_push(self.id) {
            let targets = preloads.targets.iter().map(|target| &**target);
            self.pushes.promise(
                self.engine,
                self.id,
                request,
                self.scheme,
                targets,
                &mut self.written.promised,
                out,
            );
        } else if !self.id.is_promised() {
            self.pushes
                .send_early_hints(self.engine, self.id, request, preloads, out);
        }
    }

    fn limit_body(&mut self, limit: u64) -> Result<(), Refusal> {
        match self.body {
            RequestBody::Stream { .. } => self.engine.set_body_limit(self.id, limit),
            // The body of a held request was limited when the request was received, possibly before its route was
            // known. In that case, the largest limit of all routes of the site applied until now.
            RequestBody::Held(Some(ref body)) => {
                body.limit(limit);
                Ok(())
            }
            RequestBody::None | RequestBody::Tunnel | RequestBody::Held(None) => Ok(()),
        }
    }

    fn open_body(&mut self) -> exchange::RequestBody {
        let expects_continue = match &mut self.body {
            RequestBody::None => return exchange::RequestBody::empty(),
            RequestBody::Held(body) => return body.take().unwrap_or(exchange::RequestBody::empty()),
            RequestBody::Stream { expects_continue } => Some(*expects_continue),
            RequestBody::Tunnel => None,
        };
        let (body, channel) = exchange::RequestBody::channel();
        // Tunnel data is not a request body, so the handler finds the body ended.
        if expects_continue.is_none() {
            channel.end(Ok(()));
        }
        self.written.receiver = Some(BodyReceiver::new(channel, expects_continue.unwrap_or(false)));
        body
    }
}

impl Responder for H2Responder<'_> {
    fn may_respond(&self) -> bool {
        self.engine.may_respond(self.id)
    }

    /// Writes a response. The last parameter, `close`, is ignored, because the connection carries other exchanges.
    fn respond(
        &mut self,
        status: Status,
        fields: &FieldList,
        body: Body,
        _: bool,
    ) -> Result<HeadResult, UnsendableField> {
        if self.id.is_promised() && !self.pushes.reserve(status, body.length()) {
            self.engine.reset(self.id, ErrorCode::Cancel, self.output.buffer());
            return Ok(HeadResult::Complete(0));
        }
        if let Some(page) = self.page.filter(|_| preload::is_page(status)) {
            let (promised, out) = (&mut self.written.promised, self.output.buffer());
            self.pushes
                .promise_for_response(self.engine, page, self.id, self.scheme, fields, promised, out);
        }
        let length = body.length().filter(|_| status.allows_body());
        let end = self.head_only || !status.allows_body() || length == Some(0);
        if !self.head(status, length, fields, end)? {
            return Ok(HeadResult::Gone);
        }
        if end {
            return Ok(HeadResult::Complete(0));
        }
        let body = BodySource::new(body, Delivery::Framed);
        if body.ready() > 0 {
            let out = self.output.buffer();
            // If the stream is gone, the failure to queue does not matter.
            let _ = self.engine.queue_body(self.id, body.ready(), body.is_last(), out);
        }
        Ok(HeadResult::Body(body))
    }

    #[cold]
    fn respond_broken(&mut self) {
        let (status, out) = (Status::INTERNAL_SERVER_ERROR, self.output.buffer());
        let end = true;
        // An error means that the stream is gone and needs no response.
        let _ = self.engine.respond(self.id, status, Some(0), [], end, out);
    }

    /// Accepts an extended CONNECT with 200 (RFC 8441 §5).
    fn switch_protocol(&mut self, fields: FieldList, _: Text) -> Result<Option<Status>, UnsendableField> {
        // `false`: the head does not end the stream, because the data of the tunnel follows.
        if !self.head(Status::OK, None, &fields, false)? {
            return Ok(None);
        }
        self.engine.begin_tunnel(self.id);
        Ok(Some(Status::OK))
    }

    fn send_interim(&mut self, interim: &InterimResponse) -> Result<(), UnsendableField> {
        if self.id.is_promised() {
            return Ok(());
        }
        let (fields, out) = (interim.fields.bytes(), self.output.buffer());
        is_stream_open(self.engine.send_interim(self.id, interim.status, fields, out)).map(drop)
    }

    fn send_piece(&mut self, body: &mut BodySource) -> PieceResult {
        let out = self.output.buffer();
        match self.engine.queue_body(self.id, body.ready(), body.is_last(), out) {
            Ok(()) => PieceResult::Offered,
            Err(_) => PieceResult::Gone,
        }
    }

    fn finish(&mut self, trailers: Option<&FieldList>) -> Result<(), UnsendableField> {
        let out = self.output.buffer();
        let ended = match trailers {
            Some(trailers) => self.engine.finish_with_trailers(self.id, trailers.bytes(), out),
            None => self.engine.queue_body(self.id, 0, true, out),
        };
        is_stream_open(ended).map(drop)
    }

    fn abort(&mut self) {
        self.engine
            .reset(self.id, ErrorCode::InternalError, self.output.buffer());
    }

    #[inline]
    fn prepared_result(&mut self) -> &mut PreparedResult {
        &mut self.written.prepared
    }

    /// Resets the promised streams; the client can request the files itself.
    fn cancel_pushes(&mut self) {
        for PromisedStream { id, .. } in std::mem::take(&mut self.written.promised) {
            self.engine.reset(id, ErrorCode::Cancel, self.output.buffer());
        }
    }
}

impl H2Responder<'_> {
    /// Writes a head. `end`: true if the response has no body. Returns false if the stream is gone, or its response has
    /// begun.
    fn head(
        &mut self,
        status: Status,
        length: Option<u64>,
        fields: &FieldList,
        end: bool,
    ) -> Result<bool, UnsendableField> {
        let all = std::iter::once((&b"date"[..], &self.date[..]))
            .chain(fields.bytes().filter(|(name, _)| !is_connection_specific(name)));
        let out = self.output.buffer();
        is_stream_open(self.engine.respond(self.id, status, length, all, end, out))
    }
}

/// Returns false for a stream that is gone or whose response has begun, and an error for a field that cannot be
/// encoded.
fn is_stream_open(sent: Result<(), SendError>) -> Result<bool, UnsendableField> {
    match sent {
        Ok(()) => Ok(true),
        Err(SendError::Field(error)) => Err(UnsendableField::new(error)),
        Err(_) => Ok(false),
    }
}
