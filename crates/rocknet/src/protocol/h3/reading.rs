//! Reads streams and handles the events found in them.

use std::rc::Rc;

use bytes::Bytes;
use rocknet_proto::h3::{ConnectionEvent, ErrorCode, StreamId, UnidirectionalAction};
use rocknet_proto::method::Method;
use rocknet_proto::refusal::Refusal;
use rocknet_quic::{Dir, ReadOutcome};

use super::connection::{Connection, State};
use super::hq::Translated;
use super::output::quic_id;
use crate::exchange::BodyError;
use crate::response::FieldList;
use crate::worker::{Buffers, Worker};

/// Maximum number of bytes of a request body that wait for the handler. At this bound the stream is no longer read, so
/// that flow control stops the client.
const BODY_BOUND: usize = 64 * 1024;

/// Maximum number of bytes of a request that are discarded after its response has ended. Most of these bytes are
/// already in transit at that time.
const DISCARD_BOUND: usize = 256 * 1024;

/// Methods that are served in early data. TRACE is safe as well, but clients have no reason to send it early.
const EARLY_METHODS: [Method; 3] = [Method::Get, Method::Head, Method::Options];

impl Connection {
    /// Reads a stream until nothing more has arrived or reading has to pause.
    pub(super) fn read(&mut self, worker: &Rc<Worker>, id: rocknet_quic::StreamId) {
        if self.state != State::Serving {
            return;
        }
        match id.dir() {
            Dir::Uni => self.read_unidirectional(worker, id),
            Dir::Bi => self.read_request(worker, StreamId::new(id.into())),
        }
    }

