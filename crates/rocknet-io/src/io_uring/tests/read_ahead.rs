//! Tests of read-ahead.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::thread;

use super::{on_ring, once, pattern};
use crate::file;
use crate::read_ahead::read_ahead;
use crate::runtime::drain_events;

/// Returns a file whose pages the kernel was advised to drop from the page cache.
fn cold_file(length: usize) -> Arc<File> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&pattern(length)).expect("written");
    file.sync_all().expect("on the disk");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
    Arc::new(file)
}

#[test]
fn files_are_read_ahead() {
    on_ring(async |driver| {
        let before = driver.counts();
        // Length of the file, and offset and length of the requested range.
        for (length, offset, wanted) in [
            (10, 0, 10),
            (3_000_000, 0, 3_000_000),
            (3_000_000, 1_048_576, 1_048_576),
            // The file is shorter than the requested range, as after a truncation.
            (300_000, 200_000, 1_000_000),
            (300_000, 400_000, 10),
        ] {
            let file = cold_file(length);
            // The future returns true once the read has completed.
            assert!(read_ahead(&file, offset, wanted).expect("room").await);
            let end = (offset + wanted).min(length as u64);
            for at in (offset..end)
                .step_by(4096)
                .chain(end.checked_sub(1).filter(|at| *at >= offset))
            {
                assert!(file::is_resident(&file, at), "byte {at} of {length}");
            }
        }
        // A read error is ignored here, because sending returns it.
        let folder = Arc::new(File::open(".").expect("a folder"));
        assert!(read_ahead(&folder, 0, 10).expect("room").await);
        assert_eq!(driver.counts(), before);
    });
}

#[test]
fn reads_can_be_dropped_and_their_number_is_limited() {
    on_ring(async |driver| {
        let before = driver.counts();
        let file = cold_file(1_000_000);
        let mut all: Vec<_> = std::iter::from_fn(|| read_ahead(&file, 0, 1_000_000))
            .take(10_000)
            .collect();
        assert!((2..10_000).contains(&all.len()), "{} reads at once", all.len());
        // Reads are dropped before submission, while in flight, and after their end without another poll.
        all.truncate(all.len() / 2);
        assert!(once(|context| all[0].as_mut().poll(context)).await.is_pending());
        drain_events().await;
        all.truncate(all.len() / 2);
        for one in all.drain(1..) {
            one.await;
        }
        drop(all);
        // The second number counts unfinished operations.
        while driver.counts().1 > 0 {
            drain_events().await;
            thread::yield_now();
        }
        read_ahead(&file, 0, 1_000_000).expect("room again").await;
        assert_eq!(driver.counts(), before);
    });
}

#[test]
fn a_failing_ring_ends_its_reads() {
    on_ring(async |driver| {
        let file = cold_file(1_000_000);
        let mut waiting = read_ahead(&file, 0, 1_000_000).expect("room");
        let idle = read_ahead(&file, 0, 1_000_000).expect("room");
        assert!(once(|context| waiting.as_mut().poll(context)).await.is_pending());
        driver.fail();
        assert!(!waiting.await && !idle.await, "a failed ring reported a completed read");
        assert!(read_ahead(&file, 0, 1).is_none(), "the failed ring is still offered");
    });
}
