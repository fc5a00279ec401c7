//! Incoming field blocks: request heads, trailers, and blocks that only keep the dynamic table in sync.

use super::open_block::OpenBlock;
use super::{ConnectionEvent, Context, FrameResult, ServerConnection};
use crate::h2::error::{ConnectionError, StreamError};
use crate::h2::frame::{self, Dependency, FrameHeader};
use crate::h2::stream::{OpenStream, StreamState, StreamTransition};
use crate::h2::streams::StreamId;
use crate::multiplexed::Flood;
use crate::multiplexed::Malformed;
use crate::multiplexed::{BlockKind, RequestHeadError};
use crate::request::Version;

impl ServerConnection {
    #[inline]
    pub(super) fn read_headers(
        &mut self,
        context: &mut Context<'_>,
        header: &FrameHeader,
        payload: &[u8],
    ) -> FrameResult {
        let fragment = frame::fragment(header, payload)?;
        let end_stream = header.has(frame::END_STREAM);
        if header.has(frame::END_HEADERS) {
            return self.read_block(context, header.stream, end_stream, fragment.dependency, fragment.block);
        }
        let block = OpenBlock::new(header.stream, end_stream, fragment.dependency, fragment.block);
        self.block = Some(Box::new(block));
        Ok(None)
    }

    #[cold]
    pub(super) fn read_continuation(
        &mut self,
        context: &mut Context<'_>,
        header: &FrameHeader,
        payload: &[u8],
    ) -> FrameResult {
        let Some(block) = &mut self.block else {
            return Err(ConnectionError::Continuation);
        };
        block.extend(payload, context.limits)?;
        if !header.has(frame::END_HEADERS) {
            return Ok(None);
        }
        match self.block.take() {
            Some(block) => self.read_block(context, block.stream, block.end_stream, block.dependency, block.bytes()),
            None => Ok(None),
        }
    }

    /// Reads a complete block on the stream `number`. `end_stream` is true if the block ends the request.
    fn read_block(
        &mut self,
        context: &mut Context<'_>,
        number: u32,
        end_stream: bool,
        dependency: Option<Dependency>,
        block: &[u8],
    ) -> FrameResult {
        if number & 1 == 0 {
            return Err(ConnectionError::InvalidStreamId);
        }
        if number <= self.last_client_stream {
            return match self.streams.find(number) {
                Some(stream) => self.read_trailers(context, stream, end_stream, block),
                None => self.read_stale_block(context, number, block),
            };
        }
        if self.drain_state.refuses(number) {
            // Frames on streams above the last stream of the final GOAWAY are ignored (RFC 9113 §6.8). The client
            // retries the requests on another connection.
            self.budget.spend(Flood::Stale, context.now)?;
            return self.discard_block(context, block);
        }
        self.last_client_stream = number;
        let error = match dependency {
            Some(Dependency(on)) if on == number => Some(StreamError::SelfDependency),
            _ if self.streams.client_initiated() >= self.config.streams as usize => Some(StreamError::Refused),
            _ => None,
        };
        if let Some(error) = error {
            self.discard_block(context, block)?;
            return self.reject(context, number, error);
        }
        self.read_request(context, number, end_stream, block)
    }

    /// Reads the head of a new request. `end_stream` is true if the request has neither a body nor trailers.
    #[inline]
    fn read_request(&mut self, context: &mut Context<'_>, number: u32, end_stream: bool, block: &[u8]) -> FrameResult {
        let mut sink = context.head.begin(context.limits, BlockKind::Request);
        self.decoder.decode(block, &mut sink)?;
        let state = if end_stream {
            StreamState::HalfClosedRemote
        } else {
            StreamState::Open
        };
        let mut stream = OpenStream::new(
            number,
            state,
            self.client.initial_window_size,
            self.config.stream_window,
        );
        let finished = sink.finish_request(Version::Http2);
        stream.is_head = context.head.has_method_head();
        let info = match finished {
            Ok(info) => info,
            Err(RequestHeadError::Malformed(malformed)) => return self.reject(context, number, malformed.into()),
            Err(RequestHeadError::Refused(refusal)) => {
                stream.discards_body = true;
                let is_head = stream.is_head;
                return Ok(Some(ConnectionEvent::Refused {
                    stream: self.streams.insert(stream),
                    refusal,
                    is_head,
                }));
            }
        };
        if end_stream && info.content_length.is_some_and(|length| length > 0) {
            return self.reject(context, number, Malformed::ContentLength.into());
        }
        if context.head.protocol().is_some() && !self.config.connect_protocol {
            return self.reject(context, number, Malformed::Protocol.into());
        }
        stream.remaining_length = info.content_length;
        stream.remaining_limit = context.limits.body_size;
        if let Some(priority) = info.priority {
            stream.priority = priority;
        }
        if !self.early_priorities.is_empty() {
            self.take_early_priority(&mut stream);
        }
        Ok(Some(ConnectionEvent::Request {
            stream: self.streams.insert(stream),
            end: end_stream,
            expects_continue: info.expects_continue && !end_stream,
        }))
    }

    /// Reads a second block on an open stream: trailers, or an error.
    #[cold]
    fn read_trailers(
        &mut self,
        context: &mut Context<'_>,
        id: StreamId,
        end_stream: bool,
        block: &[u8],
    ) -> FrameResult {
        let Some(stream) = self.streams.get(id) else {
            return Ok(None);
        };
        let ended = stream.state.after(StreamTransition::EndReceived);
        let is_short = stream.remaining_length.is_some_and(|remaining| remaining > 0);
        let discarded = stream.discards_body;
        let error = match ended {
            None => Some(StreamError::HalfClosed),
            Some(_) if !end_stream => Some(Malformed::TrailersWithoutEnd.into()),
            Some(_) if is_short => Some(Malformed::ContentLength.into()),
            Some(_) => None,
        };
        if let Some(error) = error {
            self.discard_block(context, block)?;
            return self.reject(context, id.number, error);
        }
        let mut sink = context.head.begin(context.limits, BlockKind::Trailers);
        self.decoder.decode(block, &mut sink)?;
        if let Err(malformed) = sink.finish_trailers() {
            return self.reject(context, id.number, malformed.into());
        }
        self.end_request(id, context.out);
        Ok((!discarded).then_some(ConnectionEvent::Trailers { stream: id }))
    }

    /// Reads a block on a closed stream: it was in flight when the server reset the stream, or it is an error.
    #[cold]
    fn read_stale_block(&mut self, context: &mut Context<'_>, number: u32, block: &[u8]) -> FrameResult {
        if self.streams.was_reset(number) {
            self.budget.spend(Flood::Stale, context.now)?;
            return self.discard_block(context, block);
        }
        Err(if self.streams.was_ended(number) {
            ConnectionError::ClosedStream
        } else {
            ConnectionError::InvalidStreamId
        })
    }

    /// Decodes a block only to keep the dynamic table in sync.
    #[cold]
    fn discard_block(&mut self, context: &mut Context<'_>, block: &[u8]) -> FrameResult {
        let mut sink = context.head.begin(context.limits, BlockKind::Discarded);
        self.decoder.decode(block, &mut sink)?;
        Ok(None)
    }
}
