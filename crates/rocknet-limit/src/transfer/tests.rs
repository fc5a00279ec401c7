//! Tests of transfers: sections are read as written, and damage is found.

use proptest::prelude::*;

use super::*;
use crate::fuzzing;

const S: u64 = 1_000_000_000;

/// Time of the writer.
const WRITTEN: u64 = 1_000 * S;

type Written = Vec<(u32, Vec<u8>, Vec<[u8; BUCKET_SIZE]>)>;

fn seed() -> KeySeed {
    fuzzing::seed()
}

fn write(sections: &Written) -> Vec<u8> {
    let mut writer = TransferWriter::new(&seed(), WRITTEN);
    for (kind, name, records) in sections {
        writer.section(*kind, name, |write| records.iter().for_each(write));
    }
    assert_eq!(writer.left_out(), 0);
    writer.finish()
}

/// Returns a transfer with a section of buckets and one of other records.
fn sample() -> Vec<u8> {
    let mut writer = TransferWriter::new(&seed(), WRITTEN);
    writer.section(1, b"limit", |write| {
        for (key, left) in [(7, 5 * S), (8, u64::MAX), (9, S)] {
            write(&TransferredBucket { key, left }.record());
        }
    });
    writer.section(2, b"", |write| write(b"abc"));
    writer.section::<8>(3, b"without records", |_| {});
    writer.finish()
}

#[test]
fn buckets_are_read_with_the_time_that_is_left() {
    let bytes = sample();
    let transfer = Transfer::read(&bytes, &seed(), WRITTEN + S).unwrap();
    let sections: Vec<_> = transfer.sections(1).collect();
    assert_eq!((sections.len(), sections[0].name), (1, &b"limit"[..]));
    let buckets: Vec<_> = transfer.buckets(&sections[0], 10 * S).collect();
    let bucket = |key, left| TransferredBucket { key, left };
    assert_eq!(buckets, [bucket(7, 4 * S), bucket(8, 10 * S)]);
    let other = transfer.sections(2).next().unwrap();
    assert_eq!(other.records(), [*b"abc"]);
    assert_eq!(transfer.buckets(&other, S).count(), 0, "records of another size");
    assert_eq!(transfer.sections(3).chain(transfer.sections(0)).count(), 0);
}

#[test]
fn other_transfers_are_refused() {
    let (bytes, later) = (sample(), WRITTEN + S);
    let read = |bytes: &[u8], clock| Transfer::read(bytes, &seed(), clock).map(|_| ()).unwrap_err();
    for length in 0..bytes.len() {
        assert_eq!(read(&bytes[..length], later), TransferError::Truncated, "{length}");
    }
    assert_eq!(read(&[&bytes[..], b"x"].concat(), later), TransferError::Format);
    assert_eq!(read(&[b"rnlimit2", &bytes[8..]].concat(), later), TransferError::Format);
    assert_eq!(read(&bytes, WRITTEN - 1), TransferError::Age);
    assert_eq!(read(&bytes, WRITTEN + MAX_AGE + 1), TransferError::Age);
    assert!(Transfer::read(&bytes, &seed(), WRITTEN + MAX_AGE).is_ok());
    let other = KeySeed::new(&[8; KeySeed::SIZE]);
    assert_eq!(Transfer::read(&bytes, &other, later).unwrap_err(), TransferError::Seed);
    assert_eq!(read(&vec![0; MAX_TRANSFER + 1], later), TransferError::TooLarge);
    // The number of records exceeds all memory.
    let mut huge = bytes;
    huge[HEADER_SIZE + 12..HEADER_SIZE + 20].fill(0xff);
    assert_eq!(read(&huge, later), TransferError::Truncated);
}

#[test]
fn a_transfer_is_bounded() {
    let max = 200;
    let mut writer = TransferWriter::with_max(&seed(), WRITTEN, max);
    let records = |count: usize| move |write: &mut dyn FnMut(&[u8; 8])| (0..count).for_each(|_| write(&[0; 8]));
    // Header, two heads of sections and the end have 84 bytes, so 14 records of 8 bytes fit.
    writer.section(1, b"", records(4));
    writer.section(1, b"too large", records(100));
    writer.section(1, b"", records(11));
    assert_eq!(writer.left_out(), 2);
    writer.section(1, b"", records(10));
    writer.section(1, b"x", records(1));
    assert_eq!(writer.left_out(), 3);
    let bytes = writer.finish();
    assert_eq!(bytes.len(), 84 + 14 * 8);
    assert!(bytes.len() <= max);
    let transfer = Transfer::read(&bytes, &seed(), WRITTEN).unwrap();
    let sizes: Vec<_> = transfer
        .sections(1)
        .map(|section| section.records::<8>().len())
        .collect();
    assert_eq!(sizes, [4, 10]);
}

fn sections() -> impl Strategy<Value = Written> {
    let name = prop::collection::vec(any::<u8>(), 0..20);
    let records = prop::collection::vec(any::<[u8; BUCKET_SIZE]>(), 1..20);
    prop::collection::vec((1_u32..4, name, records), 0..10)
}

proptest! {
    #[test]
    fn sections_are_read_as_written(written in sections()) {
        let bytes = write(&written);
        let transfer = Transfer::read(&bytes, &seed(), WRITTEN).unwrap();
        for kind in 1..4 {
            let read: Written = transfer
                .sections(kind)
                .map(|section| (kind, section.name.to_vec(), section.records().to_vec()))
                .collect();
            let expected: Written = written.iter().filter(|(other, ..)| *other == kind).cloned().collect();
            prop_assert_eq!(read, expected);
        }
        fuzzing::limit_transfer(&bytes);
    }

    #[test]
    fn a_truncated_transfer_is_refused(written in sections(), part in 0_usize..10_000) {
        let bytes = write(&written);
        let cut = &bytes[..part % bytes.len()];
        prop_assert_eq!(Transfer::read(cut, &seed(), WRITTEN).map(|_| ()), Err(TransferError::Truncated));
    }

    #[test]
    fn a_damaged_transfer_causes_no_panic(
        written in sections(),
        damage in prop::collection::vec((0_usize..10_000, any::<u8>()), 0..8),
    ) {
        let mut bytes = write(&written);
        let length = bytes.len();
        damage.into_iter().for_each(|(at, byte)| bytes[at % length] = byte);
        fuzzing::limit_transfer(&bytes);
    }

    #[test]
    fn any_bytes_cause_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzzing::limit_transfer(&bytes);
        let header = TransferWriter::new(&seed(), WRITTEN).bytes;
        fuzzing::limit_transfer(&[&header[..], &bytes].concat());
    }
}
