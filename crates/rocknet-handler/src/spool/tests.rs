//! Tests of the spool: both sides of each limit, reading back, and cleaning up.

use std::fs::{self, File};
use std::future::poll_fn;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rocknet_config::model::Priority;
use rocknet_io::runtime::Runtime;

use super::store::Error;
use super::*;
use rocknet_blocking::Pool;

/// Maximum time for the pool to close a file.
const DEADLINE: Duration = Duration::from_secs(20);

fn bounds(folder: &Path) -> Bounds {
    Bounds {
        folder: Arc::from(folder),
        memory: 1 << 20,
        disk: 1 << 30,
    }
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 3 % 251) as u8).collect()
}

async fn fill(spool: &mut SpoolWriter, content: &[u8], piece: usize) -> Result<(), Error> {
    for piece in content.chunks(piece) {
        spool.add(piece).await?;
    }
    Ok(())
}

async fn read(spooled: &mut SpooledBody) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(piece) = poll_fn(|context| spooled.poll_piece(context)).await.expect("a piece") {
        assert!(!piece.is_empty());
        all.extend_from_slice(&piece);
    }
    all
}

fn run<F: Future>(future: F) -> F::Output {
    Runtime::new(8).expect("a runtime").block_on(future)
}

/// Waits until the store is empty.
#[track_caller]
fn assert_nothing_is_left(store: &Store) {
    let deadline = Instant::now() + DEADLINE;
    while store.usage() != (0, 0, 0) {
        assert!(Instant::now() < deadline, "{:?} is left", store.usage());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn bodies_are_read_back_unchanged() {
    /// Maximum number of bytes of a body in memory.
    const MOST: usize = 64 * 1024;
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::new(Pool::new(2));
    // Length of the body, bytes added per call, and true if the body is then on disk.
    for (length, piece, on_disk) in [
        (0, 1, false),
        (1, 1, false),
        (MOST - 1, 1000, false),
        (MOST, 7, false),
        (MOST, MOST, false),
        (MOST + 1, 7001, true),
        (MOST + 1, MOST + 1, true),
        (3_000_000, 65_536, true),
        (3_000_000, 999, true),
    ] {
        let what = format!("{length} bytes by {piece}");
        let written = content(length);
        run(async {
            let mut spool = SpoolWriter::new(&store, bounds(folder.path()), MOST as u64, Priority::Normal);
            fill(&mut spool, &written, piece).await.expect("room");
            let mut spooled = spool.finish().await.expect("room");
            assert_eq!(spooled.length(), length as u64, "{what}");
            let (_, disk, files) = store.usage();
            let expected = if on_disk { (length as u64, 1) } else { (0, 0) };
            assert_eq!((disk, files), expected, "{what}");
            assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0, "{what}");
            let mut again = spooled.again();
            assert!(read(&mut spooled).await == written, "{what}");
            drop(spooled);
            assert!(read(&mut again).await == written, "{what}, a second time");
        });
        assert_nothing_is_left(&store);
    }
}

#[test]
fn memory_of_all_bodies_is_bounded() {
    const MEMORY: u64 = 16 * 1024;
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::new(Pool::new(2));
    let bounds = Bounds {
        memory: MEMORY,
        ..bounds(folder.path())
    };
    run(async {
        let new = || SpoolWriter::new(&store, bounds.clone(), MEMORY, Priority::Normal);
        let (mut first, mut second) = (new(), new());
        let body = content(MEMORY as usize);
        fill(&mut first, &body, 1000).await.expect("room");
        assert_eq!(store.usage(), (MEMORY, 0, 0));
        // No memory is left for this body, so each of its pieces is written to disk.
        fill(&mut second, &body, 1000).await.expect("room");
        assert_eq!(store.usage(), (MEMORY, MEMORY, 1));
        let mut second = second.finish().await.expect("room");
        assert!(read(&mut second).await == body);
        let mut first = first.finish().await.expect("room");
        assert!(read(&mut first).await == body);
    });
    assert_nothing_is_left(&store);
}

#[test]
fn disk_space_of_all_bodies_is_bounded() {
    const DISK: usize = 300_000;
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::new(Pool::new(2));
    let bounds = Bounds {
        disk: DISK as u64,
        ..bounds(folder.path())
    };
    run(async {
        for (length, expected) in [(DISK, Ok(())), (DISK + 1, Err(Error::Full))] {
            let mut spool = SpoolWriter::new(&store, bounds.clone(), 0, Priority::Normal);
            let filled = fill(&mut spool, &content(length), 10_000).await;
            let finished = match filled {
                Ok(()) => spool.finish().await.map(drop),
                Err(error) => Err(error),
            };
            assert_eq!(finished, expected, "{length}");
        }
    });
    assert_nothing_is_left(&store);
}

#[test]
fn files_of_all_bodies_are_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::new(Pool::new(2));
    let mut reservation: Vec<_> = (0..most_files())
        .map(|_| store.reserve_file().expect("a reservation"))
        .collect();
    run(async {
        let mut spool = SpoolWriter::new(&store, bounds(folder.path()), 0, Priority::Normal);
        let large = content(1 << 20);
        assert_eq!(fill(&mut spool, &large, 1 << 16).await, Err(Error::Busy));
        reservation.pop();
        let mut spool = SpoolWriter::new(&store, bounds(folder.path()), 0, Priority::Normal);
        assert_eq!(fill(&mut spool, &large, 1 << 16).await, Ok(()));
    });
    drop(reservation);
    assert_nothing_is_left(&store);
}

