//! Writes the events of an HTTP/2 connection as lines of text, together with the frames that the connection sends.

use crate::fields::Fields;
use crate::h2::frame::{ACK, END_STREAM, FrameHeader, FrameType, HEADER_SIZE, read_u32};
use crate::h2::{
    BodyDelivery, Config, ConnectionEvent, DecodedHead, ErrorCode, PreparedHead, ResponseValidator, ServerConnection,
    StreamId,
};
use crate::hpack::{Decoder, FieldSink, NameClass};
use crate::limits::Limits;
use crate::status::Status;

/// Time at which the server responds to a request. A refused request gets the status of the refusal at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum H2ResponseTiming {
    /// After the request head, with a prepared response head.
    AfterHead,
    /// After the request body, with response fields that may enter the dynamic table.
    AfterBody,
    /// Never, so that streams stay open.
    Never,
}

/// Size of a response body in bytes, unless [`BIG`] applies.
const SMALL: u64 = 5;
/// Size of a response body in bytes, for paths that begin with `/big`. It exceeds the initial flow-control window of
/// 65,535 bytes, so it is not sent at once. A response that is sent after a request body is always small.
const BIG: u64 = 100_000;
/// Value of Date in prepared heads.
const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

/// Passes the bytes of an upstream, split into `pieces`, to the response validator. Returns a line for each head or
/// trailer section that the validator rejects, and `out of sync` if the validator cannot continue.
pub(super) fn validated(pieces: &[&[u8]]) -> Vec<String> {
    let (mut validator, mut lines) = (ResponseValidator::default(), Vec::new());
    for piece in pieces {
        let read = validator.read(piece, |stream| lines.push(format!("malformed {stream}")));
        if read.is_err() {
            lines.push("out of sync".to_owned());
            break;
        }
    }
    lines
}

/// Returns the events of a server that receives the bytes of a client, split into `pieces`, one line each. The state of
/// the connection follows (`closed`, `idle` or `more`), and then a line for each frame that the server sent.
///
/// The frame lines omit the server's SETTINGS. They also omit WINDOW_UPDATE, because the number of these frames depends
/// on the split of the request body. Queued response bodies are sent at the end, so that the lines do not depend on the
/// split.
pub fn h2_transcript(pieces: &[&[u8]], limits: &Limits, config: &Config, timing: H2ResponseTiming) -> Vec<String> {
    let mut caller = Caller {
        connection: ServerConnection::new(config),
        head: DecodedHead::default(),
        out: Vec::new(),
        lines: Vec::new(),
        in_data: None,
        timing,
    };
    caller.connection.write_preface(limits, &mut caller.out);
    let mut unread = Vec::new();
    for piece in pieces {
        unread.extend_from_slice(piece);
        loop {
            let Caller {
                connection, head, out, ..
            } = &mut caller;
            // The time is always 0.
            let received = connection.receive(limits, 0, &unread, head, out);
            assert!(received.consumed <= unread.len(), "more consumed than there is");
            let continues = caller.handle(&received.event, &unread);
            unread.drain(..received.consumed);
            if !continues {
                break;
            }
        }
        if caller.connection.is_closed() {
            break;
        }
        // The limit is a frame of maximum size that lacks its last byte.
        assert!(
            unread.len() < HEADER_SIZE + (1 << 14),
            "only an incomplete frame is buffered"
        );
    }
    caller.send_queued();
    assert!(
        caller.connection.memory() < 256 * 1024,
        "the memory of a connection is bounded"
    );
    let state = if caller.connection.is_closed() {
        "closed"
    } else if caller.connection.is_idle() && unread.is_empty() {
        "idle"
    } else {
        "more"
    };
    caller.line(state.to_owned());
    caller.lines.extend(frame_lines(&caller.out));
    caller.lines
}

/// Caller of the connection: responds to its requests and records its events.
struct Caller {
    connection: ServerConnection,
    head: DecodedHead,
    /// All frames that the connection has written.
    out: Vec<u8>,
    lines: Vec<String>,
    /// Stream of the data event in the last line.
    in_data: Option<u32>,
    timing: H2ResponseTiming,
}

impl Caller {
    fn line(&mut self, line: String) {
        self.lines.push(line);
        self.in_data = None;
    }

