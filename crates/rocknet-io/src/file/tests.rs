//! Tests of reading and sending files: whole, in part, beyond their end, and while they are truncated.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::*;

/// Returns a file of this length and its content.
fn file_of(length: usize) -> (tempfile::NamedTempFile, Vec<u8>) {
    let content: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
    let mut named = tempfile::NamedTempFile::new().unwrap();
    named.write_all(&content).unwrap();
    (named, content)
}

#[test]
fn reads_at_most() {
    for (length, max) in [
        (0, 0),
        (0, 10),
        (10, 0),
        (10, 1),
        (10, 9),
        (10, 10),
        (10, 11),
        (10, usize::MAX),
        (FIRST_ALLOCATION - 1, FIRST_ALLOCATION),
        (FIRST_ALLOCATION, FIRST_ALLOCATION),
        (FIRST_ALLOCATION + 1, FIRST_ALLOCATION),
        (FIRST_ALLOCATION + 1, usize::MAX),
        (5 * FIRST_ALLOCATION + 7, 3 * FIRST_ALLOCATION + 1),
        (5 * FIRST_ALLOCATION + 7, 5 * FIRST_ALLOCATION + 8),
    ] {
        let (named, content) = file_of(length);
        let read = read_at_most(named.as_file(), max).unwrap();
        assert!(
            read == content[..length.min(max)],
            "{length} bytes, at most {max}: got {}",
            read.len()
        );
    }
}

#[test]
fn reads_ranges() {
    // Length of the file, offset and length of the range, offset of the first missing byte (`None` if none is missing).
    for (length, offset, range, truncated) in [
        (100, 0, 100, None),
        (100, 99, 1, None),
        (100, 100, 0, None),
        (100, 100, 1, Some(100)),
        (100, 50, 51, Some(100)),
        (0, 0, 1, Some(0)),
        (100, 300, 5, Some(300)),
    ] {
        let (named, content) = file_of(length);
        let mut buffer = vec![0; range];
        let result = read_range(named.as_file(), offset, &mut buffer);
        assert_eq!(result.err(), truncated.map(|at| FileError::Truncated { at }));
        if truncated.is_none() {
            assert_eq!(buffer, content[offset as usize..offset as usize + range]);
        }
    }
}

#[test]
fn other_errors_are_not_truncation() {
    let directory = File::open(".").unwrap();
    assert_eq!(
        read_range(&directory, 0, &mut [0]),
        Err(FileError::System(Errno::ISDIR))
    );
    assert!(!is_resident(&directory, 0));
}

#[test]
fn written_bytes_are_resident_if_the_file_system_can_tell() {
    let (named, content) = file_of(10_000);
    // A file system in memory does not support reads that do not wait. There, `read_resident` and `read_resident_vec`
    // return `None`, and nothing is compared.
    let mut buffer = [0; 100];
    if let Some(read) = read_resident(named.as_file(), 50, &mut buffer).unwrap() {
        assert_eq!(buffer[..read], content[50..50 + read]);
        assert!(read > 0 && is_resident(named.as_file(), 9_999));
        assert_eq!(read_resident(named.as_file(), 10_000, &mut buffer).unwrap(), Some(0));
        assert_eq!(check_resident(named.as_file(), 9_999), Ok(true));
        let cut = FileError::Truncated { at: 10_000 };
        assert_eq!(check_resident(named.as_file(), 10_000), Err(cut));
    }
    if let Some(read) = read_resident_vec(named.as_file(), 50, 100).unwrap() {
        assert_eq!(read, content[50..50 + read.len()]);
        assert!((1..=100).contains(&read.len()));
        assert_eq!(
            read_resident_vec(named.as_file(), 9_990, 100).unwrap(),
            Some(content[9_990..].to_vec())
        );
        assert_eq!(
            read_resident_vec(named.as_file(), 10_000, 100).unwrap(),
            Some(Vec::new())
        );
    }
    assert!(
        read_resident_vec(named.as_file(), u64::MAX, 100).unwrap().is_none(),
        "beyond any file"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_loaded_range_is_resident() {
    /// Function that loads a range of a file, given by its offset and length.
    type Load = fn(&File, u64, u64);
    let by_reading: Load = |file, offset, length| read_and_discard(file, offset, offset + length);
    for load_into_page_cache in [load_into_page_cache as Load, by_reading] {
        // Length of the file, offset and length of the range.
        for (length, offset, range) in [
            (10, 0, 10),
            (3_000_000, 1 << 20, 1 << 20),
            // The range ends after the file, as if the file had been truncated after its size was queried.
            (300_000, 200_000, 1_000_000),
            (300_000, 400_000, 10),
            (10, 0, 0),
            (10, u64::MAX - 1, 1),
        ] {
            let (named, _) = file_of(length);
            let file = named.as_file();
            // Evict the file from the page cache, as far as the file system permits.
            file.sync_all().unwrap();
            rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
            load_into_page_cache(file, offset, range);
            for at in (offset..(offset.saturating_add(range)).min(length as u64)).step_by(4096) {
                assert!(is_resident(file, at), "byte {at} of {length}");
            }
        }
        // A directory cannot be read; the call must return.
        load_into_page_cache(&File::open(".").unwrap(), 0, 10);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn files_in_memory_are_always_resident() {
    let file = rustix::fs::memfd_create("file", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let file = File::from(file);
    file.set_len(1 << 20).unwrap();
    assert!(is_resident(&file, 0) && is_resident(&file, 1 << 19));
    let (socket, _other) = UnixStream::pair().unwrap();
    assert!(!is_resident(&File::from(OwnedFd::from(socket)), 0), "not a file");
}

#[test]
fn sends_a_range_into_a_socket_that_fills() {
    let (named, content) = file_of(3_000_000);
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let (start, end) = (1_000, 2_900_000);
    let (mut offset, mut received, mut full) = (start, Vec::new(), 0);
    let mut buffer = vec![0; 1 << 20];
    while offset < end {
        let before = offset;
        match sendfile(&ours, named.as_file(), &mut offset, end - before) {
            Ok(sent) => assert_eq!(offset, before + sent as u64),
            Err(error) => {
                assert!(error.would_block() && offset == before, "{error}");
                full += 1;
                let read = theirs.read(&mut buffer).unwrap();
                received.extend_from_slice(&buffer[..read]);
            }
        }
    }
    drop(ours);
    theirs.read_to_end(&mut received).unwrap();
    assert!(received == content[start as usize..end as usize]);
    assert!(full > 0, "the socket was never full, so the test proves nothing");
}

#[test]
fn truncation_while_sending_is_reported() {
    let (named, _) = file_of(10_000);
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let mut offset = 0;
    assert_eq!(sendfile(&ours, named.as_file(), &mut offset, 4_000).unwrap(), 4_000);
    named.as_file().set_len(5_000).unwrap();
    assert_eq!(sendfile(&ours, named.as_file(), &mut offset, 6_000).unwrap(), 1_000);
    let cut = FileError::Truncated { at: 5_000 };
    assert_eq!(sendfile(&ours, named.as_file(), &mut offset, 5_000), Err(cut));
    assert_eq!(
        (io::Error::from(cut).kind(), Errno::from(cut)),
        (io::ErrorKind::UnexpectedEof, Errno::IO)
    );
    assert_eq!(sendfile(&ours, named.as_file(), &mut offset, 0).unwrap(), 0);
}
