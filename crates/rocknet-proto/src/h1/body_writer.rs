//! Frames the body of a request or response to be sent, and checks it against the announced length.

use super::encode::{CHUNK_END, EncodeError, LAST_CHUNK, chunk_head, encode_trailers};

/// Framing of the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BodyKind {
    /// No body.
    Empty,
    /// A body whose length the head announces.
    Exact,
    /// Chunks and then trailers.
    Chunked,
    /// A body that ends with the connection.
    UntilClose,
}

/// Writer of the current body of one connection.
#[derive(Debug)]
pub(crate) struct BodyWriter {
    /// Announced bytes that are not yet sent.
    unsent: u64,
    kind: BodyKind,
}

impl BodyWriter {
    pub(crate) const fn empty() -> Self {
        Self {
            unsent: 0,
            kind: BodyKind::Empty,
        }
    }

    pub(crate) const fn exact(length: u64) -> Self {
        Self {
            unsent: length,
            kind: BodyKind::Exact,
        }
    }

    pub(crate) const fn chunked() -> Self {
        Self {
            unsent: 0,
            kind: BodyKind::Chunked,
        }
    }

    pub(crate) const fn until_close() -> Self {
        Self {
            unsent: 0,
            kind: BodyKind::UntilClose,
        }
    }

    /// Returns true if fewer bytes were sent than announced, so that the message can only be aborted.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.unsent > 0
    }

    /// Accounts for `size` bytes that the caller is about to send. If the body is chunked, writes the chunk header
    /// before them. For a size of 0, `chunk_head` writes nothing, because such a chunk would end the body.
    pub(crate) fn begin(&mut self, size: u64, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self.kind {
            BodyKind::Empty if size > 0 => return Err(EncodeError::BodyForbidden),
            BodyKind::Exact if size > self.unsent => return Err(EncodeError::BodyTooLong),
            BodyKind::Exact => self.unsent -= size,
            BodyKind::Chunked => chunk_head(size, out),
            BodyKind::Empty | BodyKind::UntilClose => {}
        }
        Ok(())
    }

    /// Returns the bytes that follow non-empty data.
    pub(crate) fn data_end(&self) -> &'static [u8] {
        if self.kind == BodyKind::Chunked { CHUNK_END } else { b"" }
    }

    /// Writes data with its framing.
    pub(crate) fn write(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.begin(data.len() as u64, out)?;
        if !data.is_empty() {
            out.extend_from_slice(data);
            out.extend_from_slice(self.data_end());
        }
        Ok(())
    }

    /// Ends the body without trailers. Does not detect a body shorter than announced: the caller checks
    /// [`is_short`](Self::is_short).
    pub(crate) fn finish(&self, out: &mut Vec<u8>) {
        if self.kind == BodyKind::Chunked {
            out.extend_from_slice(LAST_CHUNK);
        }
    }

    /// Ends the body with trailers; they are dropped if the body is not chunked, because only chunked bodies have
    /// trailers. Like [`finish`](Self::finish), does not detect a short body.
    pub(crate) fn finish_with_trailers<'a>(
        &self,
        trailers: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        if self.kind == BodyKind::Chunked {
            encode_trailers(out, trailers)
        } else {
            Ok(())
        }
    }
}
