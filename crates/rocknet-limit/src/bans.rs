//! Bounded table of banned clients, which all workers share.
//!
//! Clients are identified by the bits of their IPv4-mapped address, or of the /64 network of their IPv6 address.
//!
//! An entry stays in the table for a while after its ban has ended, so that the next ban of the same client takes
//! longer. While no ban is active, a lookup is one atomic load.
//!
//! Times are in seconds of the Unix clock, because bans survive a restart.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Number of shards, which are locked separately.
const SHARDS: usize = 16;

/// Maximum number of entries in one shard, which makes 100,000 for the table.
const MAX_OF_SHARD: usize = 6_250;

/// Number of entries that are removed from a full shard.
const EVICTED: usize = MAX_OF_SHARD / 16;

/// Maximum number of clients in the table: bans, and clients whose ban has ended.
pub const MAX_BANS: usize = SHARDS * MAX_OF_SHARD;

/// End of a ban without an end.
pub const FOREVER: u64 = u64::MAX;

/// Ban of one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ban<R> {
    /// Time at which the ban began.
    pub since: u64,
    /// Time at which the ban ends; [`FOREVER`] if it does not end.
    pub until: u64,
    /// Number of bans of the client so far, with this one.
    pub count: u32,
    /// Reason of the ban.
    pub reason: R,
}

impl<R> Ban<R> {
    /// Returns true while the ban lasts.
    pub fn is_active(&self, now: u64) -> bool {
        now < self.until
    }

    /// Returns the time from which on the client is not remembered. After its end, a ban is remembered for as long as
    /// it lasted.
    fn forgotten_at(&self) -> u64 {
        self.until.saturating_add(self.until.saturating_sub(self.since))
    }
}

/// Bans of the clients of one shard.
type BanShard<R> = HashMap<u128, Ban<R>>;

/// Table of banned clients. `R`: reason of a ban.
#[derive(Debug)]
pub struct BanTable<R> {
    shards: Box<[RwLock<BanShard<R>>]>,
    /// Latest end of a ban. From this time on, clients need not be looked up.
    latest_end: AtomicU64,
}

impl<R> Default for BanTable<R> {
    fn default() -> BanTable<R> {
        BanTable {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            latest_end: AtomicU64::new(0),
        }
    }
}

impl<R: Clone> BanTable<R> {
    /// Returns true if a ban may be active. Takes no lock.
    #[inline]
    pub fn may_ban(&self, now: u64) -> bool {
        now < self.latest_end.load(Ordering::Relaxed)
    }

    /// Returns true if the client is banned. `applies`: returns true for the reasons whose bans count.
    pub fn is_banned(&self, client: u128, now: u64, applies: impl Fn(&R) -> bool) -> bool {
        let is_banned = |ban: &Ban<R>| ban.is_active(now) && applies(&ban.reason);
        self.may_ban(now) && self.read(client).get(&client).is_some_and(is_banned)
    }

    /// Returns the active ban of a client; `None` if the client is not banned.
    pub fn get(&self, client: u128, now: u64) -> Option<Ban<R>> {
        self.read(client).get(&client).filter(|ban| ban.is_active(now)).cloned()
    }

    /// Bans a client for a time that depends on the number of its earlier bans: `first` doubles with each of them, up
    /// to `max`. Returns `None`, and changes nothing, if the client is banned already.
    pub fn ban_again(&self, client: u128, now: u64, first: u64, max: u64, reason: R) -> Option<Ban<R>> {
        let mut shard = self.write(client);
        let earlier = match shard.get(&client) {
            Some(ban) if ban.is_active(now) => return None,
            Some(ban) if now < ban.forgotten_at() => ban.count,
            _ => 0,
        };
        // The bound keeps the shift valid. 2³² seconds are 136 years.
        let time = first.saturating_mul(1 << earlier.min(32)).min(max.max(first)).max(1);
        let ban = Ban {
            since: now,
            until: now.saturating_add(time),
            count: earlier.saturating_add(1),
            reason,
        };
        self.insert_into(&mut shard, client, ban.clone(), now);
        Some(ban)
    }

    /// Stores a ban, unless the client has one that ends later or at the same time, or the ban need not be remembered.
    /// Returns true if it was stored.
    pub fn insert_longer(&self, client: u128, ban: Ban<R>, now: u64) -> bool {
        let mut shard = self.write(client);
        let is_longer = shard.get(&client).is_none_or(|other| other.until < ban.until);
        let is_inserted = is_longer && now < ban.forgotten_at();
        if is_inserted {
            self.insert_into(&mut shard, client, ban, now);
        }
        is_inserted
    }

    /// Stores a ban in place of one that the client may have.
    pub fn insert(&self, client: u128, ban: Ban<R>, now: u64) {
        let mut shard = self.write(client);
        self.insert_into(&mut shard, client, ban, now);
    }

    /// Lifts the ban of a client, and forgets its earlier ones. Returns false if it was not banned.
    pub fn lift(&self, client: u128, now: u64) -> bool {
        self.write(client).remove(&client).is_some_and(|ban| ban.is_active(now))
    }

