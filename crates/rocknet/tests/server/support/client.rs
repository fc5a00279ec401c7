//! HTTP/1.1 client that writes exactly the given bytes and reads one response at a time.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::DEADLINE;

pub struct Client {
    stream: Box<dyn Stream>,
    /// Received bytes that are not yet part of a response.
    unread: Vec<u8>,
}

/// Byte stream of a client.
pub trait Stream: Read + Write + Send {
    /// Limits the duration of each later read and write.
    fn set_deadline(&self, deadline: Duration) -> io::Result<()>;
    /// Closes the sending side.
    fn end(&self) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn set_deadline(&self, deadline: Duration) -> io::Result<()> {
        // Also keeps small writes from waiting for acknowledgements (Nagle's algorithm).
        self.set_nodelay(true)?;
        self.set_read_timeout(Some(deadline))?;
        self.set_write_timeout(Some(deadline))
    }

    fn end(&self) -> io::Result<()> {
        self.shutdown(std::net::Shutdown::Write)
    }
}

impl Stream for UnixStream {
    fn set_deadline(&self, deadline: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(deadline))?;
        self.set_write_timeout(Some(deadline))
    }

    fn end(&self) -> io::Result<()> {
        self.shutdown(std::net::Shutdown::Write)
    }
}

impl Client {
    pub fn to(address: SocketAddr) -> Client {
        Client::over(TcpStream::connect_timeout(&address, DEADLINE).expect("a connection"))
    }

    pub fn over(stream: impl Stream + 'static) -> Client {
        stream.set_deadline(DEADLINE).expect("a deadline");
        Client {
            stream: Box::new(stream),
            unread: Vec::new(),
        }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream
            .write_all(bytes.as_ref())
            .expect("the server to read the request");
    }

    /// Sends bytes and ignores the error if the server has already closed the connection.
    pub fn send_anyway(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Sends bytes. Returns false if the server does not accept all of them within half a second.
    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        const LIMIT: Duration = Duration::from_millis(500);
        self.stream.set_deadline(LIMIT).expect("a deadline");
        let sent = self.stream.write_all(bytes).is_ok();
        self.stream.set_deadline(DEADLINE).expect("a deadline");
        sent
    }

    /// Closes the sending side. The client can still read.
    pub fn end(&self) {
        self.stream.end().expect("an open connection");
    }

    /// Closes the sending side and ignores the error if the server has already closed the connection.
    pub fn end_anyway(&self) {
        let _ = self.stream.end();
    }

    /// Sends a request and reads its response. `line` is the part before the version: `GET /x`.
    pub fn fetch(&mut self, line: &str, fields: &[&str]) -> ReceivedResponse {
        self.send(request(line, fields));
        self.response_to(line.split(' ').next().unwrap_or_default())
    }

    pub fn get(&mut self, path: &str) -> ReceivedResponse {
        self.fetch(&format!("GET {path}"), &[])
    }

    /// Reads the next response to a request with any method except HEAD.
    pub fn response(&mut self) -> ReceivedResponse {
        self.response_to("GET")
    }

    /// Reads the next response, which has no body if the request had the method HEAD.
    pub fn response_to(&mut self, method: &str) -> ReceivedResponse {
        let head = self.head();
        let mut response = ReceivedResponse::parse(&head);
        let has_no_body = method == "HEAD" || response.status < 200 || matches!(response.status, 204 | 304);
        if has_no_body {
            return response;
        }
        if response.field("Transfer-Encoding") == Some("chunked") {
            response.body = self.chunks();
        } else if let Some(length) = response.field("Content-Length") {
            let length = length.parse().expect("a length");
            response.body = self.bytes(length);
        } else {
            response.body = self.rest();
        }
        response
    }

    /// Reads a response head, up to and including the empty line.
    pub fn head(&mut self) -> String {
        let end = loop {
            if let Some(at) = find(&self.unread, b"\r\n\r\n") {
                break at + 4;
            }
            assert!(
                self.receive() > 0,
                "closed before a response; received {:?}",
                String::from_utf8_lossy(&self.unread)
            );
        };
        String::from_utf8(self.unread.drain(..end).collect()).expect("a head in ASCII")
    }

