//! Local HTTPS: certificates signed by a CA of this machine, issued immediately and renewed automatically.
//!
//! Leaf certificates are kept only in memory, because signing a leaf costs less than reading it from a file. The disk
//! stores only the CA, so there are no further keys to protect or files to clean up.

mod ca;
mod names;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

pub use ca::{CaCertificate, CaError, CaKind, Leaf, LocalCa};
pub use names::is_private;

use super::storage::{FileStorage, Storage};
use super::{Authority, Certificate, CertificateRequest, CertificateSet, CertificateStore, Issuer};

/// Issuer that signs with the local CA.
pub struct LocalIssuer {
    shared: Arc<Shared>,
    /// Renewal times by the names of a site.
    sites: HashMap<Vec<String>, RenewAt>,
    /// True once the store reports missing names to this issuer.
    is_subscribed: bool,
    /// True after a failure was logged, so that retries every few seconds do not log it again.
    error_logged: bool,
}

/// Time at which a certificate is renewed.
type RenewAt = SystemTime;

/// Part of the issuer that the store's callback for missing names uses too.
struct Shared {
    storage: Arc<dyn Storage>,
    /// Opened CAs, by the discriminant of their kind.
    cas: Mutex<[Option<LocalCa>; CaKind::ALL.len()]>,
    /// Certificates for names below the wildcards of sites, signed when a client requests a name.
    on_demand: Mutex<OnDemand>,
}

#[derive(Default)]
struct OnDemand {
    /// Parent domains of the wildcards that sites name, such as `test` for `*.test`.
    wildcard_parents: Vec<String>,
    /// Names that have a certificate, or for which one is being signed.
    issued: HashMap<String, RenewAt>,
}

impl LocalIssuer {
    /// Creates an issuer that keeps its CA below `state_folder`. The CA is created when the first site needs it.
    pub fn new(state_folder: &Path) -> LocalIssuer {
        LocalIssuer::with_storage(Arc::new(FileStorage::new(state_folder)))
    }

    /// Creates an issuer with this storage.
    pub fn with_storage(storage: Arc<dyn Storage>) -> LocalIssuer {
        LocalIssuer {
            shared: Arc::new(Shared {
                storage,
                cas: Mutex::default(),
                on_demand: Mutex::default(),
            }),
            sites: HashMap::new(),
            is_subscribed: false,
            error_logged: false,
        }
    }

    /// Subscribes to missing names. Local sites often use wildcards directly below a top-level domain, such as
    /// `*.localhost` and `*.test`, but browsers reject certificates for these wildcards. A name below such a wildcard
    /// gets its own certificate when a client requests the name.
    fn subscribe(&mut self, store: &Arc<CertificateStore>) {
        if !std::mem::replace(&mut self.is_subscribed, true) {
            let (shared, weak) = (Arc::clone(&self.shared), Arc::downgrade(store));
            store.on_missing(move |name| {
                if let Some(store) = weak.upgrade() {
                    shared.sign_on_demand(name, SystemTime::now(), &store);
                }
            });
        }
    }

    /// Signs certificates for all sites in `due` and inserts them into the store in one step.
    fn renew(&mut self, due: Vec<Vec<String>>, now: SystemTime, store: &CertificateStore) {
        let mut signed = Vec::with_capacity(due.len());
        for names in due {
            match self.shared.sign(&names, now) {
                Ok(set) => {
                    self.error_logged = false;
                    signed.push((names, set));
                }
                Err(error) => {
                    if !std::mem::replace(&mut self.error_logged, true) {
                        tracing::error!("no certificate for {}: {error}", names.join(", "));
                    }
                    // Retried by the next `renew_due`.
                    self.sites.insert(names, now);
                }
            }
        }
        let inserts: Vec<_> = signed
            .iter()
            .map(|(names, set)| (accepted_by_browsers(names), set.clone()))
            .collect();
        store.insert_all(inserts.iter().map(|(names, set)| (&names[..], set.clone())));
        self.sites
            .extend(signed.into_iter().map(|(names, _)| (names, now + RENEW_AFTER)));
    }
}

impl Issuer for LocalIssuer {
    fn authority(&self) -> Authority {
        Authority::Local
    }

    fn set_requests(&mut self, requests: &[CertificateRequest], store: &Arc<CertificateStore>) {
        let requests: Vec<&Vec<String>> = requests
            .iter()
            .filter(|site| site.authority == Authority::Local)
            .map(|site| &site.names)
            .collect();
        let mut removed: Vec<String> = Vec::new();
        self.sites.retain(|names, _| {
            let is_kept = requests.contains(&names);
            if !is_kept {
                removed.extend_from_slice(names);
            }
            is_kept
        });
        // A name that another request has keeps its certificate until the new one is signed.
        removed.retain(|name| !requests.iter().any(|names| names.contains(name)));
        store.remove(&removed);
        self.shared.set_wildcard_parents(&requests, store);
        if requests
            .iter()
            .any(|names| names.iter().any(|name| name.starts_with("*.")))
        {
            self.subscribe(store);
        }
        let new = requests.into_iter().filter(|names| !self.sites.contains_key(*names));
        self.renew(new.cloned().collect(), SystemTime::now(), store);
    }

