//! Tests of the store of responses.

use std::sync::atomic::AtomicBool;
use std::thread;

use bytes::Bytes;
use rocknet_handler::response::{FieldList, Response};
use rocknet_proto::fields::KnownField;
use rocknet_proto::request::{OwnedRequest, Version};
use rocknet_proto::status::Status;

use super::*;
use crate::policy::{self, RequestFacts, Times};
use crate::stored::Storable;
use crate::vary::Variation;

const MIB: u64 = 1024 * 1024;

fn stored(size: usize) -> Arc<StoredResponse> {
    variant(size, Variation::default())
}

fn variant(size: usize, variation: Variation) -> Arc<StoredResponse> {
    let mut response = Response::new(Status::OK);
    response.fields.add("Cache-Control", "max-age=60");
    let times = Times {
        requested_ms: 0,
        received_ms: 0,
        made_unix: 0,
    };
    let facts = RequestFacts::default();
    let terms = policy::terms(&facts, response.status, &response.fields, times, &Default::default());
    let storable = Storable {
        terms: terms.expect("a response that may be stored"),
        variation,
        tags: Arc::default(),
        server_fields: Default::default(),
        url: None,
        changes: 0,
    };
    Arc::new(StoredResponse::new(&response, Bytes::from(vec![0; size]), storable))
}

#[test]
fn a_resize_keeps_responses_and_adapts_the_shards() {
    let store = MemoryStore::new(4 * MIN_SHARD);
    let key = |number: u32| number.to_be_bytes();
    let small = stored(10);
    for number in 0..1_000 {
        assert_eq!(store.put(&key(number), &small, || true), Ok(()));
    }
    let largest = |store: &MemoryStore| store.for_insert().map(|(_, shards)| shards.max_resource());
    for capacity in [64 * MIN_SHARD, MIN_SHARD, 8 * MIN_SHARD, 9 * MIN_SHARD] {
        store.set_capacity(capacity);
        assert_eq!(store.len(), 1_000, "{capacity}");
        assert!((0..1_000).all(|number| store.get(&key(number)).is_some()), "{capacity}");
        assert!(largest(&store) >= Some(MIN_SHARD / 10 * 9), "{capacity}");
    }
    // With the shards of the larger store, this response would be larger than a shard.
    store.set_capacity(8 * MIB);
    assert_eq!(store.put(&key(0), &stored(4 * MIB as usize), || true), Ok(()));
    assert_eq!(
        store.put(&key(0), &stored(8 * MIB as usize), || true),
        Err(NotStored::Body)
    );
    assert!(store.size() <= 8 * MIB);
    store.set_capacity(0);
    assert!(store.is_empty() && store.get(&key(0)).is_none());
    assert_eq!(store.put(&key(0), &small, || true), Err(NotStored::NoMemory));
    store.set_capacity(MIB);
    assert_eq!(store.put(&key(0), &small, || true), Ok(()));
}

/// A crawler requests each page once. The pages that visitors have requested again stay in memory.
#[test]
fn a_scan_does_not_displace_resources_in_use() {
    const HOT: u32 = 100;
    let store = MemoryStore::new(16 * MIB);
    let response = stored(16 * 1024);
    // As the handler does: a lookup, and storing after a miss.
    let request = |number: u32| {
        let key = number.to_be_bytes();
        let is_hit = store.get(&key).is_some();
        if !is_hit {
            store.put(&key, &response, || true).expect("room");
        }
        is_hit
    };
    for _ in 0..3 {
        (0..HOT).for_each(|number| _ = request(number));
    }
    let one_time = 10 * u32::try_from(store.capacity() / response.memory_size() as u64).expect("a number");
    for number in HOT..HOT + one_time {
        assert!(!request(number));
    }
    // The scan has filled the store.
    assert!(store.size() > store.capacity() / 10 * 9, "{}", store.size());
    let missing: Vec<_> = (0..HOT).filter(|number| !request(*number)).collect();
    assert_eq!(missing, [0; 0]);
}

#[test]
fn only_resources_with_responses_are_counted() {
    let store = MemoryStore::new(8 * MIN_SHARD);
    let response = stored(10);
    store.mark_uncacheable(b"a", 1);
    assert_eq!(store.len(), 0);
    assert!(store.size() > 0);
    store.put(b"a", &response, || true).expect("room");
    store.put(b"b", &response, || true).expect("room");
    store.put(b"b", &response, || true).expect("room");
    assert_eq!(store.len(), 2);
    // A mark keeps the responses.
    store.mark_uncacheable(b"b", 1);
    store.mark_uncacheable(b"c", 1);
    assert_eq!(store.len(), 2);
    store.set_capacity(MIN_SHARD);
    assert_eq!(store.len(), 2, "after a change of the shards");
    store.remove(b"b");
    assert_eq!(store.len(), 1);
    store.retain(|_, _| false);
    assert_eq!(store.len(), 0);
    // Evicted resources do not count either.
    store.set_capacity(MIB);
    let large = stored(100 * 1024);
    for number in 0..100_u32 {
        store.put(&number.to_be_bytes(), &large, || true).expect("room");
    }
    assert!((1..=10).contains(&store.len()), "{}", store.len());
    store.set_capacity(0);
    assert!(store.is_empty());
}

