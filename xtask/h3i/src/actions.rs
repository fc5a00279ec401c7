//! Actions of the client: streams, frames and field sections, well-formed or not.

use h3i::actions::h3::{Action, ExpectedStreamSendResult, StreamEvent, StreamEventType, WaitType};
use h3i::actions::h3::{send_headers_frame, send_headers_frame_literal};
use h3i::quiche::h3::Header;
use h3i::quiche::h3::frame::Frame;
use std::time::Duration;

/// Stream of the request that a case is about, and of the request that follows it.
pub const REQUEST: u64 = 0;
pub const PROBE: u64 = 4;
/// Control stream of the client, and more unidirectional streams.
pub const CONTROL: u64 = 2;
pub const SECOND: u64 = 6;
pub const THIRD: u64 = 10;
/// Control stream of the server.
pub const SERVER_CONTROL: u64 = 3;

/// Frame types without a function here (RFC 9114 §7.2, RFC 9218 §7.2).
pub const DATA: u64 = 0x0;
pub const HEADERS: u64 = 0x1;
pub const CANCEL_PUSH: u64 = 0x3;
pub const SETTINGS: u64 = 0x4;
pub const PUSH_PROMISE: u64 = 0x5;
pub const GOAWAY: u64 = 0x7;
pub const MAX_PUSH_ID: u64 = 0xd;
pub const PRIORITY_UPDATE_REQUEST: u64 = 0xf_0700;
pub const PRIORITY_UPDATE_PUSH: u64 = 0xf_0701;

/// Types of frames of HTTP/2, each with its name there: PRIORITY, PING, WINDOW_UPDATE and CONTINUATION.
pub const FRAMES_OF_HTTP2: [(&str, u64); 4] = [
    ("frame 0x02 of HTTP/2", 0x02),
    ("frame 0x06 of HTTP/2", 0x06),
    ("frame 0x08 of HTTP/2", 0x08),
    ("frame 0x09 of HTTP/2", 0x09),
];
/// Reserved types of frames and streams, which have no meaning (RFC 9114 §6.2.3, §7.2.8). They differ in the length of
/// their encoding.
pub const RESERVED: [u64; 3] = [0x21, 0x1f + 0x21, 0x1f * 1_000_000_007 + 0x21];

/// File of the site, and its content.
pub const FILE: &str = "/small.txt";
pub const FILE_CONTENT: &str = "Thirteen byte";
/// Path of the upstream that responds with the length and the SHA-256 of the request body.
pub const DIGEST: &str = "/app/digest";
/// Path of the upstream that responds with the Cookie fields, one per line.
pub const COOKIES: &str = "/app/fields/cookie";

/// Name and value of a field.
pub type Field = (&'static str, &'static str);

/// Returns the head of a request.
pub fn head(method: &'static str, path: &'static str) -> Vec<Field> {
    vec![
        (":method", method),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", path),
    ]
}

/// Returns the head of a GET with more fields.
pub fn get_with(fields: &[Field]) -> Vec<Field> {
    [&head("GET", FILE)[..], fields].concat()
}

/// Returns the head of a GET with a field before its own.
pub fn get_after(field: Field) -> Vec<Field> {
    [&[field][..], &head("GET", FILE)].concat()
}

/// Returns the head of a GET without a field.
pub fn get_without(name: &str) -> Vec<Field> {
    let mut fields = head("GET", FILE);
    fields.retain(|(other, _)| *other != name);
    fields
}

/// Returns the head of a GET in which a field has another value.
pub fn get_replaced(name: &str, value: &'static str) -> Vec<Field> {
    let replace = |(other, old): Field| (other, if other == name { value } else { old });
    head("GET", FILE).into_iter().map(replace).collect()
}

fn fields(fields: &[Field]) -> Vec<Header> {
    let header = |(name, value): &Field| Header::new(name.as_bytes(), value.as_bytes());
    fields.iter().map(header).collect()
}

/// Sends a HEADERS frame on the request stream. The field section contains the bytes unchanged, even if they are
/// invalid.
pub fn headers(section: &[Field]) -> Action {
    send_headers_frame_literal(REQUEST, false, fields(section))
}

/// Sends a HEADERS frame that ends the request stream.
pub fn last_headers(section: &[Field]) -> Action {
    send_headers_frame_literal(REQUEST, true, fields(section))
}

/// Sends a GET, encoded as quiche's client does.
pub fn get(stream: u64) -> Action {
    send_headers_frame(stream, true, fields(&head("GET", FILE)))
}

/// Sends a DATA frame on the request stream.
pub fn data(text: &str) -> Action {
    frame(REQUEST, DATA, text.as_bytes())
}

/// Sends a DATA frame that ends the request stream.
pub fn last_data(text: &str) -> Action {
    last_frame(REQUEST, DATA, text.as_bytes())
}

/// Sends a frame of any type with any payload.
pub fn frame(stream: u64, kind: u64, payload: &[u8]) -> Action {
    send(stream, kind, payload, false)
}

/// Sends a frame that ends its stream.
pub fn last_frame(stream: u64, kind: u64, payload: &[u8]) -> Action {
    send(stream, kind, payload, true)
}

fn send(stream: u64, kind: u64, payload: &[u8], fin: bool) -> Action {
    Action::SendFrame {
        stream_id: stream,
        fin_stream: fin,
        frame: Frame::Unknown {
            raw_type: kind,
            payload: payload.to_vec(),
        },
        expected_result: ExpectedStreamSendResult::Ok,
    }
}

/// Sends a frame whose payload is one integer, below 64.
pub fn integer(stream: u64, kind: u64, value: u8) -> Action {
    frame(stream, kind, &[value])
}

/// Sends SETTINGS on the control stream. Identifiers and values are below 64.
pub fn settings(pairs: &[[u8; 2]]) -> Action {
    frame(CONTROL, SETTINGS, pairs.as_flattened())
}

/// Opens a unidirectional stream.
pub fn open(stream: u64, kind: u64) -> Action {
    Action::OpenUniStream {
        stream_id: stream,
        fin_stream: false,
        stream_type: kind,
        expected_result: ExpectedStreamSendResult::Ok,
    }
}

/// Sends bytes.
pub fn bytes(stream: u64, bytes: &[u8]) -> Action {
    stream_bytes(stream, bytes, false)
}

/// Sends bytes and ends the stream.
pub fn last_bytes(stream: u64, bytes: &[u8]) -> Action {
    stream_bytes(stream, bytes, true)
}

fn stream_bytes(stream: u64, bytes: &[u8], fin: bool) -> Action {
    Action::StreamBytes {
        stream_id: stream,
        fin_stream: fin,
        bytes: bytes.to_vec(),
        expected_result: ExpectedStreamSendResult::Ok,
    }
}

/// Waits until a stream has ended or was reset.
pub fn wait_for_end(stream: u64) -> Action {
    let event = StreamEvent {
        stream_id: stream,
        event_type: StreamEventType::Finished,
    };
    WaitType::StreamEvent(event).into()
}

/// Waits, so that the actions after it do not share a packet with those before it.
pub fn pause() -> Action {
    WaitType::WaitDuration(PAUSE).into()
}

/// Time after which earlier actions have been sent.
const PAUSE: Duration = Duration::from_millis(20);
