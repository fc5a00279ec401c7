//! The session stores of all sites that accept early data, by name of the site.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::session_store::{SessionStore, StoredSession};

/// Session stores of all sites that accept early data. They outlive a reload.
#[derive(Default)]
pub struct SessionStores(Mutex<StoreTable>);

/// Stores by site. When the table has doubled, stores that no configuration uses any more are removed. A reload
/// therefore takes time linear in the number of sites.
#[derive(Default)]
struct StoreTable {
    by_site: HashMap<String, Weak<SessionStore>>,
    /// Number of entries after the last removal.
    kept: usize,
}

/// Table size below which unused entries are not removed. An unused entry is small, because a store is freed with the
/// last configuration that uses it.
const MIN_ENTRIES: usize = 64;

impl StoreTable {
    /// Adds the store of a site. Returns true if the table was searched for unused entries, which only tests use.
    fn insert(&mut self, site: &str, store: &Arc<SessionStore>) -> bool {
        let is_due = self.by_site.len() >= MIN_ENTRIES.max(2 * self.kept);
        if is_due {
            self.by_site.retain(|_, store| store.strong_count() > 0);
            self.kept = self.by_site.len();
        }
        self.by_site.insert(site.to_owned(), Arc::downgrade(store));
        is_due
    }
}

/// Sessions of a site, on the way to another process.
#[derive(Debug, PartialEq, Eq)]
pub struct SiteSessions {
    /// Name of the site.
    pub site: String,
    /// Settings that the clients of these sessions remember for early data.
    pub remembered: Vec<u8>,
    /// Sessions from the oldest to the newest.
    pub sessions: Vec<StoredSession>,
}

impl SessionStores {
    fn stores(&self) -> MutexGuard<'_, StoreTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the store of a site. `remembered`: settings that clients remember for early data. If they have changed,
    /// the store is a new one, because a client that sends early data relies on the settings that it remembers.
    pub fn of_site(&self, site: &str, remembered: &[u8]) -> Arc<SessionStore> {
        let mut stores = self.stores();
        let known = stores.by_site.get(site).and_then(Weak::upgrade);
        if let Some(store) = known.filter(|store| store.remembered == remembered) {
            return store;
        }
        let store = Arc::new(SessionStore::new(remembered));
        stores.insert(site, &store);
        store
    }

    fn all(&self) -> Vec<(String, Arc<SessionStore>)> {
        let stores = self.stores();
        let all = stores
            .by_site
            .iter()
            .filter_map(|(site, store)| Some((site.clone(), store.upgrade()?)));
        all.collect()
    }

    /// Takes all sessions, for a process that takes over. No sessions are stored until [`SessionStores::open`] is
    /// called.
    pub fn close(&self) -> Vec<SiteSessions> {
        let closed = self.all().into_iter().map(|(site, store)| SiteSessions {
            site,
            remembered: store.remembered.clone(),
            sessions: store.close(),
        });
        closed.filter(|site| !site.sessions.is_empty()).collect()
    }

    /// Stores sessions again after [`SessionStores::close`].
    pub fn open(&self) {
        for (_, store) in self.all() {
            store.open();
        }
    }

    /// Adds sessions of a previous process. They are dropped if the site accepts no early data, or if its clients
    /// remember other settings than those of this process.
    pub fn adopt(&self, adopted: SiteSessions) {
        let store = self.stores().by_site.get(&adopted.site).and_then(Weak::upgrade);
        if let Some(store) = store.filter(|store| store.remembered == adopted.remembered) {
            store.extend(adopted.sessions);
        }
    }
}

#[cfg(test)]
mod tests {
    use rustls::server::StoresServerSessions;

    use super::*;

    #[test]
    fn sessions_survive_a_reload_that_keeps_what_clients_remember() {
        let stores = SessionStores::default();
        let first = stores.of_site("a", b"1");
        first.put(vec![7], vec![8]);
        let (same, other) = (stores.of_site("a", b"1"), stores.of_site("b", b"1"));
        assert_eq!((other.take(&[7]), same.take(&[7])), (None, Some(vec![8])));
        first.put(vec![7], vec![8]);
        assert_eq!(stores.of_site("a", b"2").take(&[7]), None);
    }

    #[test]
    fn unused_stores_are_removed_in_linear_time() {
        const SITES: usize = 5000;
        let (mut table, mut removals) = (StoreTable::default(), 0);
        let kept: Vec<_> = (0..SITES)
            .map(|number| {
                let store = Arc::new(SessionStore::new(b"1"));
                removals += usize::from(table.insert(&number.to_string(), &store));
                store
            })
            .collect();
        assert_eq!(table.by_site.len(), SITES);
        // Removals at 64, 128, 256 entries and so on.
        assert!(removals <= 8, "{removals}");
        drop(kept);
        let kept = Arc::new(SessionStore::new(b"1"));
        for number in 0..10 * SITES {
            table.insert(&format!("new {number}"), &kept);
            // The empty reference stands for a store that no configuration uses.
            drop(table.by_site.insert(format!("new {number}"), Weak::new()));
            assert!(table.by_site.len() <= 2 * SITES, "{number}");
        }
    }

    #[test]
    fn sessions_are_passed_to_the_same_site_with_the_same_settings() {
        let old = SessionStores::default();
        let kept: Vec<_> = ["a", "b", "c", "d"].map(|site| old.of_site(site, b"1")).into();
        for store in &kept[..3] {
            store.put(vec![7], vec![8]);
        }
        let new = SessionStores::default();
        let (a, b) = (new.of_site("a", b"1"), new.of_site("b", b"2"));
        let passed = old.close();
        assert_eq!(passed.len(), 3, "a site without sessions is left out");
        passed.into_iter().for_each(|site| new.adopt(site));
        assert_eq!((a.take(&[7]), b.take(&[7])), (Some(vec![8]), None));
        assert!(!kept[0].put(vec![7], vec![8]));
        old.open();
        assert!(kept[0].put(vec![7], vec![8]));
    }
}
