//! File in the state folder that keeps bans across restarts and upgrades.
//!
//! The first line names the process that owns the file. A process writes it only while it is the owner, so that after
//! an upgrade the old process does not replace the bans of the new one.

use std::fmt::Write;
use std::path::Path;

use aws_lc_rs::rand;
use rocknet_limit::bans::{Ban, FOREVER, MAX_BANS};

use super::address;
use super::networks::AddedNetwork;
use super::offence::Reason;
use crate::certificates::storage::{Access, FileStorage, Storage};

/// Name of the file.
const FILE: &str = "bans";

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
    /// True once the file was written.
    is_owner: bool,
    /// True once another process was found to be the owner.
    was_replaced: bool,
    /// True once an error was logged.
    has_failed: bool,
}

impl Store {
    /// Opens the file in a state folder, and reads it. A file that cannot be read is logged, and counts as empty.
    pub fn open(folder: &Path) -> (Store, Stored) {
        let mut random = [0; 8];
        // The name only differs from that of other processes, so zeros do no harm.
        let _ = rand::fill(&mut random);
        let mut store = Store {
            storage: FileStorage::new(folder),
            owner: format!("{}-{:016x}", std::process::id(), u64::from_le_bytes(random)),
            is_owner: false,
            was_replaced: false,
            has_failed: false,
        };
        let stored = match store.storage.read(FILE) {
            Ok(bytes) => parse(&String::from_utf8_lossy(&bytes.unwrap_or_default())),
            Err(error) => {
                store.fail(&format!("cannot be read: {error}"));
                Stored::default()
            }
        };
        (store, stored)
    }

    /// Writes all bans, unless another process owns the file now.
    pub fn write(&mut self, clients: &[(u128, Ban<Reason>)], networks: &[AddedNetwork]) {
        let current = self.storage.read(FILE).ok().flatten();
        if current.is_none() && clients.is_empty() && networks.is_empty() {
            // A server without bans needs no file.
            return;
        }
        let has_other_owner = || {
            let current = current.unwrap_or_default();
            let first = current.split(|byte| *byte == b'\n').next().unwrap_or_default();
            !first.ends_with(self.owner.as_bytes())
        };
        if self.is_owner && has_other_owner() {
            if !std::mem::replace(&mut self.was_replaced, true) {
                tracing::info!("another process of the server keeps the bans from now on");
            }
            return;
        }
        let text = render(&self.owner, clients, networks);
        match self.storage.write(FILE, text.as_bytes(), Access::Owner) {
            Ok(()) => (self.is_owner, self.has_failed) = (true, false),
            Err(error) => self.fail(&format!("cannot be written, so a restart lifts the bans: {error}")),
        }
    }

    fn fail(&mut self, what: &str) {
        if !std::mem::replace(&mut self.has_failed, true) {
            tracing::warn!("the file {} {what}", self.storage.path().join(FILE).display());
        }
    }
}

/// Renders the file: one ban in each line, with its beginning, end, number and reason.
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

/// Parses the file. Lines that are not as written are skipped.
fn parse(text: &str) -> Stored {
    let mut stored = Stored::default();
    let mut lines = text.lines();
    if !lines.next().is_some_and(|first| first.starts_with(FORMAT)) {
        return stored;
    }
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
        old.write(&[], &[]);
        assert_eq!(Store::open(folder.path()).1.clients, all.clients[..1]);
        new.write(&[], &all.networks);
        assert_eq!(Store::open(folder.path()).1.networks, all.networks);
    }
}
