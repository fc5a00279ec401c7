//! `floor-fastcgi PORT`: FastCGI application that sends the same 13 bytes for every request; the records of one
//! response share one write.
//!
//! It parses only record headers, and keeps connections open even if a request lacks the flag FCGI_KEEP_CONN.

use floor::{Requests, Responder};
use std::io;
use std::os::fd::OwnedFd;

const CONTENT: &[u8] = b"Content-Type: text/html; charset=utf-8\r\nContent-Length: 13\r\n\r\nHello, world!";
/// Bytes of a record header: version, type, request (2), content length (2), padding length, reserved.
const HEADER: usize = 8;

const END_REQUEST: u8 = 3;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;

struct FixedResponse {
    reply: Vec<u8>,
    output: Vec<u8>,
}

/// Appends a record of the request with the ID 1.
fn record(kind: u8, content: &[u8], out: &mut Vec<u8>) {
    let [high, low] = (content.len() as u16).to_be_bytes();
    out.extend_from_slice(&[1, kind, 0, 1, high, low, 0, 0]);
    out.extend_from_slice(content);
}

impl FixedResponse {
    fn new() -> Self {
        let mut reply = Vec::new();
        record(STDOUT, CONTENT, &mut reply);
        record(STDOUT, &[], &mut reply);
        record(END_REQUEST, &[0; 8], &mut reply);
        Self {
            reply,
            output: Vec::new(),
        }
    }
}

impl Responder for FixedResponse {
    type State = ();
    const WAITS_FOR_ROOM: bool = false;

    /// Counts a request when its empty STDIN record has been read. This record ends the request body.
    fn parse(&mut self, (): &mut (), unread: &[u8]) -> io::Result<Requests> {
        let mut found = Requests::default();
        let mut at = 0;
        while let Some(header) = unread.get(at..at + HEADER) {
            if header[0] != 1 {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
            let end = at + HEADER + length + usize::from(header[6]);
            if end > unread.len() {
                break;
            }
            at = end;
            found.bytes = at;
            if header[1] == STDIN && length == 0 {
                found.count += 1;
            }
        }
        Ok(found)
    }

    fn respond(&mut self, socket: &OwnedFd, (): &mut (), requests: usize) -> io::Result<bool> {
        self.output.clear();
        for _ in 0..requests {
            self.output.extend_from_slice(&self.reply);
        }
        let sent = rustix::io::write(socket, &self.output)?;
        if sent == self.output.len() {
            Ok(true)
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }

    fn resume(&mut self, _: &OwnedFd, (): &mut ()) -> io::Result<bool> {
        Ok(true)
    }
}

fn main() {
    let Some(port) = std::env::args().nth(1).and_then(|port| port.parse().ok()) else {
        eprintln!("usage: floor-fastcgi PORT");
        std::process::exit(2);
    };
    if let Err(error) = floor::serve(&[port], FixedResponse::new()) {
        eprintln!("floor-fastcgi: {error}");
        std::process::exit(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_stdin_record_completes_a_request() {
        let mut request = Vec::new();
        // Type 1 is BEGIN_REQUEST, and type 4 is PARAMS.
        record(1, &[0, 1, 1, 0, 0, 0, 0, 0], &mut request);
        record(4, b"\x01\x01AB", &mut request);
        record(4, &[], &mut request);
        record(STDIN, b"content", &mut request);
        record(STDIN, &[], &mut request);
        let twice = [&request[..], &request, &request[..9]].concat();
        let mut program = FixedResponse::new();
        let found = program.parse(&mut (), &twice).expect("records");
        assert_eq!((found.count, found.bytes), (2, 2 * request.len()));
        assert!(program.parse(&mut (), b"GET / HTTP/1.1\r\n\r\n").is_err());
    }
}
