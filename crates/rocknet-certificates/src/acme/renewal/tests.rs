//! Tests of the renewal loop with a folder as storage.

use std::collections::BTreeSet;
use std::io;
use std::time::UNIX_EPOCH;

use rocknet_config::model::Acme;

use super::*;
use crate::storage::{Access, FileStorage};

/// Returns a renewal loop without names, whose state folder is `folder`.
fn renewal_loop(folder: &std::path::Path) -> RenewalLoop {
    RenewalLoop {
        storage: Arc::new(FileStorage::new(folder)),
        clock: Clock::default(),
        store: Arc::default(),
        desired: watch::channel(Arc::default()).1,
        missing_names: mpsc::channel(1).1,
        entries: HashMap::new(),
    }
}

/// Storage in which another process stores a certificate for `a.test` right before this process gets the lock.
struct PreviousHolder(FileStorage);

impl Storage for PreviousHolder {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.0.read(name)
    }

    fn write(&self, name: &str, bytes: &[u8], access: Access) -> io::Result<()> {
        self.0.write(name, bytes, access)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn names(&self, folder: &str) -> io::Result<Vec<String>> {
        self.0.names(folder)
    }

    fn lock(&self, name: &str) -> io::Result<Option<Lock>> {
        store_certificate(&self.0, "a.test");
        self.0.lock(name)
    }
}

/// Stores a certificate for `name` as if a CA had issued it.
fn store_certificate(storage: &dyn Storage, name: &str) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    StoredCertificate::save(storage, name, &made.signing_key.serialize_pem(), &made.cert.pem()).expect("saved");
}

#[test]
fn certificates_below_a_wildcard_that_a_reload_adds_are_renewed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut renewal = renewal_loop(folder.path());
    store_certificate(&*renewal.storage, "a.example.com");
    store_certificate(&*renewal.storage, "a.other.com");
    let old = renewal.client(&DesiredState::default());
    let (desired, receiver) = watch::channel(Arc::new(DesiredState {
        names: BTreeSet::from(["b.test".to_owned()]),
        wildcard_parents: vec!["example.com".to_owned()],
        ..DesiredState::default()
    }));
    renewal.desired = receiver;
    renewal.apply_desired(&old);
    let known = |renewal: &RenewalLoop| renewal.entries.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(
        known(&renewal),
        BTreeSet::from(["a.example.com".into(), "b.test".into()])
    );
    assert!(renewal.entries["a.example.com"].record().is_some());
    desired.send_replace(Arc::default());
    renewal.apply_desired(&old);
    assert!(renewal.entries.is_empty());
}

#[test]
fn a_certificate_of_the_previous_holder_of_the_lock_is_not_ordered_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut renewal = renewal_loop(folder.path());
    renewal.storage = Arc::new(PreviousHolder(FileStorage::new(folder.path())));
    let now = renewal.clock.now();
    let entry = NameState::load(&*renewal.storage, "a.test", now);
    assert!(entry.renew_at <= now, "there is no certificate yet");
    renewal.entries.insert("a.test".to_owned(), entry);
    assert!(renewal.follow_or_lock().is_some());
    let entry = &renewal.entries["a.test"];
    assert!(entry.record().is_some() && entry.renew_at > now);
    assert!(renewal.store.find("a.test").is_some(), "the certificate is served");
}

#[test]
fn a_start_keeps_the_delay_after_a_failure_and_new_settings_end_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut renewal = renewal_loop(folder.path());
    let next_try = unix(renewal.clock.now() + Duration::from_secs(60));
    FailureRecord {
        next_try,
        last: "the CA does not respond".to_owned(),
        ..FailureRecord::default()
    }
    .save(&*renewal.storage, "a.test");
    let with_email = |email: &str| {
        Arc::new(DesiredState {
            settings: Acme {
                email: Some(email.to_owned()),
                ..Acme::default()
            },
            names: BTreeSet::from(["a.test".to_owned()]),
            ..DesiredState::default()
        })
    };
    let (desired, receiver) = watch::channel(with_email("a@a.test"));
    renewal.desired = receiver;
    let client = renewal.apply_desired(&renewal.first_client());
    assert_eq!(renewal.entries["a.test"].failures.next_try, next_try);
    desired.send_replace(with_email("b@a.test"));
    renewal.apply_desired(&client);
    assert_eq!(renewal.entries["a.test"].failures.next_try, 0);
}

#[test]
fn a_panic_delays_only_its_own_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut renewal = renewal_loop(folder.path());
    let now = renewal.clock.now();
    for name in ["a.test", "b.test"] {
        let entry = NameState::load(&*renewal.storage, name, now);
        renewal.entries.insert(name.to_owned(), entry);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut running = JoinSet::<()>::new();
        let other = running.spawn(std::future::pending());
        let broken = running.spawn(async { panic!("expected by the test") });
        renewal.entries.get_mut("a.test").expect("an entry").task = Some(broken.id());
        renewal.entries.get_mut("b.test").expect("an entry").task = Some(other.id());
        let error = running.join_next().await.expect("a task").expect_err("a panic");
        renewal.abandon(&error);
    });
    let entry = |name: &str| &renewal.entries[name];
    assert!(entry("a.test").task.is_none() && entry("b.test").task.is_some());
    assert!(entry("a.test").failures.next_try() > now + PANIC_PAUSE / 2);
    assert_eq!(entry("b.test").failures.next_try(), UNIX_EPOCH);
}
