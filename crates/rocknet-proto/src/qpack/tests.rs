//! Tests of the decoder and the encoder through their interface, and the examples of the standard.
//!
//! Sections and instructions are written in hexadecimal digits. In the decoder's output, `0x80` plus a stream number
//! acknowledges a section, `0x40` plus a stream number cancels the stream, and a smaller number acknowledges that
//! many insertions.

mod encoder_policy;
mod reference_encoder;
mod simulation;

use super::section_reader::MAX_FIELDS;
use super::{Decoder, QpackError, SectionOutcome};
use crate::hpack::{FieldSink, NameClass};

/// Name and value of a field.
type OwnedField = (Vec<u8>, Vec<u8>);

/// Collects all fields.
#[derive(Default)]
struct DecodedFields {
    buffer: Vec<u8>,
    fields: Vec<OwnedField>,
    /// Result of `is_full`.
    full: bool,
}

impl FieldSink for DecodedFields {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn field(&mut self, class: NameClass, value_valid: bool, name_start: usize, value_start: usize) {
        let name = self.buffer[name_start..value_start].to_vec();
        let value = self.buffer[value_start..].to_vec();
        assert_eq!(class, NameClass::of(&name));
        assert_eq!(value_valid, crate::hpack::is_valid_value(&value));
        self.fields.push((name, value));
        self.buffer.truncate(name_start);
    }

    fn is_full(&self) -> bool {
        self.full
    }
}

/// Returns the fields of a section, or `None` if the stream is blocked.
fn decode(decoder: &mut Decoder, stream: u64, section: &[u8]) -> Result<Option<Vec<OwnedField>>, QpackError> {
    let mut sink = DecodedFields::default();
    let outcome = decoder.decode(stream, section, &mut sink)?;
    assert_eq!(sink.buffer.len(), 0);
    match outcome {
        SectionOutcome::Decoded => Ok(Some(sink.fields)),
        SectionOutcome::Blocked => {
            assert!(sink.fields.is_empty() && !decoder.is_ready(section));
            Ok(None)
        }
    }
}

/// Parses hexadecimal digits and skips other characters.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter_map(|byte| (byte as char).to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Parses lines of the form `name: value`. The result is always `Some`, like that of [`decode`] for a section that is
/// not blocked.
fn fields(lines: &[&str]) -> Option<Vec<OwnedField>> {
    let field = |line: &&str| {
        let (name, value) = line.rsplit_once(": ").expect("a field line");
        (name.as_bytes().to_vec(), value.as_bytes().to_vec())
    };
    Some(lines.iter().map(field).collect())
}

/// Removes and returns the bytes that a decoder or an encoder has to send.
fn take(output: &mut Vec<u8>) -> Vec<u8> {
    std::mem::take(output)
}

