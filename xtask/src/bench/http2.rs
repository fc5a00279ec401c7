//! Minimal HTTP/2 client: opens connections that stay idle after one exchange, and reads frames for other rows.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Empty SETTINGS frame.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// Acknowledgement of the server's SETTINGS frame. The client sends it in advance, so that it need not wait for that
/// frame.
pub const SETTINGS_ACK: &[u8] = &[0, 0, 0, 4, 1, 0, 0, 0, 0];
/// Offset of the type in a frame header.
const TYPE: usize = 3;
/// Offset of the flags in a frame header.
const FLAGS: usize = 4;
// Types of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS_TYPE: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
// Flags of frames.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PRIORITY: u8 = 0x20;
/// Setting with the flow-control window of each stream.
const INITIAL_WINDOW_SIZE: u16 = 4;
/// Timeout for one response.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Urgency of a request: the field `priority` of RFC 9218, and the weight of RFC 7540 for older servers.
#[derive(Clone, Copy)]
pub struct Urgency {
    pub field: &'static str,
    /// Weight minus one, as sent in the frame.
    pub weight: u8,
}

/// Header of a received frame.
pub struct Frame {
    kind: u8,
    pub stream: u32,
    pub length: u32,
    /// True if the flag END_STREAM is set. Other frame types use the same bit for another flag.
    ends: bool,
}

impl Frame {
    pub fn is_data(&self) -> bool {
        self.kind == DATA
    }

    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.ends
    }
}

/// Opens `connections` connections, sends one request on each, and returns the connections, which are then idle.
pub fn idle(port: u16, path: &str, connections: usize) -> io::Result<Vec<TcpStream>> {
    let bytes = [PREFACE, SETTINGS, SETTINGS_ACK, &request(1, path, None)].concat();
    (0..connections).map(|_| get(port, &bytes)).collect()
}

fn get(port: u16, bytes: &[u8]) -> io::Result<TcpStream> {
    let mut stream = connect(port)?;
    stream.write_all(bytes)?;
    while !read_frame(&mut stream)?.ends_stream() {}
    Ok(stream)
}

pub fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), RESPONSE_TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
    Ok(stream)
}

/// Reads a frame, discards its payload, and returns its header.
pub fn read_frame(stream: &mut impl Read) -> io::Result<Frame> {
    let mut header = [0; 9];
    stream.read_exact(&mut header)?;
    let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
    let passed = io::copy(&mut stream.take(u64::from(length)), &mut io::sink())?;
    if passed < u64::from(length) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Frame {
        kind: header[TYPE],
        stream: u32::from_be_bytes([header[5], header[6], header[7], header[8]]),
        length,
        ends: header[FLAGS] & END_STREAM != 0,
    })
}

/// Returns frames that set the flow-control window of each stream to `stream` bytes and enlarge that of the connection
/// by `all` bytes.
pub fn windows(stream: u32, all: u32) -> Vec<u8> {
    let mut value = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
    value.extend_from_slice(&stream.to_be_bytes());
    [
        frame(SETTINGS_TYPE, 0, 0, &value),
        frame(WINDOW_UPDATE, 0, 0, &all.to_be_bytes()),
    ]
    .concat()
}

/// Returns the HEADERS frame of a GET: indexed fields of the static table (RFC 7541, appendix A), and literals.
pub fn request(stream: u32, path: &str, urgency: Option<Urgency>) -> Vec<u8> {
    let mut payload = Vec::new();
    if let Some(urgency) = urgency {
        // Dependency on no stream, and the weight (RFC 7540 §6.2).
        payload.extend_from_slice(&[0, 0, 0, 0, urgency.weight]);
    }
    payload.extend_from_slice(&[0x82, 0x86]);
    let mut field = |name: &[u8], value: &str| {
        payload.extend_from_slice(name);
        payload.push(value.len() as u8);
        payload.extend_from_slice(value.as_bytes());
    };
    field(&[0x04], path);
    field(&[0x01], "localhost");
    if let Some(urgency) = urgency {
        field(b"\x00\x08priority", urgency.field);
    }
    let priority = if urgency.is_some() { PRIORITY } else { 0 };
    frame(HEADERS, END_STREAM | END_HEADERS | priority, stream, &payload)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_frame() {
        let bytes = request(1, "/x", None);
        assert_eq!(bytes[..9], [0, 0, 17, 1, 5, 0, 0, 0, 1]);
        assert_eq!(bytes[9..], *b"\x82\x86\x04\x02/x\x01\x09localhost");
        let urgent = Urgency {
            field: "u=0",
            weight: 255,
        };
        let bytes = request(3, "/x", Some(urgent));
        assert_eq!(bytes[..14], [0, 0, 36, 1, 0x25, 0, 0, 0, 3, 0, 0, 0, 0, 255]);
        assert_eq!(
            bytes[14..],
            *b"\x82\x86\x04\x02/x\x01\x09localhost\x00\x08priority\x03u=0"
        );
    }

    #[test]
    fn frames_are_read_with_their_payloads() {
        let sent = [windows(1, 2), request(5, "/x", None), frame(DATA, 0, 7, b"abc")].concat();
        let mut rest = &sent[..];
        let mut read =
            || read_frame(&mut rest).map(|frame| (frame.stream, frame.length, frame.is_data(), frame.ends_stream()));
        assert_eq!(read().expect("settings"), (0, 6, false, false));
        assert_eq!(read().expect("a window"), (0, 4, false, false));
        assert_eq!(read().expect("a request"), (5, 17, false, true));
        assert_eq!(read().expect("data"), (7, 3, true, false));
        assert!(read().is_err());
    }
}
