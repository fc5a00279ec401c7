//! Control frames: SETTINGS, WINDOW_UPDATE, priorities, PING, RST_STREAM and GOAWAY.

use super::{Config, ConnectionEvent, Context, FrameResult, ServerConnection};
use crate::h2::error::{ConnectionError, ErrorCode, StreamError};
use crate::h2::frame::{self, FrameHeader};
use crate::h2::stream::{OpenStream, StreamState};
use crate::h2::streams::StreamId;
use crate::multiplexed::Flood;
use crate::multiplexed::Priority;

/// Maximum number of priorities kept for streams that are not open yet (RFC 9218 §7.1 allows such a limit). A further
/// one replaces the oldest. Priorities arrive right before their streams, so few are stored at a time.
const EARLY_PRIORITIES: usize = 16;

impl ServerConnection {
    #[cold]
    pub(super) fn read_settings(
        &mut self,
        context: &mut Context<'_>,
        header: &FrameHeader,
        payload: &[u8],
    ) -> FrameResult {
        if header.has(frame::ACK) {
            // The acknowledgement needs no action: the client may use what the settings grant before it acknowledges
            // them, and the server enforces their limits from the start.
            return Ok(None);
        }
        self.budget.spend(Flood::Settings, context.now)?;
        self.apply_settings(payload)?;
        frame::settings_ack(context.out);
        Ok(None)
    }

    /// Applies the payload of SETTINGS to the client's settings, the streams and the encoder.
    fn apply_settings(&mut self, payload: &[u8]) -> Result<(), ConnectionError> {
        let settings = self.client.with_payload(payload)?;
        let change = i64::from(settings.initial_window_size) - i64::from(self.client.initial_window_size);
        if change != 0 {
            self.streams
                .adjust_windows(change)
                .map_err(|_| ConnectionError::InitialWindowTooLarge)?;
        }
        // Every intermediate size counts for the table (RFC 7541 §4.2), because the client may have cut its table to
        // the smallest size. A setting is an identifier of two bytes and a value of four.
        for &[a, b, v, w, x, y] in payload.as_chunks::<6>().0 {
            if u16::from_be_bytes([a, b]) == crate::h2::settings::HEADER_TABLE_SIZE {
                self.encoder.set_max_table_size(u32::from_be_bytes([v, w, x, y]));
            }
        }
        self.client = settings;
        Ok(())
    }

    /// Creates a connection after `Upgrade: h2c` (RFC 7540 §3.2). `settings` is the payload decoded from the request's
    /// HTTP2-Settings field. The request becomes stream 1, which is half-closed by the client. The client still sends
    /// its preface.
    ///
    /// # Errors
    ///
    /// Fails if a value in `settings` is invalid.
    pub fn upgraded(config: &Config, settings: &[u8]) -> Result<(Self, StreamId), ConnectionError> {
        let mut connection = Self::new(config);
        connection.apply_settings(settings)?;
        let (send, receive) = (connection.client.initial_window_size, connection.config.stream_window);
        let stream = OpenStream::new(1, StreamState::HalfClosedRemote, send, receive);
        connection.last_client_stream = 1;
        let id = connection.streams.insert(stream);
        Ok((connection, id))
    }

    #[cold]
    pub(super) fn read_ping(&mut self, context: &mut Context<'_>, header: &FrameHeader, payload: &[u8]) -> FrameResult {
        let opaque = payload.first_chunk::<8>().copied().unwrap_or_default();
        if header.has(frame::ACK) {
            if self.finish_drain_on_ack(opaque, context.out) {
                return Ok(None);
            }
            return Ok(Some(ConnectionEvent::Pong { opaque }));
        }
        self.budget.spend(Flood::Pings, context.now)?;
        frame::ping_ack(opaque, context.out);
        Ok(None)
    }

    #[cold]
    pub(super) fn read_go_away(&mut self, payload: &[u8]) -> ConnectionEvent {
        self.client_is_leaving = true;
        let code = payload.get(4..).map_or(0, frame::read_u32);
        ConnectionEvent::GoAway {
            code: ErrorCode::from_wire(code),
        }
    }

    pub(super) fn read_window_update(
        &mut self,
        context: &mut Context<'_>,
        header: &FrameHeader,
        payload: &[u8],
    ) -> FrameResult {
        self.budget.spend(Flood::WindowUpdates, context.now)?;
        let increment = frame::read_u31(payload);
        if header.stream == 0 {
            if increment == 0 {
                return Err(ConnectionError::ZeroWindowIncrement);
            }
            return match self.send_window.grow(increment) {
                Ok(()) => Ok(None),
                Err(_) => Err(ConnectionError::WindowTooLarge),
            };
        }
        let Some(id) = self.streams.find(header.stream) else {
            return self.discard_closed(context, header.stream);
        };
        if increment == 0 {
            return self.reject(context, header.stream, StreamError::ZeroWindowIncrement);
        }
        let grown = self
            .streams
            .get_mut(id)
            .map(|stream| stream.send_window.grow(increment));
        if let Some(Err(_)) = grown {
            return self.reject(context, header.stream, StreamError::WindowTooLarge);
        }
        self.streams.reschedule(id);
        Ok(None)
    }