    fn renew_due(&mut self, now: SystemTime, store: &Arc<CertificateStore>) {
        let due = self.sites.iter().filter(|(_, due)| **due <= now);
        let due: Vec<_> = due.map(|(names, _)| names.clone()).collect();
        if !due.is_empty() {
            self.renew(due, now, store);
        }
        self.shared.remove_due(now, store);
    }
}

impl Shared {
    fn on_demand(&self) -> MutexGuard<'_, OnDemand> {
        self.on_demand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signs a certificate for these names with the private CA, or with the CA for any name if a name is public.
    fn sign(&self, names: &[String], now: SystemTime) -> Result<CertificateSet, CaError> {
        let kind = if names.iter().all(|name| is_private(name)) {
            CaKind::Private
        } else {
            CaKind::AnyName
        };
        let mut cas = self.cas.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = &mut cas[kind as usize];
        let usable = slot
            .as_ref()
            .is_some_and(|ca| now + ca::LEAF_LIFETIME < ca.root().not_after);
        let ca = match slot {
            Some(ca) if usable => ca,
            _ => slot.insert(LocalCa::open_or_make(&*self.storage, kind, now)?),
        };
        let leaf = ca.sign(names, now)?;
        Certificate::new(leaf.chain, &leaf.key)
            .map(CertificateSet::from)
            .map_err(CaError::Unusable)
    }

    /// Replaces the wildcard parents, and removes on-demand certificates whose names are below none of the new parents.
    fn set_wildcard_parents(&self, requests: &[&Vec<String>], store: &CertificateStore) {
        let names = requests.iter().flat_map(|names| names.iter());
        let wildcard_parents: Vec<String> = names
            .filter_map(|name| name.strip_prefix("*."))
            .map(str::to_owned)
            .collect();
        let mut on_demand = self.on_demand();
        on_demand.wildcard_parents = wildcard_parents;
        let removed: Vec<String> = on_demand
            .issued
            .keys()
            .filter(|name| !on_demand.covers(name))
            .cloned()
            .collect();
        on_demand.remove_all(&removed, store);
    }

    /// Signs a certificate for a name below a wildcard, unless it already has one or the limit is reached.
    fn sign_on_demand(&self, name: &str, now: SystemTime, store: &CertificateStore) {
        {
            let mut on_demand = self.on_demand();
            if !on_demand.covers(name) || on_demand.issued.contains_key(name) || on_demand.issued.len() >= MAX_ON_DEMAND
            {
                return;
            }
            // The name is recorded before the certificate is signed, so that concurrent clients do not cause several
            // signatures.
            on_demand.issued.insert(name.to_owned(), now + RENEW_AFTER);
        }
        let names = [name.to_owned()];
        match self.sign(&names, now) {
            Ok(set) => store.insert(&names, set),
            Err(error) => {
                tracing::error!("no certificate for {name}: {error}");
                let mut on_demand = self.on_demand();
                on_demand.issued.remove(name);
            }
        }
    }

    /// Removes on-demand certificates that are due for renewal. A new certificate is signed when a client requests the
    /// name again.
    fn remove_due(&self, now: SystemTime, store: &CertificateStore) {
        let mut on_demand = self.on_demand();
        let old = on_demand.issued.iter().filter(|(_, due)| **due <= now);
        let old: Vec<String> = old.map(|(name, _)| name.clone()).collect();
        on_demand.remove_all(&old, store);
    }
}

impl OnDemand {
    /// Returns true if the name lies below a wildcard parent, with any number of labels.
    fn covers(&self, name: &str) -> bool {
        self.wildcard_parents.iter().any(|parent| {
            name.strip_suffix(parent.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        })
    }

    fn remove_all(&mut self, names: &[String], store: &CertificateStore) {
        if !names.is_empty() {
            self.issued.retain(|name, _| !names.contains(name));
            store.remove(names);
        }
    }
}

/// Returns the names except wildcards directly below a top-level domain, which browsers reject.
fn accepted_by_browsers(names: &[String]) -> Vec<String> {
    let refused = |name: &&String| name.strip_prefix("*.").is_some_and(|parent| !parent.contains('.'));
    names.iter().filter(|name| !refused(name)).cloned().collect()
}

/// Age at which leaf certificates are renewed: two thirds of their lifetime.
const RENEW_AFTER: Duration = Duration::from_secs(ca::LEAF_LIFETIME.as_secs() / 3 * 2);

/// Maximum number of on-demand names. Developers use fewer, and the limit prevents clients from filling the memory.
const MAX_ON_DEMAND: usize = 1_024;

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::super::storage::memory::MemoryStorage;
    use super::*;

