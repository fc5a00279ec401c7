//! The certificate store: issued certificates by name, and the responses to pending ACME challenges.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use rustls::sign::CertifiedKey;

use super::CertificateSet;

type Table<T> = HashMap<Box<str>, Arc<T>, RandomState>;
/// Callback for a server name that belongs to a site but that no certificate covers.
type MissingCallback = Arc<dyn Fn(&str) + Send + Sync>;

/// Maximum number of pending challenges of each kind. An issuer processes a few orders at a time, so only an error
/// can cause more.
const MAX_CHALLENGES: usize = 1_024;

/// Certificates and challenge responses, which handshakes and requests look up without a lock. Issuers replace the
/// certificates of one name or of many names at a time.
#[derive(Default)]
pub struct CertificateStore {
    sets: ArcSwap<Table<CertificateSet>>,
    /// HTTP-01 (RFC 8555 §8.3): token → key authorization.
    http_challenges: ArcSwap<Table<str>>,
    /// TLS-ALPN-01 (RFC 8737): name → challenge certificate.
    tls_alpn_challenges: ArcSwap<Table<CertifiedKey>>,
    on_missing: ArcSwap<Vec<MissingCallback>>,
    /// Held while a table is copied and replaced, so that no concurrent change is lost.
    write_lock: Mutex<()>,
}

impl CertificateStore {
    /// Inserts a set under each of its names and replaces older sets; handshakes in progress keep the set they found.
    /// Names are lower case, and `*.example.com` matches exactly one more label.
    pub fn insert(&self, names: &[String], set: CertificateSet) {
        self.insert_all(std::iter::once((names, set)));
    }

    /// Inserts many sets. The table is copied once for all of them, not once for each.
    pub fn insert_all<'a>(&self, sets: impl IntoIterator<Item = (&'a [String], CertificateSet)>) {
        self.change(&self.sets, |table| {
            for (names, set) in sets {
                let set = Arc::new(set);
                for name in names {
                    table.insert(name.as_str().into(), Arc::clone(&set));
                }
            }
        });
    }

    /// Removes the sets of these names.
    pub fn remove(&self, names: &[String]) {
        self.change(&self.sets, |table| {
            for name in names {
                table.remove(name.as_str());
            }
        });
    }

    /// Returns the set for a name in lower case: the set of the name itself, or else the set of the wildcard of its
    /// parent domain; `None` if neither exists.
    pub fn find(&self, name: &str) -> Option<Arc<CertificateSet>> {
        let table = self.sets.load();
        if let Some(set) = table.get(name) {
            return Some(Arc::clone(set));
        }
        let (_, parent) = name.split_once('.')?;
        table.get(format!("*.{parent}").as_str()).map(Arc::clone)
    }

    /// Publishes the response to an HTTP-01 challenge at `/.well-known/acme-challenge/TOKEN` of every clear-text site.
    /// A new token is dropped when `MAX_CHALLENGES` are pending.
    pub fn insert_http_challenge(&self, token: &str, key_authorization: &str) {
        self.change(&self.http_challenges, |table| {
            insert(table, token, key_authorization.into());
        });
    }

    /// Withdraws an HTTP-01 response.
    pub fn remove_http_challenge(&self, token: &str) {
        self.change(&self.http_challenges, |table| drop(table.remove(token)));
    }

    /// Returns the key authorization for a token, if its challenge is pending.
    pub fn http_challenge(&self, token: &str) -> Option<Arc<str>> {
        self.http_challenges.load().get(token).map(Arc::clone)
    }

    /// Publishes the challenge certificate for a name. A client that offers the protocol `acme-tls/1`, as a CA does for
    /// the validation, receives this certificate (RFC 8737 §3). A new name is dropped when `MAX_CHALLENGES` are
    /// pending.
    pub fn insert_tls_alpn_challenge(&self, name: &str, key: Arc<CertifiedKey>) {
        self.change(&self.tls_alpn_challenges, |table| insert(table, name, key));
    }

    /// Withdraws a challenge certificate.
    pub fn remove_tls_alpn_challenge(&self, name: &str) {
        self.change(&self.tls_alpn_challenges, |table| drop(table.remove(name)));
    }

    /// Returns the challenge certificate for a name, if a challenge is pending.
    pub fn tls_alpn_challenge(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.tls_alpn_challenges.load().get(name).map(Arc::clone)
    }

    /// Registers a callback for names that clients request and no certificate covers. The callback runs during the
    /// handshake, so it must not wait, and it can run many times for one name. Each issuer registers at most once.
    pub fn on_missing(&self, callback: impl Fn(&str) + Send + Sync + 'static) {
        let _guard = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::clone(&self.on_missing.load());
        all.push(Arc::new(callback));
        self.on_missing.store(Arc::new(all));
    }

    /// Reports that a client requested this name, which belongs to a site but has no certificate.
    pub fn report_missing(&self, name: &str) {
        for callback in &**self.on_missing.load() {
            callback(name);
        }
    }

    /// Publishes a changed copy of a table. Concurrent lookups see the table before or after all changes.
    fn change<T: ?Sized>(&self, target: &ArcSwap<Table<T>>, change: impl FnOnce(&mut Table<T>)) {
        let _guard = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = Table::clone(&target.load());
        change(&mut table);
        target.store(Arc::new(table));
    }
}

/// Inserts a challenge, unless `MAX_CHALLENGES` others are pending.
fn insert<T: ?Sized>(table: &mut Table<T>, name: &str, value: Arc<T>) {
    if table.len() < MAX_CHALLENGES || table.contains_key(name) {
        table.insert(name.into(), value);
    }
}

impl std::fmt::Debug for CertificateStore {
    /// Shows only the names, because keys and tokens are secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.sets.load().keys()).finish()
    }
}
