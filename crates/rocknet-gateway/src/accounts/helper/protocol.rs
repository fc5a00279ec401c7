//! Message formats between the server and its helper: messages of a fixed size, and sealed files in memory for data of
//! variable size.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;

use rocknet_io::privileges::User;
use rustix::process::Signal;

/// Version of the messages. After an upgrade, the server and its helper may be different versions of the program.
pub const HELPER_VERSION: u32 = 1;

/// First argument of the helper process. The server passes it; users never type it.
pub const HELPER_ARGUMENT: &str = "start-programs-as-accounts";

/// Size in bytes of a request and of a reply.
pub const MESSAGE_SIZE: usize = 32;
/// Maximum size of a file in bytes. By default, the system starts no program with more than 2 MiB of arguments and
/// environment.
const MAX_FILE: u64 = 2 << 20;
/// Maximum number of accounts of one server, because a request identifies an account by one byte.
pub const MAX_ACCOUNTS: usize = 255;
/// Maximum number of elements of a list, such as the arguments or variables of a program, or the groups of an account.
/// RockNet writes a dozen arguments, and a few dozen variables plus one for each header field.
const MAX_ELEMENTS: usize = 8192;

/// Request of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelperRequest {
    /// Sets the accounts, from the file that is passed with the request. It is the first request and sent only once.
    Accounts,
    /// Starts a program and returns its number. Descriptors: a file with the [`ProgramSpec`], the three standard
    /// streams, then the descriptors that the flags announce.
    Start {
        /// Number of the account.
        account: u8,
        /// True if a file is passed. Its path becomes the last argument of the program.
        has_file: bool,
        /// True if a listening socket is passed.
        has_listener: bool,
        /// Signal that the program receives when the helper ends, or when the server process that sent this request
        /// ends.
        parent_death_signal: Signal,
    },
    /// Reaps the program with this number if it has ended; returns its wait status or [`RUNNING`].
    TryWait(u64),
    /// Sends a signal.
    Signal {
        /// Number of the program.
        number: u64,
        /// Signal to send.
        signal: Signal,
        /// True if the signal is sent to the whole process group, not only to the program.
        to_group: bool,
    },
    /// Returns 1 if the group of the program has members, else 0.
    GroupHasMembers(u64),
    /// Announces that the server sends no more requests about the program. The helper forgets the program when it ends.
    Forget(u64),
    /// Adds a client, whose channel is passed with the request: a process that takes over from the server. It gets no
    /// rights that this client does not have.
    Connect,
}

/// Reply to a request: a number whose meaning depends on the request, or an error number of the system.
pub type HelperReply = Result<u64, i32>;

/// Reply to [`HelperRequest::TryWait`] while the program runs. No wait status has this value.
pub const RUNNING: u64 = u64::MAX;

/// Signals that the server may send. A message contains the index of its signal in this list.
const SIGNALS: [Signal; 3] = [Signal::TERM, Signal::QUIT, Signal::KILL];

impl HelperRequest {
    /// Encodes the request. `sequence`: number that its reply repeats.
    ///
    /// Bytes 0 to 3 are the sequence number, byte 4 is the kind of the request, bytes 8 to 15 are the number of a
    /// program, and bytes 16 to 19 are parameters of the kind. All other bytes are 0.
    pub fn write(self, sequence: u32) -> [u8; MESSAGE_SIZE] {
        let mut out = [0; MESSAGE_SIZE];
        out[..4].copy_from_slice(&sequence.to_le_bytes());
        let (kind, number, rest) = match self {
            HelperRequest::Accounts => (0, 0, [0; 4]),
            HelperRequest::Start {
                account,
                has_file,
                has_listener,
                parent_death_signal,
            } => (
                1,
                0,
                [
                    account,
                    has_file.into(),
                    has_listener.into(),
                    signal_index(parent_death_signal),
                ],
            ),
            HelperRequest::TryWait(number) => (2, number, [0; 4]),
            HelperRequest::Signal {
                number,
                signal,
                to_group,
            } => (3, number, [signal_index(signal), to_group.into(), 0, 0]),
            HelperRequest::GroupHasMembers(number) => (4, number, [0; 4]),
            HelperRequest::Forget(number) => (5, number, [0; 4]),
            HelperRequest::Connect => (6, 0, [0; 4]),
        };
        out[4] = kind;
        out[8..16].copy_from_slice(&number.to_le_bytes());
        out[16..20].copy_from_slice(&rest);
        out
    }

    /// Decodes a request and its sequence number. Returns `None` for bytes that [`HelperRequest::write`] does not
    /// produce.
    pub fn read(message: &[u8]) -> Option<(u32, HelperRequest)> {
        let message: &[u8; MESSAGE_SIZE] = message.try_into().ok()?;
        let sequence = u32::from_le_bytes(message[..4].try_into().ok()?);
        let number = u64::from_le_bytes(message[8..16].try_into().ok()?);
        let [a, b, c, d] = message[16..20].try_into().ok()?;
        let request = match message[4] {
            0 => HelperRequest::Accounts,
            1 => HelperRequest::Start {
                account: a,
                has_file: b != 0,
                has_listener: c != 0,
                parent_death_signal: signal_at(d)?,
            },
            2 => HelperRequest::TryWait(number),
            3 => HelperRequest::Signal {
                number,
                signal: signal_at(a)?,
                to_group: b != 0,
            },
            4 => HelperRequest::GroupHasMembers(number),
            5 => HelperRequest::Forget(number),
            6 => HelperRequest::Connect,
            _ => return None,
        };
        // Rejects messages with an unused byte that is not 0.
        (request.write(sequence) == *message).then_some((sequence, request))
    }
}

