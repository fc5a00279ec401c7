//! Appends frames to a buffer.

use super::{ACK, END_HEADERS, END_STREAM, FrameType, HEADER_SIZE};
use crate::h2::error::ErrorCode;

/// Appends a frame header. `length` is the size of the payload in bytes.
#[inline]
pub(crate) fn frame_header(length: usize, kind: FrameType, flags: u8, stream: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&header_bytes(length, kind, flags, stream));
}

#[inline]
fn header_bytes(length: usize, kind: FrameType, flags: u8, stream: u32) -> [u8; HEADER_SIZE] {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [s, t, u, v] = stream.to_be_bytes();
    [a, b, c, kind.number(), flags, s, t, u, v]
}

/// Appends the header of a DATA frame, which ends the stream if `end` is true. Exactly `length` payload bytes must
/// follow.
#[inline]
pub(crate) fn data_header(stream: u32, length: usize, end: bool, out: &mut Vec<u8>) {
    frame_header(length, FrameType::Data, if end { END_STREAM } else { 0 }, stream, out);
}

/// Appends SETTINGS with pairs of identifier and value.
pub(crate) fn settings(values: &[(u16, u32)], out: &mut Vec<u8>) {
    // An identifier has two bytes, and a value has four.
    frame_header(values.len() * 6, FrameType::Settings, 0, 0, out);
    for (identifier, value) in values {
        out.extend_from_slice(&identifier.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub(crate) fn settings_ack(out: &mut Vec<u8>) {
    frame_header(0, FrameType::Settings, ACK, 0, out);
}

/// Appends a PING. The peer returns its payload `opaque` in the acknowledgement.
pub(crate) fn ping(opaque: [u8; 8], out: &mut Vec<u8>) {
    frame_header(8, FrameType::Ping, 0, 0, out);
    out.extend_from_slice(&opaque);
}

/// Appends the acknowledgement of a PING with the payload `opaque`.
pub(crate) fn ping_ack(opaque: [u8; 8], out: &mut Vec<u8>) {
    frame_header(8, FrameType::Ping, ACK, 0, out);
    out.extend_from_slice(&opaque);
}

pub(crate) fn go_away(last_stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    frame_header(8, FrameType::GoAway, 0, 0, out);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&(code as u32).to_be_bytes());
}

pub(crate) fn rst_stream(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    frame_header(4, FrameType::RstStream, 0, stream, out);
    out.extend_from_slice(&(code as u32).to_be_bytes());
}

/// Appends a WINDOW_UPDATE; `stream` is 0 for the connection.
pub(crate) fn window_update(stream: u32, by: u32, out: &mut Vec<u8>) {
    frame_header(4, FrameType::WindowUpdate, 0, stream, out);
    out.extend_from_slice(&by.to_be_bytes());
}

/// Field block under construction. [`finish`](Self::finish) fills in the frame sizes once the block is complete.
#[must_use = "call `finish`: the frame has no size before that"]
pub(crate) struct BlockFrame {
    /// Position of the frame header in the buffer.
    start: usize,
    kind: FrameType,
    flags: u8,
    stream: u32,
}

impl BlockFrame {
    /// Starts HEADERS, which end the stream if `end_stream` is true. The caller appends the field block.
    pub(crate) fn headers(stream: u32, end_stream: bool, out: &mut Vec<u8>) -> BlockFrame {
        let flags = if end_stream { END_STREAM } else { 0 };
        Self::begin(FrameType::Headers, flags, stream, out)
    }

    /// Starts PUSH_PROMISE. The caller appends the field block.
    pub(crate) fn push_promise(stream: u32, promised: u32, out: &mut Vec<u8>) -> BlockFrame {
        let frame = Self::begin(FrameType::PushPromise, 0, stream, out);
        out.extend_from_slice(&promised.to_be_bytes());
        frame
    }

    /// Appends room for the frame header.
    fn begin(kind: FrameType, flags: u8, stream: u32, out: &mut Vec<u8>) -> BlockFrame {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER_SIZE]);
        BlockFrame {
            start,
            kind,
            flags,
            stream,
        }
    }

    /// Writes the frame sizes, and moves the part above `frame_max` bytes into CONTINUATION frames.
    pub(crate) fn finish(self, frame_max: u32, out: &mut Vec<u8>) {
        let (payload, max_size) = (self.start + HEADER_SIZE, frame_max as usize);
        let length = out.len() - payload;
        let first = length.min(max_size);
        let flags = if first == length {
            self.flags | END_HEADERS
        } else {
            self.flags
        };
        out[self.start..payload].copy_from_slice(&header_bytes(first, self.kind, flags, self.stream));
        if first < length {
            let rest = out.split_off(payload + first);
            let count = rest.len().div_ceil(max_size);
            for (index, piece) in rest.chunks(max_size).enumerate() {
                let flags = if index + 1 == count { END_HEADERS } else { 0 };
                frame_header(piece.len(), FrameType::Continuation, flags, self.stream, out);
                out.extend_from_slice(piece);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FrameHeader;
    use super::*;

    #[test]
    fn frames_have_the_layout_of_the_rfc() {
        type Write = fn(&mut Vec<u8>);
        // Function that writes a frame, and the expected bytes.
        let rows: &[(Write, &[u8])] = &[
            (|out| data_header(1, 5, true, out), &[0, 0, 5, 0, 1, 0, 0, 0, 1]),
            (|out| data_header(3, 0x1_0203, false, out), &[1, 2, 3, 0, 0, 0, 0, 0, 3]),
            (
                |out| settings(&[(3, 128)], out),
                &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 128],
            ),
            (|out| settings_ack(out), &[0, 0, 0, 4, 1, 0, 0, 0, 0]),
            (
                |out| ping_ack([7; 8], out),
                &[0, 0, 8, 6, 1, 0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7],
            ),
            (
                |out| go_away(5, ErrorCode::EnhanceYourCalm, out),
                &[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 11],
            ),
            (
                |out| rst_stream(9, ErrorCode::Cancel, out),
                &[0, 0, 4, 3, 0, 0, 0, 0, 9, 0, 0, 0, 8],
            ),
            (
                |out| window_update(0, 256, out),
                &[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0],
            ),
        ];
        for (write, expected) in rows {
            let mut out = b"before".to_vec();
            write(&mut out);
            assert_eq!(&out[6..], *expected);
        }
    }

    #[test]
    fn blocks_of_any_size_are_complete() {
        // Size of the block in bytes, and number of frames of at most ten bytes that carry it.
        for (length, frames) in [(0, 1), (10, 1), (11, 2), (20, 2), (35, 4)] {
            let mut out = b"x".to_vec();
            let frame = BlockFrame::headers(5, true, &mut out);
            out.extend((0..length).map(|byte: u8| byte));
            frame.finish(10, &mut out);
            let (mut rest, mut block, mut count) = (&out[1..], Vec::new(), 0);
            while let Some(header) = FrameHeader::parse(rest) {
                let end = HEADER_SIZE + header.length as usize;
                block.extend_from_slice(&rest[HEADER_SIZE..end]);
                rest = &rest[end..];
                count += 1;
                let first = count == 1;
                assert_eq!(header.kind == FrameType::Headers, first);
                assert_eq!(header.has(END_HEADERS), rest.is_empty());
                assert_eq!(header.has(END_STREAM), first);
            }
            assert_eq!((block, count), ((0..length).collect::<Vec<u8>>(), frames));
        }
        let mut out = Vec::new();
        BlockFrame::push_promise(1, 2, &mut out).finish(10, &mut out);
        assert_eq!(out, [0, 0, 4, 5, END_HEADERS, 0, 0, 0, 1, 0, 0, 0, 2]);
    }
}
