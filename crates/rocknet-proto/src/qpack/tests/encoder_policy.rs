//! Tests of the choices of the encoder: which fields are indexed, when entries are used, and the bounds on memory.
//!
//! The tests pass single bytes of the client's decoder stream. `[1]` to `[4]` acknowledge that number of insertions,
//! `[0x40]` cancels stream 0, and `[0x80]` or `[0x81]` acknowledges a section of stream 0 or 1. The result is the
//! number of instructions that were completed.
//!
//! Many values consist of the byte 1. Huffman coding does not shorten it, so the expected bytes contain it unchanged.

use super::super::field_line::encode_static;
use super::super::references::MAX_SECTIONS;
use super::super::{Decoder, Encoder, QpackError, STATIC_PREFIX};
use super::{decode, fields, hex, take};

/// Returns an encoder for a client with these settings.
fn encoder(capacity: u64, blocked_streams: u64) -> Encoder {
    let mut encoder = Encoder::new();
    encoder.set_client_settings(capacity, blocked_streams);
    encoder.output().clear();
    encoder
}

/// Returns the section of these fields. Two bytes are its prefix: the encoded Required Insert Count, and the Base. A
/// field line of `0x10` then refers to the first entry that was inserted for the section, and `0x80` plus a relative
/// index to an older entry.
fn encode(encoder: &mut Encoder, stream: u64, lines: &[&str]) -> Vec<u8> {
    let fields = fields(lines).expect("valid fields");
    let mut out = b"kept".to_vec();
    let pairs = fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
    encoder.encode(stream, pairs, &mut out);
    assert_eq!(&out[..4], b"kept");
    out.split_off(4)
}

/// Returns the section of these fields without references to the dynamic table.
fn static_section(lines: &[&str]) -> Vec<u8> {
    let fields = fields(lines).expect("valid fields");
    let mut out = STATIC_PREFIX.to_vec();
    encode_static(
        fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice())),
        &mut out,
    );
    out
}

#[test]
fn the_capacity_that_the_client_permits_is_used_up_to_a_limit() {
    // Capacity in bytes that the client permits, and the instruction that sets the capacity, in hexadecimal. No entry
    // fits into less than 32 bytes. The limit of the encoder is 4,096 bytes.
    for (capacity, expected) in [
        (0, ""),
        (31, ""),
        (32, "3f01"),
        (4096, "3fe11f"),
        (65536, "3fe11f"),
        (u64::MAX >> 2, "3fe11f"),
    ] {
        let mut encoder = Encoder::new();
        encoder.set_client_settings(capacity, 16);
        assert_eq!(take(encoder.output()), hex(expected), "{capacity}");
    }
}

#[test]
fn without_a_capacity_only_the_static_table_is_used() {
    let lines = &["server: x", ":status: 200", "x-a: b"];
    for mut encoder in [Encoder::new(), encoder(0, 100)] {
        for _ in 0..2 {
            assert_eq!(encode(&mut encoder, 0, lines), static_section(lines));
        }
        assert_eq!((encoder.output().len(), encoder.memory()), (0, 0));
    }
}

#[test]
fn new_entries_are_used_at_once_only_if_streams_may_be_blocked() {
    let line = &["x-a: \u{1}"];
    let mut encoder = encoder(4096, 1);
    assert_eq!(encode(&mut encoder, 0, line), hex("0280 10"));
    assert_eq!(take(encoder.output()), hex("43782d61 01 01"));
    // Stream 0 counts as blocked already, so it may use the entry. With a limit of 1, stream 4 may not.
    assert_eq!(encode(&mut encoder, 0, line), hex("0200 80"));
    assert_eq!(encode(&mut encoder, 4, line), static_section(line));
    assert_eq!(take(encoder.output()), []);
    // An increment makes the entry safe for every stream.
    assert_eq!(encoder.receive_instructions(&[1]), Ok(1));
    assert_eq!(encode(&mut encoder, 4, line), hex("0200 80"));
    assert_eq!(encode(&mut encoder, 8, &["x-b: \u{1}"]), hex("0380 10"));
    // An insertion of such a field has six bytes.
    assert_eq!(take(encoder.output()).len(), 6);
}

