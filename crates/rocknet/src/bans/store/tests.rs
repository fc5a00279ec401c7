//! Tests of the stored bans.

use std::fs::File;

use rocknet_limit::bans::{Ban, MAX_BANS};

use super::super::ban_file::tests::bans;
use super::super::offence::{Offence, Reason};
use super::*;

/// Opens the file of a process that does not take over.
fn open(folder: &Path) -> (Store, Stored) {
    Store::open(folder, false)
}

/// Names another process as the owner of the file in a folder. Returns the text of the file.
fn change_owner(folder: &Path, process: u32) -> String {
    let path = folder.join(FILE);
    let text = fs::read_to_string(&path).unwrap();
    let changed = text.replacen(ban_file::writer(&text), &format!("{process}-0"), 1);
    fs::write(&path, &changed).unwrap();
    changed
}

/// ID of a process that always runs.
const RUNNING: u32 = 1;

/// Largest ID, which no process has.
const ENDED: u32 = i32::MAX.unsigned_abs();

#[test]
fn a_process_that_was_replaced_writes_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let all = bans();
    let none = Stored::default();
    let (mut old, loaded) = open(folder.path());
    assert_eq!(loaded, none);
    assert!(old.write(&[], &[], &none) && !folder.path().join(FOLDER).exists());
    assert!(old.write(&all.clients, &[], &none));
    let (mut new, loaded) = open(folder.path());
    assert_eq!(loaded.clients, all.clients);
    assert!(new.write(&all.clients[..1], &[], &none));
    let running = change_owner(folder.path(), RUNNING);
    assert!(old.write(&[], &[], &none));
    assert_eq!(fs::read_to_string(folder.path().join(FILE)).unwrap(), running);
    change_owner(folder.path(), ENDED);
    assert!(old.write(&[], &all.networks, &none));
    assert_eq!(open(folder.path()).1.networks, all.networks);
    // An operator has removed the file.
    fs::remove_file(folder.path().join(FILE)).unwrap();
    assert!(old.write(&all.clients, &[], &none));
    assert_eq!(open(folder.path()).1.clients, all.clients);
}

#[test]
fn the_owner_takes_the_bans_of_old_processes() {
    let folder = tempfile::tempdir().unwrap();
    let (all, none) = (bans(), Stored::default());
    let part = |clients: &[ClientBan], networks: &[AddedNetwork]| Stored {
        clients: clients.to_vec(),
        networks: networks.to_vec(),
    };
    let first = part(&all.clients[..1], &[]);
    let (mut oldest, _) = open(folder.path());
    let (mut old, _) = open(folder.path());
    assert!(old.write(&first.clients, &[], &first));
    let (mut new, loaded) = Store::open(folder.path(), true);
    assert_eq!(loaded, first);
    assert!(new.has_predecessor() && !old.has_predecessor());
    assert_eq!(new.take_passed(), none);
    // Before the upgrade is complete, the old process finds another owner. All stores of this test have the same
    // process ID, so none of them is another owner. The file therefore names process 1.
    let own = fs::read_to_string(folder.path().join(FILE)).unwrap();
    change_owner(folder.path(), RUNNING);
    let second = part(&all.clients[1..2], &all.networks);
    assert!(old.write(&[], &[], &second));
    fs::write(folder.path().join(FILE), own).unwrap();
    old.begin_passing();
    oldest.begin_passing();
    assert!(oldest.write(&[], &[], &part(&all.clients[2..], &[])));
    assert!(old.write(&all.clients, &[], &none));
    // A process that passes bans takes none.
    assert_eq!(old.take_passed(), none);
    let mut expected = second;
    expected.add(&part(&all.clients[2..], &[]));
    assert_eq!(new.take_passed(), expected);
    assert_eq!(new.take_passed(), none);
    // The taken bans are already in the file, so they outlive a kill of the new process. The old process never owns the
    // file again, even with nothing left to pass.
    assert!(old.write(&[], &[], &none));
    assert_eq!(open(folder.path()).1, all);
    let files = fs::read_dir(folder.path().join(FOLDER)).unwrap().count();
    assert_eq!(files, 2, "the file and its lock");
}

