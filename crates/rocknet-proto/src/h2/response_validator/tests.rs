//! Tests of the validator: heads, trailers and frames, split at every position.

use super::*;

/// Encodes fields as literals that enter the table.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0x40);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// Returns the bytes of a frame.
fn frame(kind: FrameType, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind.number(), flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns HEADERS on stream 1 with a complete field block.
fn head(flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(FrameType::Headers, frame::END_HEADERS | flags, 1, &block(fields))
}

/// Checks which streams the validator reports as malformed, for frames that arrive in pieces of every size.
fn check(frames: &[Vec<u8>], expected: Result<&[u32], OutOfSync>) {
    let bytes = frames.concat();
    for size in (1..=bytes.len()).rev() {
        let (mut validator, mut found) = (ResponseValidator::default(), Vec::new());
        let read = bytes
            .chunks(size)
            .try_for_each(|piece| validator.read(piece, |stream| found.push(stream)));
        assert_eq!(read.map(|()| &found[..]), expected, "in pieces of {size}: {bytes:?}");
        assert!(read.is_err() || validator.partial.capacity() == 0, "memory is kept");
    }
}

const OK: (&str, &str) = (":status", "200");
const END: u8 = frame::END_STREAM;

#[test]
fn malformed_responses_are_found() {
    let trailers = |fields: &[(&str, &str)]| vec![head(0, &[OK]), head(END, fields)];
    // Frames on stream 1, and true if all heads and trailers in them are valid.
    for (frames, is_valid) in [
        (vec![head(END, &[OK])], true),
        (vec![head(END, &[OK, ("a", "b")])], true),
        (vec![head(0, &[(":status", "103")]), head(END, &[OK])], true),
        (trailers(&[("grpc-status", "0")]), true),
        (vec![head(END, &[OK, (":path", "/")])], false),
        (vec![head(END, &[(":path", "/"), OK])], false),
        (vec![head(END, &[OK, (":method", "GET")])], false),
        (vec![head(END, &[OK, (":scheme", "http")])], false),
        (vec![head(END, &[OK, (":authority", "a")])], false),
        (vec![head(END, &[OK, (":protocol", "a")])], false),
        (vec![head(END, &[OK, (":else", "a")])], false),
        (vec![head(END, &[OK, OK])], false),
        (vec![head(END, &[("a", "b"), OK])], false),
        (vec![head(END, &[("a", "b")])], false),
        (vec![head(END, &[(":status", "20")])], false),
        (vec![head(0, &[(":status", "101")])], false),
        (vec![head(0, &[(":status", "103"), (":path", "/")])], false),
        (vec![head(END, &[OK, ("A", "b")])], false),
        (vec![head(END, &[OK, ("a", " b")])], false),
        (vec![head(END, &[OK, ("a", "b\r\nc: d")])], false),
        (trailers(&[]), true),
        (trailers(&[OK]), false),
        (trailers(&[("a", "b"), (":status", "200")]), false),
        (trailers(&[(":path", "/")]), false),
    ] {
        check(&frames, Ok(if is_valid { &[] } else { &[1] }));
    }
}

#[test]
fn field_blocks_are_found_among_other_frames() {
    let fields = block(&[OK, (":path", "/")]);
    let (first, second) = fields.split_at(5);
    // HEADERS on stream 3.
    let started = |flags, payload: &[u8]| frame(FrameType::Headers, flags, 3, payload);
    let continuation = |flags, stream, payload: &[u8]| frame(FrameType::Continuation, flags, stream, payload);
    // The payload looks like a HEADERS frame with a malformed head, but it is body data.
    let data = frame(FrameType::Data, 0, 1, b"\0\0\x01\x01\x04\0\0\0\x03\x85");
    // The length of the padding, a priority of five bytes, the field block, and two bytes of padding.
    let padded = [&[2, 0, 0, 0, 0, 7][..], &fields, &[0, 0]].concat();
    // Both fields of `fields`, by their indices 63 and 62 in the dynamic table.
    let in_table = [0xbf, 0xbe];
    for frames in [
        vec![data.clone(), started(frame::END_HEADERS, &fields), data.clone()],
        vec![
            started(0, first),
            continuation(0, 3, &[]),
            continuation(frame::END_HEADERS, 3, second),
        ],
        vec![started(0, &fields), continuation(frame::END_HEADERS, 3, &[])],
        vec![started(0, &[]), continuation(frame::END_HEADERS, 3, &fields)],
        vec![started(frame::END_HEADERS, &[])],
        vec![
            started(frame::END_HEADERS | frame::PADDED | frame::PRIORITY, &padded),
            data.clone(),
        ],
    ] {
        check(&frames, Ok(&[3]));
    }
    // Fields from the table are validated as well.
    let twice = [
        started(frame::END_HEADERS, &fields),
        frame(FrameType::Headers, frame::END_HEADERS | END, 5, &in_table),
    ];
    check(&twice, Ok(&[3, 5]));
    for frames in [
        vec![started(0, first), data],
        vec![started(0, first), continuation(frame::END_HEADERS, 5, second)],
        vec![continuation(frame::END_HEADERS, 3, second)],
        vec![started(frame::END_HEADERS, &[0xff])],
        vec![frame(FrameType::PushPromise, frame::END_HEADERS, 1, &fields)],
    ] {
        check(&frames, Err(OutOfSync));
    }
}

#[test]
fn remembered_state_is_bounded() {
    let mut validator = ResponseValidator::default();
    for number in 0..2 * MAX_STREAMS as u32 {
        // 0x88 is `:status: 200` of the static table.
        let started = frame(FrameType::Headers, frame::END_HEADERS, 2 * number + 1, &[0x88]);
        validator
            .read(&started, |stream| panic!("{stream}"))
            .expect("frames in order");
    }
    assert_eq!(validator.started.len(), MAX_STREAMS);
    let piece = vec![0; 16 * 1024];
    let mut read = validator.read(&frame(FrameType::Headers, 0, 5001, &piece), |_| {});
    for _ in 0..MAX_BLOCK_SIZE / piece.len() {
        assert_eq!(read, Ok(()));
        read = validator.read(&frame(FrameType::Continuation, 0, 5001, &piece), |_| {});
    }
    assert_eq!(read, Err(OutOfSync));
}
