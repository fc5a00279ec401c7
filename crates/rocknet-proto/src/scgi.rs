//! SCGI as the web server speaks it: the head of a request, which its content follows as it is. The answer is one of CGI and
//! ends with the connection.
//!
//! ```text
//! 70:  CONTENT_LENGTH NUL 27 NUL  SCGI NUL 1 NUL  name NUL value NUL …  ,        then the content
//! ```

use crate::cgi::VariableError;
use crate::decimal::{MAX_DIGITS, digits};

/// Most bytes of variables. The protocol knows no bound; applications hold them in memory, and no head of a request that a
/// server takes is a quarter as long.
pub const MAX_VARIABLES: usize = 1024 * 1024;

/// Room for the number in front and its colon.
const LENGTH_PREFIX: usize = MAX_DIGITS + 1;

/// The head of a request, written as its variables are told.
pub struct ScgiRequest {
    /// With [`FRONT`] bytes for what is known last and stands first.
    bytes: Vec<u8>,
}

impl ScgiRequest {
    /// `length`: bytes of the content, which every request has to tell before all else.
    pub fn new(length: u64) -> ScgiRequest {
        let mut bytes = Vec::with_capacity(INITIAL_CAPACITY);
        bytes.resize(LENGTH_PREFIX, 0);
        bytes.extend_from_slice(b"CONTENT_LENGTH\0");
        bytes.extend_from_slice(digits(length, &mut [0; MAX_DIGITS]));
        bytes.extend_from_slice(b"\0SCGI\x001\0");
        ScgiRequest { bytes }
    }

    /// A name may be told once, and those that every request has are told already.
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

    /// Behind the last one.
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

/// Bytes of a usual request.
const INITIAL_CAPACITY: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_the_example_of_the_specification() {
        // The example of the protocol's own description.
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
        let room = MAX_VARIABLES - (request.bytes.len() - LENGTH_PREFIX) - 3;
        assert_eq!(request.push(b"A", &vec![b'x'; room + 1]), Err(VariableError::TooLong));
        request.push(b"A", &vec![b'x'; room]).unwrap();
        assert_eq!(request.push(b"B", b""), Err(VariableError::TooLong));
        assert!(request.finish().starts_with(b"1048576:CONTENT_LENGTH\0"));
    }
}
