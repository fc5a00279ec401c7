//! Writes HTTP/1 responses into the send queue.

use std::any::Any;
use std::rc::Rc;

use rocknet_handler::guard::Held;
use rocknet_io::queue::{SendQueue, SharedBytes};
use rocknet_proto::h1::{self, AfterResponse, Length, Refusal, ServerConnection};
use rocknet_proto::status::Status;

use crate::exchange::{BodyChannel, RequestBody};
use crate::files::cache::l1::CachedEntry;
use crate::files::entry::{Content, Variant};
use crate::interim::InterimResponse;
use crate::lifecycle::body::{BodySource, Delivery};
use crate::lifecycle::responder::{HeadResult, PieceResult, PreparedResult, Responder, UnsendableField};
use crate::pipeline::PipelineIo;
use crate::response::{Body, FieldList, Text};
use crate::worker::Worker;
use rocknet_proto::PreparedHeads;

/// Response sent in place of a response whose head cannot be encoded.
const BROKEN_RESPONSE: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Maximum length in bytes of a body that an idle socket takes at once, together with the head. Linux gives a new TCP
/// socket a send buffer of 16 KiB (`tcp_wmem`). The other half is for the head and the bookkeeping.
const AT_ONCE: u64 = 8 << 10;

/// Writer of one response.
pub struct H1Responder<'a> {
    pub engine: &'a mut ServerConnection,
    pub output: &'a mut SendQueue,
    /// Value of the `Date` field.
    pub date: [u8; 29],
    /// Uptime of the server in milliseconds.
    pub now_ms: u64,
    /// True if the connection closes after this response in any case.
    pub close: bool,
    pub written: Written,
}

/// Outcome of writing the response.
#[derive(Default)]
pub struct Written {
    /// State of the connection after the response; set once the response is complete or aborted.
    pub next: Option<AfterResponse>,
    /// True if the connection must close after the response, because the request failed, a part of it remains unread,
    /// or the peer is banned.
    pub is_last: bool,
    /// True if the end of the connection marks the end of the response.
    pub is_open_ended: bool,
    /// Sending side of the request body, if the body is read.
    pub channel: Option<Rc<BodyChannel>>,
    /// Result of [`PipelineIo::send`].
    pub prepared: PreparedResult,
}

impl<'a> H1Responder<'a> {
    /// Creates the writer of the next response. `close`: true if the connection closes after the response.
    pub fn new(
        engine: &'a mut ServerConnection,
        output: &'a mut SendQueue,
        worker: &Worker,
        close: bool,
    ) -> H1Responder<'a> {
        let (date, now_ms) = (worker.clock.date(), worker.clock.uptime_ms());
        H1Responder {
            engine,
            output,
            date,
            now_ms,
            close,
            written: Written::default(),
        }
    }
}

impl PipelineIo for H1Responder<'_> {
    #[inline]
    fn send(&mut self, head: &PreparedHeads, variant: Option<(&CachedEntry, &Variant)>) {
        let length = Length::Exact(head.length);
        let Some((cached, variant)) = variant else {
            let (framing, next) = self.engine.respond_complete(head.status, length, self.close);
            head.h1.write(&self.date, framing.connection, self.output.buffer());
            self.written.next = Some(next);
            return;
        };
        match (&variant.content, cached.content(variant)) {
            (Content::Memory(_), Some(bytes)) => self.send_bytes(head, bytes),
            (Content::File(file), _) => {
                let framing = self.engine.respond(head.status, length, self.close);
                head.h1.write(&self.date, framing.connection, self.output.buffer());
                if framing.has_body && file.length > 0 {
                    self.written.prepared.body = Some(BodySource::file(file, Delivery::Direct, self.now_ms));
                } else {
                    self.written.next = Some(self.engine.finish(self.output.buffer()));
                }
            }
            // This case cannot occur: `content` returns the bytes of every variant in memory.
            (Content::Memory(_), None) => {}
        }
    }

    #[inline]
    fn ends_at_once(&self, body_length: u64) -> bool {
        body_length <= AT_ONCE
    }

    #[inline]
    fn send_bytes(&mut self, head: &PreparedHeads, body: &SharedBytes) {
        let length = Length::Exact(head.length);
        let (framing, next) = self.engine.respond_complete(head.status, length, self.close);
        head.h1.write(&self.date, framing.connection, self.output.buffer());
        if framing.has_body {
            self.output.push_shared(body, 0, head.length as usize);
            self.written.prepared.bytes = head.length;
        }
        self.written.next = Some(next);
    }

    fn limit_body(&mut self, limit: u64) -> Result<(), Refusal> {
        self.engine.set_body_limit(limit)
    }

    fn open_body(&mut self) -> RequestBody {
        let (body, channel) = RequestBody::channel();
        self.written.channel = Some(channel);
        body
    }
}

