//! File in the state folder that keeps bans across restarts and upgrades.
//!
//! The first line names the process that has written the file last, its owner. After an upgrade, the old process does
//! not replace the bans of the new one: a process does not write if another running process has written the file since
//! this process has read or written it.

use std::fmt::Write;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use aws_lc_rs::rand;
use rocknet_limit::bans::{Ban, FOREVER, MAX_BANS};

use super::address;
use super::networks::AddedNetwork;
use super::offence::Reason;
use crate::certificates::storage::{Access, FileStorage, Storage};

/// Name of the file.
const FILE: &str = "bans/bans";

/// Maximum size of the file in bytes. A file with all bans that are permitted, each with a reason, is smaller.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// First words of the file: format and version.
const FORMAT: &str = "rocknet-bans 1 ";

/// Bans of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Stored {
    pub clients: Vec<(u128, Ban<Reason>)>,
    pub networks: Vec<AddedNetwork>,
}

/// The file.
pub struct Store {
    storage: FileStorage,
    /// Name of this process in the file.
    owner: String,
    /// First line of the file as this process has read or written it last; empty if there was no file.
    known: String,
    /// True after another running process was found to be the owner, until a write succeeds. It is logged once.
    was_replaced: bool,
    /// True after an error was logged, until a write succeeds.
    has_failed: bool,
}

impl Store {
    /// Opens the file in a state folder, and reads it. A file that cannot be read is logged, and counts as empty.
    pub fn open(folder: &Path) -> (Store, Stored) {
        let mut random = [0; 8];
        // The number only distinguishes processes with the same ID, so zeros do no harm.
        let _ = rand::fill(&mut random);
        let mut store = Store {
            storage: FileStorage::new(folder),
            owner: format!("{}-{:016x}", std::process::id(), u64::from_le_bytes(random)),
            known: String::new(),
            was_replaced: false,
            has_failed: false,
        };
        let stored = match store.read(MAX_FILE_BYTES) {
            Ok(text) => {
                store.known = first_line(&text).to_owned();
                parse(&text)
            }
            Err(error) => {
                let path = store.storage.path().join(FILE);
                // The next write would replace it.
                let kept = path.with_extension("unreadable");
                let _ = fs::rename(&path, &kept);
                store.fail(&format!(
                    "cannot be read: {error}; it was renamed to {}",
                    kept.display()
                ));
                Stored::default()
            }
        };
        (store, stored)
    }

