//! Frames of a client, and an engine with its events as text.

use rocknet_proto::h3::{Config, ConnectionEvent, ServerConnection, StreamId};
use rocknet_proto::{DecodedHead, Limits};

/// Appends a variable-length integer (RFC 9000 §16). The tests need no value of 2^30 or more, which takes eight bytes.
pub fn integer(value: u64, out: &mut Vec<u8>) {
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        _ => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
    }
}

/// Returns a frame of the type `kind`.
pub fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    integer(kind, &mut out);
    integer(payload.len() as u64, &mut out);
    out.extend_from_slice(payload);
    out
}

/// Appends an integer of QPACK with a prefix of `prefix` bits (RFC 9204 §4.1.1). `pattern` has the bits above the
/// prefix.
fn prefixed(pattern: u8, prefix: u32, value: usize, out: &mut Vec<u8>) {
    let full = (1 << prefix) - 1;
    if value < full {
        return out.push(pattern | value as u8);
    }
    out.push(pattern | full as u8);
    let mut rest = value - full;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Returns a HEADERS frame whose fields are literals.
pub fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    // Prefix of a section without references to the dynamic table.
    let mut section = vec![0, 0];
    for (name, value) in fields {
        // Literal with a literal name (RFC 9204 §4.5.6).
        prefixed(0x20, 3, name.len(), &mut section);
        section.extend_from_slice(name.as_bytes());
        prefixed(0, 7, value.len(), &mut section);
        section.extend_from_slice(value.as_bytes());
    }
    frame(1, &section)
}

/// Fields of `GET https://a/`.
pub const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "a"),
    (":path", "/"),
];

/// Fields of `POST https://a/`, followed by the fields `more`.
pub fn post<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut fields = vec![(":method", "POST")];
    fields.extend_from_slice(&GET[1..]);
    fields.extend_from_slice(more);
    fields
}

/// Time at which connections begin, in milliseconds: a server that has run for an hour.
pub const START: u64 = 3_600_000;

/// Engine that has received the SETTINGS frame of a client and receives the requests of the client.
pub struct Peer {
    pub engine: ServerConnection,
    pub limits: Limits,
    /// Fields of the last head or trailer section that was received.
    pub head: DecodedHead,
    /// Time that is passed to the engine, in milliseconds from any origin.
    pub now: u64,
    /// Number of the next request stream.
    next: u64,
}

impl Peer {
    pub fn new() -> Peer {
        let limits = Limits::default();
        let mut engine = ServerConnection::new(&Config { connect_protocol: true }, &limits, START);
        // The type of the control stream, and empty SETTINGS. Stream 2 is the first unidirectional stream of a client,
        // and does not end here. The time 0 has no effect, because no flood budget is exhausted.
        let control = [&[0][..], &frame(4, &[])].concat();
        engine
            .receive_unidirectional(2, 0, &control, false)
            .expect("valid settings");
        Peer {
            engine,
            limits,
            head: DecodedHead::default(),
            now: START,
            next: 0,
        }
    }

    /// Opens the next request stream.
    pub fn open(&mut self) -> StreamId {
        let stream = StreamId::new(self.next);
        self.next += 4;
        self.engine.open(stream).expect("an open stream");
        stream
    }

    /// Passes bytes of a stream in pieces of `size` bytes; `fin` is true if the stream ends after them. Returns the
    /// events as text, with adjacent pieces of a body joined.
    pub fn receive(&mut self, stream: StreamId, bytes: &[u8], fin: bool, size: usize) -> Vec<String> {
        let (mut events, mut body) = (Vec::new(), Vec::new());
        let mut pieces: Vec<&[u8]> = bytes.chunks(size.max(1)).collect();
        if pieces.is_empty() {
            pieces.push(&[]);
        }
        let last = pieces.len() - 1;
        for (number, piece) in pieces.into_iter().enumerate() {
            let mut rest = piece;
            loop {
                let is_fin = fin && number == last;
                let received = self
                    .engine
                    .receive(&self.limits, self.now, stream, rest, is_fin, &mut self.head);
                let text = match received.event {
                    ConnectionEvent::More => break,
                    ConnectionEvent::Data { start, end, last } => {
                        body.extend_from_slice(&rest[start..end]);
                        last.then(|| "last".to_owned())
                    }
                    ConnectionEvent::Request { end, expects_continue } => {
                        let request = self.head.request();
                        Some(format!(
                            "{} {} end={end} continue={expects_continue}",
                            String::from_utf8_lossy(request.method_name),
                            String::from_utf8_lossy(request.target)
                        ))
                    }
                    ConnectionEvent::Trailers => Some("trailers".to_owned()),
                    other => Some(format!("{other:?}")),
                };
                rest = &rest[received.consumed..];
                if let Some(text) = text {
                    if !body.is_empty() {
                        events.push(format!("body {}", String::from_utf8_lossy(&std::mem::take(&mut body))));
                    }
                    let is_over = text.starts_with("Reset") || text.starts_with("Closed") || text == "Blocked";
                    events.push(text);
                    if is_over {
                        return events;
                    }
                }
            }
        }
        if !body.is_empty() {
            events.push(format!("body {}", String::from_utf8_lossy(&body)));
        }
        events
    }

    /// Opens a stream and passes all its bytes at once; `fin` is true if the stream ends after them. Returns the events
    /// as text.
    pub fn request(&mut self, bytes: &[u8], fin: bool) -> Vec<String> {
        let stream = self.open();
        self.receive(stream, bytes, fin, usize::MAX)
    }
}
