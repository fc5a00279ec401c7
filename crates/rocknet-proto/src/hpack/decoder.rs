//! HPACK decoder. It appends each field to the buffer of a sink, which keeps or drops the field.

use super::dynamic_table::DynamicTable;
use super::name::{NameClass, is_valid_value};
use super::{HpackError, huffman, integer, static_table};

/// Maximum number of fields in one block. A block with more fields ends the connection. A head above the limits of the
/// configuration gets status 431, but the rest of its block must still be decoded to keep the table in sync. This
/// maximum bounds that work. Blocks of 2,000 and more fields occur in attacks only.
const MAX_FIELDS: usize = 2048;

/// Maximum number of table size updates at the start of a block: the smallest size since the last block, and the final
/// size (RFC 7541 §4.2).
const MAX_SIZE_UPDATES: usize = 2;

/// Receives the fields of a block.
pub(crate) trait FieldSink {
    /// Returns the buffer to which names and values are appended. The sink may truncate it in [`field`](Self::field).
    fn buffer(&mut self) -> &mut Vec<u8>;

    /// Called after a field was appended: its name at `name_start`, and its value from `value_start` to the end of the
    /// buffer. `value_valid` is the result of [`is_valid_value`]. While the sink is full, it gets only fields that
    /// enter the dynamic table.
    fn field(&mut self, class: NameClass, value_valid: bool, name_start: usize, value_start: usize);

    /// Returns whether the sink drops all further fields, so that most of them need not be appended.
    fn is_full(&self) -> bool;
}

/// Decoder of one connection, with its dynamic table.
#[derive(Debug)]
pub(crate) struct Decoder {
    table: DynamicTable,
    /// Maximum size in bytes that this side announced. The peer chooses any size up to it.
    max_table_size: usize,
}

impl Decoder {
    pub(crate) const fn new(max_table_size: usize) -> Self {
        Self {
            table: DynamicTable::new(max_table_size),
            max_table_size,
        }
    }

    /// Returns the memory used, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.table.memory()
    }

    /// Decodes a complete block. Apart from the table, memory use is bounded by the sink and by 8/5 of the block's
    /// size, because the shortest Huffman code has 5 bits.
    pub(crate) fn decode(&mut self, block: &[u8], sink: &mut impl FieldSink) -> Result<(), HpackError> {
        let mut at = self.decode_size_updates(block)?;
        let mut fields = 0;
        while let Some(&first) = block.get(at) {
            fields += 1;
            if fields > MAX_FIELDS {
                return Err(HpackError::TooManyFields);
            }
            // For a literal, the two arguments before the sink are the size of the prefix in bits, and true if the
            // field enters the dynamic table.
            at = if first & 0x80 != 0 {
                self.decode_indexed(block, at, sink)?
            } else if first & 0x40 != 0 {
                self.decode_literal(block, at, 6, true, sink)?
            } else if first & 0x20 == 0 {
                // Literals without indexing and never-indexed literals are treated alike. The difference matters only
                // to an intermediary that encodes a received field again (RFC 7541 §6.2.3). This crate never does that.
                self.decode_literal(block, at, 4, false, sink)?
            } else {
                return Err(HpackError::MisplacedTableSize);
            };
        }
        Ok(())
    }

    /// Applies the table size updates at the start of a block and returns their end.
    #[inline]
    fn decode_size_updates(&mut self, block: &[u8]) -> Result<usize, HpackError> {
        let mut at = 0;
        for _ in 0..MAX_SIZE_UPDATES {
            match block.get(at) {
                Some(first) if first & 0xe0 == 0x20 => {
                    let (size, end) = integer::decode(block, at, 5)?;
                    if size > self.max_table_size {
                        return Err(HpackError::TableSize);
                    }
                    self.table.set_max(size);
                    at = end;
                }
                _ => break,
            }
        }
        Ok(at)
    }

    /// Decodes an indexed field (RFC 7541 §6.1) and returns its end.
    #[inline]
    fn decode_indexed(&mut self, block: &[u8], at: usize, sink: &mut impl FieldSink) -> Result<usize, HpackError> {
        let (index, end) = integer::decode(block, at, 7)?;
        if let Some(field) = static_table::at(index) {
            if !sink.is_full() {
                let buffer = sink.buffer();
                let start = buffer.len();
                buffer.extend_from_slice(field.name);
                buffer.extend_from_slice(field.value);
                // The values of the static table are all valid.
                sink.field(field.class, true, start, start + field.name.len());
            }
            return Ok(end);
        }
        let entry = self.entry(index)?;
        if !sink.is_full() {
            let (class, value_valid) = (entry.class, entry.value_valid);
            let buffer = sink.buffer();
            let start = buffer.len();
            let name_length = self.table.copy_field(entry, buffer);
            sink.field(class, value_valid, start, start + name_length);
        }
        Ok(end)
    }

    /// Returns the entry of the dynamic table at an index of the combined address space (RFC 7541 §2.3.3).
    #[inline]
    fn entry(&self, index: usize) -> Result<&super::dynamic_table::TableEntry, HpackError> {
        let index = index.checked_sub(static_table::COUNT + 1).ok_or(HpackError::Index)?;
        self.table.at(index).ok_or(HpackError::Index)
    }

    /// Decodes a literal field (RFC 7541 §6.2) and returns its end. The low `prefix` bits of the first byte begin the
    /// index of the name. If `is_indexed` is true, the field enters the dynamic table.
    fn decode_literal(
        &mut self,
        block: &[u8],
        at: usize,
        prefix: u32,
        is_indexed: bool,
        sink: &mut impl FieldSink,
    ) -> Result<usize, HpackError> {
        let (index, at) = integer::decode(block, at, prefix)?;
        // A field that enters neither the table nor the sink is parsed and dropped.
        let skips = !is_indexed && sink.is_full();
        let buffer = sink.buffer();
        let start = buffer.len();
        let (class, at) = if index == 0 {
            let end = decode_string(block, at, buffer)?;
            let class = NameClass::of(buffer.get(start..).unwrap_or_default());
            (class, end)
        } else if let Some(field) = static_table::at(index) {
            if !skips {
                buffer.extend_from_slice(field.name);
            }
            (field.class, at)
        } else {
            let entry = self.entry(index)?;
            if !skips {
                self.table.copy_name(entry, buffer);
            }
            (entry.class, at)
        };
        let value_start = buffer.len();
        let end = decode_string(block, at, buffer)?;
        if skips {
            buffer.truncate(start);
            return Ok(end);
        }
        let field = buffer.get(start..).unwrap_or_default();
        let (name, value) = field.split_at((value_start - start).min(field.len()));
        let value_valid = is_valid_value(value);
        if is_indexed {
            // The hash is 0, because a decoder does not look entries up by their fields.
            self.table.insert(name, value, 0, class, value_valid);
        }
        sink.field(class, value_valid, start, value_start);
        Ok(end)
    }
}

