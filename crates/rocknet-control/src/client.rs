//! Client of a running server, over its control socket or its TCP address.

mod address;
mod error;
mod listener;
mod unix_socket;

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rocknet_proto::h1::{ClientConnection, ClientEvent, Length, RequestLine};
use rocknet_proto::{Field, Limits, ResponseIndex};
use serde::de::DeserializeOwned;

use crate::api::{ApiError, JSON, Request, TAKEN_OVER};
use address::ControlStream;

pub use address::ServerAddress;
pub use error::ClientError;
pub use unix_socket::Peer;

/// Maximum size of a reply in bytes: the sites of a server with 50,000 of them.
const MAX_REPLY: usize = 32 << 20;

/// Maximum wait for the next bytes of a stream. The server sends a comment after 15 seconds without an event.
const STREAM_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of times that a request is sent. A process that ends after an upgrade closes connections that it has
/// accepted, or replies with [`TAKEN_OVER`]; its successor serves the next connection.
const MAX_ATTEMPTS: u32 = 5;

/// Pause before a request is repeated after [`TAKEN_OVER`]. The old process stops accepting connections meanwhile.
const TAKEN_OVER_PAUSE: Duration = Duration::from_millis(100);

/// Connection to a server.
#[derive(Debug)]
pub struct Client {
    server: ServerAddress,
    stream: ControlStream,
    /// HTTP/1 state of the connection, without input and output.
    engine: ClientConnection,
    /// Bytes that follow the last reply.
    unread: Vec<u8>,
    /// True if bytes of the reply to the last request were received.
    has_reply: bool,
}

impl Client {
    /// Maximum wait for the next bytes of a reply, longer than the server's own timeout for a handler. A reload of a
    /// large configuration takes seconds.
    pub const REPLY_TIMEOUT: Duration = Duration::from_secs(90);

    /// Connects to the control socket of a server.
    ///
    /// # Errors
    ///
    /// [`ClientError::NotRunning`], [`ClientError::NoAccess`], or an error of the operating system.
    pub fn connect(socket: &Path) -> Result<Client, ClientError> {
        Client::connect_with_timeout(socket, Client::REPLY_TIMEOUT)
    }

    /// Connects like [`Client::connect`]. `timeout`: maximum time that [`Client::call`] waits for the next bytes of a
    /// reply, or for room in the socket for the bytes of a request. It also limits the wait for the connection.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`Client::connect`], or with an error of the operating system if the timeout is
    /// zero.
    pub fn connect_with_timeout(socket: &Path, timeout: Duration) -> Result<Client, ClientError> {
        Client::open(&socket.into(), timeout)
    }

    /// Connects to the control socket or the TCP address of a server. The server verifies the token with each request.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`Client::connect`], or with [`ClientError::NotLocal`] or [`ClientError::Foreign`].
    pub fn connect_to(server: &ServerAddress) -> Result<Client, ClientError> {
        Client::open(server, Client::REPLY_TIMEOUT)
    }