    /// Returns one request for each list of names.
    fn requests(sites: &[&[&str]]) -> Vec<CertificateRequest> {
        let site = |names: &&[&str]| CertificateRequest {
            site: names[0].to_owned(),
            authority: Authority::Local,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        sites.iter().map(site).collect()
    }

    /// Returns the DER of the leaf that the store has for a name.
    fn leaf_der(store: &CertificateStore, name: &str) -> Option<Vec<u8>> {
        let set = store.find(name)?;
        Some(set.certificates()[0].key().cert[0].to_vec())
    }

    #[test]
    fn sites_get_certificates_immediately_and_lose_them_when_removed() {
        let store = Arc::new(CertificateStore::default());
        let mut local = LocalIssuer::with_storage(Arc::new(MemoryStorage::default()));
        local.set_requests(
            &requests(&[&["localhost", "127.0.0.1"], &["a.test", "*.a.test"]]),
            &store,
        );
        for (name, found) in [
            ("localhost", true),
            ("127.0.0.1", true),
            ("x.a.test", true),
            ("b.test", false),
        ] {
            assert_eq!(store.find(name).is_some(), found, "{name}");
        }
        let before = leaf_der(&store, "a.test");
        local.set_requests(&requests(&[&["a.test", "*.a.test"], &["b.test"]]), &store);
        assert_eq!(
            leaf_der(&store, "a.test"),
            before,
            "the certificate of an unchanged site is kept"
        );
        assert!(store.find("b.test").is_some() && store.find("localhost").is_none());
    }

    #[test]
    fn leaves_are_renewed_before_they_expire() {
        let store = Arc::new(CertificateStore::default());
        let mut local = LocalIssuer::with_storage(Arc::new(MemoryStorage::default()));
        let start = SystemTime::now();
        local.set_requests(&requests(&[&["a.test"]]), &store);
        let first = leaf_der(&store, "a.test");
        local.renew_due(start + RENEW_AFTER - Duration::from_secs(60), &store);
        assert_eq!(leaf_der(&store, "a.test"), first);
        let later = start + RENEW_AFTER + Duration::from_secs(60);
        local.renew_due(later, &store);
        assert_ne!(leaf_der(&store, "a.test"), first);
        let set = store.find("a.test").unwrap();
        assert!(set.certificates()[0].not_after() > later + RENEW_AFTER);
        // Near the end of its ten years, the CA itself is replaced.
        let years = start + Duration::from_secs(3640 * 86_400);
        local.renew_due(years, &store);
        let set = store.find("a.test").unwrap();
        assert!(set.certificates()[0].not_after() > years);
    }

    #[test]
    fn names_below_a_wildcard_get_their_own_certificates_up_to_a_limit() {
        let store = Arc::new(CertificateStore::default());
        let mut local = LocalIssuer::with_storage(Arc::new(MemoryStorage::default()));
        local.set_requests(&requests(&[&["*.test"]]), &store);
        let start = SystemTime::now();
        assert!(store.find("a.test").is_none());
        for name in ["a.test", "b.c.test", "test", ".test", "a.testing", "example.com"] {
            store.report_missing(name);
        }
        for (name, found) in [
            ("a.test", true),
            ("b.c.test", true),
            ("test", false),
            ("example.com", false),
        ] {
            assert_eq!(store.find(name).is_some(), found, "{name}");
        }
        let first = leaf_der(&store, "a.test");
        store.report_missing("a.test");
        assert_eq!(leaf_der(&store, "a.test"), first);
        for number in 0..MAX_ON_DEMAND {
            local.shared.on_demand().issued.insert(format!("{number}.test"), start);
        }
        store.report_missing("z.test");
        assert!(store.find("z.test").is_none(), "at most {MAX_ON_DEMAND} names");
        // Removing entries that are due permits new names, and removing a site removes its names.
        local.renew_due(start + Duration::from_secs(60), &store);
        store.report_missing("z.test");
        assert!(store.find("z.test").is_some() && store.find("a.test").is_some());
        local.set_requests(&requests(&[]), &store);
        assert!(store.find("z.test").is_none() && store.find("a.test").is_none());
    }

    #[test]
    fn a_full_disk_delays_certificates_until_there_is_room() {
        let (store, storage) = (
            Arc::new(CertificateStore::default()),
            Arc::new(MemoryStorage::default()),
        );
        let mut local = LocalIssuer::with_storage(Arc::clone(&storage) as Arc<dyn Storage>);
        storage.full.store(true, Ordering::Relaxed);
        local.set_requests(&requests(&[&["a.test"]]), &store);
        assert!(store.find("a.test").is_none());
        storage.full.store(false, Ordering::Relaxed);
        local.renew_due(SystemTime::now(), &store);
        assert!(store.find("a.test").is_some());
    }
}
