//! Files of users and hashes in the form of Apache's `htpasswd`: `user:hash` on each line.

#[cfg(not(unix))]
#[path = "htpasswd/stamp_portable.rs"]
mod stamp;
#[cfg(unix)]
mod stamp;

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;

use crate::environment::PasswordFileFinding;
use crate::finding::Severity;
use crate::model::{HashError, PasswordHash, is_user_name};

pub use stamp::Stamp;

/// Most users: a larger number is the work of an identity provider, and all are in memory.
pub const MAX_USERS: usize = 20_000;

/// Largest file: that many users with the longest hashes in use.
pub const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;

/// Most errors of one file that are listed.
const MAX_LINE_ERRORS: usize = 5;

/// Users and their hashes.
pub type Users = HashMap<Box<str>, PasswordHash>;

/// A line that is not `user:hash`. Its text is not shown, because it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineError {
    /// From 1.
    pub line: usize,
    pub kind: LineErrorKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineErrorKind {
    NoColon,
    NotUtf8,
    /// Empty, too long, or with a control character.
    BadName,
    /// The user is on an earlier line.
    Twice {
        first: usize,
    },
    BadHash(HashError),
    TooManyUsers,
}

/// Why a file cannot be used.
#[derive(Debug)]
pub enum PasswordFileError {
    Unreadable(io::Error),
    NotRegular,
    TooLarge,
    /// At least one; not more than a message can show.
    Lines(Vec<LineError>),
    /// Any account of the machine can add a user.
    WritableByAll,
}

/// Reads the text of a file. Empty lines and lines that begin with `#` have no user; what follows a second colon is ignored.
pub fn parse(text: &[u8]) -> Result<Users, Vec<LineError>> {
    let mut users = Users::new();
    let mut lines: HashMap<&str, usize> = HashMap::new();
    let mut errors = Vec::new();
    for (line, bytes) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        if bytes.trim_ascii().is_empty() || bytes.starts_with(b"#") {
            continue;
        }
        let kind = match parse_line(bytes) {
            Ok((name, hash)) => match lines.get(name) {
                Some(first) => LineErrorKind::Twice { first: *first },
                None if users.len() == MAX_USERS => LineErrorKind::TooManyUsers,
                None => {
                    lines.insert(name, line);
                    users.insert(name.into(), hash);
                    continue;
                }
            },
            Err(kind) => kind,
        };
        let is_last = kind == LineErrorKind::TooManyUsers;
        errors.push(LineError { line, kind });
        if is_last || errors.len() == MAX_LINE_ERRORS {
            break;
        }
    }
    if errors.is_empty() { Ok(users) } else { Err(errors) }
}

fn parse_line(bytes: &[u8]) -> Result<(&str, PasswordHash), LineErrorKind> {
    let text = std::str::from_utf8(bytes).map_err(|_| LineErrorKind::NotUtf8)?;
    let (name, rest) = text.split_once(':').ok_or(LineErrorKind::NoColon)?;
    if !is_user_name(name) {
        return Err(LineErrorKind::BadName);
    }
    let hash = rest.split(':').next().unwrap_or_default().trim_ascii_end();
    let hash = PasswordHash::parse(hash).map_err(LineErrorKind::BadHash)?;
    Ok((name, hash))
}

/// Reads a file whole, and the stamp that it had then.
pub fn read(path: &Path) -> Result<(Users, Stamp), PasswordFileError> {
    // A FIFO or a device would block the thread for ever.
    let before = Stamp::of(path).map_err(PasswordFileError::Unreadable)?;
    if !before.is_regular() {
        return Err(PasswordFileError::NotRegular);
    }
    if before.is_writable_by_all() {
        return Err(PasswordFileError::WritableByAll);
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(PasswordFileError::Unreadable)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(PasswordFileError::TooLarge);
    }
    // The stamp from before the read: a change during it is seen by the next look.
    parse(&bytes)
        .map(|users| (users, before))
        .map_err(PasswordFileError::Lines)
}

/// Returns what is wrong with a file, for the check of a configuration.
pub fn inspect(path: &Path) -> Vec<PasswordFileFinding> {
    let shown = path.display();
    let finding = |severity, message: String, help: &str| {
        let help = help.to_owned();
        vec![PasswordFileFinding {
            severity,
            message,
            help,
        }]
    };
    match read(path) {
        Err(problem) => finding(Severity::Error, format!("{shown} {problem}"), problem.help()),
        Ok((users, _)) if users.is_empty() => {
            let help = "add one: rocknet hash-password --user bob >> FILE";
            finding(
                Severity::Warning,
                format!("{shown} has no user, so no one can enter"),
                help,
            )
        }
        Ok((_, stamp)) if stamp.is_readable_by_all() => {
            let help = "chmod 640 it, with the server's group as its group";
            let message = format!("{shown} can be read by every account of this machine");
            finding(Severity::Warning, message, help)
        }
        Ok(_) => Vec::new(),
    }
}

impl PasswordFileError {
    fn help(&self) -> &'static str {
        match self {
            PasswordFileError::Unreadable(_) => "let the account of the server read it",
            PasswordFileError::NotRegular => "name a file with a user:hash on each line",
            PasswordFileError::TooLarge => "split it: routes can have files of their own",
            PasswordFileError::Lines(_) => "write user:hash on each line, as rocknet hash-password --user prints it",
            PasswordFileError::WritableByAll => "chmod 640 it: any account of this machine can add a user",
        }
    }
}

/// Completes a sentence that begins with the path.
impl fmt::Display for PasswordFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PasswordFileError::Unreadable(error) => write!(f, "cannot be read: {error}"),
            PasswordFileError::NotRegular => f.write_str("is not a regular file"),
            PasswordFileError::TooLarge => write!(f, "is larger than {} MiB", MAX_FILE_BYTES >> 20),
            PasswordFileError::WritableByAll => f.write_str("can be written by every account of this machine"),
            PasswordFileError::Lines(errors) => {
                let errors: Vec<_> = errors.iter().map(LineError::to_string).collect();
                write!(f, "has {}", errors.join("; "))
            }
        }
    }
}

impl std::error::Error for PasswordFileError {}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.kind {
            LineErrorKind::NoColon => f.write_str("no colon"),
            LineErrorKind::NotUtf8 => f.write_str("not UTF-8"),
            LineErrorKind::BadName => f.write_str("the name of the user is empty, too long or has a control character"),
            LineErrorKind::Twice { first } => write!(f, "the user of line {first} again"),
            LineErrorKind::BadHash(error) => write!(f, "the password {error}"),
            LineErrorKind::TooManyUsers => write!(f, "more than {MAX_USERS} users"),
        }
    }
}

#[cfg(test)]
mod tests;
