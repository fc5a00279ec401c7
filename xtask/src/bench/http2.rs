//! The least of an HTTP/2 client: connections that have asked once and stay open.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// SETTINGS that say nothing, and the answer to the server's.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const SETTINGS_ACK: &[u8] = &[0, 0, 0, 4, 1, 0, 0, 0, 0];
/// Where a frame header tells its type and flags, and what they say.
const TYPE: usize = 3;
const FLAGS: usize = 4;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// Patience for one answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Opens `connections`, asks on each once, and hands them over open and idle.
pub fn idle(port: u16, path: &str, connections: usize) -> io::Result<Vec<TcpStream>> {
    let asked = [PREFACE, SETTINGS, SETTINGS_ACK, &request(path)].concat();
    (0..connections).map(|_| ask(port, &asked)).collect()
}

fn ask(port: u16, asked: &[u8]) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(asked)?;
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header)?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        io::copy(&mut (&stream).take(u64::from(length)), &mut io::sink())?;
        if matches!(header[TYPE], DATA | HEADERS) && header[FLAGS] & END_STREAM != 0 {
            return Ok(stream);
        }
    }
}

/// GET on stream 1: what the static table has (RFC 7541, appendix A), and two literals.
fn request(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86];
    for (name, value) in [(0x04, path), (0x01, "localhost")] {
        block.extend_from_slice(&[name, value.len() as u8]);
        block.extend_from_slice(value.as_bytes());
    }
    let mut frame = (block.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[HEADERS, END_STREAM | END_HEADERS, 0, 0, 0, 1]);
    frame.extend_from_slice(&block);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_frame() {
        let frame = request("/x");
        assert_eq!(frame[..9], [0, 0, 17, 1, 5, 0, 0, 0, 1]);
        assert_eq!(frame[9..], *b"\x82\x86\x04\x02/x\x01\x09localhost");
    }
}
