//! Processes that take over a folder, and stores that are turned off.

use super::*;

/// During an upgrade, the new process waits for the old one, and applies the changes since its own start.
#[test]
fn a_second_process_waits_and_loses_no_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let old = Opened::new(&path);
    for name in ["a", "b", "c", "posted"] {
        old.put(name, name);
    }
    old.flush();
    let new = DiskStore::start(path.clone(), 16 * MIB as u64, |_| false).expect("a thread");
    new.remove(&key("a"));
    new.purge(&[Purge::tag("b")]);
    // It is stored in memory there.
    new.put(&key("c"), &stored("max-age=600", "newer"), moment(), || true);
    assert!(!new.is_ready());
    // The old process has responses that it requested before.
    old.put("a", "late");
    old.0.close_after(Duration::from_millis(100));
    // A request in progress changes a resource.
    old.0.remove(&key("posted"));
    until("the new process continues", || new.is_ready());
    let new = Opened(new);
    for name in ["a", "b", "c", "posted"] {
        assert_eq!(new.body(name), None, "{name}");
        new.put(name, "new");
    }
    // The old process changes nothing any longer.
    old.put("a", "too late");
    old.0.remove(&key("b"));
    new.flush();
    assert_eq!(old.body("a"), None);
    new.stop();
    let store = Opened::new(&path);
    assert!(
        ["a", "b", "c"]
            .iter()
            .all(|name| store.body(name).as_deref() == Some("new"))
    );
}

#[test]
fn changes_that_a_short_process_cannot_record_empty_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.put("a", "a");
    store.stop();
    let shared = Shared::new(path.clone(), 16 * MIB as u64);
    shared.remove(&key("a"));
    shared.close();
    let held = folder::Folder::open(&path).expect("a folder");
    drop(held);
    // The thread finds the log closed before it has opened it.
    super::super::thread::run(&shared, &|_| false);
    let store = Opened::new(&path);
    assert_eq!(store.body("a"), None);
}

#[test]
fn a_store_that_is_turned_off_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.put("a", "a");
    store.flush();
    store.0.discard();
    store.stop();
    assert!(!path.join("00000000.log").exists());
}

/// A purge is not reported as recorded before it is.
#[test]
fn a_purge_waits_until_the_log_is_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let old = Opened::new(&path);
    old.put("a", "a");
    old.flush();
    let new = DiskStore::start(path.clone(), 16 * MIB as u64, |_| false).expect("a thread");
    assert!(new.flush(Duration::ZERO));
    new.purge(&[Purge::everything()]);
    assert!(!new.flush(Duration::from_millis(10)));
    old.0.close();
    let new = Opened(new);
    new.flush();
    let killed = folder.path().join("killed");
    copy(&path, &killed);
    assert_eq!(Opened::new(&killed).body("a"), None);
    // The old process cannot record changes any longer.
    assert!(old.0.flush(DEADLINE));
    old.0.remove(&key("b"));
    assert!(!old.0.flush(DEADLINE));
    new.stop();
}

/// A store that is turned off while another process still uses the folder is emptied afterwards.
#[test]
fn a_store_that_is_turned_off_before_it_is_open_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("responses");
    let store = Opened::new(&path);
    store.put("a", "a");
    store.stop();
    let held = folder::Folder::open(&path).expect("a folder");
    assert!(held.is_some());
    let new = DiskStore::start(path.clone(), 16 * MIB as u64, |_| false).expect("a thread");
    new.discard();
    drop(held);
    assert!(new.stop(Instant::now() + DEADLINE));
    assert!(!path.join("00000000.log").exists());
}
