//! Quotas of sites.

use super::*;

const KIB: usize = 1 << 10;

/// Returns the size of the responses of a site with a quota, in bytes.
fn bytes(store: &Opened, site: &str) -> u64 {
    let limited = store.0.limited_sites();
    let usage = limited.iter().find(|usage| usage.site == site);
    usage.expect("a site with a quota").bytes
}

fn put(store: &Opened, site: &str, path: &str, size: usize) {
    let response = stored("max-age=600", &format!("{path} {}", "x".repeat(size)));
    store.0.put(&key_of(site, path), &response, moment(), || true);
}

fn has(store: &Opened, site: &str, path: &str) -> bool {
    store.body_of(&key_of(site, path), &request("de")).is_some()
}

/// Returns the numbers of those responses `0`, `1`, … of a site that can be read.
fn found(store: &Opened, site: &str, count: usize) -> Vec<usize> {
    store.flush();
    (0..count)
        .filter(|number| has(store, site, &number.to_string()))
        .collect()
}

/// Asserts that the newest of `count` responses can be read, and that only older ones are missing.
#[track_caller]
fn expect_newest(found: &[usize], count: usize, least: usize) {
    assert!(found.len() >= least && found.len() < count, "{found:?}");
    let newest: Vec<_> = (count - found.len()..count).collect();
    assert_eq!(found, newest);
}

#[test]
fn the_oldest_responses_of_a_site_leave_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.0.set_quotas([("s", MIB as u64)].into_iter());
    put(&store, "other", "0", 100 * KIB);
    for number in 0..40 {
        put(&store, "s", &number.to_string(), 50 * KIB);
        store.flush();
        assert!(bytes(&store, "s") <= MIB as u64);
    }
    expect_newest(&found(&store, "s", 40), 40, 17);
    assert!(has(&store, "other", "0"));
    let usage = store.0.usage();
    assert_eq!(usage.objects + usage.trimmed, 41, "{usage:?}");
    assert!(usage.bytes <= MIB as u64 + 101 * KIB as u64, "{usage:?}");
    // A response that is larger than the quota is not written, and drops none.
    let before = found(&store, "s", 40);
    store
        .0
        .set_quotas([("s", MIB as u64), ("small", 20 * KIB as u64)].into_iter());
    put(&store, "small", "0", 10 * KIB);
    put(&store, "small", "1", 30 * KIB);
    assert_eq!(found(&store, "small", 2), [0]);
    assert_eq!(found(&store, "s", 40), before);
    store.stop();
}

/// A response that has left the index does not come back, though its record is still in the log: a change of its
/// resource has no record, because nothing of it was in the index.
#[test]
fn sizes_and_dropped_responses_survive_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let quota = [("s", MIB as u64)];
    let store = Opened::new(&path);
    store.0.set_quotas(quota.into_iter());
    for number in 0..40 {
        put(&store, "s", &number.to_string(), 50 * KIB);
    }
    let before = found(&store, "s", 40);
    expect_newest(&before, 40, 17);
    store.0.remove(&key_of("s", "0"));
    let size = bytes(&store, "s");
    store.flush();
    let killed = folder.path().join("killed");
    copy(&path, &killed);
    store.stop();
    for path in [&path, &killed] {
        // Also without the quota.
        let store = Opened::new(path);
        assert_eq!(found(&store, "s", 40), before);
        store.0.set_quotas(quota.into_iter());
        assert_eq!((found(&store, "s", 40), bytes(&store, "s")), (before.clone(), size));
        // The quota applies to what is read at start.
        for number in 40..45 {
            put(&store, "s", &number.to_string(), 50 * KIB);
        }
        expect_newest(&found(&store, "s", 45), 45, 17);
        assert!(bytes(&store, "s") <= MIB as u64);
        store.stop();
    }
}

