//! Encodes the records of a FastCGI request: FCGI_BEGIN_REQUEST, the variables and the request body.

use super::record::{HEADER_SIZE, MAX_CONTENT, header, kind};
use crate::cgi::VariableError;

/// Responder role: the application produces the response, instead of authorizing or filtering requests.
const RESPONDER: u8 = 1;
/// Flag that makes the application keep the connection open after its response.
const FLAG_KEEP_CONN: u8 = 1;
/// Maximum content of an FCGI_STDIN record in bytes, rounded down to the recommended alignment of 8.
const MAX_STDIN_RECORD: usize = MAX_CONTENT & !7;
/// Maximum length that is encoded in one byte. Greater lengths are encoded in four bytes.
const MAX_SHORT_LENGTH: usize = 0x7f;

/// Appends FCGI_BEGIN_REQUEST. `keep` asks the application to keep the connection open after the response.
pub fn begin(out: &mut Vec<u8>, keep: bool) {
    out.extend_from_slice(&header(kind::BEGIN_REQUEST, 8));
    // The eight bytes of content: role (two bytes), flags and five reserved bytes.
    out.extend_from_slice(&[0, RESPONDER, if keep { FLAG_KEEP_CONN } else { 0 }, 0, 0, 0, 0, 0]);
}

/// Writer of the variables of a request (FCGI_PARAMS).
pub struct Params<'b> {
    out: &'b mut Vec<u8>,
    /// Position of the current record's header in `out`.
    start: usize,
}

impl<'b> Params<'b> {
    /// Appends the header of the first record. The caller must call [`finish`](Self::finish) after the last variable.
    pub fn new(out: &'b mut Vec<u8>) -> Params<'b> {
        let start = out.len();
        out.extend_from_slice(&header(kind::PARAMS, 0));
        Params { out, start }
    }

    /// Appends a variable. A name-value pair is never split across two records, because PHP parses each record
    /// separately.
    ///
    /// # Errors
    ///
    /// Fails with [`VariableError::TooLong`] if the pair does not fit in one record. The pair is then not written.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        let size = encoded_length_size(name.len()) + encoded_length_size(value.len()) + name.len() + value.len();
        if size > MAX_CONTENT {
            return Err(VariableError::TooLong);
        }
        if self.content_size() + size > MAX_CONTENT {
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

    /// Ends the variables with an empty record.
    pub fn finish(mut self) {
        // If the current record is still empty, it ends the variables.
        if self.content_size() > 0 {
            self.close();
            self.out.extend_from_slice(&header(kind::PARAMS, 0));
        }
    }

    /// Returns the size of the current record's content in bytes.
    fn content_size(&self) -> usize {
        self.out.len() - self.start - HEADER_SIZE
    }

    /// Writes the content length of the current record to its header.
    fn close(&mut self) {
        let header = header(kind::PARAMS, self.content_size());
        self.out[self.start..self.start + HEADER_SIZE].copy_from_slice(&header);
    }
}

/// Returns the number of bytes that encode a length.
fn encoded_length_size(length: usize) -> usize {
    if length <= MAX_SHORT_LENGTH { 1 } else { 4 }
}

/// Appends a length in one byte or in four.
fn push_length(out: &mut Vec<u8>, length: usize) {
    if length <= MAX_SHORT_LENGTH {
        out.push(length as u8);
    } else {
        // A pair fits in a record, so its lengths have fewer than 31 bits. The highest bit marks a four-byte length.
        out.extend_from_slice(&(length as u32 | 1 << 31).to_be_bytes());
    }
}

/// Appends a part of the request body (FCGI_STDIN). Empty content appends nothing, because an empty record would end
/// the body.
pub fn stdin(out: &mut Vec<u8>, content: &[u8]) {
    for piece in content.chunks(MAX_STDIN_RECORD) {
        out.extend_from_slice(&header(kind::STDIN, piece.len()));
        out.extend_from_slice(piece);
    }
}

/// Ends the request body with an empty FCGI_STDIN record.
pub fn stdin_end(out: &mut Vec<u8>) {
    out.extend_from_slice(&header(kind::STDIN, 0));
}
