//! Tests of the index.

use super::super::entry::Mark;
use super::*;

fn entry(hash: u64, number: u32, variant: u32) -> Entry {
    Entry {
        hash,
        position: Position {
            segment: number / 100,
            offset: number % 100,
        },
        length: 10,
        variant,
        expires: 0,
        names: 0,
        mark: Mark::of_site(0),
    }
}

/// Returns an index with one site.
fn index() -> Index {
    let index = Index::default();
    assert_eq!(index.sites.number(b"s"), Some(0));
    index
}

#[test]
fn entries_are_replaced_and_dropped() {
    let index = index();
    index.insert(entry(1, 0, 0));
    index.insert(entry(1, 1, 7));
    index.insert(entry(2, 2, 0));
    index.insert(entry(1, 3, 0));
    let positions = |hash| {
        index
            .find(hash)
            .iter()
            .map(|entry| entry.position.offset)
            .collect::<Vec<_>>()
    };
    assert_eq!(positions(1), [1, 3]);
    assert_eq!((index.len(), index.bytes()), (3, 30));
    let third = Position { segment: 0, offset: 3 };
    index.mark_hit(1, third);
    assert!(index.at(1, third).is_some_and(|entry| entry.mark.is_hit()));
    index.remove_at(1, Position { segment: 0, offset: 0 });
    assert_eq!(index.len(), 3);
    assert_eq!((index.remove(1), index.remove(1)), (2, 0));
    index.retain(|entry| entry.position.segment > 0);
    assert_eq!((index.len(), index.bytes()), (0, 0));
}

#[test]
fn the_number_of_variants_is_limited() {
    let index = index();
    for number in 0..2 * MAX_VARIANTS as u32 {
        index.insert(entry(5, number, number));
    }
    let found = index.find(5);
    assert_eq!((found.len(), index.len()), (MAX_VARIANTS, MAX_VARIANTS));
    assert_eq!(found[0].variant, MAX_VARIANTS as u32);
}

/// The goal is 100 bytes for each of 1,000,000 responses. The table has between 1.14 and 2.3 places for each entry of
/// 32 bytes, depending on the number, and one byte more for each place.
#[test]
fn an_entry_takes_less_than_100_bytes() {
    assert_eq!(size_of::<Entry>(), 32);
    let index = index();
    let hashes = super::super::names::Hashes::new(7);
    for number in 0..1_000_000_u32 {
        index.insert(entry(hashes.of_key(&number.to_le_bytes()), number, 0));
    }
    assert!(index.len() > 999_990, "equal hashes: {}", 1_000_000 - index.len());
    let each = index.memory_size() / index.len();
    println!("{each} bytes of memory for each of {} entries", index.len());
    assert!((33..100).contains(&each), "{each} bytes");
    index.clear();
    assert!(index.memory_size() < 64 * 1024);
}
