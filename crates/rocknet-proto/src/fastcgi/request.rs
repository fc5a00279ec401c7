//! Writes a request: its begin, the variables and the body.

use super::record::{HEADER_SIZE, MAX_CONTENT, header, kind};
use crate::cgi::VariableError;

/// Role of the application: it responds, rather than authorizing or filtering.
const RESPONDER: u8 = 1;
/// Flag that makes the application keep the connection open after its response.
const FLAG_KEEP_CONN: u8 = 1;
/// Maximum content of a STDIN record in bytes, rounded down to the recommended alignment of 8.
const MAX_STDIN_RECORD: usize = MAX_CONTENT & !7;
/// Maximum length that is encoded in one byte; longer ones take four.
const MAX_SHORT_LENGTH: usize = 0x7f;

/// Writes FCGI_BEGIN_REQUEST; `keep` requests to keep the connection open after the response.
pub fn begin(out: &mut Vec<u8>, keep: bool) {
    out.extend_from_slice(&header(kind::BEGIN_REQUEST, 8));
    out.extend_from_slice(&[0, RESPONDER, if keep { FLAG_KEEP_CONN } else { 0 }, 0, 0, 0, 0, 0]);
}

/// Writer of the variables of a request (FCGI_PARAMS).
pub struct Params<'b> {
    out: &'b mut Vec<u8>,
    /// Position of the header of the current record.
    start: usize,
}

impl<'b> Params<'b> {
    /// Begins the variables; [`finish`](Self::finish) must follow.
    pub fn new(out: &'b mut Vec<u8>) -> Params<'b> {
        let start = out.len();
        out.extend_from_slice(&header(kind::PARAMS, 0));
        Params { out, start }
    }

    /// Writes a variable. A pair is never split over two records, because PHP parses each record separately.
    ///
    /// # Errors
    ///
    /// [`VariableError::TooLong`] if the pair exceeds a record; it is not written then.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        let size = encoded_length_size(name.len()) + encoded_length_size(value.len()) + name.len() + value.len();
        if size > MAX_CONTENT {
            return Err(VariableError::TooLong);
        }
        if self.content() + size > MAX_CONTENT {
            self.close();
            self.start = self.out.len();
            self.out.extend_from_slice(&header(kind::PARAMS, 0));
        }
        push_length(self.out, name.len());
        push_length(self.out, value.len());
        self.out.extend_from_slice(name);
        self.out.extend_from_slice(value);
        Ok(())
    }

    /// Ends the variables.
    pub fn finish(mut self) {
        if self.content() > 0 {
            self.close();
            self.out.extend_from_slice(&header(kind::PARAMS, 0));
        }
    }

    fn content(&self) -> usize {
        self.out.len() - self.start - HEADER_SIZE
    }

    fn close(&mut self) {
        let header = header(kind::PARAMS, self.content());
        self.out[self.start..self.start + HEADER_SIZE].copy_from_slice(&header);
    }
}

fn encoded_length_size(length: usize) -> usize {
    if length <= MAX_SHORT_LENGTH { 1 } else { 4 }
}

fn push_length(out: &mut Vec<u8>, length: usize) {
    if length <= MAX_SHORT_LENGTH {
        out.push(length as u8);
    } else {
        // A pair fits in a record, so its lengths have less than 31 bits. The highest bit marks a length of four bytes.
        out.extend_from_slice(&(length as u32 | 1 << 31).to_be_bytes());
    }
}

/// Writes a part of the request body (FCGI_STDIN). Empty content writes nothing, because an empty record ends the body.
pub fn stdin(out: &mut Vec<u8>, content: &[u8]) {
    for piece in content.chunks(MAX_STDIN_RECORD) {
        out.extend_from_slice(&header(kind::STDIN, piece.len()));
        out.extend_from_slice(piece);
    }
}

/// Ends the request body.
pub fn stdin_end(out: &mut Vec<u8>) {
    out.extend_from_slice(&header(kind::STDIN, 0));
}
