//! Splits unread bytes into frames and calls the reader for each frame type.

use super::{Context, FrameResult, PREFACE, ReadState, ServerConnection, request_body};
use crate::h2::connection::ConnectionEvent;
use crate::h2::error::ConnectionError;
use crate::h2::frame::{self, FrameHeader, FrameType, HEADER_SIZE, RECEIVED_FRAME_MAX};
use crate::multiplexed::Flood;

impl ServerConnection {
    /// Reads frames until one causes an event or more bytes are needed. Advances `at` past the consumed bytes.
    #[inline]
    pub(super) fn read_event(
        &mut self,
        context: &mut Context<'_>,
        unread: &[u8],
        at: &mut usize,
    ) -> Result<ConnectionEvent, ConnectionError> {
        loop {
            if self.read_state != ReadState::Frames && !self.read_preface(unread, at)? {
                return Ok(ConnectionEvent::More);
            }
            if self.open_data.is_under_way() {
                match self.read_data(context, unread, at)? {
                    Some(event) => return Ok(event),
                    None if self.open_data.is_under_way() => return Ok(ConnectionEvent::More),
                    None => continue,
                }
            }
            if self.skip > 0 {
                let size = (self.skip as usize).min(unread.len() - *at);
                *at += size;
                self.skip -= size as u32;
                if self.skip > 0 {
                    return Ok(ConnectionEvent::More);
                }
            }
            let rest = &unread[*at..];
            let Some(header) = FrameHeader::parse(rest) else {
                return Ok(ConnectionEvent::More);
            };
            if let Some(event) = self.read_frame(context, &header, &rest[HEADER_SIZE..], at)? {
                return Ok(event);
            }
        }
    }

    /// Reads `PREFACE`; `read_frame` checks the SETTINGS frame that follows. Returns `false` while `PREFACE` is
    /// incomplete. On a closed connection, discards all bytes and returns `false`.
    #[cold]
    fn read_preface(&mut self, unread: &[u8], at: &mut usize) -> Result<bool, ConnectionError> {
        match self.read_state {
            ReadState::Closed => {
                *at = unread.len();
                return Ok(false);
            }
            ReadState::Preface => {
                let size = unread.len().min(PREFACE.len());
                if unread[..size] != PREFACE[..size] {
                    return Err(ConnectionError::Preface);
                }
                if size < PREFACE.len() {
                    return Ok(false);
                }
                *at += size;
                self.read_state = ReadState::Settings;
            }
            ReadState::Settings | ReadState::Frames => {}
        }
        Ok(true)
    }

    /// Reads one frame if enough of it has arrived for its type, and returns [`ConnectionEvent::More`] otherwise.
    /// `rest` holds the unread bytes after the frame header.
    #[inline]
    fn read_frame(
        &mut self,
        context: &mut Context<'_>,
        header: &FrameHeader,
        rest: &[u8],
        at: &mut usize,
    ) -> FrameResult {
        header.check(RECEIVED_FRAME_MAX)?;
        if self.read_state == ReadState::Settings {
            if header.kind != FrameType::Settings || header.has(frame::ACK) {
                return Err(ConnectionError::MissingSettings);
            }
            self.read_state = ReadState::Frames;
            self.budget.start(context.now);
        }
        if let Some(block) = &self.block
            && (header.kind != FrameType::Continuation || header.stream != block.stream)
        {
            return Err(ConnectionError::Continuation);
        }
        match header.kind {
            FrameType::Data => {
                // The first payload byte of a padded frame is the length of the padding.
                let Some(padding) = request_body::padding(header, rest)? else {
                    return Ok(Some(ConnectionEvent::More));
                };
                *at += HEADER_SIZE;
                return self.begin_data(context, header, padding);
            }
            FrameType::PushPromise => return Err(ConnectionError::PushFromClient),
            FrameType::Unknown => {
                self.budget.spend(Flood::Unknown, context.now)?;
                *at += HEADER_SIZE;
                self.skip = header.length;
                return Ok(None);
            }
            _ => {}
        }
        let Some(payload) = rest.get(..header.length as usize) else {
            return Ok(Some(ConnectionEvent::More));
        };
        *at += HEADER_SIZE + payload.len();
        match header.kind {
            FrameType::Headers => self.read_headers(context, header, payload),
            FrameType::Continuation => self.read_continuation(context, header, payload),
            FrameType::WindowUpdate => self.read_window_update(context, header, payload),
            FrameType::RstStream => self.read_rst_stream(context, header, payload),
            FrameType::Priority => self.read_priority(context, header, payload),
            FrameType::PriorityUpdate => self.read_priority_update(context, payload),
            FrameType::Settings => self.read_settings(context, header, payload),
            FrameType::Ping => self.read_ping(context, header, payload),
            FrameType::GoAway => Ok(Some(self.read_go_away(payload))),
            // The first `match` has returned for these types.
            FrameType::Data | FrameType::PushPromise | FrameType::Unknown => Ok(None),
        }
    }
}