    pub(super) fn read_rst_stream(
        &mut self,
        context: &mut Context<'_>,
        header: &FrameHeader,
        payload: &[u8],
    ) -> FrameResult {
        let Some(stream) = self.streams.find(header.stream) else {
            return self.discard_closed(context, header.stream);
        };
        self.budget.spend(Flood::Resets, context.now)?;
        let response_pending = self.streams.get(stream).is_some_and(|open| open.state.can_send());
        self.remove(stream, context.out);
        self.streams.remember_end(header.stream);
        Ok(response_pending.then_some(ConnectionEvent::Reset {
            stream,
            code: ErrorCode::from_wire(frame::read_u32(payload)),
            error: None,
        }))
    }

    /// Checks PRIORITY, which has no effect any more (RFC 9113 §5.3.2).
    pub(super) fn read_priority(
        &mut self,
        context: &mut Context<'_>,
        header: &FrameHeader,
        payload: &[u8],
    ) -> FrameResult {
        self.budget.spend(Flood::Priorities, context.now)?;
        if frame::dependency(payload).0 == header.stream {
            // The error ends the connection, because the stream may be idle, and RST_STREAM is not allowed on an idle
            // stream (RFC 9113 §6.4).
            return Err(ConnectionError::SelfDependency);
        }
        Ok(None)
    }

    /// Reads PRIORITY_UPDATE (RFC 9218 §7.1).
    pub(super) fn read_priority_update(&mut self, context: &mut Context<'_>, payload: &[u8]) -> FrameResult {
        self.budget.spend(Flood::Priorities, context.now)?;
        let number = frame::read_u31(payload);
        let priority = Priority::parse(payload.get(4..).unwrap_or_default());
        if number == 0 {
            return Err(ConnectionError::WrongStream);
        }
        if let Some(id) = self.streams.find(number) {
            self.streams.set_priority(id, priority);
        } else if self.is_idle_stream(number) {
            // Only the server opens streams with even numbers, for pushes. The client must not name such a stream
            // before the server has promised it (RFC 9218 §7.1).
            if number & 1 == 0 {
                return Err(ConnectionError::IdleStream);
            }
            self.early_priorities.retain(|(stream, _)| *stream != number);
            if self.early_priorities.len() == EARLY_PRIORITIES {
                self.early_priorities.remove(0);
            }
            self.early_priorities.push((number, priority));
        }
        Ok(None)
    }

    /// Applies the priority that PRIORITY_UPDATE set before this stream was opened, instead of the priority in the
    /// Priority field. Priorities of streams with lower numbers are dropped, because they can no longer be opened.
    #[cold]
    pub(super) fn take_early_priority(&mut self, stream: &mut OpenStream) {
        if let Some((_, priority)) = self.early_priorities.iter().find(|(number, _)| *number == stream.id) {
            stream.priority = *priority;
        }
        self.early_priorities.retain(|(number, _)| *number > stream.id);
    }

    /// Handles RST_STREAM or WINDOW_UPDATE on a stream that is not open.
    #[cold]
    fn discard_closed(&mut self, context: &mut Context<'_>, number: u32) -> FrameResult {
        if self.is_idle_stream(number) {
            return Err(ConnectionError::IdleStream);
        }
        self.budget.spend(Flood::Stale, context.now)?;
        Ok(None)
    }

    /// Writes a PING with the given payload (RFC 9113 §6.7). Its acknowledgement is reported as
    /// [`ConnectionEvent::Pong`].
    pub fn ping(&mut self, opaque: [u8; 8], out: &mut Vec<u8>) {
        if !self.is_closed() {
            frame::ping(opaque, out);
        }
    }

    /// Resets a stream whose response is abandoned (RFC 9113 §5.4.2). Does nothing if the stream is gone.
    pub fn reset(&mut self, id: StreamId, code: ErrorCode, out: &mut Vec<u8>) {
        if self.streams.get(id).is_some() {
            frame::rst_stream(id.number, code, out);
            self.streams.remember_reset(id.number);
            self.remove(id, out);
        }
    }

    /// Resets a stream for a reason that is not a protocol error of the client, and returns the event.
    #[cold]
    pub(super) fn cancel(&mut self, id: StreamId, code: ErrorCode, out: &mut Vec<u8>) -> FrameResult {
        self.reset(id, code, out);
        Ok(Some(ConnectionEvent::Reset {
            stream: id,
            code,
            error: None,
        }))
    }
}
