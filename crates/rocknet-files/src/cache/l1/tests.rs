//! Tests of the first level of the file cache.

use rocknet_config::model::Settings;
use rocknet_proto::status::Status;

use super::*;
use crate::entry::Found;

/// Returns an entry for an existing path.
fn entry() -> Rc<CachedEntry> {
    let entry = Arc::new(Entry::new(Found::WithoutSlash, Vec::new(), 0));
    Rc::new(CachedEntry::new(
        entry,
        Arc::new(Tree::standalone(&Settings::default(), 0).expect("a tree")),
        "/".into(),
    ))
}

fn hit() -> Hit {
    Hit::Entry(entry())
}

fn missing_hit() -> Hit {
    let entry = Entry::new(Found::Failed(Status::NOT_FOUND), Vec::new(), 0);
    Hit::Entry(Rc::new(CachedEntry::new(
        Arc::new(entry),
        Arc::new(Tree::standalone(&Settings::default(), 0).expect("a tree")),
        "/".into(),
    )))
}

/// Checks that the counted bytes match the slots.
fn check_sums(cache: &L1Cache) {
    let sum: usize = cache.paths.iter().map(|slot| slot.hit.bytes(&slot.path)).sum();
    let missing = cache.paths.iter().filter(|slot| slot.hit.is_missing());
    let missing: usize = missing.map(|slot| slot.hit.bytes(&slot.path)).sum();
    assert_eq!((cache.bytes, cache.missing_bytes), (sum, missing));
}

#[test]
fn short_missing_paths_are_cached_up_to_a_limit_and_evict_no_other_paths() {
    let mut cache = L1Cache::default();
    for number in 0..1000 {
        cache.insert(0, format!("/there/{number}").as_bytes(), hit());
    }
    for number in 0..MAX_PATHS {
        let path = format!("/{number}/{}", "x".repeat(200));
        cache.insert(0, path.as_bytes(), missing_hit());
        assert!(cache.get(0, path.as_bytes()).is_some());
        assert!(cache.missing_bytes <= MAX_MISSING_BYTES, "{}", cache.missing_bytes);
    }
    check_sums(&cache);
    for number in 0..1000 {
        assert!(cache.get(0, format!("/there/{number}").as_bytes()).is_some());
    }
    // The maximum length of a missing path is 256 bytes.
    for (length, is_kept) in [(256, true), (257, false)] {
        let path = vec![b'y'; length];
        cache.insert(0, &path, missing_hit());
        assert_eq!(
            cache.get(0, &path).is_some(),
            is_kept,
            "a missing path of {length} bytes"
        );
        cache.insert(0, &path, hit());
        assert!(cache.get(0, &path).is_some());
        cache.insert(0, &path, missing_hit());
        assert_eq!(
            cache.get(0, &path).is_some(),
            is_kept,
            "a missing path replaces its entry"
        );
    }
    check_sums(&cache);
}

#[test]
fn the_bytes_of_paths_and_values_are_bounded_and_freed() {
    for (memory, most) in [
        (0, MIN_BYTES),
        (64 << 20, 1 << 20),
        (256 << 20, MAX_BYTES),
        (1 << 40, MAX_BYTES),
    ] {
        let (mut cache, mut largest) = (L1Cache::new(memory), 0);
        for number in 0..MAX_PATHS {
            cache.insert(0, format!("/{number:0500}").as_bytes(), hit());
            largest = largest.max(cache.bytes);
        }
        check_sums(&cache);
        // A path uses less than 4096 bytes, so at most this much remains unused.
        assert!((most - 4096..=most).contains(&largest), "{largest} bytes of {memory}");
        let capacity = cache.paths.capacity();
        cache.paths.iter().for_each(|slot| {
            if let Hit::Entry(cached) = &slot.hit {
                cached.entry.retire();
            }
        });
        cache.drop_retired();
        check_sums(&cache);
        assert_eq!(cache.bytes, 0);
        assert!(cache.paths.capacity() <= capacity.min(8 * MIN_NEEDED));
    }
}

#[test]
fn many_inserts_drop_retired_entries_without_waiting_for_the_tick() {
    let mut cache = L1Cache::default();
    let first = entry();
    cache.insert(0, b"/first", Hit::Entry(Rc::clone(&first)));
    first.entry.retire();
    let size = first.entry.size();
    for number in 0..MAX_ADDED_BYTES / size {
        cache.insert(0, format!("/{number}").as_bytes(), hit());
    }
    assert!(cache.get(0, b"/first").is_none());
}

#[test]
fn eviction_keeps_used_paths() {
    let mut cache = L1Cache::default();
    cache.insert(0, b"/favourite", hit());
    for number in 0..MAX_PATHS * 3 {
        cache.insert(1, format!("/{number}").as_bytes(), hit());
        assert!(cache.get(0, b"/favourite").is_some(), "evicted by path {number}");
        assert!(cache.paths.len() <= MAX_PATHS);
    }
    assert!(cache.get(1, b"/favourite").is_none());
    assert!(cache.get(0, b"/favouritee").is_none());
}

#[test]
fn paths_can_be_removed_and_long_paths_are_not_inserted() {
    let mut cache = L1Cache::default();
    let entry = entry();
    cache.insert(0, b"/a", Hit::Entry(Rc::clone(&entry)));
    cache.insert(0, b"/b", hit());
    cache.remove(0, b"/b");
    assert!(cache.get(0, b"/b").is_none());
    entry.entry.retire();
    cache.drop_retired();
    assert!(cache.get(0, b"/a").is_none());
    cache.insert(0, &[b'x'; MAX_PATH_LENGTH + 1], hit());
    assert!(cache.paths.is_empty());
    cache.insert(0, &[b'x'; MAX_PATH_LENGTH], hit());
    assert!(cache.get(0, &[b'x'; MAX_PATH_LENGTH]).is_some());
}
