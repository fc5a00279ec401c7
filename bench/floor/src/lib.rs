//! One epoll loop on one thread: accept, read, find whole requests, hand them to the program that answers.
//!
//! A lower bound, not a server: no limits, no deadlines, no routing, no clock, and a client that misbehaves is dropped.
//! What remains is the work the kernel and the socket ask of any server, so that a server's own share can be told apart.

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{self, SocketFlags, sockopt};
use std::io;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};

/// What a program does with its connections.
pub trait Responder {
    /// What one connection remembers between events.
    type State: Default;
    /// Whether the loop should report room in the socket's buffer: answers longer than the buffer need it.
    const WAITS_FOR_ROOM: bool;

    /// Finds the whole requests at the front of what has come: heads of HTTP/1, where a program does not speak otherwise.
    fn parse(&mut self, _state: &mut Self::State, unread: &[u8]) -> io::Result<Requests> {
        Requests::heads(unread)
    }

    /// Answers `requests` whole requests that came in one read, and says whether all is sent; an error closes the connection.
    fn respond(&mut self, socket: &OwnedFd, state: &mut Self::State, requests: usize) -> io::Result<bool>;

    /// Goes on with an answer that the socket had no room for, and says whether all is sent now.
    fn resume(&mut self, socket: &OwnedFd, state: &mut Self::State) -> io::Result<bool>;
}

struct Connection<S> {
    socket: OwnedFd,
    /// Bytes of a request that has not come whole yet; empty, and so without memory, nearly always.
    partial: Vec<u8>,
    /// An HTTP/1.0 client (ab) has asked: it takes the end of the connection for the end of the answer.
    last: bool,
    state: S,
}

/// As many bytes as a server reads at once: above any pipeline that the load generators send.
const READ_BYTES: usize = 64 << 10;
/// Events taken per wait: above the number of busy connections in all but the largest row.
const EVENTS: usize = 1024;
/// Connections that may wait to be accepted; the load generators open thousands at once.
pub const BACKLOG: i32 = 4096;
/// Fields httparse may meet in a head; browsers send about fifteen.
const FIELDS: usize = 64;

/// Serves `ports` of 127.0.0.1 for ever.
pub fn serve<A: Responder>(ports: &[u16], mut program: A) -> io::Result<()> {
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut listeners = Vec::new();
    for port in ports {
        let listener = TcpListener::bind(("127.0.0.1", *port))?;
        listener.set_nonblocking(true)?;
        net::listen(&listener, BACKLOG)?;
        let key = listener.as_raw_fd() as u64;
        epoll::add(&poll, &listener, EventData::new_u64(key), EventFlags::IN)?;
        listeners.push((key, listener));
    }
    let mut interest = EventFlags::IN | EventFlags::ET | EventFlags::RDHUP;
    interest.set(EventFlags::OUT, A::WAITS_FOR_ROOM);

    let mut connections: Vec<Option<Connection<A::State>>> = Vec::new();
    let mut input = vec![0; READ_BYTES];
    let mut events = [const { MaybeUninit::uninit() }; EVENTS];
    loop {
        let (ready, _) = epoll::wait(&poll, &mut events, None)?;
        for event in ready {
            let index = event.data.u64();
            if let Some((_, listener)) = listeners.iter().find(|(key, _)| *key == index) {
                accept(listener, &poll, interest, &mut connections);
                continue;
            }
            let Some(slot) = connections.get_mut(index as usize) else {
                continue;
            };
            let Some(connection) = slot else { continue };
            let flags = event.flags;
            if !matches!(step(connection, flags, &mut input, &mut program), Ok(true)) {
                *slot = None;
            }
        }
    }
}

