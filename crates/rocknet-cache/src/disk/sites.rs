//! Sites with responses on disk: their numbers in the index, the sizes of their responses, and their quotas.
//!
//! When a site exceeds its quota, its oldest responses leave the index at once, but their entries stay in the hash
//! tables of the index until a sweep removes them. Each site therefore has a floor, a position in the log: entries
//! before it may be in the tables, but are not found.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::ages::{Ages, Dropped};
use super::entry::{Entry, MAX_SITES};
use super::position::Position;
use super::url_positions::UrlPositions;

/// Quota of a site without one.
const UNLIMITED: u64 = u64::MAX;

/// Name of a site, as the keys of responses contain it.
type Name = Box<[u8]>;

/// A site.
pub(super) struct Site {
    name: Name,
    /// Maximum size of its responses in bytes.
    quota: AtomicU64,
    /// Position in the log before which its responses have left the index, as a number.
    floor: AtomicU64,
    ages: Mutex<Ages>,
    /// Last changes of URLs, for example by POST requests. A response whose key was made by a template is compared with
    /// them when it is read, because such a key cannot be derived from a URL.
    pub urls: UrlPositions,
}

impl Site {
    /// Returns true if a response has left the index because of the quota, though a hash table may still contain its
    /// entry.
    pub fn has_dropped(&self, position: Position) -> bool {
        position.to_number() < self.floor.load(Ordering::Acquire)
    }

    /// Returns the size of its responses in bytes.
    pub fn bytes(&self) -> u64 {
        self.ages().bytes()
    }

    fn ages(&self) -> MutexGuard<'_, Ages> {
        self.ages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All sites by their numbers.
#[derive(Default)]
pub(super) struct Numbered {
    sites: Vec<Site>,
    numbers: HashMap<Name, u16>,
    /// Quotas of the configuration.
    quotas: HashMap<Name, u64>,
}

impl Numbered {
    /// Returns the site of an entry.
    pub fn of(&self, entry: &Entry) -> &Site {
        &self.sites[usize::from(entry.mark.site())]
    }

    /// Returns the site with a name, if it has a number.
    pub fn named(&self, name: &[u8]) -> Option<&Site> {
        let number = self.numbers.get(name)?;
        Some(&self.sites[usize::from(*number)])
    }

    /// Adds a response, which must be newer than all others of its site.
    pub fn add(&self, entry: &Entry) {
        self.of(entry).ages().add(entry.position, u64::from(entry.length));
    }

    /// Removes a response. Returns false if it had left the index before.
    pub fn remove(&self, entry: &Entry) -> bool {
        let site = self.of(entry);
        // Locked while the floor is read, so that a concurrent trim does not subtract the response as well.
        let mut ages = site.ages();
        if site.has_dropped(entry.position) {
            return false;
        }
        ages.remove(entry.position, u64::from(entry.length));
        true
    }
}

/// Size of the responses of a site on disk, and its quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteDiskUsage {
    /// Name of the site.
    pub site: String,
    /// Size of its responses in bytes.
    pub bytes: u64,
    /// Maximum of this size in bytes.
    pub quota: u64,
}

/// Sites with responses on disk.
#[derive(Default)]
pub(super) struct Sites(RwLock<Numbered>);

impl Sites {
    /// Returns the sites. No site gets a number while the guard lives.
    pub fn read(&self) -> RwLockReadGuard<'_, Numbered> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of a site; `None` if there are too many sites.
    pub fn number(&self, name: &[u8]) -> Option<u16> {
        if let Some(number) = self.read().numbers.get(name) {
            return Some(*number);
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = all.numbers.get(name) {
            return Some(*number);
        }
        let number = u16::try_from(all.sites.len()).ok()?;
        if usize::from(number) >= MAX_SITES {
            return None;
        }
        let quota = all.quotas.get(name).copied().unwrap_or(UNLIMITED);
        all.sites.push(Site {
            name: name.into(),
            quota: AtomicU64::new(quota),
            floor: AtomicU64::new(0),
            ages: Mutex::default(),
            urls: UrlPositions::default(),
        });
        all.numbers.insert(name.into(), number);
        Some(number)
    }

    /// Sets the quotas of all sites, in bytes. Sites that are not among them have none.
    pub fn set_quotas(&self, quotas: HashMap<Name, u64>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for site in &all.sites {
            let quota = quotas.get(&site.name).copied().unwrap_or(UNLIMITED);
            site.quota.store(quota, Ordering::Relaxed);
        }
        all.quotas = quotas;
    }

    /// Returns the quota of a site in bytes.
    pub fn quota(&self, number: u16) -> u64 {
        let all = self.read();
        let site = all.sites.get(usize::from(number));
        site.map_or(UNLIMITED, |site| site.quota.load(Ordering::Relaxed))
    }

    /// Returns the numbers of all sites.
    pub fn numbers(&self) -> std::ops::Range<u16> {
        0..u16::try_from(self.read().sites.len()).unwrap_or(u16::MAX)
    }

    /// Drops the oldest responses of a site that exceeds its quota. Returns them, with the name of the site.
    pub fn trim(&self, number: u16) -> Option<(Name, Dropped)> {
        let all = self.read();
        let site = all.sites.get(usize::from(number))?;
        let mut ages = site.ages();
        let dropped = ages.trim(site.quota.load(Ordering::Relaxed))?;
        site.floor.fetch_max(dropped.before.to_number(), Ordering::AcqRel);
        Some((site.name.clone(), dropped))
    }

    /// Forgets all responses. Afterwards, positions may begin at 0 again.
    pub fn clear(&self) {
        for site in &self.read().sites {
            let mut ages = site.ages();
            *ages = Ages::default();
            site.floor.store(0, Ordering::Release);
            site.urls.clear();
        }
    }

    /// Returns the sites that have a quota and may use the disk.
    pub fn limited(&self) -> Vec<SiteDiskUsage> {
        let all = self.read();
        let mut limited: Vec<_> = all.quotas.iter().filter(|(_, quota)| **quota > 0).collect();
        limited.sort_unstable();
        let usage = |(name, quota): (&Name, &u64)| SiteDiskUsage {
            site: String::from_utf8_lossy(name).into_owned(),
            bytes: all.named(name).map_or(0, Site::bytes),
            quota: *quota,
        };
        limited.into_iter().map(usage).collect()
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_size(&self) -> usize {
        let all = self.read();
        let of_site = |site: &Site| 2 * site.name.len() + site.ages().memory_size() + site.urls.memory_size();
        let table = all.numbers.capacity() * (size_of::<Name>() + size_of::<u16>());
        all.sites.iter().map(of_site).sum::<usize>() + all.sites.capacity() * size_of::<Site>() + table
    }
}