/// RFC 9204 appendix B, with instructions in pieces of several sizes.
#[test]
fn examples_of_the_standard() {
    for size in [1, 2, 3, 100] {
        let mut decoder = Decoder::new(220, 1);
        let receive = |decoder: &mut Decoder, bytes: &str| {
            hex(bytes)
                .chunks(size)
                .map(|piece| decoder.receive_instructions(piece).expect("valid instructions"))
                .sum::<usize>()
        };
        // B.1
        let section = hex("0000 510b 2f69 6e64 6578 2e68 746d 6c");
        assert_eq!(decode(&mut decoder, 0, &section), Ok(fields(&[":path: /index.html"])));
        assert_eq!(take(decoder.output()), []);
        // B.2
        let section = hex("0381 10 11");
        assert_eq!(decode(&mut decoder, 4, &section), Ok(None));
        let instructions = "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468";
        assert_eq!(receive(&mut decoder, instructions), 3);
        assert!(decoder.is_ready(&section));
        let expected = fields(&[":authority: www.example.com", ":path: /sample/path"]);
        assert_eq!(decode(&mut decoder, 4, &section), Ok(expected));
        assert_eq!(take(decoder.output()), [0x84]);
        // B.3
        let instructions = "4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565";
        assert_eq!(receive(&mut decoder, instructions), 1);
        assert_eq!(take(decoder.output()), [0x01]);
        assert_eq!(take(decoder.output()), []);
        // B.4
        let section = hex("0500 80 c1 81");
        assert_eq!(decode(&mut decoder, 8, &section), Ok(None));
        decoder.cancel(8);
        assert_eq!(take(decoder.output()), [0x48]);
        assert_eq!(receive(&mut decoder, "02"), 1);
        let expected = fields(&[":authority: www.example.com", ":path: /", "custom-key: custom-value"]);
        assert_eq!(decode(&mut decoder, 12, &section), Ok(expected));
        assert_eq!(take(decoder.output()), [0x8c]);
        // B.5
        assert_eq!(receive(&mut decoder, "810d 6375 7374 6f6d 2d76 616c 7565 32"), 1);
        assert_eq!(take(decoder.output()), [0x01]);
        // The table has the entries 1 to 4, with 215 bytes.
        let section = hex("0600 80 81 82 83");
        let expected = fields(&[
            "custom-key: custom-value2",
            ":authority: www.example.com",
            "custom-key: custom-value",
            ":path: /sample/path",
        ]);
        assert_eq!(decode(&mut decoder, 16, &section), Ok(expected));
        assert_eq!(decode(&mut decoder, 20, &hex("0600 84")), Err(QpackError::DynamicIndex));
    }
}

/// Returns a decoder with a capacity of 200 bytes and the entries `a: b` and `x: y`.
fn decoder_with_entries() -> Decoder {
    let mut decoder = Decoder::new(200, 1);
    assert_eq!(decoder.receive_instructions(&hex("3f a901 4161 0162 4178 0179")), Ok(3));
    decoder
}

#[test]
fn references_to_the_table() {
    for (section, expected) in [
        // Entries before and after the Base.
        ("0300 80 81", &["x: y", "a: b"][..]),
        ("0381 10 11", &["a: b", "x: y"]),
        ("0380 80 10", &["a: b", "x: y"]),
        ("0201 81", &["a: b"]),
        // Names with other values, also in literals that must not be indexed.
        ("0300 40 017a 6101 7a", &["x: z", "a: z"]),
        ("0380 0001 7a08 017a", &["x: z", "x: z"]),
        ("0000 2161 0162 3161 0163", &["a: b", "a: c"]),
        // A count larger than required is harmless.
        ("0301 82 c0", &["a: b", ":authority: "]),
    ] {
        let found = decode(&mut decoder_with_entries(), 0, &hex(section));
        assert_eq!(found, Ok(fields(expected)), "{section}");
    }
}

#[test]
fn invalid_sections_are_rejected() {
    for (section, error) in [
        ("", QpackError::Truncated),
        ("00", QpackError::Truncated),
        ("0000 ff", QpackError::Truncated),
        ("0000 51", QpackError::Truncated),
        ("0000 5102 61", QpackError::Truncated),
        ("0000 22 61", QpackError::Truncated),
        ("0000 27 ff ff ff ff ff ff ff ff 1f 61", QpackError::Truncated),
        ("0000 ff ff ff ff ff ff ff ff ff ff 01", QpackError::IntegerTooLarge),
        ("0000 ff 24", QpackError::StaticIndex),
        ("0000 5f 54 00", QpackError::StaticIndex),
        ("0000 80", QpackError::DynamicIndex),
        ("0000 10", QpackError::DynamicIndex),
        ("0000 40 00", QpackError::DynamicIndex),
        ("0000 00 00", QpackError::DynamicIndex),
        // An entry that the insert count does not include, on both sides of the Base.
        ("0201 80", QpackError::DynamicIndex),
        ("0200 10", QpackError::DynamicIndex),
        ("0201 40 00", QpackError::DynamicIndex),
        ("0200 00 00", QpackError::DynamicIndex),
        ("0300 82", QpackError::DynamicIndex),
        ("0300 1f ff ff ff ff ff ff ff ff 1f", QpackError::DynamicIndex),
        ("0000 5182 ffff", QpackError::Huffman),
        ("0000 2aff ff 00", QpackError::Huffman),
        ("0d00", QpackError::InsertCount),
        ("0a00", QpackError::InsertCount),
        ("0382", QpackError::Base),
        ("0080", QpackError::Base),
    ] {
        let mut decoder = decoder_with_entries();
        assert_eq!(decode(&mut decoder, 0, &hex(section)), Err(error), "{section}");
        // Only the two insertions are acknowledged.
        assert_eq!(take(decoder.output()), [0x02], "{section}");
    }
}

