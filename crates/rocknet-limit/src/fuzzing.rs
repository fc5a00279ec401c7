//! Body of the fuzz target of transfers. Tests run it, too, with generated inputs and with the stored inputs of the
//! target.

use std::sync::Arc;

use crate::key_seed::KeySeed;
use crate::offenders::{Offender, Offenders};
use crate::table::RateTable;
use crate::transfer::{BUCKET_SIZE, MAX_TRANSFER, Transfer, TransferWriter};

/// Nanoseconds in which an empty bucket becomes full.
const CAPACITY: u64 = 60_000_000_000;

/// Returns the key seed of the stored inputs.
pub fn seed() -> KeySeed {
    KeySeed::new(&[7; KeySeed::SIZE])
}

/// Reads any bytes as a transfer of limits. Panics if an accepted bucket needs longer than `CAPACITY` to become full,
/// or if accepted sections differ after they are written again.
pub fn limit_transfer(bytes: &[u8]) {
    // The time of the transfer itself, so that its age is accepted.
    let clock = bytes.get(8..16).and_then(|time| time.try_into().ok());
    let clock = clock.map_or(0, u64::from_le_bytes);
    let Ok(transfer) = Transfer::read(bytes, &seed(), clock) else {
        return;
    };
    assert!(bytes.len() <= MAX_TRANSFER);
    // `2`: number of the kinds of offences. The server has more, which changes only the size of a record.
    let mut offenders = Offenders::<2>::default();
    let (table, now) = (RateTable::new(&Arc::default()), 7);
    let mut again = TransferWriter::new(&seed(), clock);
    // Kinds whose sections contain buckets in the server. Here, each section is also read as a list of offenders, so
    // that both readers get any bytes. Each ignores a section with another size of records. Sections of other kinds are
    // not written again.
    let kinds = 1..4;
    for section in kinds.clone().flat_map(|kind| transfer.sections(kind)) {
        for bucket in transfer.buckets(&section, CAPACITY) {
            table.adopt(bucket.key, bucket.left, now);
        }
        for record in section.records::<{ Offender::<2>::RECORD_SIZE }>() {
            offenders.adopt(Offender::read(record).expect("a whole record"), now);
        }
        again.section::<BUCKET_SIZE>(section.kind, section.name, |write| {
            section.records().iter().for_each(write);
        });
    }
    table.for_each_used(now, |_, left| assert!(left <= CAPACITY, "{left}"));
    let again = again.finish();
    let read = Transfer::read(&again, &seed(), clock).expect("a transfer that was written");
    for kind in kinds {
        let with_buckets = |transfer: Transfer<'_>| {
            let sections = transfer.sections(kind);
            let sections = sections.filter(|section| !section.records::<BUCKET_SIZE>().is_empty());
            sections
                .map(|section| (section.name.to_vec(), section.records::<BUCKET_SIZE>().to_vec()))
                .collect::<Vec<_>>()
        };
        assert_eq!(with_buckets(read), with_buckets(transfer));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_of_the_fuzz_target_pass() {
        let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/limit_transfer");
        let mut seen = 0;
        for entry in std::fs::read_dir(seeds).expect("a folder") {
            super::limit_transfer(&std::fs::read(entry.expect("an entry").path()).expect("a seed"));
            seen += 1;
        }
        // Without this check, the test would also pass with an empty folder.
        assert!(seen >= 5, "{seen} seeds");
    }
}
