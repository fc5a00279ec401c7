//! Encodes the head of a uwsgi request, in the role of the web server. The request body follows it unchanged. The
//! response has the format of CGI or HTTP and ends with the connection.
//!
//! ```text
//! modifier1 = 0 | size of variables (2) | modifier2 = 0       then per variable: size (2) | name | size (2) | value
//! ```
//!
//! Numbers are little-endian. `(2)` is the size of a number in bytes; each modifier has one byte.

use crate::cgi::VariableError;

/// Maximum total size of the encoded variables in bytes, because the size field has 16 bits.
pub const MAX_VARIABLES: usize = u16::MAX as usize;

/// Size of the header before the variables, in bytes.
const HEADER_SIZE: usize = 4;
/// Modifier of a request with variables, as opposed to commands for uWSGI and requests of other protocols.
const MODIFIER_REQUEST: u8 = 0;

/// Encoder of the head of a request.
pub struct UwsgiRequest {
    /// Header and variables. [`UwsgiRequest::finish`] sets the size of the variables in the header.
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
    /// Appends a variable.
    ///
    /// # Errors
    ///
    /// Fails with [`VariableError::TooLong`] if the variables together would exceed [`MAX_VARIABLES`]. The variable is
    /// then not written.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        // The sizes of the name and of the value have two bytes each.
        if self.bytes.len() - HEADER_SIZE + name.len() + value.len() + 4 > MAX_VARIABLES {
            return Err(VariableError::TooLong);
        }
        for part in [name, value] {
            // The check above ensures that each part is below 64 KiB, so its size fits in 16 bits.
            self.bytes.extend_from_slice(&(part.len() as u16).to_le_bytes());
            self.bytes.extend_from_slice(part);
        }
        Ok(())
    }

    /// Returns the encoded head.
    pub fn finish(mut self) -> Vec<u8> {
        let length = (self.bytes.len() - HEADER_SIZE) as u16;
        self.bytes[1..3].copy_from_slice(&length.to_le_bytes());
        self.bytes
    }
}

/// Capacity for a typical request, in bytes.
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
        // Each of the variables `A` and `B` has five bytes in addition to its value.
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
