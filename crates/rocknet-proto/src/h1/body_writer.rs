//! Frames content that is sent, by either role, and knows whether as much was sent as was announced.

use super::encode::{CHUNK_END, EncodeError, LAST_CHUNK, chunk_head, encode_trailers};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BodyKind {
    /// The head was all.
    Empty,
    Exact,
    Chunked,
    UntilClose,
}

#[derive(Debug)]
pub(crate) struct BodyWriter {
    /// Bytes that were announced and are not yet sent.
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

    /// Less was sent than announced: the message can only be given up.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.unsent > 0
    }

    /// Accounts for data that is about to be sent, and writes what must stand before it.
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

    /// What must stand behind data that is not empty.
    pub(crate) fn end(&self) -> &'static [u8] {
        if self.kind == BodyKind::Chunked { CHUNK_END } else { b"" }
    }

    pub(crate) fn write(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.begin(data.len() as u64, out)?;
        if !data.is_empty() {
            out.extend_from_slice(data);
            out.extend_from_slice(self.end());
        }
        Ok(())
    }

    pub(crate) fn finish(&self, out: &mut Vec<u8>) {
        if self.kind == BodyKind::Chunked {
            out.extend_from_slice(LAST_CHUNK);
        }
    }

    /// Trailers are dropped where content is not chunked: there is no place for them.
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
