//! Torn and changed records, crashes of the system, and errors of the disk.

use super::*;

/// Checks that for any part of the last segment that was written when the process was killed, earlier responses are
/// read, and no part passes for the whole.
#[test]
fn torn_records_are_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.put("a", "first");
    store.flush();
    let first = fs::metadata(path.join("00000000.log")).expect("a segment").len();
    store.put("b", "second");
    store.flush();
    let torn = folder.path().join("torn");
    let second = fs::metadata(path.join("00000000.log")).expect("a segment").len();
    for length in (first..second).step_by(11).chain([second - 1]) {
        copy(&path, &torn);
        let segment = fs::OpenOptions::new()
            .write(true)
            .open(torn.join("00000000.log"))
            .expect("a segment");
        segment.set_len(length).expect("a shorter segment");
        // The second start finds a whole segment.
        for number in 0..2 {
            let store = Opened::new(&torn);
            assert_eq!(store.body("a").as_deref(), Some("first"), "{length} {number}");
            assert_eq!(store.body("b"), None, "{length} {number}");
            store.put("c", "third");
            store.stop();
        }
        let store = Opened::new(&torn);
        assert_eq!(store.body("c").as_deref(), Some("third"));
        store.stop();
    }
}

/// A flipped bit anywhere in an older segment costs responses at most. It neither changes one, nor brings one back that
/// was dropped.
#[test]
fn flipped_bits_are_detected() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    for name in ["a", "b", "c", "d"] {
        store.put(name, &format!("old {name}"));
    }
    store.flush();
    store.0.remove(&key("a"));
    store.0.purge(&[Purge::tag("old b")]);
    store.put("c", "new c");
    store.stop();
    let store = Opened::new(&path);
    store.put("e", "last");
    store.stop();
    let whole = fs::read(path.join("00000000.log")).expect("a segment");
    let damaged = folder.path().join("damaged");
    for at in (0..whole.len()).step_by(13) {
        copy(&path, &damaged);
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(damaged.join("00000000.log"), &bytes).expect("a segment");
        let store = Opened::new(&damaged);
        assert_eq!((store.body("a"), store.body("b")), (None, None), "byte {at}");
        assert!([None, Some("new c")].contains(&store.body("c").as_deref()), "byte {at}");
        assert!([None, Some("old d")].contains(&store.body("d").as_deref()), "byte {at}");
        assert_eq!(store.body("e").as_deref(), Some("last"), "byte {at}");
        store.stop();
    }
}

/// A response that cannot be read for a moment is dropped for good, because a change of its resource meanwhile would
/// have no record.
#[test]
fn a_failed_read_brings_no_outdated_response_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.put("a", "outdated");
    store.put("b", "b");
    store.flush();
    let segment = path.join("00000000.log");
    let whole = fs::read(&segment).expect("a segment");
    fs::write(&segment, vec![0; whole.len()]).expect("a damaged segment");
    assert_eq!(store.body("a"), None);
    store.0.remove(&key("a"));
    let file = fs::OpenOptions::new().write(true).open(&segment).expect("a segment");
    std::os::unix::fs::FileExt::write_all_at(&file, &whole, 0).expect("the segment as before");
    assert_eq!((store.body("a"), store.body("b").as_deref()), (None, Some("b")));
    store.stop();
    let store = Opened::new(&path);
    assert_eq!((store.body("a"), store.body("b").as_deref()), (None, Some("b")));
    store.stop();
}

#[test]
fn a_crash_of_the_system_empties_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.put("a", "a");
    store.flush();
    let crashed = folder.path().join("crashed");
    copy(&path, &crashed);
    store.stop();
    for (path, expected) in [(&crashed, None), (&path, Some("a"))] {
        let state = fs::read_to_string(path.join("state")).expect("a state");
        let boot = folder::boot_id();
        assert!(boot.is_empty() || state.contains(&boot));
        let other = state.replace(&boot, "00000000-0000-0000-0000-000000000000");
        fs::write(path.join("state"), other).expect("a state");
        let store = Opened::new(path);
        assert_eq!(store.body("a").as_deref(), expected, "{}", path.display());
    }
}

#[test]
fn an_error_of_the_disk_empties_the_log_and_costs_no_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.put("a", "a");
    store.flush();
    // The next segment cannot be created.
    fs::create_dir(path.join("00000001.log")).expect("a folder");
    let body = "x".repeat(600_000);
    for number in 0..3 {
        store.put(&number.to_string(), &body);
    }
    until("the error is noticed", || !store.0.is_ready());
    store.put("b", "b");
    store.0.remove(&key("a"));
    assert_eq!((store.body("a"), store.body("b")), (None, None));
    until("the segments are removed", || !path.join("00000000.log").exists());
    assert_eq!(store.0.usage().objects, 0);
    assert!(store.0.usage().errors > 0);
    store.stop();
}

/// Headers that are damaged in the last segment may be those of removals.
#[test]
fn damage_in_the_last_segment_brings_no_response_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let segment = "00000000.log";
    let store = Opened::new(&path);
    store.put("a", "a");
    store.flush();
    let second = fs::metadata(path.join(segment)).expect("a segment").len() as usize;
    store.put("b", "b");
    store.0.remove(&key("a"));
    store.flush();
    let killed = folder.path().join("killed");
    copy(&path, &killed);
    let mut bytes = fs::read(killed.join(segment)).expect("a segment");
    bytes[second] ^= 1;
    fs::write(killed.join(segment), &bytes).expect("a segment");
    // After the end in order, no record is torn.
    store.stop();
    let bytes = fs::read(path.join(segment)).expect("a segment");
    fs::write(path.join(segment), &bytes[..bytes.len() - 1]).expect("a segment");
    for path in [&path, &killed] {
        for _ in 0..2 {
            let store = Opened::new(path);
            assert_eq!((store.body("a"), store.body("b")), (None, None));
            store.stop();
        }
    }
}