/// A purge begins with a mark, which the check of each insertion sees. No response is left that was checked before.
#[test]
fn no_purge_falls_between_check_and_insertion() {
    let store = MemoryStore::new(MIB);
    let is_purged = AtomicBool::new(false);
    let response = stored(10);
    let purge = || {
        is_purged.store(true, Ordering::SeqCst);
        store.retain(|_, _| false);
    };
    thread::scope(|scope| {
        let mut purging = None;
        let result = store.put(b"key", &response, || {
            let is_current = !is_purged.load(Ordering::SeqCst);
            // The purge begins after the check, and does not end before the insertion.
            let thread = purging.insert(scope.spawn(purge));
            let mut left = 10_000_i64;
            while !thread.is_finished() && (left > 0 || !is_purged.load(Ordering::SeqCst)) {
                thread::yield_now();
                left -= 1;
            }
            is_current
        });
        assert_eq!(result, Ok(()));
        purging.expect("a thread").join().expect("no panic");
    });
    assert!(store.get(b"key").is_none());
    let result = store.put(b"key", &response, || !is_purged.load(Ordering::SeqCst));
    assert_eq!(result, Err(NotStored::Purged));
}

#[test]
fn the_number_of_variants_is_limited() {
    let store = MemoryStore::new(MIB);
    let mut vary = FieldList::default();
    vary.add("Vary", "User-Agent");
    let request = |number: usize| {
        let agent = number.to_string();
        OwnedRequest::synthetic_get(
            Version::Http11,
            b"h",
            b"/",
            &[(KnownField::UserAgent, agent.as_bytes())],
        )
    };
    for number in 0..2 * MAX_VARIANTS {
        let request = request(number);
        let variation = Variation::of(&vary, &request.view().fields, &[], &[]).expect("a variation");
        assert_eq!(store.put(b"key", &variant(10, variation), || true), Ok(()));
    }
    let resource = store.get(b"key").expect("a resource");
    assert_eq!(resource.variants.len(), MAX_VARIANTS);
    // The oldest ones are dropped.
    assert!(resource.select(&request(0).view().fields).is_none());
    assert!(resource.select(&request(2 * MAX_VARIANTS - 1).view().fields).is_some());
}

/// Workers that keep a resource learn from it alone that the store has another one.
#[test]
fn a_resource_is_retired_when_it_leaves_the_store() {
    let store = MemoryStore::new(2 * MIN_SHARD);
    let changes: [(&str, &dyn Fn()); 8] = [
        ("replaced", &|| {
            assert_eq!(store.put(b"key", &stored(20), || true), Ok(()));
        }),
        ("marked", &|| store.mark_uncacheable(b"key", 1)),
        ("removed", &|| assert!(store.remove(b"key"))),
        ("purged", &|| store.retain(|key, _| key != b"key")),
        ("moved to other shards", &|| store.set_capacity(8 * MIN_SHARD)),
        ("resized", &|| store.set_capacity(8 * MIN_SHARD + 8)),
        ("dropped with the memory", &|| store.set_capacity(0)),
        ("evicted", &|| {
            for number in 0..10_u32 {
                let _ = store.put(&number.to_be_bytes(), &stored(MIB as usize), || true);
                let _ = store.get(&number.to_be_bytes());
            }
        }),
    ];
    for (change, apply) in changes {
        if store.capacity() == 0 {
            store.set_capacity(4 * MIB);
        }
        assert_eq!(store.put(b"key", &stored(10), || true), Ok(()), "{change}");
        let resource = store.get(b"key").expect("a stored resource");
        assert!(!resource.is_retired(), "{change}");
        assert_eq!(store.put(b"other", &stored(10), || true), Ok(()));
        assert!(!resource.is_retired(), "{change}");
        apply();
        let current = store.get(b"key");
        let is_same = current.is_some_and(|current| Arc::ptr_eq(&current, &resource));
        assert_eq!(resource.is_retired(), !is_same, "{change}");
        assert_eq!(is_same, change == "resized", "{change}");
    }
}

#[test]
fn a_response_of_the_disk_replaces_none_in_memory() {
    let store = MemoryStore::new(MIN_SHARD);
    let request = |language: &[u8]| {
        OwnedRequest::synthetic_get(Version::Http11, b"h", b"/", &[(KnownField::AcceptLanguage, language)])
    };
    let (de, en) = (request(b"de"), request(b"en"));
    let (de, en) = (de.view(), en.view());
    let put = |stored: &Arc<StoredResponse>, is_current: bool| store.put_older(b"a", stored, &de.fields, || is_current);
    let selected = |fields| {
        let resource = store.get(b"a")?;
        Some(resource.select(fields)?.body.len())
    };
    let old = stored(1);
    assert_eq!(put(&old, false).err(), Some(NotStored::Purged));
    assert!(store.get(b"a").is_none());
    // While the response was read, another request has received a newer one.
    assert_eq!(store.put(b"a", &stored(2), || true), Ok(()));
    let newer = put(&old, true).expect("a response").expect("the newer response");
    assert_eq!((newer.body.len(), selected(&de.fields)), (2, Some(2)));
    // The newer response is for other requests, and stays the one that these get.
    store.remove(b"a");
    let mut vary = FieldList::default();
    vary.add("Vary", "Accept-Language");
    let variation = Variation::of(&vary, &en.fields, &[], &[]).expect("a variation");
    assert_eq!(store.put(b"a", &variant(3, variation), || true), Ok(()));
    assert!(put(&old, true).expect("it is stored").is_none());
    assert_eq!((selected(&de.fields), selected(&en.fields)), (Some(1), Some(3)));
}
