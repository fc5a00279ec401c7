//! One epoll loop on one thread that accepts, reads, finds complete requests, and passes them to a responder.
//!
//! The loop is a lower bound instead of a server: it has no limits, deadlines, routing or clock, and drops a client
//! that misbehaves. The remaining work is the same for any server, because the kernel and the socket require it. The
//! difference between a server and the floor is therefore the server's own cost.

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{self, SocketFlags, sockopt};
use std::io;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};

/// Parses the requests and writes the responses of one floor program.
pub trait Responder {
    /// State of one connection between events.
    type State: Default;
    /// True if the loop must report when a socket becomes writable. Responses larger than the socket buffer require
    /// this.
    const WAITS_FOR_ROOM: bool;

    /// Finds the complete requests at the start of `unread`: HTTP/1 heads, unless the program has another protocol.
    fn parse(&mut self, _state: &mut Self::State, unread: &[u8]) -> io::Result<Requests> {
        Requests::heads(unread)
    }

    /// Sends `requests` responses for the requests of one read. Returns true if all bytes are sent; an error closes the
    /// connection.
    fn respond(&mut self, socket: &OwnedFd, state: &mut Self::State, requests: usize) -> io::Result<bool>;

    /// Continues to send to a socket that is writable again. Returns true if all bytes are sent now.
    fn resume(&mut self, socket: &OwnedFd, state: &mut Self::State) -> io::Result<bool>;
}

struct Connection<S> {
    socket: OwnedFd,
    /// Bytes of an incomplete request. The vector is nearly always empty, and then has no allocation.
    partial: Vec<u8>,
    /// True after an HTTP/1.0 request, such as a request of the load generator ab. The connection is then closed after
    /// the response, because the client reads until the end of the connection.
    last: bool,
    state: S,
}

/// Maximum bytes per read, the same as in a server. Every pipeline of the load generators is shorter.
const READ_BYTES: usize = 64 << 10;
/// Maximum number of events per wait. Only the largest benchmarks have more busy connections.
const EVENTS: usize = 1024;
/// Length of the accept queue; the load generators open thousands of connections at once.
pub const BACKLOG: i32 = 4096;
/// Maximum header fields for httparse; browsers send about fifteen.
const FIELDS: usize = 64;

/// Serves `ports` of 127.0.0.1; returns only on an error.
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

/// Handles one event; returns true if the connection stays open.
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
        // Epoll is edge-triggered: if the read filled the buffer, the socket may have more bytes, but no event
        // reports them.
        if length < input.len() {
            return Ok(true);
        }
    }
}

/// Number and length of the complete requests at the start of a buffer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Requests {
    pub count: usize,
    pub bytes: usize,
    /// True if one of the requests has version HTTP/1.0, so that the connection is closed after the response.
    pub last: bool,
}

impl Requests {
    /// Finds the complete HTTP/1 heads at the start of `bytes`.
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

/// Returns the head that a real server would send before a body of `length` bytes, with all fields that browsers use.
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
    fn complete_heads_are_counted_and_a_partial_head_is_not_consumed() {
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
