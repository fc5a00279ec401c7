//! `floor-h2 PORT`: sends the same 13 bytes for every request of HTTP/2 without TLS; all responses to one read share
//! one write.
//!
//! It parses only frame headers: it decodes no fields, keeps no windows and tracks no streams. The head of its response
//! is encoded in advance and has the fields of a real server.

use floor::{Requests, Responder};
use std::io;
use std::os::fd::OwnedFd;

const BODY: &[u8] = b"Hello, world!";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of a frame header: length, type, flags and stream identifier.
const HEADER: usize = 9;
/// Position of the stream identifier in the header.
const STREAM: std::ops::Range<usize> = 5..9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Response fields: the index of the name in the static table (RFC 7541, appendix A), and the value.
const FIELDS: &[(u8, &str)] = &[
    (54, "Floor"),
    (33, "Sat, 21 Nov 2026 09:00:00 GMT"),
    (31, "text/html; charset=utf-8"),
    (28, "13"),
    (44, "Sat, 21 Nov 2026 08:00:00 GMT"),
    (34, "\"18a9f2c4d3e5b600-d\""),
    (18, "bytes"),
];

struct Http2Responder {
    /// HEADERS and DATA of one response, with stream identifier 0.
    reply: Vec<u8>,
    /// Offset of DATA in `reply`.
    data: usize,
    output: Vec<u8>,
}

/// Appends a frame with the stream identifier 0.
fn frame(kind: u8, flags: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags, 0, 0, 0, 0]);
    out.extend_from_slice(payload);
}

impl Http2Responder {
    fn new() -> Self {
        // :status 200, then literals without indexing.
        let mut block = vec![0x88];
        for (name, value) in FIELDS {
            // An index above 14 exceeds the 4-bit prefix and continues in a second byte (RFC 7541 §5.1).
            block.extend_from_slice(&[0x0f, name - 15, value.len() as u8]);
            block.extend_from_slice(value.as_bytes());
        }
        let mut reply = Vec::new();
        frame(HEADERS, END_HEADERS, &block, &mut reply);
        let data = reply.len();
        frame(DATA, END_STREAM, BODY, &mut reply);
        Self {
            reply,
            data,
            output: Vec::new(),
        }
    }

    fn reply(&mut self, stream: &[u8]) {
        let start = self.output.len();
        self.output.extend_from_slice(&self.reply);
        for frame in [start, start + self.data] {
            self.output[frame + STREAM.start..frame + STREAM.end].copy_from_slice(stream);
        }
    }
}

impl Responder for Http2Responder {
    /// True once the preface has been read.
    type State = bool;
    const WAITS_FOR_ROOM: bool = false;

    fn parse(&mut self, opened: &mut bool, unread: &[u8]) -> io::Result<Requests> {
        self.output.clear();
        let mut found = Requests::default();
        if !*opened {
            if unread.len() < PREFACE.len() {
                return Ok(found);
            }
            if !unread.starts_with(PREFACE) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            *opened = true;
            found.bytes = PREFACE.len();
            // At most 256 concurrent streams, and a larger flow-control window for the connection.
            frame(SETTINGS, 0, &[0, 3, 0, 0, 1, 0], &mut self.output);
            frame(WINDOW_UPDATE, 0, &[0x3f, 0, 0, 0], &mut self.output);
        }
        while let Some(header) = unread.get(found.bytes..found.bytes + HEADER) {
            let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
            let start = found.bytes + HEADER;
            let Some(payload) = unread.get(start..start + length) else {
                break;
            };
            match (header[3], header[4] & ACK) {
                (HEADERS, _) => self.reply(&header[STREAM]),
                (SETTINGS, 0) => frame(SETTINGS, ACK, &[], &mut self.output),
                (PING, 0) => frame(PING, ACK, payload, &mut self.output),
                _ => {}
            }
            found.bytes = start + length;
        }
        // `respond` writes all output at once, so any output counts as one request.
        found.count = usize::from(!self.output.is_empty());
        Ok(found)
    }

    fn respond(&mut self, socket: &OwnedFd, _: &mut bool, _: usize) -> io::Result<bool> {
        let sent = rustix::io::write(socket, &self.output)?;
        if sent == self.output.len() {
            Ok(true)
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }

    fn resume(&mut self, _: &OwnedFd, _: &mut bool) -> io::Result<bool> {
        Ok(true)
    }
}

fn main() {
    let Some(port) = std::env::args().nth(1).and_then(|port| port.parse().ok()) else {
        eprintln!("usage: floor-h2 PORT");
        std::process::exit(2);
    };
    if let Err(error) = floor::serve(&[port], Http2Responder::new()) {
        eprintln!("floor-h2: {error}");
        std::process::exit(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_answered_on_its_stream() {
        let mut program = Http2Responder::new();
        let mut opened = false;
        let mut input = PREFACE.to_vec();
        frame(SETTINGS, 0, &[], &mut input);
        for stream in [1, 3] {
            let start = input.len();
            frame(HEADERS, END_STREAM | END_HEADERS, &[0x82], &mut input);
            input[start + STREAM.end - 1] = stream;
        }
        input.extend_from_slice(&[0, 0]);
        let found = program.parse(&mut opened, &input).expect("frames");
        assert_eq!((found.bytes, found.count, opened), (input.len() - 2, 1, true));
        let (mut at, mut seen) = (0, Vec::new());
        while at < program.output.len() {
            let header = &program.output[at..at + HEADER];
            seen.push((header[3], header[8]));
            at += HEADER + usize::from(header[2]);
        }
        assert_eq!(
            // The first two frames are SETTINGS and WINDOW_UPDATE of the server.
            seen[2..],
            [(SETTINGS, 0), (HEADERS, 1), (DATA, 1), (HEADERS, 3), (DATA, 3)]
        );
        assert!(program.parse(&mut false, &[b'x'; 24]).is_err());
    }
}