/// Encodes a reply to the request with this sequence number. Bytes 0 to 3 are the sequence number, byte 4 is 1 for an
/// error and 0 otherwise, and bytes 8 to 15 are the number. All other bytes are 0.
pub fn write_reply(sequence: u32, reply: HelperReply) -> [u8; MESSAGE_SIZE] {
    let mut out = [0; MESSAGE_SIZE];
    out[..4].copy_from_slice(&sequence.to_le_bytes());
    let (is_error, number) = match reply {
        Ok(number) => (0, number),
        Err(errno) => (1, u64::from(errno.unsigned_abs())),
    };
    out[4] = is_error;
    out[8..16].copy_from_slice(&number.to_le_bytes());
    out
}

/// Decodes a reply and its sequence number; `None` if it is malformed.
pub fn read_reply(message: &[u8]) -> Option<(u32, HelperReply)> {
    let message: &[u8; MESSAGE_SIZE] = message.try_into().ok()?;
    let sequence = u32::from_le_bytes(message[..4].try_into().ok()?);
    let number = u64::from_le_bytes(message[8..16].try_into().ok()?);
    let reply = match message[4] {
        0 => Ok(number),
        _ => Err(i32::try_from(number).ok()?),
    };
    Some((sequence, reply))
}

/// Returns the index of a signal in [`SIGNALS`], or 255, which the helper rejects.
fn signal_index(signal: Signal) -> u8 {
    SIGNALS
        .iter()
        .position(|known| *known == signal)
        .map_or(u8::MAX, |at| at as u8)
}

fn signal_at(index: u8) -> Option<Signal> {
    SIGNALS.get(usize::from(index)).copied()
}

/// Description of a program to start, sent in a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramSpec {
    /// Absolute path of the program.
    pub path: OsString,
    /// Name in process lists. If it is empty, the path is used.
    pub name: OsString,
    /// Working directory, an absolute path.
    pub folder: OsString,
    /// Name by which the program finds the listening socket; empty if no socket is passed.
    pub listener: OsString,
    /// Arguments after `argv[0]`.
    pub arguments: Vec<OsString>,
    /// Complete environment.
    pub environment: Vec<(OsString, OsString)>,
}

impl ProgramSpec {
    /// Encodes the description.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for text in [&self.path, &self.name, &self.folder, &self.listener] {
            write_text(&mut out, text);
        }
        write_number(&mut out, self.arguments.len());
        self.arguments.iter().for_each(|text| write_text(&mut out, text));
        write_number(&mut out, self.environment.len());
        for (name, value) in &self.environment {
            write_text(&mut out, name);
            write_text(&mut out, value);
        }
        out
    }

    /// Decodes a description; `None` if it is malformed or a path is not absolute.
    pub fn read(mut from: &[u8]) -> Option<ProgramSpec> {
        let from = &mut from;
        let program = ProgramSpec {
            path: read_text(from)?,
            name: read_text(from)?,
            folder: read_text(from)?,
            listener: read_text(from)?,
            arguments: read_several(from, read_text)?,
            environment: read_several(from, |from| Some((read_text(from)?, read_text(from)?)))?,
        };
        let is_absolute = |text: &OsString| text.as_bytes().starts_with(b"/");
        let is_valid = is_absolute(&program.path) && is_absolute(&program.folder) && from.is_empty();
        is_valid.then_some(program)
    }
}

/// Encodes the accounts, with the user id of the server, which must not be among them.
pub fn write_accounts(server: u32, accounts: &[User]) -> Vec<u8> {
    let mut out = server.to_le_bytes().to_vec();
    write_number(&mut out, accounts.len());
    for user in accounts {
        out.extend_from_slice(&user.uid.to_le_bytes());
        out.extend_from_slice(&user.gid.to_le_bytes());
        write_number(&mut out, user.groups.len());
        user.groups
            .iter()
            .for_each(|group| out.extend_from_slice(&group.to_le_bytes()));
    }
    out
}

/// Decodes the accounts, without their names and home folders. Returns `None` if the data is malformed or has too many
/// accounts. Returns `None` if an account is root, has root's group as its primary group, or is the account of the
/// server. The user ID 2³² - 1 is rejected too, because system calls take it as "unchanged".
pub fn read_accounts(mut from: &[u8]) -> Option<Vec<User>> {
    let from = &mut from;
    let server = read_number(from)?;
    let accounts: Vec<User> = read_several(from, |from| {
        Some(User {
            name: String::new(),
            uid: read_number(from)?,
            gid: read_number(from)?,
            groups: read_several(from, read_number)?,
            home: None,
        })
    })?;
    let is_permitted = |user: &User| user.uid != 0 && user.gid != 0 && user.uid != server && user.uid != u32::MAX;
    let is_valid = accounts.len() <= MAX_ACCOUNTS && accounts.iter().all(is_permitted) && from.is_empty();
    is_valid.then_some(accounts)
}

