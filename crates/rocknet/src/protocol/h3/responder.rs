//! Writes HTTP/3 responses, as frames on their stream.

use rocknet_io::queue::SharedBytes;
use rocknet_proto::PreparedHeads;
use rocknet_proto::h3::{ErrorCode, SendError, ServerConnection};
use rocknet_proto::refusal::Refusal;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use super::output::quic_id;
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
use crate::lifecycle::seen_targets::SeenTargets;
use crate::pipeline::PipelineIo;
use crate::preload::Preloads;
use crate::response::{Body, FieldList, Text};
use crate::worker::Worker;

/// Maximum size in bytes of a body in memory that is copied as a whole after its head, so that both need one
/// allocation. A larger one is copied in pieces as the transport takes them.
const COPIED_MAX: u64 = 16 * 1024;

/// Writer of one response.
pub struct H3Responder<'a> {
    engine: &'a mut ServerConnection,
    quic: &'a mut rocknet_quic::Connection,
    stream: &'a mut RequestStream,
    /// Value of the `Date` field.
    date: [u8; 29],
    body: RequestBody,
    /// Targets that are not announced again.
    seen: &'a mut Option<Box<SeenTargets>>,
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
}

/// Outcome of writing the response.
#[derive(Default)]
pub struct Written {
    /// Result of [`PipelineIo::send`].
    prepared: PreparedResult,
    /// Receiver of the request body or tunnel data; `None` if it was not opened.
    pub receiver: Option<BodyReceiver>,
}

impl<'a> H3Responder<'a> {
    /// Creates the writer of the response on `stream`.
    pub fn new(
        engine: &'a mut ServerConnection,
        quic: &'a mut rocknet_quic::Connection,
        worker: &Worker,
        stream: &'a mut RequestStream,
        body: RequestBody,
        seen: &'a mut Option<Box<SeenTargets>>,
    ) -> H3Responder<'a> {
        H3Responder {
            engine,
            quic,
            stream,
            date: worker.clock.date(),
            body,
            seen,
            written: Written::default(),
        }
    }

    /// Ends the response after the output that has been added.
    fn end(&mut self) {
        self.stream.output.end();
        // The rest of the request body is discarded as it arrives.
        self.engine.end_response(self.stream.id);
    }

    /// Writes a head. Returns false if the stream is gone, or its response has begun.
    fn head(&mut self, status: Status, length: Option<u64>, fields: &FieldList) -> Result<bool, UnsendableField> {
        let all = std::iter::once((&b"date"[..], &self.date[..]))
            .chain(fields.bytes().filter(|(name, _)| !is_connection_specific(name)));
        let mut out = Vec::new();
        let sent = is_stream_open(self.engine.respond(self.stream.id, status, length, all, &mut out))?;
        self.stream.output.push(out.into());
        Ok(sent)
    }

    /// Returns a prepared head, and the header of the DATA frame of a body of `length` bytes. `room`: capacity for the
    /// bytes of the body. Returns `None` if the stream is gone and needs no response.
    fn begin_prepared(&mut self, head: &PreparedHeads, length: u64, room: usize) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(head.h3.max_written() + room);
        let begun = self
            .engine
            .respond_prepared(self.stream.id, &head.h3, &self.date, length, &mut out);
        begun.is_ok().then_some(out)
    }

    /// Sends a prepared head without a body.
    fn send_head(&mut self, head: &PreparedHeads) {
        if let Some(out) = self.begin_prepared(head, 0, 0) {
            self.stream.output.push(out.into_boxed_slice().into());
            self.end();
        }
    }

    /// Writes the header of a DATA frame.
    fn begin_data(&mut self, length: u64) {
        let mut out = Vec::new();
        // An error means that the stream is gone and needs no frame.
        let _ = self.engine.begin_data(self.stream.id, length, &mut out);
        self.stream.output.push(out.into());
    }
}

