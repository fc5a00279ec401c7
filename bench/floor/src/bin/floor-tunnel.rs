//! `floor-tunnel PORT`: accepts an upgrade and echoes all bytes; without an Upgrade field it sends 13 bytes.

use floor::{Requests, Responder};
use std::io;
use std::os::fd::OwnedFd;

const BODY: &[u8] = b"Hello, world!";
/// Response to an upgrade with the example key of RFC 6455 §1.3; the bench sends no other key.
const SWITCHING: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

struct EchoResponder {
    reply: Vec<u8>,
    output: Vec<u8>,
}

#[derive(Default)]
struct TunnelState {
    is_open: bool,
    /// Bytes that the socket has not accepted yet.
    backlog: Vec<u8>,
}

impl Responder for EchoResponder {
    type State = TunnelState;
    const WAITS_FOR_ROOM: bool = true;

    fn parse(&mut self, state: &mut TunnelState, unread: &[u8]) -> io::Result<Requests> {
        self.output.clear();
        if state.is_open {
            self.output.extend_from_slice(unread);
            return Ok(Requests {
                count: 1,
                bytes: unread.len(),
                last: false,
            });
        }
        let found = Requests::heads(unread)?;
        let head = &unread[..found.bytes];
        state.is_open = head.windows(10).any(|part| part.eq_ignore_ascii_case(b"\r\nupgrade:"));
        for _ in 0..found.count {
            self.output
                .extend_from_slice(if state.is_open { SWITCHING } else { &self.reply });
        }
        Ok(found)
    }

    fn respond(&mut self, socket: &OwnedFd, state: &mut TunnelState, _: usize) -> io::Result<bool> {
        if !state.backlog.is_empty() {
            state.backlog.extend_from_slice(&self.output);
            return Ok(false);
        }
        let sent = write(socket, &self.output)?;
        state.backlog.extend_from_slice(&self.output[sent..]);
        Ok(state.backlog.is_empty())
    }

    fn resume(&mut self, socket: &OwnedFd, state: &mut TunnelState) -> io::Result<bool> {
        if !state.backlog.is_empty() {
            let sent = write(socket, &state.backlog)?;
            state.backlog.drain(..sent);
        }
        Ok(state.backlog.is_empty())
    }
}

fn write(socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    match rustix::io::write(socket, bytes) {
        Err(rustix::io::Errno::AGAIN) => Ok(0),
        sent => Ok(sent?),
    }
}

fn main() {
    let Some(port) = std::env::args().nth(1).and_then(|port| port.parse().ok()) else {
        eprintln!("usage: floor-tunnel PORT");
        std::process::exit(2);
    };
    let mut reply = floor::head("text/html; charset=utf-8", BODY.len() as u64);
    reply.extend_from_slice(BODY);
    let output = Vec::new();
    if let Err(error) = floor::serve(&[port], EchoResponder { reply, output }) {
        eprintln!("floor-tunnel: {error}");
        std::process::exit(1);
    }
}