#[test]
fn another_quota_takes_effect_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    for number in 0..40 {
        put(&store, "s", &number.to_string(), 50 * KIB);
        put(&store, "other", &number.to_string(), 50 * KIB);
    }
    assert_eq!(found(&store, "s", 40).len(), 40);
    // Until now, there was no quota.
    store.0.set_quotas([("s", MIB as u64)].into_iter());
    let first = found(&store, "s", 40);
    expect_newest(&first, 40, 16);
    assert!(bytes(&store, "s") <= MIB as u64);
    // A larger one brings nothing back, and gives room.
    store.0.set_quotas([("s", 8 * MIB as u64)].into_iter());
    assert_eq!(found(&store, "s", 40), first);
    for number in 0..40 {
        put(&store, "s", &number.to_string(), 50 * KIB);
    }
    assert_eq!(found(&store, "s", 40).len(), 40);
    store.0.set_quotas(std::iter::empty());
    assert_eq!(found(&store, "s", 40).len(), 40);
    // Nothing of the site may be on disk.
    store.0.set_quotas([("s", 0)].into_iter());
    put(&store, "s", "1", KIB);
    assert!(found(&store, "s", 40).is_empty());
    assert_eq!(found(&store, "other", 40).len(), 40);
    store.stop();
    // A quota that is smaller at the next start applies to the responses of the log.
    let store = DiskStore::start(path, 16 * MIB as u64, |_| false).expect("a thread");
    store.set_quotas([("other", MIB as u64)].into_iter());
    until("the store opens", || store.is_ready());
    let store = Opened(store);
    expect_newest(&found(&store, "other", 40), 40, 16);
    assert!(found(&store, "s", 40).is_empty());
    store.stop();
}

/// Replaced, removed and purged responses do not count, and neither do those of dropped segments.
#[test]
fn the_size_of_a_site_is_that_of_its_responses_in_the_index() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.0.set_quotas([("s", 4 * MIB as u64)].into_iter());
    let of_one = {
        put(&store, "s", "0", 100 * KIB);
        bytes(&store, "s")
    };
    for _ in 0..100 {
        put(&store, "s", "0", 100 * KIB);
        store.flush();
    }
    assert_eq!(bytes(&store, "s"), of_one);
    assert_eq!(store.0.usage().trimmed, 0);
    put(&store, "s", "1", 100 * KIB);
    store.0.remove(&key_of("s", "0"));
    assert_eq!(bytes(&store, "s"), of_one);
    // The purged response is noticed when it is read.
    store.0.purge(&[Purge::url("https://h/1", false).expect("a purge")]);
    store.flush();
    assert!(!has(&store, "s", "1"));
    assert_eq!(bytes(&store, "s"), 0);
    put(&store, "s", "2", 100 * KIB);
    // The segment of the response is dropped.
    for number in 0..400 {
        put(&store, "other", &number.to_string(), 100 * KIB);
        store.flush();
    }
    assert_eq!((has(&store, "s", "2"), bytes(&store, "s")), (false, 0));
    put(&store, "s", "3", 100 * KIB);
    store.0.purge(&[Purge::everything()]);
    assert_eq!((bytes(&store, "s"), store.0.usage().bytes), (0, 0));
    store.stop();
}

/// A site that writes much within its quota does not displace the responses of others.
#[test]
fn dropped_responses_make_room_before_others_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.0.set_quotas([("s", MIB as u64)].into_iter());
    for number in 0..20 {
        put(&store, "other", &number.to_string(), 100 * KIB);
    }
    // Three times the size of the log.
    for number in 0..500 {
        put(&store, "s", &number.to_string(), 100 * KIB);
        store.flush();
    }
    assert_eq!(found(&store, "other", 20).len(), 20);
    expect_newest(&found(&store, "s", 500), 500, 8);
    store.stop();
    let store = Opened::new(&path);
    assert_eq!(found(&store, "other", 20).len(), 20);
    store.stop();
}

/// Entries of dropped responses do not fill the index, however many a site writes.
#[test]
fn the_index_does_not_grow_with_dropped_responses() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::with(&path, 256 * MIB, |_| false);
    store.0.set_quotas([("s", MIB as u64)].into_iter());
    for number in 0..20_000 {
        put(&store, "s", &number.to_string(), 100);
        if number % 4000 == 0 {
            store.flush();
        }
    }
    store.flush();
    let usage = store.0.usage();
    assert!((1000..5000).contains(&usage.objects), "{usage:?}");
    until("dropped entries are removed", || store.0.shared.index.entries() < 8000);
    store.stop();
}
