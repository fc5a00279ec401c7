//! Encodes the head of an SCGI request, in the role of the web server. The request body follows it unchanged. The
//! response has the format of CGI and ends with the connection.
//!
//! ```text
//! 70:  CONTENT_LENGTH NUL 27 NUL  SCGI NUL 1 NUL  name NUL value NUL …  ,        then the body
//! ```
//!
//! In this example, the variables have 70 bytes and the body has 27.

use crate::cgi::VariableError;
use crate::decimal::{MAX_DIGITS, digits};

/// Maximum total size of the variables, in bytes. The protocol has no limit, but applications store the variables in
/// memory. With the default limits of request heads, the variables need less than a quarter of this size.
pub const MAX_VARIABLES: usize = 1024 * 1024;

/// Number of bytes reserved at the front for the length and its colon.
const LENGTH_PREFIX: usize = MAX_DIGITS + 1;

/// Encoder of the head of one request.
pub struct ScgiRequest {
    /// The variables, after [`LENGTH_PREFIX`] bytes that [`ScgiRequest::finish`] fills with their length.
    bytes: Vec<u8>,
}

impl ScgiRequest {
    /// Starts the head of a request with a body of `length` bytes. It writes `CONTENT_LENGTH`, which must be the first
    /// variable, and `SCGI`.
    pub fn new(length: u64) -> ScgiRequest {
        let mut bytes = Vec::with_capacity(INITIAL_CAPACITY);
        bytes.resize(LENGTH_PREFIX, 0);
        bytes.extend_from_slice(b"CONTENT_LENGTH\0");
        bytes.extend_from_slice(digits(length, &mut [0; MAX_DIGITS]));
        bytes.extend_from_slice(b"\0SCGI\x001\0");
        ScgiRequest { bytes }
    }

    /// Appends a variable. Each name must occur only once; `CONTENT_LENGTH` and `SCGI` are already written.
    ///
    /// # Errors
    ///
    /// Fails if the variable contains NUL, or if the variables together would exceed [`MAX_VARIABLES`]. The variable is
    /// then not written.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        if memchr::memchr(0, name).or_else(|| memchr::memchr(0, value)).is_some() {
            return Err(VariableError::Nul);
        }
        if self.bytes.len() - LENGTH_PREFIX + name.len() + value.len() + 2 > MAX_VARIABLES {
            return Err(VariableError::TooLong);
        }
        for part in [name, value] {
            self.bytes.extend_from_slice(part);
            self.bytes.push(0);
        }
        Ok(())
    }

    /// Returns the encoded head.
    pub fn finish(mut self) -> Vec<u8> {
        let mut buffer = [0; MAX_DIGITS];
        let length = digits((self.bytes.len() - LENGTH_PREFIX) as u64, &mut buffer);
        let start = LENGTH_PREFIX - 1 - length.len();
        self.bytes[start..LENGTH_PREFIX - 1].copy_from_slice(length);
        self.bytes[LENGTH_PREFIX - 1] = b':';
        self.bytes.push(b',');
        self.bytes.drain(..start);
        self.bytes
    }
}

/// Capacity for a typical request, in bytes.
const INITIAL_CAPACITY: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_the_example_of_the_specification() {
        let mut request = ScgiRequest::new(27);
        request.push(b"REQUEST_METHOD", b"POST").unwrap();
        request.push(b"REQUEST_URI", b"/deepthought").unwrap();
        let expected = b"70:CONTENT_LENGTH\x0027\0SCGI\x001\0REQUEST_METHOD\0POST\0REQUEST_URI\0/deepthought\0,";
        assert_eq!(request.finish(), expected);
        assert_eq!(ScgiRequest::new(0).finish(), b"24:CONTENT_LENGTH\x000\0SCGI\x001\0,");
        let mut empty = ScgiRequest::new(u64::MAX);
        empty.push(b"PATH_INFO", b"").unwrap();
        let bytes = empty.finish();
        assert!(bytes.ends_with(b"\0PATH_INFO\0\0,"), "{bytes:?}");
    }

    #[test]
    fn invalid_variables_are_refused_and_not_written() {
        let mut request = ScgiRequest::new(0);
        assert_eq!(request.push(b"A\0", b"b"), Err(VariableError::Nul));
        assert_eq!(request.push(b"A", b"b\0c"), Err(VariableError::Nul));
        // Number of bytes left for a value after the name `A` and two NUL bytes.
        let room = MAX_VARIABLES - (request.bytes.len() - LENGTH_PREFIX) - 3;
        assert_eq!(request.push(b"A", &vec![b'x'; room + 1]), Err(VariableError::TooLong));
        request.push(b"A", &vec![b'x'; room]).unwrap();
        assert_eq!(request.push(b"B", b""), Err(VariableError::TooLong));
        assert!(request.finish().starts_with(b"1048576:CONTENT_LENGTH\0"));
    }
}