    /// Reads a unidirectional stream of the client until nothing more has arrived.
    fn read_unidirectional(&mut self, worker: &Rc<Worker>, id: rocknet_quic::StreamId) {
        let now = worker.clock.uptime_ms();
        let number = u64::from(id);
        while self.unidirectional.contains(&id) {
            let (bytes, fin) = match self.quic.read(id) {
                ReadOutcome::Bytes { bytes, is_last } => (bytes, is_last),
                ReadOutcome::End => (Bytes::new(), true),
                ReadOutcome::Reset(_) => {
                    self.unidirectional.retain(|known| *known != id);
                    if let Err(error) = self.engine.unidirectional_reset(number, now) {
                        self.fail(error);
                    }
                    return;
                }
                ReadOutcome::Blocked | ReadOutcome::Gone => return,
            };
            let action = self.engine.receive_unidirectional(number, now, &bytes, fin);
            self.apply_priorities();
            match action {
                Ok(UnidirectionalAction::Continue) if !fin => {}
                Ok(UnidirectionalAction::Continue) => self.unidirectional.retain(|known| *known != id),
                Ok(UnidirectionalAction::StopReading(code)) => {
                    self.quic.stop_receiving(id, code.number());
                    self.unidirectional.retain(|known| *known != id);
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Reads a request stream until the handler lags behind or nothing more has arrived.
    fn read_request(&mut self, worker: &Rc<Worker>, id: StreamId) {
        while !self.pause_if_full(id) {
            let (bytes, fin) = match self.quic.read(quic_id(id)) {
                ReadOutcome::Bytes { bytes, is_last } => (bytes, is_last),
                ReadOutcome::End => (Bytes::new(), true),
                ReadOutcome::Reset(_) => return self.client_reset(worker, id),
                ReadOutcome::Blocked | ReadOutcome::Gone => return,
            };
            let length = bytes.len();
            let (bytes, is_last) = match self.translate(id, bytes, fin) {
                Translated::Bytes(bytes, is_last) => (bytes, is_last),
                Translated::More => continue,
                Translated::Ignored if self.discard(id, length) => continue,
                Translated::Ignored => return,
                Translated::Malformed => {
                    self.quic.stop_receiving(quic_id(id), ErrorCode::MessageError.number());
                    return self.reset(worker, id, ErrorCode::MessageError);
                }
            };
            if is_last {
                self.discarding.retain(|(known, _)| *known != id);
                self.process(worker, id, &bytes, true);
                if fin {
                    return;
                }
                // Over `hq-interop`, a request can end before its stream.
                continue;
            }
            let continues = if self.engine.is_open(id) {
                self.process(worker, id, &bytes, false)
            } else {
                self.discard(id, bytes.len())
            };
            if !continues {
                return;
            }
        }
    }

    /// Translates received bytes if the client speaks `hq-interop`, which is HTTP/0.9 over QUIC. Bytes after the
    /// request line are [`Translated::Ignored`].
    fn translate(&mut self, id: StreamId, bytes: Bytes, fin: bool) -> Translated {
        match &mut self.hq {
            None => Translated::Bytes(bytes, fin),
            Some(hq) => hq.translate(id, &bytes, fin, self.engine.awaits_request(id)),
        }
    }

    /// Discards bytes of a request whose response has ended. A client that is stopped while it sends may lose the
    /// response, so STOP_SENDING is sent only after many bytes (RFC 9114 §4.1). Returns false if nothing more is read.
    fn discard(&mut self, id: StreamId, bytes: usize) -> bool {
        let position = self.discarding.iter().position(|(known, _)| *known == id);
        let position = position.unwrap_or_else(|| {
            self.discarding.push((id, 0));
            self.discarding.len() - 1
        });
        let total = &mut self.discarding[position].1;
        *total += bytes;
        if *total <= DISCARD_BOUND {
            return true;
        }
        self.discarding.swap_remove(position);
        self.quic.stop_receiving(quic_id(id), ErrorCode::NoError.number());
        false
    }

    /// Returns true if a stream must not be read now: its field section waits for the dynamic table, or the handler
    /// lags behind. In the second case the stream is marked, so that reading resumes once the handler has taken the
    /// bytes.
    fn pause_if_full(&mut self, id: StreamId) -> bool {
        // After the response has ended, the rest of the request is read in any case, and discarded.
        if self.engine.is_open(id) && self.blocked.iter().any(|(blocked, ..)| *blocked == id) {
            return true;
        }
        let Some(entry) = self.streams.get_mut(id) else {
            return false;
        };
        let is_full = entry.stream.body.as_ref().is_some_and(|body| body.held() >= BODY_BOUND);
        entry.stream.is_paused = is_full;
        is_full
    }

    /// Continues with streams whose field sections no longer wait for the dynamic table. Returns true if there was one.
    pub(super) fn resume_blocked(&mut self, worker: &Rc<Worker>) -> bool {
        let mut progressed = false;
        while let Some(id) = self.engine.next_unblocked() {
            progressed = true;
            let position = self.blocked.iter().position(|(blocked, ..)| *blocked == id);
            let (bytes, fin) = position.map_or((Bytes::new(), false), |position| {
                let (_, bytes, fin) = self.blocked.swap_remove(position);
                (bytes, fin)
            });
            if self.process(worker, id, &bytes, fin) && !fin {
                self.read_request(worker, id);
            }
            if self.state != State::Serving {
                break;
            }
        }
        progressed
    }

    /// Handles the events in `bytes`. `fin`: true if the stream ends after `bytes`. Returns false if nothing more can
    /// be read from the stream now.
    fn process(&mut self, worker: &Rc<Worker>, id: StreamId, bytes: &Bytes, fin: bool) -> bool {
        let config = worker.config();
        let now = worker.clock.uptime_ms();
        let mut at = 0;
        loop {
            let mut buffers = worker.buffers.borrow_mut();
            let Buffers { head, .. } = &mut *buffers;
            let rest = &bytes[at..];
            let received = self.engine.receive(&config.head_limits, now, id, rest, fin, head);
            at += received.consumed;
            match received.event {
                ConnectionEvent::More => return true,
                ConnectionEvent::Blocked => {
                    self.blocked.push((id, bytes.slice(at..), fin));
                    return false;
                }
                ConnectionEvent::Request { end, expects_continue } => {
                    self.heads.retain(|(head, _)| *head != id);
                    self.deadlines.end_wait();
                    if self.quic.is_early() {
                        // Early data can be replayed (RFC 8446 §8), so only requests that may be repeated are served.
                        // An address that is not validated may be forged to bypass rules for addresses.
                        let is_repeatable = end && EARLY_METHODS.contains(&head.request().method);
                        let may_serve = is_repeatable && self.quic.is_address_validated();
                        if !may_serve && self.hq.is_some() {
                            // `hq-interop` has no status to refuse the request with.
                            drop(buffers);
                            self.abandon_stream(id, ErrorCode::RequestRejected);
                            return false;
                        }
                        if !may_serve {
                            let head_only = head.request().method == Method::Head;
                            drop(buffers);
                            self.refuse(worker, &config, id, head_only, Refusal::TooEarly);
                            continue;
                        }
                        // The field informs back ends that the request may be a replay (RFC 8470 §5.1).
                        head.add_field(b"early-data", b"1");
                    }
                    self.handle_request(worker, &config, head, id, end, expects_continue);
                }
                ConnectionEvent::Refused { refusal, is_head } => {
                    self.heads.retain(|(head, _)| *head != id);
                    drop(buffers);
                    self.refuse(worker, &config, id, is_head, refusal);
                }
                ConnectionEvent::Data { start, end, last } => self.receive_data(id, &rest[start..end], last),
                ConnectionEvent::Trailers => {
                    let trailers = head.index().trailers.view(head.bytes());
                    let trailers = FieldList::from_fields(trailers.lines());
                    if let Some(body) = self.streams.get_mut(id).and_then(|entry| entry.stream.body.as_mut()) {
                        body.end_with_trailers(trailers);
                    }
                }
                ConnectionEvent::Reset { error, .. } => {
                    tracing::debug!(client = %self.info.client, ?error, "a request was rejected");
                    self.cut(worker, id);
                    self.quic.reset(quic_id(id), error.code().number());
                    self.quic.stop_receiving(quic_id(id), error.code().number());
                    return false;
                }
                ConnectionEvent::Closed { error } => {
                    drop(buffers);
                    self.fail(error);
                    return false;
                }
            }
        }
    }

    /// Passes received bytes of a request body or tunnel to their receiver.
    fn receive_data(&mut self, id: StreamId, piece: &[u8], last: bool) {
        let Some(entry) = self.streams.get_mut(id) else {
            return;
        };
        entry.deadlines.received(piece.len() as u64);
        if let Some(exchange) = &entry.exchange {
            exchange.received(piece.len());
        }
        if let Some(body) = &mut entry.stream.body {
            body.add(piece, last);
        }
    }

    /// Drops the data of a request whose stream is no longer read.
    pub(super) fn forget(&mut self, id: StreamId) {
        if let Some(hq) = &mut self.hq {
            hq.forget(id);
        }
        self.blocked.retain(|(blocked, ..)| *blocked != id);
        self.discarding.retain(|(discarding, _)| *discarding != id);
        self.heads.retain(|(head, _)| *head != id);
    }

    /// Handles RESET_STREAM of the client.
    fn client_reset(&mut self, worker: &Rc<Worker>, id: StreamId) {
        self.forget(id);
        if !self.engine.is_open(id) {
            // The response has ended before its request, and is on its way to the client (RFC 9114 §4.1).
            return;
        }
        self.reset(worker, id, ErrorCode::RequestCancelled);
    }

    /// Resets the response on a stream, and counts the reset as one that the client caused.
    fn reset(&mut self, worker: &Rc<Worker>, id: StreamId, code: ErrorCode) {
        let counted = self.engine.client_reset(id, worker.clock.uptime_ms());
        self.cut(worker, id);
        self.quic.reset(quic_id(id), code.number());
        if let Err(error) = counted {
            self.fail(error);
        }
    }

    /// Handles STOP_SENDING of the client.
    pub(super) fn client_stopped(&mut self, worker: &Rc<Worker>, id: rocknet_quic::StreamId) {
        if id.dir() == Dir::Uni {
            // This is one of the server's own streams, which a client may not stop (RFC 9114 §6.2.1).
            return self.fail(rocknet_proto::h3::ConnectionError::ClosedCriticalStream);
        }
        let stream = StreamId::new(id.into());
        let stopped = self.engine.client_stopped(stream, worker.clock.uptime_ms());
        self.cut(worker, stream);
        self.unacknowledged.retain(|known| *known != stream);
        self.quic.reset(id, ErrorCode::RequestCancelled.number());
        self.quic.stop_receiving(id, ErrorCode::RequestCancelled.number());
        if let Err(error) = stopped {
            self.fail(error);
        }
    }

    /// Drops the exchange of a stream, and records its response as cut.
    pub(super) fn cut(&mut self, worker: &Worker, id: StreamId) {
        self.forget(id);
        if let Some(entry) = self.streams.take(id) {
            entry.stream.fail(BodyError::Incomplete);
            if let Some(exchange) = &entry.exchange {
                exchange.record_cut(worker, &mut self.info, entry.stream.output.length());
            }
        }
    }
}
