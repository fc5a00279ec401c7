//! Response head for HTTP/1 that is rendered once. Each response copies its bytes and sets the current date.

use super::encode::ConnectionField;
use crate::fields::FieldList;
use crate::status::Status;

/// Rendered status line and fields, with the empty line.
#[derive(Debug)]
pub struct PreparedHead {
    bytes: Box<[u8]>,
    /// Position of the date.
    date_at: usize,
}

/// Placeholder of the date.
const DATE_PLACEHOLDER: &[u8; 29] = b"Thu, 01 Jan 1970 00:00:00 GMT";
/// End of a line; also the empty line after the fields.
const END: &[u8] = b"\r\n";

impl PreparedHead {
    /// Renders a head with `Date` and, if the status allows a body, `Content-Length: length`. A CR, LF or NUL in a
    /// field becomes a space, because RFC 9110 §5.5 calls these three dangerous.
    ///
    /// `fields` must not contain `Date`, or fields that frame the message or control the connection. This is not
    /// checked.
    pub fn new(status: Status, fields: &FieldList, length: u64) -> PreparedHead {
        // Initial capacity in bytes: enough for about eight fields of ordinary length. A longer head reallocates.
        let mut bytes = Vec::with_capacity(320);
        bytes.extend_from_slice(format!("HTTP/1.1 {} {}\r\nDate: ", status.code(), status.reason()).as_bytes());
        let date_at = bytes.len();
        bytes.extend_from_slice(DATE_PLACEHOLDER);
        bytes.extend_from_slice(END);
        for (name, value) in fields.iter() {
            push_sanitized(&mut bytes, name);
            bytes.extend_from_slice(b": ");
            push_sanitized(&mut bytes, value);
            bytes.extend_from_slice(END);
        }
        if status.allows_body() {
            bytes.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
        }
        bytes.extend_from_slice(END);
        PreparedHead {
            bytes: bytes.into_boxed_slice(),
            date_at,
        }
    }

    /// Appends the head with the given date and Connection field.
    #[inline]
    pub fn write(&self, date: &[u8; 29], connection: ConnectionField, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        out[start + self.date_at..][..date.len()].copy_from_slice(date);
        let field: &[u8] = match connection {
            ConnectionField::None => return,
            ConnectionField::Close => b"Connection: close\r\n\r\n",
            ConnectionField::KeepAlive => b"Connection: keep-alive\r\n\r\n",
            ConnectionField::Upgrade => b"Connection: upgrade\r\n\r\n",
        };
        out.truncate(out.len() - END.len());
        out.extend_from_slice(field);
    }

    /// Returns the heap memory in use, in bytes.
    pub fn memory_size(&self) -> usize {
        self.bytes.len()
    }
}

/// Appends text, with a space for each CR, LF and NUL.
fn push_sanitized(out: &mut Vec<u8>, text: &str) {
    out.extend(
        text.bytes()
            .map(|byte| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { byte }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_date_content_length_and_connection() {
        let mut fields = FieldList::default();
        fields.add("A", "b\r\nInjected: 1");
        let date = b"Sat, 21 Nov 2026 09:42:00 GMT";
        let head =
            "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 09:42:00 GMT\r\nA: b  Injected: 1\r\nContent-Length: 5\r\n";
        // A response of status 304 has no body and therefore no Content-Length.
        let not_modified = "HTTP/1.1 304 Not Modified\r\nDate: Sat, 21 Nov 2026 09:42:00 GMT\r\nA: b  Injected: 1\r\n";
        // Status, Connection field, and the expected head.
        for (status, connection, expected) in [
            (Status::OK, ConnectionField::None, format!("{head}\r\n")),
            (
                Status::OK,
                ConnectionField::Close,
                format!("{head}Connection: close\r\n\r\n"),
            ),
            (
                Status::NOT_MODIFIED,
                ConnectionField::KeepAlive,
                format!("{not_modified}Connection: keep-alive\r\n\r\n"),
            ),
        ] {
            let mut out = b"before".to_vec();
            PreparedHead::new(status, &fields, 5).write(date, connection, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), format!("before{expected}"));
        }
    }
}
