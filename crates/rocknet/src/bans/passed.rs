//! Bans that a process passes to its successor in an upgrade: those of its remaining connections.
//!
//! Each process writes them to a file of its own in the state folder, which its successor reads until the process has
//! ended.

use std::collections::HashSet;
use std::io;

use rocknet_limit::bans::Ban;

use super::ban_file::{self, MAX_FILE_BYTES};
use super::offence::Reason;
use crate::certificates::storage::{Access, FileStorage, Storage};

/// Folder of the files in the state folder.
const FOLDER: &str = "bans";

/// Beginning of the names of the files. The name of the process follows.
const PREFIX: &str = "passed-";

/// A ban, and the number of its client.
pub type ClientBan = (u128, Ban<Reason>);

/// Bans that the predecessor of this process passes.
pub struct PassedBans {
    /// ID of the predecessor.
    process: u32,
    /// Client and beginning of each ban that this process has got. A ban that an operator has lifted here must not come
    /// back with the next version of the file.
    taken: HashSet<(u128, u64)>,
}

/// Result of reading what the predecessor has passed.
#[derive(Default)]
pub struct Passed {
    /// Bans that this process has not got before.
    pub bans: Vec<ClientBan>,
    /// Files that are complete, because their process has ended. They can be removed once the bans are stored.
    pub complete: Vec<String>,
}

impl PassedBans {
    /// Begins to read the bans of a process. `known`: those that this process has already.
    pub fn new(process: u32, known: &[ClientBan]) -> PassedBans {
        PassedBans {
            process,
            taken: known.iter().map(|(client, ban)| (*client, ban.since)).collect(),
        }
    }

    /// Returns true while the process can pass further bans.
    pub fn continues(&self) -> bool {
        ban_file::is_running(self.process)
    }

    /// Reads the bans of the process so far.
    pub fn read(&mut self, storage: &FileStorage) -> Passed {
        let mut passed = read_files(storage, |process| process == self.process);
        passed
            .bans
            .retain(|(client, ban)| self.taken.insert((*client, ban.since)));
        passed
    }
}

/// Writes the bans that a process passes to its successor, in place of those that it has passed so far.
///
/// # Errors
///
/// Returns the error of the system.
pub fn write(storage: &FileStorage, process: &str, bans: &[ClientBan]) -> io::Result<()> {
    storage.write(
        &name(process),
        ban_file::render(process, bans, &[]).as_bytes(),
        Access::Owner,
    )
}

/// Removes the bans that a process has passed, because it has no successor any longer.
pub fn remove(storage: &FileStorage, process: &str) {
    // Without effect on the bans: at worst, the next process gets some that it has already.
    let _ = storage.remove(&name(process));
}

/// Reads the bans of processes that have ended without a successor that has read them.
pub fn read_abandoned(storage: &FileStorage) -> Passed {
    read_files(storage, |process| !ban_file::is_running(process))
}

fn name(process: &str) -> String {
    format!("{FOLDER}/{PREFIX}{process}")
}

/// Reads the files of the processes for whose IDs `is_wanted` returns true. Unreadable files are skipped.
fn read_files(storage: &FileStorage, is_wanted: impl Fn(u32) -> bool) -> Passed {
    let mut passed = Passed::default();
    for file in storage.names(FOLDER).unwrap_or_default() {
        let process = file.strip_prefix(PREFIX).and_then(ban_file::process_of);
        let Some(process) = process.filter(|process| is_wanted(*process)) else {
            continue;
        };
        let name = format!("{FOLDER}/{file}");
        // Examined before the file is read, so that a file of a process that has ended is complete.
        let has_ended = !ban_file::is_running(process);
        let Ok(text) = ban_file::read(&storage.path().join(&name), MAX_FILE_BYTES) else {
            continue;
        };
        passed.bans.extend(ban_file::parse(&text).clients);
        if has_ended {
            passed.complete.push(name);
        }
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::super::ban_file::tests::bans;
    use super::*;

    #[test]
    fn each_ban_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let storage = FileStorage::new(folder.path());
        let own = ban_file::own_name();
        let all = bans().clients;
        let mut passed = PassedBans::new(std::process::id(), &all[..1]);
        assert!(passed.continues());
        let taken = |passed: &mut PassedBans| passed.read(&storage).bans;
        assert_eq!(taken(&mut passed), []);
        write(&storage, &own, &all[..2]).unwrap();
        assert_eq!(taken(&mut passed), all[1..2]);
        write(&storage, &own, &all).unwrap();
        assert_eq!(taken(&mut passed), all[2..]);
        assert_eq!(taken(&mut passed), []);
        // A later ban of the same client is another one.
        let mut later = all[1].clone();
        later.1.since += 100;
        write(&storage, &own, std::slice::from_ref(&later)).unwrap();
        assert_eq!(taken(&mut passed), [later]);
        // The file of a process that runs is neither complete nor abandoned.
        assert_eq!(passed.read(&storage).complete, [""; 0]);
        assert_eq!(read_abandoned(&storage).bans, []);
        remove(&storage, &own);
        assert_eq!(storage.names(FOLDER).unwrap(), [""; 0]);
    }

    #[test]
    fn the_bans_of_a_process_that_has_ended_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let storage = FileStorage::new(folder.path());
        let all = bans().clients;
        // No process has the largest number.
        let ended = i32::MAX.unsigned_abs();
        write(&storage, &format!("{ended}-0"), &all).unwrap();
        write(&storage, "x", &all).unwrap();
        let files = [format!("bans/passed-{ended}-0")];
        let abandoned = read_abandoned(&storage);
        assert_eq!((abandoned.bans, &abandoned.complete[..]), (all.clone(), &files[..]));
        let mut passed = PassedBans::new(ended, &[]);
        assert!(!passed.continues());
        let last = passed.read(&storage);
        assert_eq!((last.bans, &last.complete[..]), (all, &files[..]));
    }
}
