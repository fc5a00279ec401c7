//! Tests of the table: separate buckets, bounds, floods, and the memory that tables share.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const S: u64 = 1_000_000_000;

fn table() -> RateTable {
    RateTable::new(&Arc::default())
}

/// Returns a hash that looks random (splitmix64).
fn hash(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn is_admitted(taken: Taken) -> bool {
    matches!(taken, Taken::Admitted { .. })
}

#[test]
fn keys_have_buckets_of_their_own() {
    let (table, rate) = (table(), Rate::new(S, 2, None));
    for key in [0, 1, 7 << 32, u64::MAX] {
        assert!(is_admitted(table.take(&rate, key, S)), "{key}");
    }
    // The stored forms of the keys 0 and 1 are the same.
    assert!(!is_admitted(table.take(&rate, 0, S)));
    assert!(is_admitted(table.take(&rate, u64::MAX, S)));
    assert!(!is_admitted(table.take(&rate, u64::MAX, S)));
    table.give_back(&rate, u64::MAX, 0);
    assert!(is_admitted(table.take(&rate, u64::MAX, S)));
    assert_eq!((table.used(S), table.used(10 * S)), (3, 0));
}

#[test]
fn a_key_of_zero_is_limited_in_a_table_of_several_sets() {
    let (table, rate) = (table(), Rate::new(S, 2, None));
    // Keys of the same shard, which doubles its sets.
    for key in 2..100 {
        assert!(is_admitted(table.take(&rate, key, S)), "{key}");
    }
    assert!(lock(&table.shards[0]).sets.len() > 1);
    let admitted = (0..3).map(|_| is_admitted(table.take(&rate, 0, S)));
    assert_eq!(admitted.collect::<Vec<_>>(), [true, true, false]);
    table.give_back(&rate, 0, 0);
    assert!(is_admitted(table.take(&rate, 0, S)));
}

#[test]
fn a_flood_of_keys_is_bounded_and_refuses_nobody() {
    let (table, rate) = (table(), Rate::new(S, 10, None));
    for number in 0..4 * MAX_KEYS as u64 {
        assert!(is_admitted(table.take(&rate, hash(number), S)));
    }
    let sets: usize = table.shards.iter().map(|shard| lock(shard).sets.len()).sum();
    assert!(sets <= SHARDS * MAX_SETS, "{sets}");
    assert!(table.used(S) > MAX_KEYS / 2);
    // Once the buckets are full again, their places are used for other keys.
    assert_eq!(table.used(20 * S), 0);
    assert!(is_admitted(table.take(&rate, hash(u64::MAX), 20 * S)));
}

#[test]
fn a_client_that_used_up_its_limit_keeps_its_bucket_in_a_flood() {
    let (table, rate) = (table(), Rate::new(S, 10, None));
    let attackers: Vec<u64> = (0..100).map(|number| hash(number + (1 << 40))).collect();
    for key in &attackers {
        for _ in 0..10 {
            assert!(is_admitted(table.take(&rate, *key, S)));
        }
    }
    for number in 0..4 * MAX_KEYS as u64 {
        table.take(&rate, hash(number), S);
    }
    for key in &attackers {
        assert!(!is_admitted(table.take(&rate, *key, S)), "{key:x} was dropped");
    }
}

#[test]
fn tables_share_their_memory_and_return_it() {
    let budget: Arc<Budget> = Arc::default();
    let rate = Rate::new(S, 10, None);
    let fill = |from: u64| {
        let table = RateTable::new(&budget);
        for number in 0..2 * MAX_KEYS as u64 {
            assert!(is_admitted(table.take(&rate, hash(from + number), S)));
        }
        table
    };
    // Takes all memory but that of two tables.
    let reserved = BUDGET_SETS - 2 * SHARDS * MAX_SETS;
    assert!(budget.take(reserved));
    let tables: Vec<RateTable> = (0..4).map(|number| fill(number << 40)).collect();
    let used: Vec<usize> = tables.iter().map(|table| table.used(S)).collect();
    assert!(used[1] > MAX_KEYS / 2 && used[3] < MAX_KEYS / 8, "{used:?}");
    assert!(used[3] >= SHARDS, "a table without memory has its first sets: {used:?}");
    drop(tables);
    budget.give_back(reserved);
    assert_eq!(budget.sets.load(Ordering::Relaxed), BUDGET_SETS);
}

#[test]
fn an_adopted_table_decides_like_the_original() {
    let rate = Rate::new(S, 10, None);
    let (original, copy) = (table(), table());
    for number in 0..20_000_u64 {
        for _ in 0..=number % 10 {
            assert!(is_admitted(original.take(&rate, hash(number), 7 * S)));
        }
    }
    // The clocks of the tables have other origins.
    let (now, of_copy) = (7 * S + S / 2, 90 * S);
    original.for_each_used(now, |key, left| copy.adopt(key, left, of_copy));
    assert_eq!(copy.used(of_copy), original.used(now));
    for number in 0..20_000 {
        let key = hash(number);
        assert_eq!(
            copy.take(&rate, key, of_copy),
            original.take(&rate, key, now),
            "{number}"
        );
    }
    // A bucket that both tables have keeps the state with fewer tokens.
    let (used, full) = (hash(9), hash(1 << 40));
    copy.adopt(used, 1, of_copy);
    assert!(!is_admitted(copy.take(&rate, used, of_copy)));
    copy.adopt(full, 0, of_copy);
    copy.adopt(full, u64::MAX, of_copy);
    assert!(!is_admitted(copy.take(&rate, full, of_copy)));
}

proptest! {
    /// Asserts that a table with room decides like separate buckets, also while it grows.
    #[test]
    fn decisions_equal_those_of_separate_buckets(
        requests in prop::collection::vec((0_u64..200, 0_u64..S), 1..600),
    ) {
        let (table, rate) = (table(), Rate::new(S, 3, None));
        let mut separate: HashMap<u64, u64> = HashMap::new();
        let mut now = 0;
        for (number, gap) in requests {
            now += gap;
            let key = hash(number);
            let expected = rate.take(separate.entry(key).or_default(), now);
            prop_assert_eq!(table.take(&rate, key, now), expected);
        }
    }
}