fn accept<S: Default>(
    listener: &TcpListener,
    poll: &OwnedFd,
    interest: EventFlags,
    connections: &mut Vec<Option<Connection<S>>>,
) {
    while let Ok(socket) = net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        let index = socket.as_raw_fd() as usize;
        let _ = sockopt::set_tcp_nodelay(&socket, true);
        if epoll::add(poll, &socket, EventData::new_u64(index as u64), interest).is_err() {
            continue;
        }
        if connections.len() <= index {
            connections.resize_with(index + 1, || None);
        }
        connections[index] = Some(Connection {
            socket,
            partial: Vec::new(),
            last: false,
            state: S::default(),
        });
    }
}

/// Acts on one event; whether the connection goes on.
fn step<A: Responder>(
    connection: &mut Connection<A::State>,
    flags: EventFlags,
    input: &mut [u8],
    program: &mut A,
) -> io::Result<bool> {
    let Connection {
        socket,
        partial,
        last,
        state,
    } = connection;
    if A::WAITS_FOR_ROOM && flags.contains(EventFlags::OUT) && program.resume(socket, state)? && *last {
        return Ok(false);
    }
    if !flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
        return Ok(true);
    }
    loop {
        let length = match rustix::io::read(&*socket, &mut *input) {
            Ok(0) => return Ok(false),
            Ok(length) => length,
            Err(rustix::io::Errno::AGAIN) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        let found = if partial.is_empty() {
            let found = program.parse(state, &input[..length])?;
            partial.extend_from_slice(&input[found.bytes..length]);
            found
        } else {
            partial.extend_from_slice(&input[..length]);
            let found = program.parse(state, partial)?;
            partial.drain(..found.bytes);
            found
        };
        *last |= found.last;
        if found.count > 0 && program.respond(socket, state, found.count)? && *last {
            return Ok(false);
        }
        // Edge-triggered: a full buffer may leave bytes in the socket that no further event would tell of.
        if length < input.len() {
            return Ok(true);
        }
    }
}

/// The whole requests at the front of some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Requests {
    pub count: usize,
    pub bytes: usize,
    /// One of them is of HTTP/1.0, so the connection ends after its answer.
    pub last: bool,
}

impl Requests {
    pub fn heads(bytes: &[u8]) -> io::Result<Self> {
        let mut heads = Self::default();
        while heads.bytes < bytes.len() {
            let mut fields = [httparse::EMPTY_HEADER; FIELDS];
            let mut request = httparse::Request::new(&mut fields);
            match request.parse(&bytes[heads.bytes..]) {
                Ok(httparse::Status::Complete(length)) => {
                    heads.count += 1;
                    heads.bytes += length;
                    heads.last |= request.version == Some(0);
                }
                Ok(httparse::Status::Partial) => break,
                Err(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        Ok(heads)
    }
}

/// The head a real server would send before a body of `length` bytes, with every field that browsers profit from.
pub fn head(content_type: &str, length: u64) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nServer: Floor\r\nDate: Sat, 21 Nov 2026 09:00:00 GMT\r\nContent-Type: {content_type}\r\n\
         Content-Length: {length}\r\nLast-Modified: Sat, 21 Nov 2026 08:00:00 GMT\r\nETag: \"18a9f2c4d3e5b600-{length:x}\"\r\n\
         Accept-Ranges: bytes\r\n\r\n"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_heads_are_counted_and_the_rest_is_left() {
        const ONE: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        const OLD: &str = "GET / HTTP/1.0\r\n\r\n";
        let rows = [
            ("", 0, 0, false),
            ("GET / HT", 0, 0, false),
            (ONE, 1, ONE.len(), false),
            (&ONE.repeat(16), 16, 16 * ONE.len(), false),
            (&format!("{ONE}GET"), 1, ONE.len(), false),
            (OLD, 1, OLD.len(), true),
        ];
        for (text, count, bytes, last) in rows {
            assert_eq!(
                Requests::heads(text.as_bytes()).unwrap(),
                Requests { count, bytes, last },
                "{text:?}"
            );
        }
        assert!(Requests::heads(b"\0\0\0\0").is_err());
    }
}