    /// Records the event and responds; returns false if no event follows.
    fn handle(&mut self, event: &ConnectionEvent, unread: &[u8]) -> bool {
        match *event {
            ConnectionEvent::More => return false,
            ConnectionEvent::Request {
                stream,
                end,
                expects_continue,
            } => {
                let request = self.head.request();
                let mut line = format!("request {} {}", stream.number(), text(request.method_name));
                line.push_str(&format!(" {}", text(request.path)));
                if let Some(query) = request.query {
                    line.push_str(&format!(" ?{}", text(query)));
                }
                line.push_str(&format!(" @{}", text(request.authority)));
                if let Some(protocol) = self.head.protocol() {
                    line.push_str(&format!(" :{}", text(protocol)));
                }
                line.push_str(&fields(request.fields));
                line.push_str(if end { " end" } else { "" });
                line.push_str(if expects_continue { " expects" } else { "" });
                let is_big = request.path.starts_with(b"/big");
                self.line(line);
                if end || self.timing == H2ResponseTiming::AfterHead {
                    self.respond(stream, is_big);
                }
            }
            ConnectionEvent::Refused { stream, refusal, .. } => {
                self.line(format!("refused {} {refusal:?}", stream.number()));
                let Self { connection, out, .. } = self;
                // Content-Length is 0, there are no fields, and the head ends the response.
                let sent = connection.respond(stream, refusal.status(), Some(0), [], true, out);
                assert!(sent.is_ok(), "a refusal gets a response");
            }
            ConnectionEvent::Data {
                stream,
                start,
                end,
                last,
            } => {
                let data = &unread[start..end];
                assert!(!data.is_empty() || last, "a data event without bytes");
                if self.in_data != Some(stream.number()) {
                    self.line(format!("data {} ", stream.number()));
                    self.in_data = Some(stream.number());
                }
                if let Some(line) = self.lines.last_mut() {
                    line.push_str(&text(data));
                }
                if last {
                    self.line(format!("end {}", stream.number()));
                    self.respond(stream, false);
                }
            }
            ConnectionEvent::Trailers { stream } => {
                let trailers = fields(self.head.index().trailers.view(self.head.bytes()));
                self.line(format!("trailers {}{trailers}", stream.number()));
                self.respond(stream, false);
            }
            ConnectionEvent::Reset { stream, code, error } => {
                let error = error.map_or("by client", |error| error.reason());
                self.line(format!("reset {} {} {error}", stream.number(), code.as_str()));
                assert!(!self.connection.may_respond(stream));
            }
            ConnectionEvent::Rejected { error } => self.line(format!("rejected {error:?}")),
            ConnectionEvent::GoAway { code } => self.line(format!("client goes {}", code.as_str())),
            ConnectionEvent::Pong { opaque } => self.line(format!("pong {}", text(&opaque))),
            ConnectionEvent::Closed { error } => {
                self.line(format!("error {error:?}"));
                return false;
            }
        }
        true
    }

    /// Responds with a body of [`BIG`] or [`SMALL`] bytes. Does nothing if the timing is `Never`, if the response has
    /// ended, or if the stream no longer exists.
    fn respond(&mut self, stream: StreamId, is_big: bool) {
        let size = if is_big { BIG } else { SMALL };
        if !self.connection.may_respond(stream) || self.timing == H2ResponseTiming::Never {
            return;
        }
        let Self { connection, out, .. } = self;
        // All received bytes of the request body count as consumed.
        connection.release(stream, u32::MAX, out);
        if self.timing == H2ResponseTiming::AfterHead {
            let head = PreparedHead::new(Status::OK, Some(size), []).expect("a head without fields is valid");
            let delivery = connection.respond_prepared(stream, &head, DATE, size, out);
            if delivery.expect("the stream may be responded to") == BodyDelivery::Now {
                out.resize(out.len() + size as usize, b'x');
            }
        } else {
            let fields = [(b"X-A".as_slice(), b"b".as_slice())];
            // The head has no Content-Length and does not end the response; the queued body ends it.
            let begun = connection.respond(stream, Status::OK, None, fields, false, out);
            assert_eq!(begun, Ok(()));
            assert_eq!(connection.queue_body(stream, size, true, out), Ok(()));
        }
    }

    /// Sends the queued response bodies as far as the flow-control windows allow, in DATA frames of at most 30,000
    /// bytes.
    fn send_queued(&mut self) {
        let Self { connection, out, .. } = self;
        while let Some(grant) = connection.next_data(30_000, out) {
            assert!(grant.length > 0 && grant.length <= 30_000);
            out.resize(out.len() + grant.length as usize, b'x');
        }
        assert!(!connection.may_send());
    }
}

/// Returns the sent frames, one line each.
fn frame_lines(mut sent: &[u8]) -> Vec<String> {
    let mut decoder = Decoder::new(4096);
    let mut lines = Vec::new();
    while let Some(header) = FrameHeader::parse(sent) {
        let frame_end = HEADER_SIZE + header.length as usize;
        let payload = sent.get(HEADER_SIZE..frame_end).expect("only whole frames are sent");
        sent = &sent[frame_end..];
        let (stream, end) = (header.stream, if header.has(END_STREAM) { " end" } else { "" });
        lines.push(match header.kind {
            FrameType::Data => {
                assert!(
                    payload.iter().all(|&byte| byte == b'x'),
                    "a data frame contains only body bytes"
                );
                format!("> data {stream} {}{end}", payload.len())
            }
            FrameType::Headers => {
                let mut found = HeadLine::default();
                assert_eq!(
                    decoder.decode(payload, &mut found),
                    Ok(()),
                    "the decoder accepts the encoder's output"
                );
                format!("> head {stream}{}{end}", found.line)
            }
            FrameType::RstStream => {
                format!("> reset {stream} {}", ErrorCode::from_wire(read_u32(payload)).as_str())
            }
            FrameType::GoAway => {
                let code = ErrorCode::from_wire(read_u32(&payload[4..]));
                format!("> go away {} {}", read_u32(payload), code.as_str())
            }
            FrameType::Settings if header.has(ACK) => "> settings ack".to_owned(),
            FrameType::Ping if header.has(ACK) => format!("> pong {}", text(payload)),
            FrameType::Ping => format!("> ping {}", text(payload)),
            FrameType::Settings | FrameType::WindowUpdate => continue,
            kind => panic!("the server sent an unexpected frame: {kind:?}"),
        });
    }
    assert!(sent.is_empty(), "only whole frames are sent");
    lines
}

