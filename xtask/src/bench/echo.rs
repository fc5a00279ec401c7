//! Loads tunnels: sends messages over WebSocket connections to an echo server.

use super::count::Count;
use crate::Failure;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Time limit for an echoed message.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes of a response head.
const MAX_HEAD_BYTES: usize = 4096;
/// First two bytes of a masked frame with a payload below 126 bytes (RFC 6455 §5.2).
const FRAME_HEAD: [u8; 2] = [0x82, 0x80];
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
/// Maximum payload length of a frame with the short header.
pub const MAX_SHORT_PAYLOAD: usize = 125;

/// Opens a WebSocket with the example key of RFC 6455 §1.3.
pub fn open(port: u16) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(
        b"GET /hello.html HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
          Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MAX_HEAD_BYTES {
            return Err(io::Error::new(ErrorKind::InvalidData, "no end of the head"));
        }
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    match head.starts_with(b"HTTP/1.1 101 ") {
        true => Ok(stream),
        false => Err(io::Error::new(
            ErrorKind::InvalidData,
            String::from_utf8_lossy(&head).into_owned(),
        )),
    }
}

/// Returns a frame with a payload of `size` bytes, as a browser sends it. For sizes above
/// [`MAX_SHORT_PAYLOAD`], returns bytes without a frame header, because no server of the bench parses frames.
pub fn message(size: u32) -> Vec<u8> {
    let size = size as usize;
    if size > MAX_SHORT_PAYLOAD {
        return vec![b'x'; size];
    }
    let content = (0..size).map(|at| b'x' ^ MASK[at % 4]);
    let head = [FRAME_HEAD[0], FRAME_HEAD[1] | size as u8];
    head.into_iter().chain(MASK).chain(content).collect()
}

/// Writes a message into each tunnel, waits for all echoes and repeats, until `time` has passed.
pub fn echo(port: u16, tunnels: u32, size: u32, time: Duration) -> Result<Count, Failure> {
    let mut all = (0..tunnels).map(|_| open(port)).collect::<io::Result<Vec<_>>>()?;
    let message = message(size);
    let mut back = vec![0; message.len()];
    let (start, mut messages, mut failures) = (Instant::now(), 0_u64, 0);
    while start.elapsed() < time {
        for tunnel in &mut all {
            tunnel.write_all(&message)?;
        }
        for tunnel in &mut all {
            tunnel.read_exact(&mut back)?;
            failures += u64::from(back != message);
            messages += 1;
        }
    }
    Ok(Count {
        requests: messages as f64,
        mebibytes: (messages * message.len() as u64) as f64 / f64::from(1 << 20),
        seconds: start.elapsed().as_secs_f64(),
        failures,
        refused: 0,
        p99_ms: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_masked() {
        let frame = message(5);
        assert_eq!(frame.len(), 2 + 4 + 5);
        assert_eq!(frame[..2], [0x82, 0x85]);
        let content: Vec<u8> = frame[6..]
            .iter()
            .enumerate()
            .map(|(at, byte)| byte ^ MASK[at % 4])
            .collect();
        assert_eq!(content, b"xxxxx");
        assert_eq!(message(MAX_SHORT_PAYLOAD as u32).len(), 6 + MAX_SHORT_PAYLOAD);
        assert_eq!(message(65_536).len(), 65_536);
    }
}