#[test]
fn passed_bans_outlive_an_owner_that_has_not_taken_them() {
    let folder = tempfile::tempdir().unwrap();
    let all = bans();
    let (mut old, _) = open(folder.path());
    assert!(old.write(&all.clients[..1], &[], &Stored::default()));
    old.begin_passing();
    let later = Stored {
        clients: all.clients[1..].to_vec(),
        networks: all.networks.clone(),
    };
    assert!(old.write(&all.clients, &all.networks, &later));
    // Nothing is left to pass after the start of the next process.
    for _ in 0..2 {
        assert_eq!(open(folder.path()).1, all);
        assert!(!folder.path().join(PASSED).exists());
    }
}

#[test]
fn a_write_waits_for_the_lock_of_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let all = bans();
    let (mut store, _) = open(folder.path());
    assert!(store.write(&all.clients, &[], &Stored::default()));
    let other = FileStorage::new(folder.path());
    let lock = other.lock(FILE).unwrap().unwrap();
    assert!(!store.write(&[], &all.networks, &Stored::default()));
    let is_written = thread::scope(|scope| {
        let writer = scope.spawn(|| store.write(&[], &all.networks, &Stored::default()));
        drop(lock);
        writer.join().unwrap()
    });
    assert!(is_written);
    assert_eq!(open(folder.path()).1.networks, all.networks);
}

#[test]
fn the_lock_is_not_needed_where_none_can_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let all = bans();
    let (mut store, _) = open(folder.path());
    // A folder takes the place of the lock file.
    fs::create_dir_all(folder.path().join("bans/bans.lock")).unwrap();
    assert!(store.write(&all.clients, &[], &Stored::default()));
    assert_eq!(open(folder.path()).1.clients, all.clients);
}

#[test]
fn a_failed_write_counts_only_if_a_restart_would_change_bans() {
    let folder = tempfile::tempdir().unwrap();
    let all = bans();
    let path = folder.path().join(FILE);
    let name = path.file_name().unwrap().to_string_lossy();
    // A folder takes the place of the temporary file.
    let obstacle = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    fs::create_dir_all(&obstacle).unwrap();
    assert!(!Store::open(folder.path(), true).0.has_failed);
    fs::remove_dir(&obstacle).unwrap();
    let (mut store, _) = open(folder.path());
    assert!(store.write(&all.clients, &[], &Stored::default()));
    assert!(store.write(&[], &[], &Stored::default()));
    fs::create_dir(&obstacle).unwrap();
    assert!(!Store::open(folder.path(), true).0.has_failed, "the file has no bans");
    fs::remove_dir(&obstacle).unwrap();
    assert!(store.write(&all.clients, &[], &Stored::default()));
    fs::create_dir(&obstacle).unwrap();
    // The last ban is lifted.
    assert!(!store.write(&[], &[], &Stored::default()));
    assert!(store.has_failed);
}

#[test]
fn all_bans_that_are_permitted_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let ban = || Ban {
        since: 1_764_000_000,
        until: 1_764_000_000 + 604_800,
        count: 7,
        reason: Reason::Offence(Offence::Login),
    };
    let clients: Vec<_> = (0..MAX_BANS as u128)
        .map(|at| ((0x2001_0db8 << 96) | (at << 64), ban()))
        .collect();
    let (mut store, _) = open(folder.path());
    assert!(store.write(&clients, &[], &Stored::default()));
    assert!(store.write(&clients[1..], &[], &Stored::default()));
    assert_eq!(open(folder.path()).1.clients.len(), MAX_BANS - 1);
}

#[test]
fn a_file_that_cannot_be_read_is_kept_under_another_name() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bans")).unwrap();
    let file = File::create(folder.path().join(FILE)).unwrap();
    file.set_len(MAX_FILE_BYTES + 1).unwrap();
    let (mut store, none) = open(folder.path());
    assert_eq!(none, Stored::default());
    assert!(store.write(&bans().clients, &[], &Stored::default()));
    assert_eq!(open(folder.path()).1.clients, bans().clients);
    assert!(folder.path().join("bans/bans.unreadable").exists());
}