    /// Reads exactly this number of bytes of the body.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        while self.unread.len() < count {
            assert!(
                self.receive() > 0,
                "closed after {} of {count} bytes",
                self.unread.len()
            );
        }
        self.unread.drain(..count).collect()
    }

    /// Reads a chunked body without trailers.
    fn chunks(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let size = self.line();
            let size = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("{size:?} is no chunk size"));
            all.extend(self.bytes(size));
            assert_eq!(self.line(), "", "bytes after a chunk");
            if size == 0 {
                return all;
            }
        }
    }

    /// Reads the rest of a chunked response after its head, and returns the length of the body.
    pub fn rest_of_chunks(&mut self) -> usize {
        self.chunks().len()
    }

    fn line(&mut self) -> String {
        let end = loop {
            if let Some(at) = find(&self.unread, b"\r\n") {
                break at;
            }
            assert!(self.receive() > 0, "closed in the middle of a line");
        };
        let line: Vec<u8> = self.unread.drain(..end + 2).collect();
        String::from_utf8_lossy(&line[..end]).into_owned()
    }

    /// Reads until the server closes or resets the connection, and returns the bytes received before.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.receive() > 0 {}
        std::mem::take(&mut self.unread)
    }

    /// Asserts that the server closes the connection without sending another byte.
    #[track_caller]
    pub fn assert_closed(&mut self, what: &str) {
        let rest = self.rest();
        assert!(
            rest.is_empty(),
            "{what}: not closed, but {:?}",
            String::from_utf8_lossy(&rest)
        );
    }

    /// Returns true if bytes or the end of the connection arrive within this time.
    pub fn has_something_within(&mut self, time: Duration) -> bool {
        if !self.unread.is_empty() {
            return true;
        }
        self.stream.set_deadline(time).expect("a deadline");
        let mut buffer = [0; 1024];
        let received = read_some(&mut *self.stream, &mut buffer);
        self.stream.set_deadline(DEADLINE).expect("a deadline");
        if let Ok(count) = received {
            self.unread.extend_from_slice(&buffer[..count]);
        }
        received.is_ok()
    }

    /// Receives bytes and returns their number, which is 0 at the end of the connection.
    fn receive(&mut self) -> usize {
        let mut buffer = [0; 64 * 1024];
        match read_some(&mut *self.stream, &mut buffer) {
            Ok(count) => {
                self.unread.extend_from_slice(&buffer[..count]);
                count
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            Err(error) => {
                let unread = String::from_utf8_lossy(&self.unread);
                panic!("no response within {DEADLINE:?}: {error}; received {unread:?}")
            }
        }
    }
}

/// Calls `read` until it is not interrupted. A signal interrupts a read with a timeout even if the process has no
/// handler for it, for example when a stopped process continues.
pub fn read_some(stream: &mut (impl Read + ?Sized), buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Returns a request without a body, with `Host: localhost` unless `fields` contains a Host.
pub fn request(line: &str, fields: &[&str]) -> String {
    let mut text = format!("{line} HTTP/1.1\r\n");
    if !fields
        .iter()
        .any(|field| field.to_ascii_lowercase().starts_with("host:"))
    {
        text.push_str("Host: localhost\r\n");
    }
    for field in fields {
        text.push_str(field);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text
}

pub struct ReceivedResponse {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ReceivedResponse {
    fn parse(head: &str) -> ReceivedResponse {
        let mut lines = head.trim_end_matches("\r\n").split("\r\n");
        let first = lines.next().unwrap_or_default();
        let status = first
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3))
            .and_then(|code| code.parse().ok());
        let fields = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("{line:?} is no field"));
            (name.to_owned(), value.to_owned())
        });
        ReceivedResponse {
            status: status.unwrap_or_else(|| panic!("{first:?} is no status line")),
            fields: fields.collect(),
            body: Vec::new(),
        }
    }

    /// Returns the value of a field. Panics if the response has the field more than once.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} more than once in {self:?}");
        value
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Asserts status and header fields. `Name: value` must be present literally, `Name` with any value, and `!Name`
    /// must be absent.
    #[track_caller]
    pub fn expect(&self, what: &str, status: u16, fields: &[&str]) -> &ReceivedResponse {
        assert_eq!(self.status, status, "{what}: {self:?}");
        for field in fields {
            match (field.strip_prefix('!'), field.split_once(": ")) {
                (Some(name), _) => assert_eq!(self.field(name), None, "{what}"),
                (None, Some((name, value))) => assert_eq!(self.field(name), Some(value), "{what}: {name}"),
                (None, None) => assert!(self.field(field).is_some(), "{what}: no {field} in {self:?}"),
            }
        }
        self
    }
}

impl std::fmt::Debug for ReceivedResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The first bytes are enough to identify the body.
        let start = String::from_utf8_lossy(&self.body[..self.body.len().min(80)]).into_owned();
        write!(
            f,
            "{} {:?}, {} bytes: {start:?}",
            self.status,
            self.fields,
            self.body.len()
        )
    }
}