impl Responder for H1Responder<'_> {
    fn may_respond(&self) -> bool {
        self.engine.may_respond()
    }

    fn respond(
        &mut self,
        status: Status,
        fields: &FieldList,
        body: Body,
        close: bool,
    ) -> Result<HeadResult, UnsendableField> {
        self.written.is_last = close;
        let close = close || self.close;
        // A body in memory is queued as a whole and needs no `BodySource`.
        let body = match body.into_bytes() {
            Ok(bytes) => {
                let length = bytes.len() as u64;
                let (framing, next) = self.engine.respond_complete(status, Length::Exact(length), close);
                h1::encode_dated_head(self.output.buffer(), framing, status, &self.date, fields)
                    .map_err(UnsendableField::new)?;
                self.written.next = Some(next);
                if !framing.has_body || length == 0 {
                    return Ok(HeadResult::Complete(0));
                }
                self.output.push_owned(bytes);
                return Ok(HeadResult::Complete(length));
            }
            Err(body) => body,
        };
        let length = body.length().map_or(Length::Unknown, Length::Exact);
        let framing = self.engine.respond(status, length, close);
        h1::encode_dated_head(self.output.buffer(), framing, status, &self.date, fields)
            .map_err(UnsendableField::new)?;
        if framing.has_body {
            self.written.is_open_ended = !framing.chunked && framing.content_length.is_none();
            return Ok(HeadResult::Body(BodySource::new(body, Delivery::Direct)));
        }
        self.written.next = Some(self.engine.finish(self.output.buffer()));
        Ok(HeadResult::Complete(0))
    }

    #[cold]
    fn respond_broken(&mut self) {
        self.output.buffer().extend_from_slice(BROKEN_RESPONSE);
        self.engine.abort();
        self.written.next = Some(AfterResponse::Linger);
    }

    fn may_switch_protocol(&self) -> bool {
        self.engine.may_upgrade()
    }

    fn switch_protocol(&mut self, mut fields: FieldList, protocol: Text) -> Result<Option<Status>, UnsendableField> {
        fields.set("Upgrade", protocol);
        let status = Status::SWITCHING_PROTOCOLS;
        // `false`: the head does not announce a close, because the tunnel begins.
        let framing = self.engine.respond(status, Length::None, false);
        h1::encode_dated_head(self.output.buffer(), framing, status, &self.date, &fields)
            .map_err(UnsendableField::new)?;
        // The returned state is not needed, because the connection ends with the tunnel.
        self.engine.finish(self.output.buffer());
        Ok(Some(status))
    }

    /// Sends nothing to a client of HTTP/1.0, which has no interim responses.
    fn send_interim(&mut self, interim: &InterimResponse) -> Result<(), UnsendableField> {
        if !self.engine.may_send_interim() {
            return Ok(());
        }
        // `false`: an interim response does not close the connection.
        let framing = self.engine.respond(interim.status, Length::None, false);
        h1::encode_head(self.output.buffer(), framing, interim.status, interim.fields.bytes())
            .map_err(UnsendableField::new)
    }

    fn send_piece(&mut self, body: &mut BodySource) -> PieceResult {
        let (length, end) = (body.ready(), self.engine.data_end());
        if self.engine.begin_data(length, self.output.buffer()).is_err() {
            // The body is longer than announced. The excess is discarded, because the client would parse it as another
            // response.
            body.discard();
            return PieceResult::Queued(0);
        }
        body.put(length, self.output);
        self.output.buffer().extend_from_slice(end);
        PieceResult::Queued(length)
    }

    fn finish(&mut self, trailers: Option<&FieldList>) -> Result<(), UnsendableField> {
        let out = self.output.buffer();
        let next = match trailers {
            Some(trailers) => self
                .engine
                .finish_with_trailers(trailers.bytes(), out)
                .map_err(UnsendableField::new)?,
            None => self.engine.finish(out),
        };
        self.written.next = Some(next);
        Ok(())
    }

    fn abort(&mut self) {
        self.engine.abort();
        self.written.next = Some(AfterResponse::Linger);
    }

    #[cold]
    fn keep_until_sent(&mut self, held: &Rc<Held>) {
        self.output.keep_until_sent(Rc::clone(held) as Rc<dyn Any>);
    }

    #[inline]
    fn prepared_result(&mut self) -> &mut PreparedResult {
        &mut self.written.prepared
    }
}