    /// Returns at most `max` bytes of the file; an empty text if there is no file.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, and an error for a file of more than [`MAX_FILE_BYTES`].
    fn read(&self, max: u64) -> io::Result<String> {
        let file = match File::open(self.storage.path().join(FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(error),
        };
        if file.metadata()?.len() > MAX_FILE_BYTES {
            return Err(io::Error::other("it is larger than 64 MiB"));
        }
        let mut bytes = Vec::new();
        file.take(max).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Writes all bans, unless another process owns the file now.
    pub fn write(&mut self, clients: &[(u128, Ban<Reason>)], networks: &[AddedNetwork]) {
        /// Maximum length of the first line in bytes.
        const MAX_FIRST_LINE: u64 = 256;
        // A file that cannot be read is replaced.
        let current = self.read(MAX_FIRST_LINE).unwrap_or_default();
        let current = first_line(&current);
        if current.is_empty() && clients.is_empty() && networks.is_empty() {
            // A server without bans needs no file.
            return;
        }
        if current != self.known && has_running_owner(current) {
            if !std::mem::replace(&mut self.was_replaced, true) {
                tracing::info!("another process of the server keeps the bans from now on");
            }
            return;
        }
        let text = render(&self.owner, clients, networks);
        match self.storage.write(FILE, text.as_bytes(), Access::Owner) {
            Ok(()) => {
                self.known = first_line(&text).to_owned();
                (self.was_replaced, self.has_failed) = (false, false);
            }
            Err(error) => self.fail(&format!("cannot be written, so a restart lifts the bans: {error}")),
        }
    }

    fn fail(&mut self, what: &str) {
        if !std::mem::replace(&mut self.has_failed, true) {
            tracing::warn!("the file {} {what}", self.storage.path().join(FILE).display());
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns true if the first line of a file names another process that runs.
fn has_running_owner(first_line: &str) -> bool {
    let owner = first_line
        .strip_prefix(FORMAT)
        .and_then(|owner| owner.split('-').next());
    let process = owner.and_then(|process| process.parse::<u32>().ok());
    process.is_some_and(|process| process != std::process::id() && is_running(process))
}

/// Returns true if a process exists. Its account may be another one.
fn is_running(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    process.is_some_and(|process| rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH))
}

/// Renders the file: one ban in each line, with its beginning, end, number of bans of the client so far, and
/// reason.
fn render(owner: &str, clients: &[(u128, Ban<Reason>)], networks: &[AddedNetwork]) -> String {
    let mut text = format!("{FORMAT}{owner}\n");
    let mut line = |address: String, since: u64, until: u64, count: u32, reason: &Reason| {
        let until = if until == FOREVER {
            "-".to_owned()
        } else {
            until.to_string()
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{address} {since} {until} {count} {}", reason.stored());
    };
    for (client, ban) in clients {
        line(
            address::client_text(*client),
            ban.since,
            ban.until,
            ban.count,
            &ban.reason,
        );
    }
    for added in networks {
        line(address::text(added.network), added.since, added.until, 1, &added.reason);
    }
    text
}

/// Parses the file. Lines in another format are skipped.
fn parse(text: &str) -> Stored {
    let mut stored = Stored::default();
    let mut lines = text.lines();
    if !lines.next().is_some_and(|first| first.starts_with(FORMAT)) {
        return stored;
    }
    // `render` writes fewer lines: at most `MAX_BANS` clients, and `MAX_ADDED` networks.
    for line in lines.take(2 * MAX_BANS) {
        let mut words = line.splitn(5, ' ');
        let number = |word: Option<&str>| match word? {
            "-" => Some(FOREVER),
            word => word.parse::<u64>().ok(),
        };
        let ban = (|| {
            let network = address::parse(words.next()?).ok()?;
            let (since, until) = (number(words.next())?, number(words.next())?);
            let count = u32::try_from(number(words.next())?).ok()?;
            let reason = Reason::from_stored(words.next()?)?;
            Some((
                network,
                Ban {
                    since,
                    until,
                    count,
                    reason,
                },
            ))
        })();
        let Some((network, ban)) = ban else { continue };
        match address::client_of(network) {
            Some(client) => stored.clients.push((client, ban)),
            None => {
                let Ban {
                    since, until, reason, ..
                } = ban;
                stored.networks.push(AddedNetwork {
                    network,
                    since,
                    until,
                    reason,
                });
            }
        }
    }
    stored
}

#[cfg(test)]
mod tests {
    use super::super::offence::Offence;
    use super::*;

    fn bans() -> Stored {
        let client = |text: &str| address::client_of(address::parse(text).unwrap()).unwrap();
        let ban = |until, count, reason| Ban {
            since: 7,
            until,
            count,
            reason,
        };
        Stored {
            clients: vec![
                (client("192.0.2.7"), ban(99, 3, Reason::Offence(Offence::Login))),
                (
                    client("2001:db8::"),
                    ban(FOREVER, 1, Reason::Operator("a b # c".into())),
                ),
                (client("192.0.2.8"), ban(99, 1, Reason::Operator("".into()))),
            ],
            networks: vec![AddedNetwork {
                network: address::parse("198.51.100.0/24").unwrap(),
                since: 7,
                until: FOREVER,
                reason: Reason::Operator("scanner".into()),
            }],
        }
    }

    #[test]
    fn bans_are_read_as_written() {
        let all = bans();
        let text = render("x", &all.clients, &all.networks);
        assert_eq!(parse(&text), all);
        // Damaged lines, and files of other versions, are skipped.
        let damaged = text.replace("192.0.2.7", "192.0.2.777");
        assert_eq!(parse(&damaged).clients, all.clients[1..]);
        assert_eq!(parse(&text.replace("bans 1", "bans 2")), Stored::default());
        assert_eq!(parse(""), Stored::default());
    }

    #[test]
    fn a_process_that_was_replaced_writes_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let all = bans();
        let (mut old, none) = Store::open(folder.path());
        assert_eq!(none, Stored::default());
        old.write(&all.clients, &[]);
        let (mut new, loaded) = Store::open(folder.path());
        assert_eq!(loaded.clients, all.clients);
        new.write(&all.clients[..1], &[]);
        let path = folder.path().join(FILE);
        let written = fs::read_to_string(&path).unwrap();
        // Both stores have the process ID of this test, so the ID of the new one is replaced by 1, which always runs.
        let running = written.replacen(&format!("{}-", std::process::id()), "1-", 1);
        fs::write(&path, &running).unwrap();
        old.write(&[], &[]);
        assert_eq!(fs::read_to_string(&path).unwrap(), running);
        // The new process has ended: no process has the largest number.
        fs::write(&path, running.replacen("1-", &format!("{}-", i32::MAX), 1)).unwrap();
        old.write(&[], &all.networks);
        assert_eq!(Store::open(folder.path()).1.networks, all.networks);
        // An operator has removed the file.
        fs::remove_file(&path).unwrap();
        old.write(&all.clients, &[]);
        assert_eq!(Store::open(folder.path()).1.clients, all.clients);
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
        let (mut store, _) = Store::open(folder.path());
        store.write(&clients, &[]);
        store.write(&clients[1..], &[]);
        assert_eq!(Store::open(folder.path()).1.clients.len(), MAX_BANS - 1);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_kept_under_another_name() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bans")).unwrap();
        let file = File::create(folder.path().join(FILE)).unwrap();
        file.set_len(MAX_FILE_BYTES + 1).unwrap();
        let (mut store, none) = Store::open(folder.path());
        assert_eq!(none, Stored::default());
        store.write(&bans().clients, &[]);
        assert_eq!(Store::open(folder.path()).1.clients, bans().clients);
        assert!(folder.path().join("bans/bans.unreadable").exists());
    }
}
