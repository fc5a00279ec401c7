//! Tests of the local CA: verification by clients, recovery of a damaged CA, expiry, and concurrent creation.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls_pki_types::{ServerName, UnixTime};

use super::*;
use crate::storage::FileStorage;
use crate::storage::memory::MemoryStorage;

const DAY: Duration = Duration::from_secs(86_400);

/// Verifies `leaf` for `name`, as a client that trusts `root`.
fn verify(root: &CaCertificate, leaf: &Leaf, name: &str, now: SystemTime) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    roots.add(root.der.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .unwrap();
    let now = UnixTime::since_unix_epoch(now.duration_since(UNIX_EPOCH).unwrap());
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let checked = verifier.verify_server_cert(&leaf.chain[0], &leaf.chain[1..], &name, &[], now);
    checked.map(drop).map_err(|error| error.to_string())
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn clients_accept_certificates_of_the_local_ca_and_enforce_private_names() {
    let storage = MemoryStorage::default();
    let now = SystemTime::now();
    for (kind, names, requested, good) in [
        (
            CaKind::Private,
            &["localhost", "127.0.0.1", "::1"][..],
            "localhost",
            true,
        ),
        (CaKind::Private, &["localhost", "127.0.0.1", "::1"], "127.0.0.1", true),
        (CaKind::Private, &["localhost", "127.0.0.1", "::1"], "::1", true),
        (CaKind::Private, &["shop.test", "*.shop.test"], "a.shop.test", true),
        (CaKind::Private, &["shop.test"], "other.test", false),
        (CaKind::Private, &["192.168.1.9"], "192.168.1.9", true),
        (CaKind::Private, &["example.com"], "example.com", false),
        (CaKind::Private, &["shop.test", "example.com"], "shop.test", false),
        (CaKind::Private, &["8.8.8.8"], "8.8.8.8", false),
        (CaKind::AnyName, &["example.com"], "example.com", true),
        (CaKind::AnyName, &["8.8.8.8"], "8.8.8.8", true),
    ] {
        let ca = LocalCa::open_or_make(&storage, kind, now).unwrap();
        let leaf = ca.sign(&list(names), now).unwrap();
        let found = verify(ca.root(), &leaf, requested, now);
        assert_eq!(found.is_ok(), good, "{kind:?} {names:?} as {requested}: {found:?}");
    }
}

#[test]
fn leaves_are_valid_from_before_now_and_for_less_than_browsers_allow() {
    let storage = MemoryStorage::default();
    let now = SystemTime::now();
    let ca = LocalCa::open_or_make(&storage, CaKind::Private, now).unwrap();
    let leaf = ca.sign(&list(&["localhost"]), now).unwrap();
    // Certificates store whole seconds, so the times are a second or two away from the limits.
    for (when, good) in [
        (now - CLOCK_SLACK + Duration::from_secs(1), true),
        (now - CLOCK_SLACK - Duration::from_secs(2), false),
        (now + LEAF_LIFETIME - Duration::from_secs(1), true),
        (now + LEAF_LIFETIME + Duration::from_secs(2), false),
    ] {
        assert_eq!(verify(ca.root(), &leaf, "localhost", when).is_ok(), good);
    }
    // The strictest limit of browsers is 398 days. One day remains as a margin.
    assert!(LEAF_LIFETIME + CLOCK_SLACK <= 397 * DAY);
}

#[test]
fn the_ca_is_reused_until_it_is_too_old_to_sign() {
    let storage = MemoryStorage::default();
    let now = SystemTime::now();
    let first = LocalCa::open_or_make(&storage, CaKind::Private, now).unwrap();
    // `young` is one day before the last moment at which a new leaf expires before the CA, and `old` one day after it.
    let young = now + CA_LIFETIME - LEAF_LIFETIME - DAY;
    let again = LocalCa::open_or_make(&storage, CaKind::Private, young).unwrap();
    assert_eq!(first.root().der, again.root().der);
    // A certificate signed by the reopened CA is valid under the root of the first.
    let leaf = again.sign(&list(&["localhost"]), young).unwrap();
    assert_eq!(verify(first.root(), &leaf, "localhost", young), Ok(()));
    let old = now + CA_LIFETIME - LEAF_LIFETIME + DAY;
    let new = LocalCa::open_or_make(&storage, CaKind::Private, old).unwrap();
    assert_ne!(first.root().der, new.root().der);
    let other = LocalCa::open_or_make(&storage, CaKind::AnyName, now).unwrap();
    assert_ne!(new.root().der, other.root().der);
}

#[test]
fn a_damaged_ca_is_replaced_and_a_full_disk_is_an_error() {
    let now = SystemTime::now();
    for broken in [CaKind::Private.key_item(), CaKind::Private.certificate_item()] {
        for content in [&b""[..], b"-----BEGIN", &[0xff; 9]] {
            let storage = MemoryStorage::default();
            let first = LocalCa::open_or_make(&storage, CaKind::Private, now).unwrap();
            storage.write(broken, content, Access::Owner).unwrap();
            let second = LocalCa::open_or_make(&storage, CaKind::Private, now).unwrap();
            assert_ne!(first.root().der, second.root().der, "{broken}");
            let leaf = second.sign(&list(&["localhost"]), now).unwrap();
            assert_eq!(verify(second.root(), &leaf, "localhost", now), Ok(()));
        }
    }
    // The key of one CA with the certificate of another, as after a crash between two writes.
    let (storage, other) = (MemoryStorage::default(), MemoryStorage::default());
    LocalCa::open_or_make(&storage, CaKind::Private, now).unwrap();
    LocalCa::open_or_make(&other, CaKind::Private, now).unwrap();
    let key = other.read(CaKind::Private.key_item()).unwrap().unwrap();
    storage.write(CaKind::Private.key_item(), &key, Access::Owner).unwrap();
    let repaired = LocalCa::open_or_make(&storage, CaKind::Private, now).unwrap();
    let leaf = repaired.sign(&list(&["localhost"]), now).unwrap();
    assert_eq!(verify(repaired.root(), &leaf, "localhost", now), Ok(()));

    let full = MemoryStorage::default();
    full.full.store(true, std::sync::atomic::Ordering::Relaxed);
    let failed = LocalCa::open_or_make(&full, CaKind::Private, now);
    assert!(matches!(failed, Err(CaError::Storage(_))));
}

#[test]
fn concurrent_callers_get_one_ca() {
    let folder = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    let roots: Vec<_> = std::thread::scope(|scope| {
        let open = || {
            let storage = FileStorage::new(folder.path());
            LocalCa::open_or_make(&storage, CaKind::Private, now)
                .unwrap()
                .root()
                .der
                .clone()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(roots.iter().all(|root| *root == roots[0]));
}