#[test]
fn invalid_instructions_are_rejected() {
    // The last instruction of each row causes the error.
    for (instructions, error) in [
        ("3f ff ff ff ff ff ff ff ff ff", QpackError::InstructionInteger),
        ("3f aa01", QpackError::TableCapacity),
        ("ff 24 00", QpackError::InstructionIndex),
        ("82 00", QpackError::InstructionIndex),
        ("02", QpackError::InstructionIndex),
        ("c0 82 ffff", QpackError::InstructionHuffman),
        ("62 ffff 00", QpackError::InstructionHuffman),
        ("c0 7f 2a", QpackError::EntryTooLarge),
        ("5f 8a01", QpackError::EntryTooLarge),
        // The name and the value each fit, but not together.
        ("c0 7f 21", QpackError::EntryTooLarge),
        // The entries no longer fit the smaller capacity.
        ("2a 01", QpackError::InstructionIndex),
        ("20 c0 00", QpackError::EntryTooLarge),
    ] {
        let mut decoder = decoder_with_entries();
        let mut bytes = hex(instructions);
        if bytes == [0xc0, 0x7f, 0x21] {
            // This instruction announces a value of 160 bytes.
            bytes.resize(bytes.len() + 160, b'x');
        }
        assert_eq!(decoder.receive_instructions(&bytes), Err(error), "{instructions}");
    }
    // Without an announced capacity there are no entries.
    for (instructions, expected) in [
        ("20", Ok(1)),
        ("21", Err(QpackError::TableCapacity)),
        ("c0 00", Err(QpackError::EntryTooLarge)),
        ("4161", Err(QpackError::EntryTooLarge)),
    ] {
        let mut decoder = Decoder::new(0, 0);
        assert_eq!(
            decoder.receive_instructions(&hex(instructions)),
            expected,
            "{instructions}"
        );
    }
    assert_eq!(
        decode(&mut Decoder::new(0, 0), 0, &hex("0200 80")),
        Err(QpackError::InsertCount)
    );
}

#[test]
fn a_new_entry_may_use_the_name_of_the_entry_that_it_evicts() {
    let mut decoder = Decoder::new(40, 0);
    // The instructions set a capacity for one entry, insert `abcd: wxyz`, insert `0123` with the name of that entry,
    // and duplicate the new entry.
    let instructions = hex("3f09 4461 6263 6404 7778 797a 8004 3031 3233 00");
    assert_eq!(decoder.receive_instructions(&instructions), Ok(4));
    assert_eq!(decode(&mut decoder, 0, &hex("0200 80")), Ok(fields(&["abcd: 0123"])));
}

