//! Validator for HTTP/2 responses of upstreams, used alongside a client library (the crate `h2`), which reads the
//! frames itself.
//!
//! The validator finds violations of RFC 9113 §8 that the client library accepts: pseudo-header fields of requests,
//! `:status` in trailers, status 101, and values with surrounding white space. It reads every byte that the server
//! sends, in pieces of any size. It decodes the field blocks with a table of its own and reports the streams with a
//! malformed response.

use std::collections::BTreeSet;
use std::mem;

use super::frame::{self, FrameHeader, FrameType, HEADER_SIZE};
use crate::hpack::{Decoder, FieldSink, NameClass, Pseudo};

/// Size in bytes of the dynamic table that servers may use by default (RFC 9113 §6.5.2). The client library announces
/// no other size.
const TABLE_SIZE: usize = 4096;

/// Maximum size in bytes of one field block. The proxy configures the client library to accept heads of at most 32 KiB.
/// A larger head fails only its own stream, so the validator must decode its block. A block above four times that size
/// ends the connection: it cannot be skipped, because the table would be out of sync from then on.
const MAX_BLOCK_SIZE: usize = 128 * 1024;

/// Maximum number of remembered streams whose response has started and not ended. The server does not end a stream that
/// the client has reset, so such streams accumulate. The maximum bounds their memory to about 12 KiB. Above it, the
/// lowest number is dropped. If a dropped stream is still open, its trailers are taken for a head: `:status` in them is
/// not detected, and trailers without it count as malformed.
const MAX_STREAMS: usize = 1024;

/// Error for bytes after which the validator cannot continue, because its table may be out of sync. They break HPACK,
/// the padding or the order of frames, contain PUSH_PROMISE, or exceed the maximum size of a field block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfSync;

/// Validator of one connection (RFC 9113 §8.1.1).
#[derive(Debug)]
pub struct ResponseValidator {
    decoder: Decoder,
    /// Start of a frame header, or of a payload with fields, that has not arrived completely.
    partial: Vec<u8>,
    position: ReadPosition,
    /// Field block that continues in the next frame.
    block: Option<PartialBlock>,
    /// Streams whose final head has arrived, and whose response has not ended.
    started: BTreeSet<u32>,
    /// Buffer for one decoded field at a time.
    field_buffer: Vec<u8>,
}

/// Part of a frame that is read next.
#[derive(Clone, Copy, Debug)]
enum ReadPosition {
    /// Frame header.
    Header,
    /// Payload with fields.
    Fields(FrameHeader),
    /// Payload to be skipped, with the number of remaining bytes.
    Skipped(u32),
    /// Nothing: the validator cannot continue.
    OutOfSync,
}

/// Field block whose last frame has not arrived.
#[derive(Debug)]
struct PartialBlock {
    stream: u32,
    /// True if the block ends the response (END_STREAM).
    ends_stream: bool,
    bytes: Vec<u8>,
}

impl Default for ResponseValidator {
    fn default() -> Self {
        Self {
            decoder: Decoder::new(TABLE_SIZE),
            partial: Vec::new(),
            position: ReadPosition::Header,
            block: None,
            started: BTreeSet::new(),
            field_buffer: Vec::new(),
        }
    }
}

impl ResponseValidator {
    /// Reads the next bytes of the server. Calls `malformed` with the number of the stream for each malformed head or
    /// trailer section.
    ///
    /// # Errors
    ///
    /// [`OutOfSync`] if the validator cannot continue. Every later call with at least one byte fails as well.
    pub fn read(&mut self, mut bytes: &[u8], mut malformed: impl FnMut(u32)) -> Result<(), OutOfSync> {
        while !bytes.is_empty() {
            match self.position {
                ReadPosition::OutOfSync => return Err(OutOfSync),
                ReadPosition::Skipped(left) => {
                    let passed = bytes.len().min(left as usize);
                    bytes = &bytes[passed..];
                    let left = left - passed as u32;
                    self.position = if left > 0 {
                        ReadPosition::Skipped(left)
                    } else {
                        ReadPosition::Header
                    };
                }
                ReadPosition::Header => {
                    let Some(header) = read_complete(&mut self.partial, &mut bytes, HEADER_SIZE, |header| {
                        FrameHeader::parse(header)
                    }) else {
                        return Ok(());
                    };
                    // `parse` returns `None` only for fewer than `HEADER_SIZE` bytes, so never here.
                    if let Some(header) = header {
                        self.begin_frame(header, &mut malformed)?;
                    }
                }
                ReadPosition::Fields(header) => {
                    let mut partial = mem::take(&mut self.partial);
                    let read = read_complete(&mut partial, &mut bytes, header.length as usize, |payload| {
                        self.read_fields(&header, payload, &mut malformed)
                    });
                    self.partial = partial;
                    match read {
                        None => return Ok(()),
                        Some(Err(OutOfSync)) => return self.lose_sync(),
                        Some(Ok(())) => self.position = ReadPosition::Header,
                    }
                }
            }
        }
        Ok(())
    }

    /// Frees all memory and makes every later call of [`read`](Self::read) fail.
    fn lose_sync(&mut self) -> Result<(), OutOfSync> {
        *self = Self {
            position: ReadPosition::OutOfSync,
            ..Self::default()
        };
        Err(OutOfSync)
    }