impl PipelineIo for H3Responder<'_> {
    fn send(&mut self, head: &PreparedHeads, variant: Option<(&CachedEntry, &Variant)>) {
        let Some((cached, variant)) = variant.filter(|_| !self.stream.head_only && head.length > 0) else {
            return self.send_head(head);
        };
        match (&variant.content, cached.content(variant)) {
            (Content::Memory(_), Some(bytes)) => self.send_bytes(head, bytes),
            (Content::File(file), _) => {
                let Some(out) = self.begin_prepared(head, head.length, 0) else {
                    return;
                };
                self.stream.output.push(out.into());
                self.stream.is_framed = true;
                // The last parameter, the uptime, is used only for direct delivery.
                self.written.prepared.body = Some(BodySource::file(file, Delivery::Copied, 0));
            }
            // This case cannot occur: `content` returns the bytes of every variant in memory.
            (Content::Memory(_), None) => {}
        }
    }

    fn send_bytes(&mut self, head: &PreparedHeads, body: &SharedBytes) {
        let length = head.length as usize;
        if self.stream.head_only || length == 0 {
            return self.send_head(head);
        }
        let is_copied = head.length <= COPIED_MAX;
        let Some(mut out) = self.begin_prepared(head, head.length, if is_copied { length } else { 0 }) else {
            return;
        };
        if is_copied {
            out.extend_from_slice(&(**body).as_ref()[..length]);
            // Bytes without spare capacity need no second allocation for a reference count.
            self.stream.output.push(out.into_boxed_slice().into());
            self.written.prepared.bytes = head.length;
            self.end();
        } else {
            self.stream.output.push(out.into());
            self.stream.is_framed = true;
            self.written.prepared.body = Some(BodySource::shared(body, length));
        }
    }

    /// Sends 103 (Early Hints) if one of the files is new to the client. Browsers accept no pushes over HTTP/3.
    #[cold]
    fn announce_preloads(&mut self, request: &Request<'_>, preloads: &Preloads) {
        let seen = self.seen.get_or_insert_with(|| Box::new(SeenTargets::of_page(request)));
        if seen.has_new(request.authority, preloads) {
            let (mut out, link) = (Vec::new(), (&b"link"[..], preloads.link.as_bytes()));
            // An error means that the stream is gone and needs no hint.
            let _ = self
                .engine
                .send_interim(self.stream.id, Status::EARLY_HINTS, [link], &mut out);
            self.stream.output.push(out.into());
        }
    }

    fn limit_body(&mut self, limit: u64) -> Result<(), Refusal> {
        match self.body {
            RequestBody::Stream { .. } => self.engine.set_body_limit(self.stream.id, limit),
            RequestBody::None | RequestBody::Tunnel => Ok(()),
        }
    }

    fn open_body(&mut self) -> exchange::RequestBody {
        let expects_continue = match &self.body {
            RequestBody::None => return exchange::RequestBody::empty(),
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

impl Responder for H3Responder<'_> {
    fn may_respond(&self) -> bool {
        self.engine.may_respond(self.stream.id)
    }

    /// Writes a response. The last parameter, `close`, is ignored, because the connection carries other exchanges.
    fn respond(
        &mut self,
        status: Status,
        fields: &FieldList,
        body: Body,
        _: bool,
    ) -> Result<HeadResult, UnsendableField> {
        let length = body.length().filter(|_| status.allows_body());
        let is_end = self.stream.head_only || !status.allows_body() || length == Some(0);
        if !self.head(status, length, fields)? {
            return Ok(HeadResult::Gone);
        }
        if is_end {
            self.end();
            return Ok(HeadResult::Complete(0));
        }
        let body = BodySource::new(body, Delivery::Copied);
        if let Some(length) = length {
            // A single frame contains the whole body.
            self.begin_data(length);
            self.stream.is_framed = true;
        } else {
            self.begin_data(body.ready());
        }
        Ok(HeadResult::Body(body))
    }

    #[cold]
    fn respond_broken(&mut self) {
        let mut out = Vec::new();
        let (id, status) = (self.stream.id, Status::INTERNAL_SERVER_ERROR);
        // An error means that the stream is gone and needs no response.
        let _ = self.engine.respond(id, status, Some(0), [], &mut out);
        self.stream.output.push(out.into());
        self.end();
    }

    /// Accepts an extended CONNECT with 200 (RFC 9220 §3).
    fn switch_protocol(&mut self, fields: FieldList, _: Text) -> Result<Option<Status>, UnsendableField> {
        if !self.head(Status::OK, None, &fields)? {
            return Ok(None);
        }
        self.engine.begin_tunnel(self.stream.id);
        Ok(Some(Status::OK))
    }

    fn send_interim(&mut self, interim: &InterimResponse) -> Result<(), UnsendableField> {
        let (fields, mut out) = (interim.fields.bytes(), Vec::new());
        let sent = self
            .engine
            .send_interim(self.stream.id, interim.status, fields, &mut out);
        is_stream_open(sent)?;
        self.stream.output.push(out.into());
        Ok(())
    }

    fn send_piece(&mut self, body: &mut BodySource) -> PieceResult {
        if !self.stream.is_framed {
            self.begin_data(body.ready());
        }
        PieceResult::Offered
    }

    fn finish(&mut self, trailers: Option<&FieldList>) -> Result<(), UnsendableField> {
        if let Some(trailers) = trailers {
            let mut out = Vec::new();
            is_stream_open(self.engine.send_trailers(self.stream.id, trailers.bytes(), &mut out))?;
            self.stream.output.push(out.into());
        }
        self.end();
        Ok(())
    }

    fn abort(&mut self) {
        self.engine.abandon(self.stream.id);
        self.quic
            .reset(quic_id(self.stream.id), ErrorCode::InternalError.number());
    }

    fn prepared_result(&mut self) -> &mut PreparedResult {
        &mut self.written.prepared
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