#[test]
fn blocked_streams_are_counted_once_until_their_entries_arrive() {
    let mut decoder = Decoder::new(200, 2);
    assert_eq!(decoder.receive_instructions(&hex("3f a901")), Ok(1));
    // The first section requires one entry, and the second section requires two.
    let (first, second) = (hex("0200 80"), hex("0300 80"));
    assert_eq!(decode(&mut decoder, 0, &first), Ok(None));
    assert_eq!(decode(&mut decoder, 4, &second), Ok(None));
    assert_eq!(decode(&mut decoder, 4, &second), Ok(None));
    assert_eq!(decode(&mut decoder, 8, &hex("0000 c0")), Ok(fields(&[":authority: "])));
    decoder.cancel(4);
    assert_eq!(decode(&mut decoder, 8, &second), Ok(None));
    // The entry that stream 0 waits for arrives. Stream 0 then no longer counts as blocked, although its section is not
    // decoded yet.
    assert_eq!(decoder.receive_instructions(&hex("4161 0162")), Ok(1));
    assert!(decoder.is_ready(&first) && !decoder.is_ready(&second));
    assert_eq!(decode(&mut decoder, 12, &second), Ok(None));
    assert_eq!(decode(&mut decoder, 16, &second), Err(QpackError::BlockedStreams));
    assert_eq!(decode(&mut decoder, 0, &first), Ok(fields(&["a: b"])));
    // The acknowledgment covers the entry, so there is no increment.
    assert_eq!(take(decoder.output()), [0x44, 0x80]);
    assert_eq!(
        decode(&mut Decoder::new(200, 0), 0, &first),
        Err(QpackError::BlockedStreams)
    );
    // An invalid section is ready, and decoding it returns the error.
    assert!(decoder.is_ready(&hex("ff")));
}

#[test]
fn streams_are_cancelled_only_if_the_table_is_used() {
    // The expected output is empty or a Stream Cancellation of stream 64.
    for (capacity, expected) in [(0, &[][..]), (100, &[0x7f, 0x01])] {
        let mut decoder = Decoder::new(capacity, 1);
        decoder.cancel(64);
        assert_eq!(take(decoder.output()), expected);
    }
}

#[test]
fn field_count_of_a_section_is_bounded() {
    let section = |count: usize| [[0, 0].as_slice(), &vec![0xc0; count]].concat();
    let mut decoder = Decoder::new(0, 0);
    assert!(decode(&mut decoder, 0, &section(MAX_FIELDS)).is_ok());
    assert_eq!(
        decode(&mut decoder, 0, &section(MAX_FIELDS + 1)),
        Err(QpackError::TooManyFields)
    );
}

/// A full sink receives nothing, and the section is checked and acknowledged nevertheless.
#[test]
fn skipped_sections_are_acknowledged() {
    let mut full = DecodedFields {
        full: true,
        ..DecodedFields::default()
    };
    let mut decoder = decoder_with_entries();
    let section = hex("0300 80 81 c0 5001 61 40 0161 2161 0162");
    assert_eq!(decoder.decode(0, &section, &mut full), Ok(SectionOutcome::Decoded));
    assert_eq!((full.fields.len(), full.buffer.len()), (0, 0));
    assert_eq!(take(decoder.output()), [0x80]);
    assert_eq!(
        decoder.decode(0, &hex("0300 82"), &mut full),
        Err(QpackError::DynamicIndex)
    );
}

#[test]
fn memory_of_the_decoder_is_bounded() {
    let mut decoder = Decoder::new(4096, 4);
    assert_eq!(decoder.receive_instructions(&hex("3f e11f")), Ok(1));
    // The largest incomplete instruction: two coded strings, each with four coded bytes for every byte of the largest
    // entry. `is_name` selects the encoding of a name instead of a value.
    let string = |is_name: bool| {
        let length = (4096 - 32) * 4;
        let mut bytes = Vec::new();
        super::integer::encode(
            length,
            if is_name { 5 } else { 7 },
            if is_name { 0x60 } else { 0x80 },
            &mut bytes,
        );
        bytes.resize(bytes.len() + length as usize, 0x1f);
        bytes
    };
    let mut instruction = [string(true), string(false)].concat();
    instruction.pop();
    for piece in instruction.chunks(1000) {
        assert_eq!(decoder.receive_instructions(piece), Ok(0));
    }
    // The instruction has about 32,500 bytes, and its buffer may have up to twice this capacity.
    assert!(decoder.memory() < 80_000, "{}", decoder.memory());
    assert!(decoder.receive_instructions(&[0x1f]).is_err());
}