    /// Handles a frame header.
    fn begin_frame(&mut self, header: FrameHeader, malformed: &mut impl FnMut(u32)) -> Result<(), OutOfSync> {
        let continued = self.block.as_ref().map(|block| block.stream);
        let is_continuation = header.kind == FrameType::Continuation;
        if is_continuation != continued.is_some() || continued.is_some_and(|stream| stream != header.stream) {
            return self.lose_sync();
        }
        match header.kind {
            // Pushes are disabled, and their field blocks would change the table.
            FrameType::PushPromise => return self.lose_sync(),
            FrameType::Headers | FrameType::Continuation if header.length as usize > MAX_BLOCK_SIZE => {
                return self.lose_sync();
            }
            FrameType::Headers | FrameType::Continuation if header.length > 0 => {
                self.position = ReadPosition::Fields(header);
            }
            // The client library handles an empty payload immediately, so its validation must not wait for more bytes.
            FrameType::Headers | FrameType::Continuation => {
                return self
                    .read_fields(&header, &[], malformed)
                    .or_else(|OutOfSync| self.lose_sync());
            }
            _ => {
                let ends = header.kind == FrameType::Data && header.has(frame::END_STREAM);
                if ends || header.kind == FrameType::RstStream {
                    self.started.remove(&header.stream);
                }
                if header.length > 0 {
                    self.position = ReadPosition::Skipped(header.length);
                }
            }
        }
        Ok(())
    }

    /// Handles the payload of HEADERS or CONTINUATION.
    fn read_fields(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        malformed: &mut impl FnMut(u32),
    ) -> Result<(), OutOfSync> {
        let is_last = header.has(frame::END_HEADERS);
        if header.kind == FrameType::Headers {
            let fragment = frame::fragment(header, payload).map_err(|_| OutOfSync)?;
            let ends_stream = header.has(frame::END_STREAM);
            if is_last {
                return self.validate(header.stream, ends_stream, fragment.block, malformed);
            }
            self.block = Some(PartialBlock {
                stream: header.stream,
                ends_stream,
                bytes: fragment.block.to_vec(),
            });
            return Ok(());
        }
        let block = self.block.as_mut().ok_or(OutOfSync)?;
        if block.bytes.len() + payload.len() > MAX_BLOCK_SIZE {
            return Err(OutOfSync);
        }
        block.bytes.extend_from_slice(payload);
        match self.block.take_if(|_| is_last) {
            Some(block) => self.validate(block.stream, block.ends_stream, &block.bytes, malformed),
            None => Ok(()),
        }
    }

    /// Decodes and validates a complete field block.
    fn validate(
        &mut self,
        stream: u32,
        ends_stream: bool,
        block: &[u8],
        malformed: &mut impl FnMut(u32),
    ) -> Result<(), OutOfSync> {
        let is_trailers = self.started.contains(&stream);
        let mut fields = ResponseFields {
            buffer: mem::take(&mut self.field_buffer),
            status: None,
            has_regular: false,
            is_malformed: false,
        };
        let decoded = self.decoder.decode(block, &mut fields);
        let ResponseFields { buffer, status, .. } = fields;
        self.field_buffer = buffer;
        decoded.map_err(|_| OutOfSync)?;
        // A head has `:status`, and trailers have none.
        let is_misplaced = match status {
            Some(_) => is_trailers,
            None => !is_trailers,
        };
        if fields.is_malformed || is_misplaced || status == Some(*b"101") {
            malformed(stream);
        }
        // An interim head (1xx) does not start the response, because the final head follows.
        if ends_stream {
            self.started.remove(&stream);
        } else if status.is_some_and(|status| status[0] != b'1') {
            self.started.insert(stream);
            if self.started.len() > MAX_STREAMS {
                self.started.pop_first();
            }
        }
        Ok(())
    }
}

/// Calls `read` with `size` bytes once they have all arrived. Earlier parts are stored in `partial`. Returns `None`
/// while bytes are missing.
fn read_complete<T>(partial: &mut Vec<u8>, bytes: &mut &[u8], size: usize, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
    let (taken, rest) = bytes.split_at(bytes.len().min(size - partial.len()));
    *bytes = rest;
    if partial.is_empty() && taken.len() == size {
        return Some(read(taken));
    }
    partial.extend_from_slice(taken);
    if partial.len() < size {
        return None;
    }
    let read = read(partial);
    // Freed, so that an idle connection uses no memory here.
    *partial = Vec::new();
    Some(read)
}

/// Properties of the fields of one block.
struct ResponseFields {
    buffer: Vec<u8>,
    /// Value of the last `:status` that has three bytes.
    status: Option<[u8; 3]>,
    /// Set by the first valid field name that is not a pseudo-header field.
    has_regular: bool,
    /// Set by the first invalid field.
    is_malformed: bool,
}

/// Maximum capacity in bytes that the field buffer keeps after each field. Nearly all fields fit in it.
const MAX_SPARE_CAPACITY: usize = 4096;

impl FieldSink for ResponseFields {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn field(&mut self, class: NameClass, value_valid: bool, name_start: usize, value_start: usize) {
        let is_valid = match class {
            NameClass::Pseudo(Pseudo::Status) => {
                let is_first = self.status.is_none();
                let value = self.buffer.get(value_start..);
                let status = value.and_then(|value| value.try_into().ok());
                self.status = status.or(self.status);
                is_first && status.is_some() && !self.has_regular
            }
            NameClass::Pseudo(_) | NameClass::Invalid => false,
            NameClass::Known(_) | NameClass::Other => {
                self.has_regular = true;
                value_valid
            }
        };
        self.is_malformed |= !is_valid;
        self.buffer.truncate(name_start);
        self.buffer.shrink_to(MAX_SPARE_CAPACITY);
    }

    fn is_full(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
