//! Reading: from unread bytes to frames, and from a frame to what reads its type.

use super::{Context, PREFACE, Reading, ServerConnection, Step, request_body};
use crate::h2::budget::Flood;
use crate::h2::connection::Event;
use crate::h2::error::ConnectionError;
use crate::h2::frame::{self, FRAME_SIZE_MIN, FrameHeader, FrameType, HEADER_SIZE};

impl ServerConnection {
    #[inline]
    pub(super) fn read_on(
        &mut self,
        context: &mut Context<'_>,
        unread: &[u8],
        at: &mut usize,
    ) -> Result<Event, ConnectionError> {
        loop {
            if self.reading != Reading::Frames && !self.begin(unread, at)? {
                return Ok(Event::More);
            }
            if self.content.is_under_way() {
                match self.read_content(context, unread, at)? {
                    Some(event) => return Ok(event),
                    None if self.content.is_under_way() => return Ok(Event::More),
                    None => continue,
                }
            }
            if self.skip > 0 {
                let size = (self.skip as usize).min(unread.len() - *at);
                *at += size;
                self.skip -= size as u32;
                if self.skip > 0 {
                    return Ok(Event::More);
                }
            }
            let rest = &unread[*at..];
            let Some(header) = FrameHeader::parse(rest) else {
                return Ok(Event::More);
            };
            if let Some(event) = self.read_frame(context, &header, &rest[HEADER_SIZE..], at)? {
                return Ok(event);
            }
        }
    }

    /// Reads the preface; false while it is incomplete.
    #[cold]
    fn begin(&mut self, unread: &[u8], at: &mut usize) -> Result<bool, ConnectionError> {
        match self.reading {
            Reading::Closed => {
                *at = unread.len();
                return Ok(false);
            }
            Reading::Preface => {
                let size = unread.len().min(PREFACE.len());
                if unread[..size] != PREFACE[..size] {
                    return Err(ConnectionError::Preface);
                }
                if size < PREFACE.len() {
                    return Ok(false);
                }
                *at += size;
                self.reading = Reading::Settings;
            }
            Reading::Settings | Reading::Frames => {}
        }
        Ok(true)
    }

    /// Reads one frame if it is there as far as its type needs it; `Event::More` if not.
    #[inline]
    fn read_frame(&mut self, context: &mut Context<'_>, header: &FrameHeader, rest: &[u8], at: &mut usize) -> Step {
        header.check(FRAME_SIZE_MIN)?;
        if self.reading == Reading::Settings {
            if header.kind != FrameType::Settings || header.has(frame::ACK) {
                return Err(ConnectionError::MissingSettings);
            }
            self.reading = Reading::Frames;
            self.budget.start(context.now);
        }
        if let Some(block) = &self.block
            && (header.kind != FrameType::Continuation || header.stream != block.stream)
        {
            return Err(ConnectionError::Continuation);
        }
        match header.kind {
            FrameType::Data => {
                // One byte more says how much of it is padding.
                let Some(padding) = request_body::padding(header, rest)? else {
                    return Ok(Some(Event::More));
                };
                *at += HEADER_SIZE;
                return self.begin_content(context, header, padding);
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
            return Ok(Some(Event::More));
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
            FrameType::Data | FrameType::PushPromise | FrameType::Unknown => Ok(None),
        }
    }
}
