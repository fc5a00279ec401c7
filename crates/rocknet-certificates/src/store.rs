//! The store: certificates that were made by themselves, by the names they are for, and the answers to ACME's challenges.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use rustls::sign::CertifiedKey;

use super::CertificateSet;

type Table<T> = HashMap<Box<str>, Arc<T>, RandomState>;
/// Called with a name for which a client came and there is no certificate.
type MissingCallback = Arc<dyn Fn(&str) + Send + Sync>;

/// Most challenges at once, of each kind: an issuer works on a few orders at a time.
const MAX_CHALLENGES: usize = 1_024;

/// Found by handshakes without a lock, changed by issuers one name at a time or all at once.
#[derive(Default)]
pub struct CertificateStore {
    sets: ArcSwap<Table<CertificateSet>>,
    /// HTTP-01: token → key authorization.
    http_challenges: ArcSwap<Table<str>>,
    /// TLS-ALPN-01: name → the certificate that answers.
    tls_alpn_challenges: ArcSwap<Table<CertifiedKey>>,
    on_missing: ArcSwap<Vec<MissingCallback>>,
    /// Held while one of the tables is replaced, so that no change is lost.
    write_lock: Mutex<()>,
}

impl CertificateStore {
    /// Puts a set under all of its names; what was there before goes, handshakes under way keep it. Names are lower
    /// case, `*.example.com` stands for one label more.
    pub fn insert(&self, names: &[String], set: CertificateSet) {
        self.insert_all(std::iter::once((names, set)));
    }

    /// Many at once: the table is copied once for all of them, not for each.
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

    pub fn remove(&self, names: &[String]) {
        self.change(&self.sets, |table| {
            for name in names {
                table.remove(name.as_str());
            }
        });
    }

    /// The set for a name in lower case: its own, or that of `*.` and what follows its first label.
    pub fn find(&self, name: &str) -> Option<Arc<CertificateSet>> {
        let table = self.sets.load();
        if let Some(set) = table.get(name) {
            return Some(Arc::clone(set));
        }
        let (_, parent) = name.split_once('.')?;
        table.get(format!("*.{parent}").as_str()).map(Arc::clone)
    }

    /// The answer to an HTTP-01 challenge, served at `/.well-known/acme-challenge/TOKEN` of every name in the clear.
    pub fn insert_http_challenge(&self, token: &str, key_authorization: &str) {
        self.change(&self.http_challenges, |table| {
            insert(table, token, key_authorization.into())
        });
    }

    pub fn remove_http_challenge(&self, token: &str) {
        self.change(&self.http_challenges, |table| drop(table.remove(token)));
    }

    pub fn http_challenge(&self, token: &str) -> Option<Arc<str>> {
        self.http_challenges.load().get(token).map(Arc::clone)
    }

    /// The answer to a TLS-ALPN-01 challenge: who offers `acme-tls/1` alone gets this certificate for the name.
    pub fn insert_tls_alpn_challenge(&self, name: &str, key: Arc<CertifiedKey>) {
        self.change(&self.tls_alpn_challenges, |table| insert(table, name, key));
    }

    pub fn remove_tls_alpn_challenge(&self, name: &str) {
        self.change(&self.tls_alpn_challenges, |table| drop(table.remove(name)));
    }

    pub fn tls_alpn_challenge(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.tls_alpn_challenges.load().get(name).map(Arc::clone)
    }

    /// Whom else to tell of names that clients ask for in vain. It is called in the handshake, so it must not wait; it may
    /// be called many times for one name. An issuer comes here once.
    pub fn on_missing(&self, callback: impl Fn(&str) + Send + Sync + 'static) {
        let _guard = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::clone(&self.on_missing.load());
        all.push(Arc::new(callback));
        self.on_missing.store(Arc::new(all));
    }

    /// A client came for this name, which a site has and no certificate is for.
    pub fn report_missing(&self, name: &str) {
        for callback in &**self.on_missing.load() {
            callback(name);
        }
    }

    fn change<T: ?Sized>(&self, target: &ArcSwap<Table<T>>, change: impl FnOnce(&mut Table<T>)) {
        let _guard = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = Table::clone(&target.load());
        change(&mut table);
        target.store(Arc::new(table));
    }
}

fn insert<T: ?Sized>(table: &mut Table<T>, name: &str, value: Arc<T>) {
    if table.len() < MAX_CHALLENGES || table.contains_key(name) {
        table.insert(name.into(), value);
    }
}

impl std::fmt::Debug for CertificateStore {
    /// Names alone: what is under them is secret in part.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.sets.load().keys()).finish()
    }
}
