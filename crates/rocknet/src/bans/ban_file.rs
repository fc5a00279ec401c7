//! Files with bans in the state folder: their format, and the process that has written them.
//!
//! The first line names the process. Each further line is a ban.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use aws_lc_rs::rand;
use rocknet_limit::bans::{Ban, FOREVER, MAX_BANS};

use super::address;
use super::networks::AddedNetwork;
use super::offence::Reason;

/// Maximum size of a file in bytes. A file with all bans that are permitted, each with a reason, is smaller.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// First words of a file: format and version.
const FORMAT: &str = "rocknet-bans 1 ";

/// A ban, after the number of its client.
pub type ClientBan = (u128, Ban<Reason>);

/// Bans of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Stored {
    pub clients: Vec<ClientBan>,
    pub networks: Vec<AddedNetwork>,
}

impl Stored {
    /// Returns true if there are no bans.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.networks.is_empty()
    }

    /// Adds bans of another file.
    pub fn add(&mut self, other: &Stored) {
        self.clients.extend_from_slice(&other.clients);
        self.networks.extend_from_slice(&other.networks);
    }
}

/// Returns the name of this process in files: its ID and a random number, because a later process can have the same ID.
pub fn own_name() -> String {
    let mut random = [0; 8];
    // The number only distinguishes processes with the same ID, so zeros do no harm.
    let _ = rand::fill(&mut random);
    format!("{}-{:016x}", std::process::id(), u64::from_le_bytes(random))
}

/// Returns the ID in the name of a process.
pub fn process_of(name: &str) -> Option<u32> {
    name.split('-').next()?.parse().ok()
}

/// Returns true if a process exists. Its account may be another one.
pub fn is_running(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    process.is_some_and(|process| rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH))
}

/// Returns at most `max` bytes of a file; an empty text if there is no file.
///
/// # Errors
///
/// Returns the error of the system, and an error for a file of more than [`MAX_FILE_BYTES`].
pub fn read(path: &Path, max: u64) -> io::Result<String> {
    let file = match File::open(path) {
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

/// Returns the name of the process that has written a file; empty if the text has another format. `text`: at least the
/// first line of the file.
pub fn writer(text: &str) -> &str {
    text.lines()
        .next()
        .and_then(|line| line.strip_prefix(FORMAT))
        .unwrap_or_default()
}

/// Renders the file of a process: one ban in each line, with its beginning, end, number of bans of the client so far,
/// and reason.
pub fn render(process: &str, clients: &[(u128, Ban<Reason>)], networks: &[AddedNetwork]) -> String {
    let mut text = format!("{FORMAT}{process}\n");
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

/// Parses a file. Lines in another format are skipped.
pub fn parse(text: &str) -> Stored {
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
pub mod tests {
    use super::super::offence::Offence;
    use super::*;

    /// Returns bans of each kind.
    pub fn bans() -> Stored {
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
}