#[test]
fn entries_are_used_when_received_if_no_stream_may_be_blocked() {
    let line = &["x-a: \u{1}"];
    let mut encoder = encoder(4096, 0);
    assert_eq!(encode(&mut encoder, 0, line), static_section(line));
    // The insertion of the field has six bytes.
    assert_eq!(take(encoder.output()).len(), 6);
    assert_eq!(encode(&mut encoder, 0, line), static_section(line));
    assert_eq!(take(encoder.output()), []);
    assert_eq!(encoder.receive_instructions(&[1]), Ok(1));
    assert_eq!(encode(&mut encoder, 0, line), hex("0200 80"));
    // The name alone is used for another value, and no further entry is made.
    assert_eq!(encode(&mut encoder, 0, &["x-a: \u{2}"]), hex("0200 40 0102"));
    assert_eq!(take(encoder.output()), []);
    assert_eq!(encoder.receive_instructions(&[0x80, 0x80]), Ok(2));
    assert_eq!(encoder.receive_instructions(&[0x80]), Err(QpackError::Acknowledgment));
}

#[test]
fn sensitive_and_varying_fields_never_enter_the_table() {
    let lines = &[
        "set-cookie: id=1",
        "authorization: Basic x",
        "cookie: a=b",
        "proxy-authorization: Basic x",
        "www-authenticate: Basic",
        "etag: \"1\"",
        "content-length: 17",
        "date: Mon, 21 Oct 2013 20:13:21 GMT",
    ];
    let mut encoder = encoder(4096, 16);
    for stream in 0..3 {
        assert_eq!(encode(&mut encoder, stream, lines), static_section(lines));
    }
    assert_eq!(take(encoder.output()), []);
    // The N bit is set in both literal forms.
    assert_eq!(encode(&mut encoder, 0, &["set-cookie: \u{1}"]), hex("0000 7e 0101"));
    assert_eq!(encode(&mut encoder, 0, &["www-authenticate: \u{1}"])[2] & 0xf0, 0x30);
}

#[test]
fn entries_in_use_are_not_evicted() {
    let value = |byte: u8| String::from_utf8(vec![byte; 60]).expect("ASCII");
    let lines: Vec<String> = (0..6u8)
        .map(|number| format!("x-{number}: {}", value(b'0' + number)))
        .collect();
    // Four entries of 95 bytes fit.
    let mut encoder = encoder(4 * 95, 16);
    for line in &lines[..4] {
        assert_eq!(encode(&mut encoder, 0, &[line])[2..], [0x10]);
    }
    let section = static_section(&[&lines[4]]);
    let full = encoder.output().len();
    assert_eq!(encode(&mut encoder, 4, &[&lines[4]]), section);
    // The client has received the entries, but one section refers to the oldest one.
    assert_eq!(encoder.receive_instructions(&[4]), Ok(1));
    assert_eq!(encode(&mut encoder, 4, &[&lines[4]]), section);
    assert_eq!(encoder.output().len(), full);
    assert_eq!(encoder.receive_instructions(&[0x80]), Ok(1));
    assert_eq!(encode(&mut encoder, 4, &[&lines[4]])[2..], [0x10]);
    assert_eq!(encode(&mut encoder, 8, &[&lines[5]]), static_section(&[&lines[5]]));
    assert_eq!(encoder.receive_instructions(&[0x40]), Ok(1));
    assert_eq!(encode(&mut encoder, 8, &[&lines[5]])[2..], [0x10]);
}

