//! Unidirectional streams of the client: the control stream, and the two streams of QPACK (RFC 9114 §6.2).

use super::ServerConnection;
use crate::h3::error::{ConnectionError, ErrorCode};
use crate::h3::frame;
use crate::h3::settings::ClientSettings;
use crate::h3::unidirectional::{CONTROL, Critical, DECODER, ENCODER, PUSH, StreamType, UnidirectionalAction};
use crate::h3::varint;
use crate::multiplexed::{Flood, Priority};

/// Maximum payload, in bytes, of a frame on the control stream whose payload is kept. SETTINGS and PRIORITY_UPDATE need
/// less than a hundred bytes. Frames of unknown types are skipped at any length.
const PAYLOAD_MAX: u64 = 4096;

/// Maximum number of unidirectional streams in the table: the three of HTTP/3, and some of unknown types. The transport
/// permits fewer open streams. The table can fill nevertheless, because an ignored stream stays in it until its end is
/// reported, and a caller that has stopped reading a stream need not report the end.
const OPEN_MAX: usize = 16;

impl ServerConnection {
    /// Reads bytes of a unidirectional stream of the client. `fin` is true if the stream ends after `bytes`. `now` is
    /// in milliseconds, as for [`ServerConnection::new`]. All bytes are read.
    ///
    /// # Errors
    ///
    /// The connection must be closed with the code of the error.
    pub fn receive_unidirectional(
        &mut self,
        stream: u64,
        now: u64,
        bytes: &[u8],
        fin: bool,
    ) -> Result<UnidirectionalAction, ConnectionError> {
        let mut at = 0;
        let kind = match self.stream_type(stream, bytes, &mut at)? {
            Some(kind) => kind,
            // The stream has ended before its type was complete.
            None if fin => {
                self.unidirectional.streams.retain(|(number, _)| *number != stream);
                self.budget.spend(Flood::Unknown, now)?;
                return Ok(UnidirectionalAction::Continue);
            }
            None => return Ok(UnidirectionalAction::Continue),
        };
        let rest = &bytes[at..];
        match kind {
            StreamType::Critical(Critical::Control) => self.read_control(rest, now)?,
            StreamType::Critical(Critical::Encoder) => {
                let count = self.decoder.receive_instructions(rest)?;
                self.spend_instructions(count, now)?;
            }
            StreamType::Critical(Critical::Decoder) => {
                let count = self.encoder.receive_instructions(rest)?;
                self.spend_instructions(count, now)?;
            }
            // `stream_type` never returns `Partial`.
            StreamType::Ignored | StreamType::Partial { .. } => {
                if fin {
                    self.unidirectional.streams.retain(|(number, _)| *number != stream);
                }
                // A stream of an unknown type is counted by the call that reads the last byte of its type. Bytes that
                // arrive later are not counted.
                if at > 0 {
                    self.budget.spend(Flood::Unknown, now)?;
                }
                return Ok(UnidirectionalAction::StopReading(ErrorCode::StreamCreationError));
            }
        }
        if fin {
            return Err(ConnectionError::ClosedCriticalStream);
        }
        Ok(UnidirectionalAction::Continue)
    }

    /// Handles RESET_STREAM on a unidirectional stream. A stream of an unknown type was counted when its type arrived,
    /// and its reset is the reply to STOP_SENDING. Other resets are counted, because each has cost the server a stream.
    /// `now` is in milliseconds, as for [`ServerConnection::new`].
    ///
    /// # Errors
    ///
    /// [`ConnectionError::ClosedCriticalStream`] if the connection needs the stream, and [`Flood::Unknown`] if too many
    /// streams were opened and reset.
    pub fn unidirectional_reset(&mut self, stream: u64, now: u64) -> Result<(), ConnectionError> {
        let streams = &mut self.unidirectional.streams;
        let position = streams.iter().position(|(number, _)| *number == stream);
        match position.map(|position| streams.remove(position).1) {
            Some(StreamType::Critical(_)) => Err(ConnectionError::ClosedCriticalStream),
            Some(StreamType::Ignored) => Ok(()),
            Some(StreamType::Partial { .. }) | None => Ok(self.budget.spend(Flood::Unknown, now)?),
        }
    }

    /// Returns the type of a stream, or `None` while it is incomplete. Advances `at` past the bytes of the type.
    fn stream_type(
        &mut self,
        stream: u64,
        bytes: &[u8],
        at: &mut usize,
    ) -> Result<Option<StreamType>, ConnectionError> {
        let streams = &mut self.unidirectional.streams;
        let position = match streams.iter().position(|(number, _)| *number == stream) {
            Some(position) => position,
            None => {
                if streams.len() == OPEN_MAX {
                    // The oldest ignored stream is removed, because it has probably ended. If its reset still arrives,
                    // it is counted again.
                    let oldest = streams.iter().position(|(_, kind)| *kind == StreamType::Ignored);
                    streams.remove(oldest.ok_or(ConnectionError::StreamCreation)?);
                }
                streams.push((
                    stream,
                    StreamType::Partial {
                        bytes: [0; varint::LENGTH_MAX],
                        length: 0,
                    },
                ));
                streams.len() - 1
            }
        };
        let StreamType::Partial { bytes: kept, length } = &mut streams[position].1 else {
            return Ok(Some(streams[position].1));
        };
        let number = loop {
            if let Some((number, _)) = varint::decode(&kept[..usize::from(*length)]) {
                break number;
            }
            let Some(&byte) = bytes.get(*at) else {
                return Ok(None);
            };
            kept[usize::from(*length)] = byte;
            *length += 1;
            *at += 1;
        };
        let kind = match number {
            CONTROL => StreamType::Critical(Critical::Control),
            ENCODER => StreamType::Critical(Critical::Encoder),
            DECODER => StreamType::Critical(Critical::Decoder),
            // Only servers push (RFC 9114 §6.2.2).
            PUSH => return Err(ConnectionError::StreamCreation),
            _ => StreamType::Ignored,
        };
        if kind != StreamType::Ignored && streams.iter().any(|(_, other)| *other == kind) {
            return Err(ConnectionError::StreamCreation);
        }
        streams[position].1 = kind;
        Ok(Some(kind))
    }

