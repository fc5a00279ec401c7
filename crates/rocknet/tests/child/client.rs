//! TCP client that returns the errors of an open connection to the test, because a cut can be an expected outcome.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use super::DEADLINE;

pub struct Client {
    stream: TcpStream,
    /// Received bytes that are not yet part of a response.
    unread: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedResponse {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Client {
    pub fn to(address: SocketAddr) -> Client {
        let stream = TcpStream::connect_timeout(&address, DEADLINE).expect("a connection");
        stream.set_nodelay(true).expect("an option");
        stream.set_read_timeout(Some(DEADLINE)).expect("an option");
        stream.set_write_timeout(Some(DEADLINE)).expect("an option");
        Client {
            stream,
            unread: Vec::new(),
        }
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Closes the sending side of the connection.
    pub fn end(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    pub fn get(&mut self, path: &str) -> ReceivedResponse {
        self.try_get(path)
            .unwrap_or_else(|error| panic!("GET {path}: {error}; received {:?}", self.received()))
    }

    pub fn try_get(&mut self, path: &str) -> io::Result<ReceivedResponse> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))?;
        self.response()
    }

    /// Reads the next response, with the body length of its `Content-Length`.
    pub fn response(&mut self) -> io::Result<ReceivedResponse> {
        let head = self.head()?;
        let status = head.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0);
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "))
            .and_then(|n| n.parse().ok());
        let body = self.bytes(length.unwrap_or(0))?;
        Ok(ReceivedResponse { status, head, body })
    }

    /// Reads a response head, up to and including the empty line.
    pub fn head(&mut self) -> io::Result<String> {
        let end = loop {
            if let Some(at) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            self.receive()?;
        };
        Ok(String::from_utf8_lossy(&self.unread.drain(..end).collect::<Vec<_>>()).into_owned())
    }

    /// Reads exactly this number of bytes.
    pub fn bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.unread.len() < count {
            self.receive()?;
        }
        Ok(self.unread.drain(..count).collect())
    }

    /// Reads until the server closes or resets the connection. Fails only if the server does not close.
    pub fn rest(&mut self) -> io::Result<Vec<u8>> {
        loop {
            match self.receive() {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(error),
                Err(_) => return Ok(std::mem::take(&mut self.unread)),
            }
        }
    }

    /// Received part of an incomplete response.
    pub fn received(&self) -> String {
        String::from_utf8_lossy(&self.unread).into_owned()
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut buffer = [0; 64 * 1024];
        let got = loop {
            match self.stream.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        if got == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.unread.extend_from_slice(&buffer[..got]);
        Ok(())
    }
}
