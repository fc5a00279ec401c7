//! Small HTTP client for work that load generators cannot do: first responses, exact numbers of requests, idle
//! connections.

mod tls;

use super::lane::{Lane, Scheme, Version};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

/// Status and Content-Length of a response.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub length: Option<u64>,
}

/// Maximum bytes of a response head. No server of the bench sends a longer head.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Timeout for one response. It is long because a server under callgrind is fifty times slower than usual.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A keep-alive connection to a server on this machine.
pub struct Client {
    stream: Box<dyn Stream>,
    request: String,
}

/// Connection with or without TLS.
trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

impl Client {
    pub fn connect(lane: &Lane, port: u16, path: &str) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), RESPONSE_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        let host = lane.variant.host().unwrap_or_else(|| "localhost".to_owned());
        let stream: Box<dyn Stream> = match lane.scheme {
            Scheme::Http => Box::new(stream),
            Scheme::Https(_) => Box::new(tls::open(stream, &host)?),
        };
        Ok(Self {
            stream,
            request: format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        })
    }

    /// Sends one request and reads the response head only; the connection cannot be used again.
    pub fn get_head(mut self) -> io::Result<Response> {
        self.stream.write_all(self.request.as_bytes())?;
        Ok(self.read_head()?.0)
    }

    /// Sends one request and reads the whole response.
    pub fn get(&mut self) -> io::Result<Response> {
        self.stream.write_all(self.request.as_bytes())?;
        let (response, had) = self.read_head()?;
        let length = response
            .length
            .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "no Content-Length"))?;
        let left = length.saturating_sub(had as u64);
        let drained = io::copy(&mut (&mut self.stream).take(left), &mut io::sink())?;
        if drained == left {
            Ok(response)
        } else {
            Err(ErrorKind::UnexpectedEof.into())
        }
    }

    /// Reads the head and returns it with the number of body bytes that arrived with it.
    fn read_head(&mut self) -> io::Result<(Response, usize)> {
        let mut bytes = Vec::with_capacity(1024);
        let mut chunk = [0; 1024];
        loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let response = parse(&head).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, head))?;
                return Ok((response, bytes.len() - end - 4));
            }
            if bytes.len() > MAX_HEAD_BYTES {
                return Err(io::Error::new(ErrorKind::InvalidData, "no end of the head"));
            }
            match self.stream.read(&mut chunk)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                length => bytes.extend_from_slice(&chunk[..length]),
            }
        }
    }
}

fn parse(head: &str) -> Option<Response> {
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    });
    Some(Response { status, length })
}

/// Opens `connections` connections, sends one request on each, and returns the connections, which are then idle.
pub fn idle(lane: &Lane, port: u16, path: &str, connections: usize) -> io::Result<Vec<Client>> {
    (0..connections)
        .map(|_| {
            let mut client = Client::connect(lane, port, path)?;
            client.get()?;
            Ok(client)
        })
        .collect()
}

/// Sends exactly `requests` requests over one connection. Requests of HTTP/2 are sent by h2load.
pub fn get_many(lane: &Lane, port: u16, path: &str, requests: usize) -> io::Result<()> {
    if lane.version == Version::Http2 {
        let url = format!("http://127.0.0.1:{port}{path}");
        let requests = requests.to_string();
        let out = Command::new("h2load")
            .args(["-n", &requests, "-c", "1", "-m", "1", &url])
            .output()?;
        let output = String::from_utf8_lossy(&out.stdout);
        return match output.contains(&format!("{requests} succeeded, 0 failed")) {
            true => Ok(()),
            false => Err(io::Error::other(format!("h2load: {output}"))),
        };
    }
    let mut client = Client::connect(lane, port, path)?;
    for _ in 0..requests {
        client.get()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_length_are_parsed_from_a_head() {
        let rows = [
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 13",
                Some(Response {
                    status: 200,
                    length: Some(13),
                }),
            ),
            (
                "HTTP/1.1 404 Not Found\r\nServer: x",
                Some(Response {
                    status: 404,
                    length: None,
                }),
            ),
            ("HTTP/1.1 2", None),
            ("SSH-2.0", None),
        ];
        for (head, expected) in rows {
            assert_eq!(parse(head), expected, "{head:?}");
        }
    }
}