/// Collects the fields of a head, except Date, as ` NAME=VALUE` one after the other.
#[derive(Default)]
struct HeadLine {
    buffer: Vec<u8>,
    line: String,
}

impl FieldSink for HeadLine {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn field(&mut self, _: NameClass, _: bool, name_start: usize, value_start: usize) {
        let name = text(&self.buffer[name_start..value_start]);
        let value = text(&self.buffer[value_start..]);
        if name != "date" {
            self.line.push_str(&format!(" {name}={value}"));
        }
        self.buffer.truncate(name_start);
    }

    fn is_full(&self) -> bool {
        false
    }
}

/// Returns ` NAME=VALUE` for each field, one after the other.
fn fields(fields: Fields<'_>) -> String {
    fields
        .iter()
        .map(|(name, value)| format!(" {}={}", text(name), text(value)))
        .collect()
}

/// Returns bytes as text, in which bytes other than printable ASCII are escaped.
fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// Turns arbitrary bytes into mostly valid frames: one byte selects the type of a frame, and the next bytes its stream,
/// flags and payload.
pub(super) fn frames_from_bytes(data: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    let mut bytes = data.iter().copied();
    let mut next = || bytes.next();
    while let Some(choice) = next() {
        let stream = u32::from(next().unwrap_or(1) % 12);
        // 5 is END_STREAM and END_HEADERS.
        let flags = next().unwrap_or(5);
        let payload: Vec<u8> = match choice % 12 {
            // A head for `GET http://a/`: three entries of the static table, and `:authority` with a literal value.
            // Each flag adds a part: a literal field, Content-Length, an indexed field, a priority or padding.
            0..=2 => {
                let mut block = vec![0x82, 0x86, 0x84, 0x41, 1, b'a'];
                if flags & 0x10 != 0 {
                    block.extend_from_slice(&[0x40, 1, b'n', 1, next().unwrap_or(b'v')]);
                }
                if flags & 0x40 != 0 {
                    // Content-Length has index 28. Its prefix holds the maximum of four bits, 15, and the next byte the
                    // remainder.
                    block.extend_from_slice(&[0x0f, 28 - 15, 1, b'0' + next().unwrap_or(0) % 10]);
                }
                if flags & 0x80 != 0 {
                    // 62 is the index of the newest entry of the dynamic table.
                    block.push(0x80 | next().unwrap_or(62));
                }
                if flags & 0x20 != 0 {
                    block.splice(0..0, [0, 0, 0, next().unwrap_or(0), 0]);
                }
                if flags & 0x08 != 0 {
                    block.insert(0, 1);
                    block.push(0);
                }
                block
            }
            // DATA, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, PRIORITY_UPDATE, PRIORITY and an unknown type, in this
            // order.
            3 | 4 => vec![b'd'; usize::from(next().unwrap_or(0) % 20)],
            5 => vec![0, 0, 0, next().unwrap_or(0)],
            6 => vec![
                0,
                next().unwrap_or(0) % 10,
                0,
                0,
                next().unwrap_or(0),
                next().unwrap_or(0),
            ],
            7 => vec![next().unwrap_or(0); 8],
            8 => vec![0, 0, next().unwrap_or(0), next().unwrap_or(0)],
            9 => vec![0, 0, 0, next().unwrap_or(0), b'u', b'=', b'0' + next().unwrap_or(0) % 9],
            10 => vec![0, 0, 0, next().unwrap_or(0), 0],
            _ => (0..next().unwrap_or(0) % 8).map(|_| next().unwrap_or(0)).collect(),
        };
        // Frame types: 0 DATA, 1 HEADERS, 2 PRIORITY, 3 RST_STREAM, 4 SETTINGS, 6 PING, 8 WINDOW_UPDATE,
        // 16 PRIORITY_UPDATE. Any other choice is 11 modulo 12, an unknown type: PUSH_PROMISE (5), GOAWAY (7) and
        // CONTINUATION (9) are not generated.
        let (kind, stream) = match choice % 12 {
            0..=2 => (1, stream | 1),
            3 | 4 => (0, stream),
            5 => (3, stream),
            6 => (4, 0),
            7 => (6, 0),
            8 => (8, stream),
            9 => (16, 0),
            10 => (2, stream),
            _ => (choice, stream),
        };
        frames.extend_from_slice(&[0, 0, payload.len() as u8, kind, flags]);
        frames.extend_from_slice(&stream.to_be_bytes());
        frames.extend_from_slice(&payload);
    }
    frames
}