/// Decodes a string literal (RFC 7541 §5.2) and returns its end.
#[inline]
fn decode_string(block: &[u8], at: usize, out: &mut Vec<u8>) -> Result<usize, HpackError> {
    let coded = block.get(at).ok_or(HpackError::Truncated)? & 0x80 != 0;
    let (length, start) = integer::decode(block, at, 7)?;
    let bytes = block.get(start..start + length).ok_or(HpackError::Truncated)?;
    if coded {
        huffman::decode(bytes, out)?;
    } else {
        out.extend_from_slice(bytes);
    }
    Ok(start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects all fields as text.
    #[derive(Default)]
    struct DecodedLines {
        buffer: Vec<u8>,
        lines: Vec<String>,
        /// Result of `is_full`.
        full: bool,
    }

    impl FieldSink for DecodedLines {
        fn buffer(&mut self) -> &mut Vec<u8> {
            &mut self.buffer
        }

        fn field(&mut self, _: NameClass, _: bool, name_start: usize, value_start: usize) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (name, value) = (&self.buffer[name_start..value_start], &self.buffer[value_start..]);
            self.lines.push(format!("{}: {}", text(name), text(value)));
            self.buffer.truncate(name_start);
        }

        fn is_full(&self) -> bool {
            self.full
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

    /// Checks that a block, in hexadecimal digits, decodes to `fields`. `table_size` is the expected size of the
    /// dynamic table after the block.
    fn check(decoder: &mut Decoder, block: &str, fields: &[&str], table_size: usize) {
        let mut lines = DecodedLines::default();
        assert_eq!(decoder.decode(&hex(block), &mut lines), Ok(()), "{block}");
        assert_eq!(lines.lines, fields, "{block}");
        assert_eq!(decoder.table.size(), table_size, "{block}");
    }

    /// RFC 7541 C.2: one field in each representation, each with a new table.
    #[test]
    fn decodes_every_representation() {
        // Block, its only field, and the size of the dynamic table after the block.
        for (block, field, size) in [
            (
                "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
                "custom-key: custom-header",
                55,
            ),
            ("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path", 0),
            ("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret", 0),
            ("82", ":method: GET", 0),
        ] {
            check(&mut Decoder::new(4096), block, &[field], size);
        }
    }

    const FIRST: &[&str] = &[
        ":method: GET",
        ":scheme: http",
        ":path: /",
        ":authority: www.example.com",
    ];
    const SECOND: &[&str] = &[
        ":method: GET",
        ":scheme: http",
        ":path: /",
        ":authority: www.example.com",
        "cache-control: no-cache",
    ];
    const THIRD: &[&str] = &[
        ":method: GET",
        ":scheme: https",
        ":path: /index.html",
        ":authority: www.example.com",
        "custom-key: custom-value",
    ];

    /// RFC 7541 C.3 and C.4: three requests on one connection, without and with Huffman coding.
    #[test]
    fn decodes_the_request_examples() {
        for blocks in [
            [
                "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                "8286 84be 5808 6e6f 2d63 6163 6865",
                "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
            ],
            [
                "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
                "8286 84be 5886 a8eb 1064 9cbf",
                "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
            ],
        ] {
            let mut decoder = Decoder::new(4096);
            for ((block, fields), size) in blocks.iter().zip([FIRST, SECOND, THIRD]).zip([57, 110, 164]) {
                check(&mut decoder, block, fields, size);
            }
        }
    }

    /// RFC 7541 C.5 and C.6: three responses with a table of 256 bytes, so that entries are evicted.
    #[test]
    fn decodes_the_response_examples_with_evictions() {
        let (location, cookie) = (
            "location: https://www.example.com",
            "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        );
        let (early, late) = (
            "date: Mon, 21 Oct 2013 20:13:21 GMT",
            "date: Mon, 21 Oct 2013 20:13:22 GMT",
        );
        for blocks in [
            [
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 \
                 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                "4803 3330 37c1 c0bf",
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 \
                 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 \
                 3630 303b 2076 6572 7369 6f6e 3d31",
            ],
            [
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 \
                 63c7 8f0b 97c8 e9ae 82ae 43d3",
                "4883 640e ffc1 c0bf",
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 \
                 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
            ],
        ] {
            let mut decoder = Decoder::new(256);
            check(
                &mut decoder,
                blocks[0],
                &[":status: 302", "cache-control: private", early, location],
                222,
            );
            check(
                &mut decoder,
                blocks[1],
                &[":status: 307", "cache-control: private", early, location],
                222,
            );
            let last = [
                ":status: 200",
                "cache-control: private",
                late,
                location,
                "content-encoding: gzip",
                cookie,
            ];
            check(&mut decoder, blocks[2], &last, 215);
        }
    }

    #[test]
    fn invalid_blocks_are_rejected() {
        // Block, and the expected error.
        for (block, error) in [
            ("80", HpackError::Index),
            ("be", HpackError::Index),
            ("ff 80 80 80 80 01", HpackError::IntegerTooLarge),
            ("7e 01 61", HpackError::Index),
            ("40", HpackError::Truncated),
            ("40 05 6162", HpackError::Truncated),
            ("40 01 61", HpackError::Truncated),
            ("40 01 61 02 62", HpackError::Truncated),
            ("04 82 ffff", HpackError::HuffmanPadding),
            ("04 84 ffff fffc", HpackError::HuffmanEos),
            ("3f e2 1f", HpackError::TableSize),
            ("82 20", HpackError::MisplacedTableSize),
            ("20 20 20", HpackError::MisplacedTableSize),
        ] {
            let found = Decoder::new(4096).decode(&hex(block), &mut DecodedLines::default());
            assert_eq!(found, Err(error), "{block}");
        }
    }

    #[test]
    fn table_size_updates_precede_the_first_field() {
        let mut decoder = Decoder::new(4096);
        check(&mut decoder, "400161 0162", &["a: b"], 34);
        // An update to 0, which empties the table, and an update to 4096.
        check(&mut decoder, "20 3f e1 1f", &[], 0);
        check(&mut decoder, "400161 0162 be", &["a: b", "a: b"], 34);
    }

    /// A full sink receives only fields that enter the table, and the table stays correct.
    #[test]
    fn skipped_fields_still_enter_the_table() {
        let mut decoder = Decoder::new(4096);
        let mut full = DecodedLines {
            full: true,
            ..DecodedLines::default()
        };
        // A literal that enters the table, its index, a field of the static table, and two literals without indexing.
        assert_eq!(
            decoder.decode(&hex("400161 0162 be 82 0f0101 62 00016101 62"), &mut full),
            Ok(())
        );
        assert_eq!(
            (full.lines.as_slice(), full.buffer.len()),
            (["a: b".to_owned()].as_slice(), 0)
        );
        check(&mut decoder, "be", &["a: b"], 34);
    }

    #[test]
    fn field_count_of_a_block_is_bounded() {
        let at_limit = vec![0x82; MAX_FIELDS];
        assert_eq!(
            Decoder::new(4096).decode(&at_limit, &mut DecodedLines::default()),
            Ok(())
        );
        let above_limit = vec![0x82; MAX_FIELDS + 1];
        assert_eq!(
            Decoder::new(4096).decode(&above_limit, &mut DecodedLines::default()),
            Err(HpackError::TooManyFields)
        );
    }
}
