//! Compares the decoder with a plain list, by all instructions and by sections with every form of reference to the
//! dynamic table.

use proptest::prelude::*;

use super::super::prefix::{SectionPrefix, max_entries};
use super::super::{encoder_stream, integer, static_table, string};
use super::{Decoder, OwnedField, decode};

/// Capacity in bytes that the decoder announces, so small that entries are evicted.
const MAX_CAPACITY: u64 = 400;

/// Dynamic table of the encoder.
#[derive(Default)]
struct PlainTable {
    /// All entries ever inserted, oldest first, so that the position of an entry is its absolute index.
    entries: Vec<OwnedField>,
    /// Number of the oldest entries that are evicted.
    evicted: usize,
    capacity: usize,
}

impl PlainTable {
    fn insert(&mut self, field: OwnedField) {
        self.entries.push(field);
        self.evict();
    }

    fn evict(&mut self) {
        let size = |entries: &[OwnedField]| {
            entries
                .iter()
                // An entry counts 32 bytes in addition to its name and value (RFC 9204 §3.2.1).
                .map(|(name, value)| name.len() + value.len() + 32)
                .sum::<usize>()
        };
        while size(&self.entries[self.evicted..]) > self.capacity {
            self.evicted += 1;
        }
    }

    /// Returns the absolute index of the entry that `number` selects; `None` if the table is empty.
    fn choose(&self, number: usize) -> Option<usize> {
        let count = self.entries.len() - self.evicted;
        (count > 0).then(|| self.evicted + number % count)
    }
}

/// Random choices for one instruction or field line: its form, a number, and a value.
type Choice = (u8, usize, Vec<u8>);

/// Generates fewer than `length` choices.
fn choices(length: usize) -> impl Strategy<Value = Vec<Choice>> {
    prop::collection::vec(
        (any::<u8>(), any::<usize>(), prop::collection::vec(any::<u8>(), 0..30)),
        0..length,
    )
}

/// Appends an instruction and applies it to the table. The form selects a new capacity, a duplicate, or an insertion
/// with a name from the dynamic table, a name from the static table, or a literal name.
fn instruct((form, number, value): Choice, table: &mut PlainTable, out: &mut Vec<u8>) {
    let newest = table.entries.len();
    let fits = |name: &[u8]| name.len() + value.len() + 32 <= table.capacity;
    match (form % 16, table.choose(number)) {
        (0, _) => {
            table.capacity = number % (MAX_CAPACITY as usize + 1);
            table.evict();
            encoder_stream::set_capacity(table.capacity as u64, out);
        }
        (1..=5, Some(index)) => {
            encoder_stream::duplicate((newest - index - 1) as u64, out);
            table.insert(table.entries[index].clone());
        }
        (6..=9, Some(index)) if fits(&table.entries[index].0) => {
            integer::encode((newest - index - 1) as u64, 6, 0x80, out);
            string::encode(&value, 8, 0, out);
            table.insert((table.entries[index].0.clone(), value));
        }
        (10..=12, _) => {
            // The static table has 99 fields.
            let index = number as u64 % 99;
            let name = static_table::at(index).expect("the index is in the table").name;
            if fits(name) {
                encoder_stream::insert(Some(index), name, &value, out);
                table.insert((name.to_vec(), value));
            }
        }
        _ => {
            let name = vec![form; number % 40];
            if fits(&name) {
                encoder_stream::insert(None, &name, &value, out);
                table.insert((name, value));
            }
        }
    }
}

/// Returns a section with these field lines, and its fields. The form of each choice selects a reference to the dynamic
/// table for the whole field or only its name, a field of the static table, or a literal.
fn encode(choices: Vec<Choice>, base: usize, table: &PlainTable) -> (Vec<u8>, Vec<OwnedField>) {
    let (mut lines, mut fields, mut required) = (Vec::new(), Vec::new(), 0);
    // A Base may exceed the insert count (RFC 9204 §4.5.1.2): the two highest values here do.
    let base = base % (table.entries.len() + 3);
    for (form, number, value) in choices {
        // Returns the N bit for half of the forms, and 0 for the other forms.
        let n = |bit: u8| if form & 0x80 != 0 { bit } else { 0 };
        match (form % 8, table.choose(number)) {
            (0..=5, Some(index)) => {
                required = required.max(index + 1);
                let (is_indexed, name) = (form % 8 < 3, table.entries[index].0.clone());
                match (index.checked_sub(base), is_indexed) {
                    (None, true) => integer::encode((base - index - 1) as u64, 6, 0x80, &mut lines),
                    (Some(index), true) => integer::encode(index as u64, 4, 0x10, &mut lines),
                    (None, false) => integer::encode((base - index - 1) as u64, 4, 0x40 | n(0x20), &mut lines),
                    (Some(index), false) => integer::encode(index as u64, 3, n(0x08), &mut lines),
                }
                if is_indexed {
                    fields.push(table.entries[index].clone());
                } else {
                    string::encode(&value, 8, 0, &mut lines);
                    fields.push((name, value));
                }
            }
            (6, _) => {
                integer::encode(number as u64 % 99, 6, 0xc0, &mut lines);
                let field = static_table::at(number as u64 % 99).expect("the index is in the table");
                fields.push((field.name.to_vec(), field.value.to_vec()));
            }
            _ => {
                let name = vec![form; number % 10];
                string::encode(&name, 4, 0x20 | n(0x10), &mut lines);
                string::encode(&value, 8, 0, &mut lines);
                fields.push((name, value));
            }
        }
    }
    let (required, base) = if required == 0 {
        (0, 0)
    } else {
        (required as u64, base as u64)
    };
    let mut section = Vec::new();
    SectionPrefix { required, base }.encode(max_entries(MAX_CAPACITY), &mut section);
    section.extend_from_slice(&lines);
    (section, fields)
}

proptest! {
    /// Each round has choices for instructions and for field lines, a number that selects the Base, and the size of the
    /// pieces in which the instructions arrive.
    #[test]
    fn the_decoder_agrees_with_a_plain_list(
        rounds in prop::collection::vec((choices(8), choices(8), any::<usize>(), 1usize..20), 0..20),
    ) {
        let mut table = PlainTable::default();
        let mut decoder = Decoder::new(MAX_CAPACITY as usize, 0);
        for (stream, (instructions, lines, base, size)) in (0..).zip(rounds) {
            let mut bytes = Vec::new();
            for choice in instructions {
                instruct(choice, &mut table, &mut bytes);
            }
            for piece in bytes.chunks(size) {
                prop_assert!(decoder.receive_instructions(piece).is_ok());
            }
            let (section, fields) = encode(lines, base, &table);
            prop_assert_eq!(decode(&mut decoder, stream, &section), Ok(Some(fields)));
        }
    }

    /// Any bytes are decoded without a panic and in bounded memory.
    #[test]
    fn any_bytes_are_safe(
        rounds in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..60), prop::collection::vec(any::<u8>(), 0..40)),
            0..20,
        ),
    ) {
        let mut decoder = Decoder::new(1000, 2);
        // Sets the capacity to 1000 bytes.
        let _ = decoder.receive_instructions(&[0x3f, 0xc9, 0x07]);
        for (stream, (instructions, section)) in (0..).zip(rounds) {
            // The encoded insert count is small, so that many sections can be decoded.
            let section = [&[section.len() as u8 % 4, 0][..], &section].concat();
            if decoder.receive_instructions(&instructions).is_err() || decode(&mut decoder, stream, &section).is_err() {
                break;
            }
            decoder.output().clear();
            prop_assert!(decoder.memory() < 20_000);
        }
    }
}