    /// Returns all entries, also those of bans that have ended.
    pub fn all(&self) -> Vec<(u128, Ban<R>)> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = read(shard);
            all.extend(shard.iter().map(|(client, ban)| (*client, ban.clone())));
        }
        all
    }

    /// Returns the number of active bans.
    pub fn active(&self, now: u64) -> usize {
        if !self.may_ban(now) {
            return 0;
        }
        let of_shard = |shard: &RwLock<BanShard<R>>| read(shard).values().filter(|ban| ban.is_active(now)).count();
        self.shards.iter().map(of_shard).sum()
    }

    /// Removes the clients that need not be remembered. Returns their number.
    pub fn forget(&self, now: u64) -> usize {
        let of_shard = |shard: &RwLock<BanShard<R>>| {
            let mut shard = write(shard);
            let before = shard.len();
            shard.retain(|_, ban| now < ban.forgotten_at());
            let left = shard.len();
            // Otherwise the shard would keep its memory after a flood.
            if shard.capacity() > 4 * left.max(64) {
                shard.shrink_to_fit();
            }
            before - left
        };
        self.shards.iter().map(of_shard).sum()
    }

    /// Stores a ban. A full shard first loses the clients that need not be remembered, or else the bans that end first.
    fn insert_into(&self, shard: &mut BanShard<R>, client: u128, ban: Ban<R>, now: u64) {
        if shard.len() >= MAX_OF_SHARD && !shard.contains_key(&client) {
            shard.retain(|_, ban| now < ban.forgotten_at());
            if shard.len() >= MAX_OF_SHARD {
                evict(shard);
            }
        }
        self.latest_end.fetch_max(ban.until, Ordering::Relaxed);
        shard.insert(client, ban);
    }

    fn read(&self, client: u128) -> RwLockReadGuard<'_, BanShard<R>> {
        read(&self.shards[shard_of(client)])
    }

    fn write(&self, client: u128) -> RwLockWriteGuard<'_, BanShard<R>> {
        write(&self.shards[shard_of(client)])
    }
}

/// Removes the part of a full shard whose bans end first. Removing several at a time makes the search for them rare.
fn evict<R>(shard: &mut BanShard<R>) {
    let mut ends: Vec<(u64, u128)> = shard.iter().map(|(client, ban)| (ban.until, *client)).collect();
    let removed = EVICTED.min(ends.len().saturating_sub(1));
    ends.select_nth_unstable(removed);
    for (_, client) in &ends[..removed] {
        shard.remove(client);
    }
}

/// Returns the shard of a client. Neighbouring networks are in different shards.
fn shard_of(client: u128) -> usize {
    // The bits of IPv4 addresses are in the lower half, and those of IPv6 networks in the upper half.
    let bits = (client ^ (client >> 64)) as u64;
    // The upper four bits of the product have 16 values.
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % SHARDS
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ban(since: u64, until: u64) -> Ban<()> {
        Ban {
            since,
            until,
            count: 1,
            reason: (),
        }
    }

    #[test]
    fn bans_end_and_take_longer_each_time() {
        let table = BanTable::default();
        assert!(!table.may_ban(0) && !table.is_banned(1, 100, |_| true));
        let first = table.ban_again(1, 100, 60, 200, ()).unwrap();
        assert_eq!((first.until, first.count), (160, 1));
        assert_eq!(table.ban_again(1, 159, 60, 200, ()), None);
        assert!(
            table.is_banned(1, 159, |_| true)
                && !table.is_banned(1, 160, |_| true)
                && !table.is_banned(2, 159, |_| true)
        );
        assert_eq!((table.active(159), table.active(160)), (1, 0));
        // The client is remembered for as long as its ban took.
        assert_eq!(table.forget(219), 0);
        let second = table.ban_again(1, 219, 60, 200, ()).unwrap();
        assert_eq!((second.until, second.count), (339, 2));
        let third = table.ban_again(1, 340, 60, 200, ()).unwrap();
        assert_eq!((third.until, third.count), (540, 3));
        // A client that has kept quiet begins again.
        assert_eq!(table.ban_again(1, 740, 60, 200, ()).unwrap().count, 1);
        assert!(table.lift(1, 741) && !table.lift(1, 741) && !table.is_banned(1, 741, |_| true));
        assert_eq!(table.forget(10_000), 0);
        table.insert(2, ban(0, FOREVER), 0);
        assert!(table.is_banned(2, u64::MAX - 1, |_| true) && table.forget(u64::MAX - 1) == 0);
    }

    #[test]
    fn the_table_is_bounded_and_drops_the_ban_that_ends_first() {
        let table = BanTable::default();
        for client in 0..2 * MAX_BANS as u128 {
            table.insert(client, ban(0, 1_000 + client as u64), 10);
        }
        let all = table.all();
        assert!(all.len() <= MAX_BANS && all.len() > MAX_BANS / 2, "{}", all.len());
        // The last bans end last, so each of them is in the table.
        let last = 2 * MAX_BANS as u128;
        assert!((last - 1_000..last).all(|client| table.is_banned(client, 500, |_| true)));
        assert!(!table.is_banned(0, 500, |_| true));
    }
}
