//! Responses that make room for others.

use super::*;

#[test]
fn the_oldest_responses_are_dropped_unless_they_were_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let in_memory = key("memory");
    let store = Opened::with(&path, 16 * MIB, move |key| key == in_memory);
    store.put("used", "used");
    store.put("memory", "memory");
    store.put("unused", "unused");
    store.put("purged", "purged");
    store.flush();
    assert!(store.body("used").is_some() && store.body("purged").is_some());
    store.0.purge(&[Purge::tag("purged")]);
    let body = "x".repeat(200_000);
    for number in 0..200 {
        store.put(&number.to_string(), &body);
        store.flush();
        assert!(store.0.usage().size <= 16 * MIB as u64);
        if number % 40 == 0 {
            // It is not found in the moment in which it is written again.
            until("the used response", || store.body("used").as_deref() == Some("used"));
        }
    }
    // The responses of the last dropped segment are written again.
    until("the last records", || {
        store.body("used").is_some() && store.body("memory").is_some()
    });
    let expect = |store: &Opened| {
        assert_eq!(store.body("used").as_deref(), Some("used"));
        assert_eq!(store.body("memory").as_deref(), Some("memory"));
        for gone in ["unused", "purged", "0"] {
            assert_eq!(store.body(gone), None, "{gone}");
        }
        assert_eq!(store.body("199").as_deref(), Some(&*body));
        assert!((40..90).contains(&store.0.usage().objects), "{:?}", store.0.usage());
    };
    expect(&store);
    store.stop();
    let store = Opened::new(&path);
    expect(&store);
    // A smaller size takes effect.
    store.0.set_capacity(4 * MIB as u64);
    until("segments are dropped", || store.0.usage().size <= 4 * MIB as u64);
    store.stop();
}

#[test]
fn a_kept_response_does_not_take_the_place_of_a_newer_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    let body = "x".repeat(200_000);
    store.put("a", "old");
    store.flush();
    assert_eq!(store.body("a").as_deref(), Some("old"));
    let mut last = 0;
    let mut fill = |count| {
        for _ in 0..count {
            last += 1;
            store.put(&last.to_string(), &body);
            store.flush();
        }
    };
    fill(12);
    // From now on, the response depends on a field.
    let mut vary = rocknet_proto::fields::FieldList::default();
    vary.add("Vary", "Accept-Language");
    let mut newer = stored("max-age=600", "new");
    newer.variation = Variation::of(&vary, &request("de").view().fields, &[], &[]).expect("a variation");
    store.0.put(&key("a"), &newer, moment(), || true);
    store.flush();
    while path.join("00000000.log").exists() {
        fill(1);
    }
    fill(2);
    assert_eq!(store.body("a").as_deref(), Some("new"));
    store.stop();
    assert_eq!(Opened::new(&path).body("a").as_deref(), Some("new"));
}

#[test]
fn the_oldest_segments_make_room_for_the_state() {
    let parent = tempfile::tempdir().expect("a folder");
    let path = parent.path().join("responses");
    let folder = Arc::new(folder::Folder::open(&path).expect("a folder").expect("the lock"));
    for number in 0..3 {
        drop(folder.create_segment(number).expect("a segment"));
    }
    let shared = Shared::new(path, 16 * MIB as u64);
    let mut writer = writer::Writer {
        shared: &shared,
        folder: Arc::clone(&folder),
        is_in_memory: &|_| false,
        seed: 0,
        segment_size: 1 << 20,
        segments: folder.segments().expect("segments").into(),
        active: None,
        end: 0,
        buffer: Vec::new(),
    };
    let full = || std::io::Error::from(rustix::io::Errno::NOSPC);
    let write = |left: usize| {
        move |folder: &folder::Folder| match folder.segments()?.len() > left {
            true => Err(full()),
            false => Ok(()),
        }
    };
    writer.write_small(write(1)).expect("room");
    assert_eq!(folder.segments().expect("segments"), [(2, 0)]);
    writer.write_small(write(0)).expect("room");
    assert!(writer.write_small(|_| Err::<(), _>(full())).is_err());
}

/// A segment has a maximum number of responses, so small ones can fill the log with few bytes. If all of them were
/// kept, each dropped segment would fill the next one, without end.
#[test]
fn small_responses_that_were_not_used_make_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Opened::new(&folder.path().join("responses"));
    for number in 0..6_000 {
        store.put(&number.to_string(), "small");
        if number % 100 == 0 {
            store.flush();
        }
    }
    store.flush();
    let kept = &store.0.shared.stats.kept;
    assert_eq!(kept.load(std::sync::atomic::Ordering::Relaxed), 0);
    let usage = store.0.usage();
    assert!((2_000..=4_096).contains(&usage.objects), "{usage:?}");
    assert_eq!(store.body("5999").as_deref(), Some("small"));
    store.stop();
}
