//! `hq-interop`: HTTP/0.9 over QUIC, which test clients of QUIC implementations use. It is translated to HTTP/3 and
//! back: a request line becomes a HEADERS frame, and the DATA frames of a response become its body.

use std::ops::Range;

use super::frame::{self, FrameHeaderReader, HeadersFrame};
use crate::qpack::{STATIC_PREFIX, encode_static_field};

/// Maximum size of a request line in bytes, the same as the default limit of a request target.
const LINE_MAX: usize = 8 * 1024;

/// Request line that may arrive in pieces.
#[derive(Debug, Default)]
pub struct HqRequest {
    /// Part of the line that has arrived.
    line: Vec<u8>,
}

/// Result of [`HqRequest::receive`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HqReceived {
    /// The line is not complete.
    More,
    /// The line is complete. The HEADERS frame is a request without a body. The caller must ignore the rest of the
    /// stream.
    Frame(Vec<u8>),
    /// The line is too long, or does not begin with `GET `.
    Malformed,
}

impl HqRequest {
    /// Receives the next bytes of a stream. `fin` is true if the stream ends after them, which also ends the line.
    /// `authority` becomes `:authority`, because the line names no host.
    pub fn receive(&mut self, bytes: &[u8], fin: bool, authority: &[u8]) -> HqReceived {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        if self.line.len() + piece.len() > LINE_MAX {
            return HqReceived::Malformed;
        }
        self.line.extend_from_slice(piece);
        if end.is_none() && !fin {
            return HqReceived::More;
        }
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        let Some(target) = line.strip_prefix(b"GET ") else {
            return HqReceived::Malformed;
        };
        // The frame header, the prefix of the section, and the indices and lengths of the fields take up to 16 bytes.
        let mut out = Vec::with_capacity(target.len() + authority.len() + 16);
        let headers = HeadersFrame::begin(&mut out);
        out.extend_from_slice(&STATIC_PREFIX);
        let fields: [(&[u8], &[u8]); 4] = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", authority),
            (b":path", target),
        ];
        for (name, value) in fields {
            encode_static_field(name, value, &mut out);
        }
        headers.finish(&mut out);
        HqReceived::Frame(out)
    }
}

/// Finds the body in the frames of a response, which may arrive in pieces.
#[derive(Debug, Default)]
pub struct HqBody {
    header: FrameHeaderReader,
    /// True if the open frame is DATA.
    is_data: bool,
    /// Bytes of the open frame that have not arrived.
    remaining: u64,
}

impl HqBody {
    /// Returns the next piece of the body from `at` on, and moves `at` past it; `None` if there is no more in `bytes`.
    pub fn next(&mut self, bytes: &[u8], at: &mut usize) -> Option<Range<usize>> {
        while *at < bytes.len() {
            if self.remaining == 0 {
                let header = self.header.read(bytes, at)?;
                (self.is_data, self.remaining) = (header.kind == frame::DATA, header.length);
                continue;
            }
            let left = bytes.len() - *at;
            let length = usize::try_from(self.remaining).map_or(left, |remaining| remaining.min(left));
            let piece = *at..*at + length;
            self.remaining -= length as u64;
            *at = piece.end;
            if self.is_data {
                return Some(piece);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h3::{Config, ConnectionEvent, ServerConnection, StreamId};
    use crate::{DecodedHead, Limits, Status};

    /// Returns the path and authority of the request that a line stands for, received in pieces of `piece` bytes;
    /// `None` if the line is malformed.
    fn request(line: &[u8], piece: usize) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut request = HqRequest::default();
        let mut left = line;
        loop {
            let (first, rest) = left.split_at(piece.min(left.len()));
            left = rest;
            match request.receive(first, left.is_empty(), b"a.test") {
                HqReceived::More => {}
                HqReceived::Malformed => return None,
                HqReceived::Frame(frame) => {
                    // The time is always 0.
                    let (limits, mut head) = (Limits::default(), DecodedHead::default());
                    let mut connection = ServerConnection::new(&Config::default(), &limits, 0);
                    let id = StreamId::new(0);
                    connection.open(id).expect("a stream");
                    let received = connection.receive(&limits, 0, id, &frame, true, &mut head);
                    let expected = ConnectionEvent::Request {
                        end: true,
                        expects_continue: false,
                    };
                    assert_eq!(received.event, expected);
                    let request = head.request();
                    let host = request.authority.to_vec();
                    return Some((request.path.to_vec(), host));
                }
            }
        }
    }

    #[test]
    fn a_line_is_a_request_whatever_ends_it_and_in_any_pieces() {
        let expected = Some((b"/a/b".to_vec(), b"a.test".to_vec()));
        for line in [&b"GET /a/b\r\n"[..], b"GET /a/b\n", b"GET /a/b", b"GET /a/b\r\nignored"] {
            for piece in 1..=line.len() {
                assert_eq!(request(line, piece), expected, "{line:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn other_lines_are_malformed() {
        let long = [b"GET /".as_slice(), &[b'a'; LINE_MAX]].concat();
        for line in [&b"POST /\r\n"[..], b"get /\r\n", b"GET\r\n", b"\r\n", b"", &long] {
            assert_eq!(request(line, 1000), None);
        }
    }

    #[test]
    fn the_body_consists_of_the_data_frames_in_any_pieces() {
        // The time is always 0.
        let (limits, mut head, mut out) = (Limits::default(), DecodedHead::default(), Vec::new());
        let mut connection = ServerConnection::new(&Config::default(), &limits, 0);
        let id = StreamId::new(0);
        connection.open(id).expect("a stream");
        let HqReceived::Frame(frame) = HqRequest::default().receive(b"GET /", true, b"a") else {
            panic!("a frame");
        };
        connection.receive(&limits, 0, id, &frame, true, &mut head);
        connection
            .send_interim(id, Status::EARLY_HINTS, [], &mut out)
            .expect("written");
        connection
            .respond(id, Status::OK, None, [(&b"x-a"[..], &b"b"[..])], &mut out)
            .expect("written");
        for content in [&b"one"[..], &[7; 300]] {
            connection
                .begin_data(id, content.len() as u64, &mut out)
                .expect("written");
            out.extend_from_slice(content);
        }
        let trailers = [(&b"x-t"[..], &b"1"[..])];
        connection.send_trailers(id, trailers, &mut out).expect("written");
        for size in 1..=out.len() {
            let (mut reader, mut content) = (HqBody::default(), Vec::new());
            for piece in out.chunks(size) {
                let mut at = 0;
                while let Some(range) = reader.next(piece, &mut at) {
                    content.extend_from_slice(&piece[range]);
                }
                assert_eq!(at, piece.len());
            }
            assert_eq!(content, [&b"one"[..], &[7; 300]].concat());
        }
    }
}