    /// Connects like [`Client::connect_to`], with the timeout of [`Client::connect_with_timeout`].
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`Client::connect_to`], or with an error of the operating system if the timeout is
    /// zero.
    pub fn open(server: &ServerAddress, timeout: Duration) -> Result<Client, ClientError> {
        let stream = ControlStream::connect(server, timeout)?;
        let client = Client {
            server: server.clone(),
            stream,
            engine: ClientConnection::new(),
            unread: Vec::new(),
            has_reply: false,
        };
        client.set_timeout(timeout)?;
        Ok(client)
    }

    /// Returns true if neither this account nor root listens at the control socket. Returns false if the process that
    /// listens is not known, and for a TCP address, which was verified when the client connected.
    pub fn is_foreign(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        self.peer().is_some_and(|peer| !listener::is_trusted(peer.uid, own))
    }

    /// Returns the process that listens at the control socket; `None` for a TCP address, or if the operating system
    /// returns an error.
    pub fn peer(&self) -> Option<Peer> {
        self.stream.peer()
    }

    /// Changes the maximum time that [`Client::call`] waits, see [`Client::connect_with_timeout`].
    ///
    /// # Errors
    ///
    /// Returns an error of the operating system, for example if the timeout is zero.
    pub fn set_timeout(&self, timeout: Duration) -> Result<(), ClientError> {
        self.stream.set_read_timeout(Some(timeout)).map_err(ClientError::Io)?;
        self.stream.set_write_timeout(Some(timeout)).map_err(ClientError::Io)
    }

    /// Sends a request and receives its reply. `T` is the reply type that the documentation of [`Request`] names.
    ///
    /// # Errors
    ///
    /// Returns [`ClientError::Api`] if the server has rejected the request or failed to carry it out. Returns another
    /// error if the connection fails or the reply is invalid; the connection is then unusable.
    pub fn call<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, ClientError> {
        let reply = self.reply(request)?;
        serde_json::from_slice(&reply).map_err(|error| ClientError::Invalid(error.to_string()))
    }

    /// Sends a request whose reply is a text, such as [`Request::Metrics`], and returns the text.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`Client::call`].
    pub fn text(&mut self, request: &Request) -> Result<String, ClientError> {
        let reply = self.reply(request)?;
        String::from_utf8(reply).map_err(|error| ClientError::Invalid(error.to_string()))
    }

    /// Sends a request, and returns the body of its reply.
    fn reply(&mut self, request: &Request) -> Result<Vec<u8>, ClientError> {
        let mut reply = Vec::new();
        let status = self.exchange(request, &mut |data| {
            reply.extend_from_slice(data);
            if reply.len() > MAX_REPLY {
                return Err(ClientError::Invalid("the reply is too large".to_owned()));
            }
            Ok(())
        })?;
        match is_successful(status) {
            true => Ok(reply),
            false => Err(rejected(status, &reply)),
        }
    }

    /// Sends a request whose reply is a stream of server-sent events, and passes the data of each event to `take` until
    /// the stream ends. Fails with a timeout if nothing arrives for a minute: the server sends a comment every 15
    /// seconds, so a connection without bytes is dead.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`Client::call`], or with the error of `take`.
    pub fn stream<T: DeserializeOwned>(
        &mut self,
        request: &Request,
        take: impl FnMut(T) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        self.stream_while(request, || true, take)
    }

    /// Receives a stream like [`Client::stream`], until `is_wanted` returns false. This function is called when bytes
    /// arrive, at the latest with the next comment.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`Client::stream`], or with [`ClientError::Invalid`] if the stream is not wanted.
    pub fn stream_while<T: DeserializeOwned>(
        &mut self,
        request: &Request,
        is_wanted: impl Fn() -> bool,
        mut take: impl FnMut(T) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        self.stream
            .set_read_timeout(Some(STREAM_TIMEOUT))
            .map_err(ClientError::Io)?;
        let mut received = Vec::new();
        let status = self.exchange(request, &mut |data| {
            if !is_wanted() {
                return Err(ClientError::Invalid("the stream is no longer wanted".to_owned()));
            }
            received.extend_from_slice(data);
            while let Some(end) = received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = received.drain(..=end).collect();
                if let Some(event) = line.strip_prefix(b"data: ") {
                    let event = serde_json::from_slice(event);
                    take(event.map_err(|error| ClientError::Invalid(error.to_string()))?)?;
                }
            }
            if received.len() > MAX_REPLY {
                return Err(ClientError::Invalid("an event is too large".to_owned()));
            }
            Ok(())
        })?;
        if is_successful(status) {
            return Ok(());
        }
        Err(rejected(status, &received))
    }

    /// Sends a request, and passes the bytes of the reply's body to `take`. Returns the status. If the server closes
    /// the connection without having read the request, or another process has taken over, connects again and repeats
    /// the request. Makes at most [`MAX_ATTEMPTS`] attempts.
    fn exchange(&mut self, request: &Request, take: &mut Take<'_>) -> Result<u16, ClientError> {
        for _ in 1..MAX_ATTEMPTS {
            match self.attempt(request, take) {
                Err(ClientError::Io(error)) if !self.has_reply && is_unread(&error) => {}
                Ok(TAKEN_OVER) => thread::sleep(TAKEN_OVER_PAUSE),
                result => return result,
            }
            self.reconnect()?;
        }
        self.attempt(request, take)
    }

    /// Connects again, with the timeouts of the present connection.
    fn reconnect(&mut self) -> Result<(), ClientError> {
        let (read, write) = self.stream.timeouts().map_err(ClientError::Io)?;
        *self = Client::open(&self.server, write.unwrap_or(Client::REPLY_TIMEOUT))?;
        self.stream.set_read_timeout(read).map_err(ClientError::Io)?;
        self.stream.set_write_timeout(write).map_err(ClientError::Io)
    }

    /// Sends a request once and receives the reply, like [`Client::exchange`]. The body of a reply with [`TAKEN_OVER`]
    /// is not passed to `take`.
    fn attempt(&mut self, request: &Request, take: &mut Take<'_>) -> Result<u16, ClientError> {
        self.has_reply = false;
        let (endpoint, body) = (request.endpoint(), request.body());
        let target = match request.query() {
            Some(query) => format!("{}?{query}", endpoint.path),
            None => endpoint.path.to_owned(),
        };
        let line = RequestLine {
            method: endpoint.method.name().as_bytes(),
            target: target.as_bytes(),
            host: b"localhost",
            length: body
                .as_ref()
                .map_or(Length::None, |body| Length::Exact(body.len() as u64)),
            upgrade: None,
            close: false,
        };
        let invalid = |error: &dyn fmt::Display| ClientError::Invalid(error.to_string());
        let mut out = Vec::new();
        let content_type = body.as_ref().map(|_| Field::new(b"Content-Type", JSON.as_bytes()));
        let bearer = self.server.token().map(|token| format!("Bearer {token}"));
        let authorization = bearer
            .as_ref()
            .map(|bearer| Field::new(b"Authorization", bearer.as_bytes()));
        self.engine
            .encode_request(&mut out, &line, content_type.into_iter().chain(authorization))
            .map_err(|error| invalid(&error))?;
        if let Some(body) = &body {
            self.engine
                .encode_data(body.as_bytes(), &mut out)
                .map_err(|error| invalid(&error))?;
            self.engine.finish([], &mut out).map_err(|error| invalid(&error))?;
        }
        self.stream.write_all(&out).map_err(ClientError::of_sending)?;
        self.receive(take)
    }

    /// Receives a reply, and passes the bytes of its body to `take`. Returns the status.
    fn receive(&mut self, take: &mut Take<'_>) -> Result<u16, ClientError> {
        let (limits, mut index) = (Limits::default(), ResponseIndex::default());
        let mut status = 0;
        loop {
            let event = self
                .engine
                .receive(&limits, &self.unread, &mut index)
                .map_err(|error| ClientError::Invalid(error.reason().to_owned()))?;
            match event {
                ClientEvent::Interim { consumed } => drop(self.unread.drain(..consumed)),
                ClientEvent::Response {
                    consumed,
                    body: framing,
                } => {
                    self.unread.drain(..consumed);
                    status = index.status.code();
                    if framing == rocknet_proto::h1::ResponseBodyFraming::None {
                        return Ok(status);
                    }
                }
                ClientEvent::Data { start, end } => {
                    if status != TAKEN_OVER {
                        take(&self.unread[start..end])?;
                    }
                    self.unread.drain(..end);
                }
                ClientEvent::End { consumed } => {
                    self.unread.drain(..consumed);
                    return Ok(status);
                }
                // Neither should occur: no request contains `Upgrade`, and `Blocked` means that no reply is expected.
                ClientEvent::Switched { .. } | ClientEvent::Blocked => {
                    return Err(ClientError::Invalid("the server has switched protocols".to_owned()));
                }
                ClientEvent::More { consumed } => {
                    self.unread.drain(..consumed);
                    let mut buffer = [0; 16 * 1024];
                    match self.stream.read(&mut buffer) {
                        // `Ok(true)`: the reply has no length, so the end of the connection ends it.
                        Ok(0) if self.engine.closed() == Ok(true) => return Ok(status),
                        Ok(0) => return Err(ClientError::Io(io::ErrorKind::UnexpectedEof.into())),
                        Ok(count) => {
                            self.has_reply = true;
                            self.unread.extend_from_slice(&buffer[..count]);
                        }
                        // A stop and continuation of this process (SIGSTOP, SIGCONT) interrupts a read with a timeout.
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(ClientError::Io(error)),
                    }
                }
            }
        }
    }
}

/// Function that receives the body of a reply in pieces.
type Take<'t> = dyn FnMut(&[u8]) -> Result<(), ClientError> + 't;

/// Returns true for the error of a connection that the server closed before it had read all bytes.
fn is_unread(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

fn is_successful(status: u16) -> bool {
    (200..300).contains(&status)
}

/// Returns the error in the body of a reply, or an error with only the status if the body has none.
fn rejected(status: u16, body: &[u8]) -> ClientError {
    if status == TAKEN_OVER {
        return ClientError::Api(ApiError::taken_over());
    }
    let error = serde_json::from_slice(body).unwrap_or_else(|_| ApiError::new(status, format!("status {status}")));
    ClientError::Api(ApiError { status, ..error })
}

#[cfg(test)]
mod tests;
