//! Writes and parses raw HTTP/2 frames, for test clients that violate the protocol.

/// First bytes of each HTTP/2 connection that a client sends (RFC 9113 §3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Types of frames (RFC 9113 §6).
pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

// Flags of frames.
pub const END_STREAM: u8 = 0x1;
pub const ACK: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;

// Identifiers of settings (RFC 9113 §6.5.2).
pub const INITIAL_WINDOW_SIZE: u16 = 4;
pub const ENABLE_PUSH: u16 = 2;

/// Largest flow-control window.
pub const WINDOW_MAX: u32 = (1 << 31) - 1;
/// Initial flow-control window of a connection in bytes.
const WINDOW: u32 = 65_535;

/// Returns a frame. Stream 0 is the connection.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Encodes a string without Huffman coding (RFC 7541 §5.2).
fn string(text: &[u8], out: &mut Vec<u8>) {
    match text.len().checked_sub(127) {
        None => out.push(text.len() as u8),
        Some(mut rest) => {
            out.push(127);
            while rest >= 128 {
                out.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            out.push(rest as u8);
        }
    }
    out.extend_from_slice(text);
}

/// Encodes a field block with literals only, none of which is added to the dynamic table.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        string(name.as_bytes(), &mut block);
        string(value.as_bytes(), &mut block);
    }
    block
}

/// Returns the HEADERS frame of a request. With `end` the request has no body.
pub fn request(stream: u32, method: &str, path: &str, fields: &[(&str, &str)], end: bool) -> Vec<u8> {
    let pseudo = [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "h"),
    ];
    let flags = END_HEADERS | if end { END_STREAM } else { 0 };
    frame(HEADERS, flags, stream, block(&[&pseudo, fields].concat()))
}

pub fn get(stream: u32, path: &str) -> Vec<u8> {
    request(stream, "GET", path, &[], true)
}

/// Returns the HEADERS frame of a POST request whose body follows later.
pub fn post(stream: u32, path: &str) -> Vec<u8> {
    request(stream, "POST", path, &[], false)
}

/// Returns the DATA frames of a body that is not empty. Each has at most 16,384 bytes, which every server accepts (RFC
/// 9113 §4.2). The last frame ends the stream.
pub fn body_frames(stream: u32, bytes: &[u8]) -> Vec<u8> {
    let mut frames: Vec<_> = bytes
        .chunks(16_384)
        .map(|piece| frame(DATA, 0, stream, piece))
        .collect();
    if let Some(last) = frames.last_mut() {
        // The fifth byte of a frame has its flags.
        last[4] = END_STREAM;
    }
    frames.concat()
}

/// Returns a SETTINGS frame with these identifiers and values.
pub fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let value = |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, values.iter().flat_map(value).collect::<Vec<_>>())
}

/// Returns a WINDOW_UPDATE frame that extends the window by `by` bytes.
pub fn window(stream: u32, by: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, by.to_be_bytes())
}

pub fn rst(stream: u32) -> Vec<u8> {
    // The payload is the error code CANCEL.
    frame(RST_STREAM, 0, stream, [0, 0, 0, 8])
}

/// Returns the preface of a client and its SETTINGS frame.
pub fn beginning(values: &[(u16, u32)]) -> Vec<u8> {
    [PREFACE, &settings(values)].concat()
}

/// Returns the preface of a client with the largest possible windows, so that they never block the server.
pub fn open_beginning() -> Vec<u8> {
    [
        beginning(&[(INITIAL_WINDOW_SIZE, WINDOW_MAX)]),
        window(0, WINDOW_MAX - WINDOW),
    ]
    .concat()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    /// Error code of a GOAWAY or RST_STREAM frame; `None` for other types.
    pub fn code(&self) -> Option<u32> {
        let at = match self.kind {
            GOAWAY => 4,
            RST_STREAM => 0,
            _ => return None,
        };
        self.payload.get(at..at + 4).map(number)
    }
}

/// Decodes a big-endian number.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Parses the complete frames at the start of `bytes`. Returns the frames and their total length.
pub fn frames(bytes: &[u8]) -> (Vec<Frame>, usize) {
    let (mut frames, mut at) = (Vec::new(), 0);
    while let Some(header) = bytes.get(at..at + 9) {
        let end = at + 9 + number(&header[..3]) as usize;
        let Some(payload) = bytes.get(at + 9..end) else { break };
        frames.push(Frame {
            kind: header[3],
            flags: header[4],
            // The most significant bit is reserved (RFC 9113 §4.1).
            stream: number(&header[5..]) & 0x7fff_ffff,
            payload: payload.to_vec(),
        });
        at = end;
    }
    (frames, at)
}

/// Returns the payloads of all DATA frames of a stream.
pub fn body_of(frames: &[Frame], stream: u32) -> Vec<u8> {
    let of_stream = frames
        .iter()
        .filter(|frame| frame.kind == DATA && frame.stream == stream);
    of_stream.flat_map(|frame| frame.payload.clone()).collect()
}
