//! The uwsgi protocol as the web server speaks it: the head of a request, which its content follows as it is. The answer is
//! one of CGI or of HTTP, and ends with the connection.
//!
//! ```text
//! modifier1 = 0 | bytes of variables (2) | modifier2 = 0      then for each: bytes of name (2) | name | bytes of value (2) | value
//! ```
//!
//! Numbers have their low byte first.

use crate::cgi::VariableError;

/// Most bytes of variables: their number has 16 bits.
pub const MAX_VARIABLES: usize = u16::MAX as usize;

const HEADER_SIZE: usize = 4;
/// A request with variables, as opposed to commands for uWSGI itself and requests by other protocols.
const MODIFIER_REQUEST: u8 = 0;

/// The head of a request, written as its variables are told.
pub struct UwsgiRequest {
    bytes: Vec<u8>,
}

impl Default for UwsgiRequest {
    fn default() -> UwsgiRequest {
        let mut bytes = Vec::with_capacity(INITIAL_CAPACITY);
        bytes.extend_from_slice(&[MODIFIER_REQUEST, 0, 0, 0]);
        UwsgiRequest { bytes }
    }
}

impl UwsgiRequest {
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        if self.bytes.len() - HEADER_SIZE + name.len() + value.len() + 4 > MAX_VARIABLES {
            return Err(VariableError::TooLong);
        }
        for part in [name, value] {
            // What fits all fits its number.
            self.bytes.extend_from_slice(&(part.len() as u16).to_le_bytes());
            self.bytes.extend_from_slice(part);
        }
        Ok(())
    }

    /// Behind the last one.
    pub fn finish(mut self) -> Vec<u8> {
        let length = (self.bytes.len() - HEADER_SIZE) as u16;
        self.bytes[1..3].copy_from_slice(&length.to_le_bytes());
        self.bytes
    }
}

/// Bytes of a usual request.
const INITIAL_CAPACITY: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_the_format_of_uwsgi() {
        let mut request = UwsgiRequest::default();
        request.push(b"REQUEST_METHOD", b"GET").unwrap();
        request.push(b"PATH_INFO", b"").unwrap();
        let long = vec![b'x'; 300];
        request.push(b"A", &long).unwrap();
        let mut expected = b"\0\x53\x01\0\x0e\0REQUEST_METHOD\x03\0GET\x09\0PATH_INFO\0\0\x01\0A\x2c\x01".to_vec();
        expected.extend_from_slice(&long);
        assert_eq!(request.finish(), expected);
        assert_eq!(UwsgiRequest::default().finish(), [0; 4]);
    }

    #[test]
    fn variables_are_limited_to_64_kib() {
        let mut request = UwsgiRequest::default();
        assert_eq!(
            request.push(b"A", &vec![b'x'; MAX_VARIABLES - 4]),
            Err(VariableError::TooLong)
        );
        request.push(b"A", &vec![b'x'; MAX_VARIABLES - 5 - 5]).unwrap();
        assert_eq!(request.push(b"B", b"xy"), Err(VariableError::TooLong));
        request.push(b"B", b"").unwrap();
        let bytes = request.finish();
        assert_eq!(
            (bytes.len(), &bytes[..4]),
            (HEADER_SIZE + MAX_VARIABLES, &[0, 0xff, 0xff, 0][..])
        );
    }
}