/// Reads a file that another process created. It must be a regular file, so that reading it cannot block, and have at
/// most [`MAX_FILE`] bytes.
///
/// # Errors
///
/// Returns `InvalidData` for any other file, or the error of the system.
pub fn read_file(file: &File) -> io::Result<Vec<u8>> {
    let found = file.metadata()?;
    if !found.is_file() || found.len() > MAX_FILE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut content = vec![0; usize::try_from(found.len()).map_err(io::Error::other)?];
    file.read_exact_at(&mut content, 0)?;
    Ok(content)
}

fn write_number(out: &mut Vec<u8>, number: usize) {
    // A larger number does not fit a file of `MAX_FILE` bytes, so it is rejected when read.
    out.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

fn write_text(out: &mut Vec<u8>, text: &OsStr) {
    write_number(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

// The functions below remove the bytes that they read from the front of `from`. They return `None` if bytes are
// missing, or if a list has more than `MAX_ELEMENTS` elements.

fn read_number(from: &mut &[u8]) -> Option<u32> {
    let (number, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u32::from_le_bytes(*number))
}

fn read_text(from: &mut &[u8]) -> Option<OsString> {
    let length = usize::try_from(read_number(from)?).ok()?;
    let (text, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(OsString::from_vec(text.to_vec()))
}

fn read_several<T>(from: &mut &[u8], read: impl Fn(&mut &[u8]) -> Option<T>) -> Option<Vec<T>> {
    let count = usize::try_from(read_number(from)?).ok()?;
    if count > MAX_ELEMENTS {
        return None;
    }
    (0..count).map(|_| read(from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_decoded_only_from_the_exact_bytes_that_encode_them() {
        let start = HelperRequest::Start {
            account: 7,
            has_file: true,
            has_listener: false,
            parent_death_signal: Signal::KILL,
        };
        let signal = HelperRequest::Signal {
            number: u64::MAX - 1,
            signal: Signal::QUIT,
            to_group: true,
        };
        for request in [
            HelperRequest::Accounts,
            start,
            HelperRequest::TryWait(1),
            signal,
            HelperRequest::GroupHasMembers(2),
            HelperRequest::Forget(3),
            HelperRequest::Connect,
        ] {
            let written = request.write(9);
            assert_eq!(HelperRequest::read(&written), Some((9, request)));
            for length in [0, 1, MESSAGE_SIZE - 1] {
                assert_eq!(HelperRequest::read(&written[..length]), None);
            }
            // Unused bytes must be 0.
            for at in 20..MESSAGE_SIZE {
                let mut other = written;
                other[at] = 1;
                assert_eq!(HelperRequest::read(&other), None, "{request:?} at {at}");
            }
        }
        let mut unknown = start.write(9);
        unknown[19] = 3;
        assert_eq!(HelperRequest::read(&unknown), None, "a signal that is not on the list");
        unknown[4] = 7;
        assert_eq!(HelperRequest::read(&unknown), None, "an unknown request");
        for reply in [Ok(0), Ok(RUNNING), Err(2)] {
            assert_eq!(read_reply(&write_reply(3, reply)), Some((3, reply)));
        }
    }

    #[test]
    fn truncated_or_relative_program_descriptions_are_rejected() {
        let program = ProgramSpec {
            path: "/bin/sh".into(),
            folder: "/".into(),
            arguments: vec!["-c".into(), "".into()],
            environment: vec![("A".into(), "b".into())],
            ..ProgramSpec::default()
        };
        let written = program.write();
        assert_eq!(ProgramSpec::read(&written), Some(program.clone()));
        for length in 0..written.len() {
            assert_eq!(ProgramSpec::read(&written[..length]), None, "{length}");
        }
        let relative = ProgramSpec {
            path: "sh".into(),
            ..program
        };
        assert_eq!(ProgramSpec::read(&relative.write()), None);
    }

    #[test]
    fn root_and_the_server_are_rejected_as_script_accounts() {
        let user = |uid, gid| User {
            name: String::new(),
            uid,
            gid,
            groups: vec![gid, 7],
            home: None,
        };
        // 99 is the user ID of the server.
        for (accounts, is_accepted) in [
            (vec![], true),
            (vec![user(33, 33), user(34, 33)], true),
            (vec![user(33, 33), user(0, 33)], false),
            (vec![user(33, 0)], false),
            (vec![user(99, 33)], false),
            (vec![user(u32::MAX, 33)], false),
            (vec![user(33, 33); MAX_ACCOUNTS], true),
            (vec![user(33, 33); MAX_ACCOUNTS + 1], false),
        ] {
            let read = read_accounts(&write_accounts(99, &accounts));
            assert_eq!(read, is_accepted.then_some(accounts));
        }
    }
}
