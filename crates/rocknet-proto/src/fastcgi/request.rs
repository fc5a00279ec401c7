//! Writing a request: who asks for what, the variables, the content.

use super::record::{HEADER_SIZE, MAX_CONTENT, header, kind};
use crate::cgi::VariableError;

/// The application is to answer, as opposed to authorise or filter.
const RESPONDER: u8 = 1;
/// The application leaves the connection open behind its answer.
const FLAG_KEEP_CONN: u8 = 1;
/// Content of one STDIN record at most: what fits, rounded down to the 8 bytes that records are best aligned to.
const MAX_STDIN_RECORD: usize = MAX_CONTENT & !7;
/// Lengths up to here take one byte, longer ones four.
const MAX_SHORT_LENGTH: usize = 0x7f;

/// Opens a request.
pub fn begin(out: &mut Vec<u8>, keep: bool) {
    out.extend_from_slice(&header(kind::BEGIN_REQUEST, 8));
    out.extend_from_slice(&[0, RESPONDER, if keep { FLAG_KEEP_CONN } else { 0 }, 0, 0, 0, 0, 0]);
}

/// The variables of a request, written as they are told.
pub struct Params<'b> {
    out: &'b mut Vec<u8>,
    /// Where the header of the record under way stands.
    start: usize,
}

impl<'b> Params<'b> {
    pub fn new(out: &'b mut Vec<u8>) -> Params<'b> {
        let start = out.len();
        out.extend_from_slice(&header(kind::PARAMS, 0));
        Params { out, start }
    }

    /// PHP reads each record by itself, so a pair is never spread over two.
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

    /// Behind the last one.
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
        // A pair fits a record, so its lengths fit 31 bits; the highest tells that there are four bytes.
        out.extend_from_slice(&(length as u32 | 1 << 31).to_be_bytes());
    }
}

/// A piece of the request's content; nothing for nothing, which would be the end.
pub fn stdin(out: &mut Vec<u8>, content: &[u8]) {
    for piece in content.chunks(MAX_STDIN_RECORD) {
        out.extend_from_slice(&header(kind::STDIN, piece.len()));
        out.extend_from_slice(piece);
    }
}

/// The end of the request's content.
pub fn stdin_end(out: &mut Vec<u8>) {
    out.extend_from_slice(&header(kind::STDIN, 0));
}