#[test]
fn unusable_folders_are_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::new(Pool::new(1));
    run(async {
        let mut spool = SpoolWriter::new(&store, bounds(&folder.path().join("missing")), 10, Priority::Normal);
        assert_eq!(spool.add(&[0; 10]).await, Ok(()), "a body in memory needs no folder");
        assert_eq!(spool.add(&[0]).await, Err(Error::Failed));
    });
    assert!(bounds(&folder.path().join("missing")).check_folder().is_some());
    assert!(bounds(folder.path()).check_folder().is_none());
    assert_nothing_is_left(&store);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_has_its_own_error() {
    let store = Store::new(Pool::new(1));
    let full = File::options()
        .read(true)
        .write(true)
        .open("/dev/full")
        .expect("a device that is full");
    let written = body::FileHandle::new(full, store.reserve_file().expect("a reservation"));
    let folder = Path::new("/dev");
    assert_eq!(written.write(b"hello", 0, &bounds(folder)), Err(Error::Full));
    drop(written);
    assert_nothing_is_left(&store);
}

#[test]
fn a_dropped_writer_releases_memory_disk_and_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::new(Pool::new(1));
    for length in [10, 100_000, 700_000] {
        run(async {
            let mut spool = SpoolWriter::new(&store, bounds(folder.path()), 1000, Priority::Normal);
            fill(&mut spool, &content(length), 5000).await.expect("room");
            drop(spool);
        });
        assert_nothing_is_left(&store);
    }
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

#[test]
fn a_reader_yields_to_other_tasks() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::new(Pool::new(1));
    run(async {
        let mut spool = SpoolWriter::new(&store, bounds(folder.path()), 1 << 20, Priority::Normal);
        fill(&mut spool, &content(1 << 20), 1 << 16).await.expect("room");
        let mut spooled = spool.finish().await.expect("room");
        let mut pauses = 0;
        loop {
            let polled = poll_fn(|context| std::task::Poll::Ready(spooled.poll_piece(context))).await;
            match polled {
                std::task::Poll::Pending => pauses += 1,
                std::task::Poll::Ready(Ok(Some(_))) => {}
                std::task::Poll::Ready(other) => break assert_eq!(other, Ok(None)),
            }
        }
        assert!(pauses > 0);
    });
}
