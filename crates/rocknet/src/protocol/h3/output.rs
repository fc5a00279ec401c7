//! Bytes of a response on their way into a QUIC stream.

use bytes::Bytes;
use rocknet_proto::h3::{HqBody, StreamId};
use smallvec::SmallVec;

/// Converts the number of a request stream to the type that the transport uses.
pub(super) fn quic_id(id: StreamId) -> rocknet_quic::StreamId {
    rocknet_quic::stream_id(id.number())
}

/// Bytes of one stream that the transport has not taken, and the end of the stream.
#[derive(Default)]
pub struct StreamOutput {
    /// Bytes in the order of sending. Most responses are written at once and in one or two chunks, so they need no
    /// allocation here.
    chunks: SmallVec<[Bytes; 2]>,
    /// True if the stream ends after these bytes.
    is_ended: bool,
    /// Set over `hq-interop`: of the frames that are added, only the body is sent.
    content: Option<Box<HqBody>>,
}

/// Progress of [`StreamOutput::write`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteProgress {
    /// All bytes were taken, and the end of the stream if it was set.
    All,
    /// The transport takes no more bytes for now: a flow-control window or its send buffer is full.
    Blocked,
    /// The client has stopped the stream, or the stream has ended.
    Gone,
}

impl StreamOutput {
    /// Returns an output that sends only the payload of DATA frames, as `hq-interop` requires.
    pub fn of_content() -> StreamOutput {
        StreamOutput {
            content: Some(Box::default()),
            ..StreamOutput::default()
        }
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: Bytes) {
        if let Some(content) = &mut self.content {
            let mut at = 0;
            while let Some(piece) = content.next(&bytes, &mut at) {
                self.chunks.push(bytes.slice(piece));
            }
        } else if !bytes.is_empty() {
            self.chunks.push(bytes);
        }
    }

    /// Returns true if bytes wait for the transport.
    pub fn has_bytes(&self) -> bool {
        !self.chunks.is_empty()
    }

    /// Returns the number of bytes that wait for the transport.
    pub fn length(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.len() as u64).sum()
    }

    /// Ends the stream after the bytes that were added.
    pub fn end(&mut self) {
        self.is_ended = true;
    }

    /// Returns true if the stream ends with the bytes that were added.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Passes as many bytes to the transport as the windows allow, and ends the stream after the last byte if its end
    /// was set. Returns the progress, and the number of bytes that the transport has taken.
    pub fn write(&mut self, quic: &mut rocknet_quic::Connection, id: StreamId) -> (WriteProgress, u64) {
        let mut total = 0;
        while !self.chunks.is_empty() {
            let Some(bytes) = quic.write(quic_id(id), &mut self.chunks) else {
                return (WriteProgress::Gone, total);
            };
            total += bytes as u64;
            let written = self.chunks.iter().take_while(|chunk| chunk.is_empty()).count();
            self.chunks.drain(..written);
            if !self.chunks.is_empty() {
                return (WriteProgress::Blocked, total);
            }
        }
        if self.is_ended {
            quic.finish(quic_id(id));
        }
        (WriteProgress::All, total)
    }
}