#[test]
fn an_old_entry_in_use_is_duplicated() {
    let (mut encoder, mut decoder) = (encoder(4096, 16), Decoder::new(4096, 16));
    assert_eq!(decoder.receive_instructions(&hex("3fe11f")), Ok(1));
    // Encodes, decodes and acknowledges a section of one field. Returns its field line and the instructions for it.
    let mut exchange = |stream, line: &str| {
        let section = encode(&mut encoder, stream, &[line]);
        let instructions = take(encoder.output());
        assert!(decoder.receive_instructions(&instructions).is_ok());
        assert_eq!(decode(&mut decoder, stream, &section), Ok(fields(&[line])));
        assert!(encoder.receive_instructions(&take(decoder.output())).is_ok());
        (section[2..].to_vec(), instructions)
    };
    // Entries of 100 bytes: 40 fit, and the oldest 10 are in the last quarter.
    let lines: Vec<String> = (0..40).map(|number| format!("x-{number:03}: {number:063}")).collect();
    for (stream, line) in (0..).zip(&lines) {
        assert_eq!(exchange(stream, line).0, [0x10]);
    }
    assert_eq!(exchange(40, &lines[10]), (vec![0x80 | 29], Vec::new()));
    // The oldest entry would have to evict itself.
    assert_eq!(exchange(41, &lines[0]), (vec![0x80 | 39], Vec::new()));
    assert_eq!(exchange(42, &lines[9]), (vec![0x80 | 30], vec![30]));
    assert_eq!(exchange(43, &lines[9]), (vec![0x80], Vec::new()));
    // The duplicate has evicted the oldest entry.
    assert_eq!(exchange(44, &lines[0]).0, [0x10]);
}

#[test]
fn sections_without_acknowledgment_are_bounded() {
    let line = &["x-a: \u{1}"];
    let mut encoder = encoder(4096, 1);
    encode(&mut encoder, 0, line);
    assert_eq!(encoder.receive_instructions(&[1]), Ok(1));
    for stream in 1..MAX_SECTIONS as u64 {
        assert_eq!(encode(&mut encoder, stream, line).len(), 3);
    }
    let memory = encoder.memory();
    assert!(memory < 8192, "{memory}");
    for stream in 0..1000 {
        assert_eq!(encode(&mut encoder, stream, line), static_section(line));
    }
    assert_eq!(encoder.memory(), memory);
    assert_eq!(encoder.receive_instructions(&[0x81]), Ok(1));
    assert_eq!(encode(&mut encoder, 0, line).len(), 3);
}

#[test]
fn unsent_instructions_are_bounded() {
    let mut encoder = encoder(4096, 0);
    for round in 0..1000 {
        let line = format!("x-{round}: {}", "\u{1}".repeat(500));
        encode(&mut encoder, 0, &[&line]);
        // The client receives the entries, so only the unsent bytes stop further insertions.
        let _ = encoder.receive_instructions(&[1]);
    }
    let unsent = encoder.output().len();
    assert!((4096..8192).contains(&unsent), "{unsent}");
}

#[test]
fn invalid_feedback_is_rejected() {
    // Each row has the bytes of the decoder stream and the error that they cause.
    for (bytes, error) in [
        ("00", QpackError::Increment),
        ("02", QpackError::Increment),
        ("84", QpackError::Acknowledgment),
        ("ff ff ff ff ff ff ff ff ff ff", QpackError::FeedbackInteger),
    ] {
        for size in [1, 100] {
            let mut encoder = encoder(4096, 1);
            encode(&mut encoder, 0, &["x-a: b"]);
            let mut found = hex(bytes)
                .chunks(size)
                .filter_map(|piece| encoder.receive_instructions(piece).err())
                .collect::<Vec<_>>();
            assert_eq!(found.pop(), Some(error), "{bytes}");
        }
    }
    // Cancelling a stream without sections is valid. The second byte begins another instruction, which is incomplete.
    assert_eq!(encoder(0, 0).receive_instructions(&hex("48 7f")), Ok(1));
}