    /// Counts instructions of QPACK, each of which costs the server more than the client.
    fn spend_instructions(&mut self, count: usize, now: u64) -> Result<(), ConnectionError> {
        for _ in 0..count {
            self.budget.spend(Flood::QpackInstructions, now)?;
        }
        Ok(())
    }

    /// Reads bytes of the control stream.
    fn read_control(&mut self, bytes: &[u8], now: u64) -> Result<(), ConnectionError> {
        let mut at = 0;
        loop {
            let control = &mut self.unidirectional;
            let (kind, remaining) = match control.frame {
                Some(frame) => frame,
                None => {
                    let Some(header) = control.header.read(bytes, &mut at) else {
                        return Ok(());
                    };
                    self.check_control_frame(header.kind, header.length, now)?;
                    self.unidirectional.payload.clear();
                    (header.kind, header.length)
                }
            };
            let control = &mut self.unidirectional;
            let size = remaining.min((bytes.len() - at) as u64);
            let piece = &bytes[at..at + size as usize];
            at += size as usize;
            if needs_payload(kind) {
                control.payload.extend_from_slice(piece);
            }
            control.frame = (remaining > size).then_some((kind, remaining - size));
            if control.frame.is_some() {
                return Ok(());
            }
            let payload = std::mem::take(&mut control.payload);
            self.handle_control_frame(kind, &payload)?;
        }
    }

    /// Checks a frame of the control stream by its header (RFC 9114 §7.2).
    fn check_control_frame(&mut self, kind: u64, length: u64, now: u64) -> Result<(), ConnectionError> {
        let is_settings = kind == frame::SETTINGS;
        match (self.unidirectional.has_settings, is_settings) {
            (false, false) => return Err(ConnectionError::MissingSettings),
            (true, true) => return Err(ConnectionError::FrameUnexpected),
            (false, true) => self.unidirectional.has_settings = true,
            (true, false) => {}
        }
        match kind {
            frame::DATA | frame::HEADERS | frame::PUSH_PROMISE => return Err(ConnectionError::FrameUnexpected),
            kind if frame::is_reserved_from_http2(kind) => return Err(ConnectionError::FrameUnexpected),
            frame::PRIORITY_UPDATE_REQUEST | frame::PRIORITY_UPDATE_PUSH => {
                self.budget.spend(Flood::Priorities, now)?;
            }
            frame::SETTINGS => {}
            // Frames of other known types count too, because a client has no reason to send more than a few of them.
            _ => self.budget.spend(Flood::Unknown, now)?,
        }
        if needs_payload(kind) && length > PAYLOAD_MAX {
            return Err(ConnectionError::ControlFrameTooLarge);
        }
        Ok(())
    }

    /// Applies a complete frame of the control stream. `payload` is empty if it is not needed.
    fn handle_control_frame(&mut self, kind: u64, payload: &[u8]) -> Result<(), ConnectionError> {
        match kind {
            frame::SETTINGS => {
                let settings = ClientSettings::parse(payload)?;
                self.apply_settings(settings);
            }
            frame::GOAWAY => {
                // The GOAWAY of a client contains a push ID, which must not increase (RFC 9114 §5.2).
                let id = whole_integer(payload)?;
                let last = self.unidirectional.goaway.replace(id);
                if last.is_some_and(|last| id > last) {
                    return Err(ConnectionError::InvalidId);
                }
            }
            // MAX_PUSH_ID must not decrease (RFC 9114 §7.2.7).
            frame::MAX_PUSH_ID => {
                let id = whole_integer(payload)?;
                let last = self.unidirectional.max_push_id.replace(id);
                if last.is_some_and(|last| id < last) {
                    return Err(ConnectionError::InvalidId);
                }
            }
            // The server sends no PUSH_PROMISE, so every push ID is unknown.
            frame::CANCEL_PUSH => {
                whole_integer(payload)?;
                return Err(ConnectionError::InvalidId);
            }
            frame::PRIORITY_UPDATE_REQUEST => {
                let (number, size) = varint::decode(payload).ok_or(ConnectionError::FrameError)?;
                self.update_priority(number, Priority::parse(&payload[size..]))?;
            }
            // As for CANCEL_PUSH, every push ID is unknown.
            frame::PRIORITY_UPDATE_PUSH => {
                varint::decode(payload).ok_or(ConnectionError::FrameError)?;
                return Err(ConnectionError::InvalidId);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns whether the payload of a frame on the control stream is needed.
fn needs_payload(kind: u64) -> bool {
    matches!(
        kind,
        frame::SETTINGS
            | frame::GOAWAY
            | frame::MAX_PUSH_ID
            | frame::CANCEL_PUSH
            | frame::PRIORITY_UPDATE_REQUEST
            | frame::PRIORITY_UPDATE_PUSH
    )
}

/// Decodes a payload that consists of one integer.
fn whole_integer(payload: &[u8]) -> Result<u64, ConnectionError> {
    match varint::decode(payload) {
        Some((value, size)) if size == payload.len() => Ok(value),
        _ => Err(ConnectionError::FrameError),
    }
}
