//! Password files in the format of Apache's `htpasswd`: `user:hash` on each line.

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

/// Maximum number of users in a file, because all users are held in memory. A larger number belongs in an identity
/// provider.
pub const MAX_USERS: usize = 20_000;

/// Maximum size of a password file, in bytes: enough for [`MAX_USERS`] users with the longest usual hashes.
pub const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of errors that are reported for one file. They share one message, which must stay readable.
const MAX_LINE_ERRORS: usize = 5;

/// Password hashes by user name.
pub type Users = HashMap<Box<str>, PasswordHash>;

/// Error of a line. It contains no part of the line, because the line may contain a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineError {
    /// Line number, counted from 1.
    pub line: usize,
    /// Kind of the error.
    pub kind: LineErrorKind,
}

/// Kind of the error of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineErrorKind {
    /// The line has no colon.
    NoColon,
    /// The line is not UTF-8.
    NotUtf8,
    /// The user name is empty, too long, or has a control character.
    BadName,
    /// An earlier line has the same user.
    Twice {
        /// Number of the earlier line.
        first: usize,
    },
    /// The hash is not accepted.
    BadHash(HashError),
    /// The file has more than [`MAX_USERS`] users.
    TooManyUsers,
}

/// Reason why a file cannot be used.
#[derive(Debug)]
pub enum PasswordFileError {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// The path is a folder, FIFO, socket or device.
    NotRegular,
    /// The file is larger than its limit, which is [`MAX_FILE_BYTES`] for a password file.
    TooLarge,
    /// Errors of invalid lines: at least one, and at most `MAX_LINE_ERRORS`.
    Lines(Vec<LineError>),
    /// Every user of the machine can write to the file, and could add a user with a known password.
    WritableByAll,
}

/// Parses the text of a file. Blank lines and lines that begin with `#` are skipped; text after a second colon is
/// ignored.
///
/// # Errors
///
/// Returns the errors of the first invalid lines, at most `MAX_LINE_ERRORS`.
pub fn parse(text: &[u8]) -> Result<Users, Vec<LineError>> {
    let mut users = Users::new();
    // Line numbers by user name.
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

/// Parses the user name and the hash of a line.
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

/// Reads a file, and returns its users with the [`Stamp`] that it had before it was read.
///
/// # Errors
///
/// Fails if the file cannot be read or parsed, exceeds a bound, or is writable by every user of the machine.
pub fn read(path: &Path) -> Result<(Users, Stamp), PasswordFileError> {
    let (bytes, stamp) = read_bytes(path, MAX_FILE_BYTES as u64)?;
    parse(&bytes)
        .map(|users| (users, stamp))
        .map_err(PasswordFileError::Lines)
}

/// Reads a password file, or another file with secrets, of at most `max` bytes. Fails as [`read`] does, but parses
/// nothing. The message of `TooLarge` is only for password files, so readers of other files report their own limit.
pub(crate) fn read_bytes(path: &Path, max: u64) -> Result<(Vec<u8>, Stamp), PasswordFileError> {
    // The checks below use the opened file, because the path may lead to another file a moment later.
    let file = stamp::open(path).map_err(|error| match Stamp::of(path) {
        // A socket cannot be opened.
        Ok(stamp) if !stamp.is_regular() => PasswordFileError::NotRegular,
        _ => PasswordFileError::Unreadable(error),
    })?;
    let before = file
        .metadata()
        .map(|metadata| Stamp::from(&metadata))
        .map_err(PasswordFileError::Unreadable)?;
    // Only regular files are read, because a FIFO or device could block the thread indefinitely.
    if !before.is_regular() {
        return Err(PasswordFileError::NotRegular);
    }
    if before.is_writable_by_all() {
        return Err(PasswordFileError::WritableByAll);
    }
    let mut bytes = Vec::new();
    file.take(max + 1)
        .read_to_end(&mut bytes)
        .map_err(PasswordFileError::Unreadable)?;
    if bytes.len() as u64 > max {
        return Err(PasswordFileError::TooLarge);
    }
    // The stamp was taken before the read, so that the next check notices a change during the read.
    Ok((bytes, before))
}

/// Returns one finding about a file.
pub(crate) fn finding(severity: Severity, message: String, help: &str) -> Vec<PasswordFileFinding> {
    let help = help.to_owned();
    vec![PasswordFileFinding {
        severity,
        message,
        help,
    }]
}

/// Returns the findings about a file, for the check of a configuration.
pub fn inspect(path: &Path) -> Vec<PasswordFileFinding> {
    let shown = path.display();
    match read(path) {
        Err(problem) => finding(Severity::Error, format!("{shown} {problem}"), problem.help()),
        Ok((users, _)) if users.is_empty() => {
            let help = "add one: rocknet hash-password --user bob >> FILE";
            finding(
                Severity::Warning,
                format!("{shown} has no users, so every login fails"),
                help,
            )
        }
        Ok((_, stamp)) if stamp.is_readable_by_all() => {
            let help = "give it the server's group and run chmod 640 on it";
            let message = format!("{shown} is readable by every user of this machine");
            finding(Severity::Warning, message, help)
        }
        Ok(_) => Vec::new(),
    }
}

impl PasswordFileError {
    /// Returns the remedy.
    fn help(&self) -> &'static str {
        match self {
            PasswordFileError::Unreadable(_) => "create the file, or give the server's user permission to read it",
            PasswordFileError::NotRegular => "name a file with user:hash on each line",
            PasswordFileError::TooLarge => "split it: routes can have files of their own",
            PasswordFileError::Lines(_) => "write user:hash on each line, as rocknet hash-password --user prints it",
            PasswordFileError::WritableByAll => "run chmod 640 on it: every user of this machine can add a login",
        }
    }
}

/// Completes a sentence whose subject is the path.
impl fmt::Display for PasswordFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PasswordFileError::Unreadable(error) => write!(f, "cannot be read: {error}"),
            PasswordFileError::NotRegular => f.write_str("is not a regular file"),
            PasswordFileError::TooLarge => write!(f, "is larger than {} MiB", MAX_FILE_BYTES >> 20),
            PasswordFileError::WritableByAll => f.write_str("is writable by every user of this machine"),
            PasswordFileError::Lines(errors) => {
                let errors: Vec<_> = errors.iter().map(LineError::to_string).collect();
                write!(f, "is invalid: {}", errors.join("; "))
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
            LineErrorKind::BadName => f.write_str("the user name is empty, too long or has a control character"),
            LineErrorKind::Twice { first } => write!(f, "the same user as on line {first}"),
            LineErrorKind::BadHash(error) => write!(f, "the password {error}"),
            LineErrorKind::TooManyUsers => write!(f, "more than {MAX_USERS} users"),
        }
    }
}

#[cfg(test)]
mod tests;
