//! Files with keys of signed URLs: `id:secret` on each line.

use std::fmt;
use std::io;
use std::path::Path;

use crate::environment::PasswordFileFinding;
use crate::finding::Severity;
use crate::htpasswd::{Stamp, finding};

/// Maximum number of keys in a file. A change of keys needs two, and the key of a URL is found by comparing its
/// identifier with each.
pub const MAX_KEYS: usize = 64;

/// Maximum size of a file, in bytes: enough for [`MAX_KEYS`] keys of the maximum length, with comments.
pub const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Maximum length of an identifier, in bytes. It is short because it is a part of each URL.
pub const MAX_ID_BYTES: usize = 32;

/// Length of a secret, in bytes. The shortest has 128 bits if it is random and hexadecimal. The maximum only
/// rejects what is surely a mistake.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 32..=512;

/// A key as written.
#[derive(Clone, PartialEq, Eq)]
pub struct UrlKey {
    /// Identifier, which is a part of each URL.
    pub id: Box<str>,
    /// Secret, whose bytes are the key of the signature.
    pub secret: Box<str>,
}

/// Writes no secret.
impl fmt::Debug for UrlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Reason why a file cannot be used. It contains no part of the file, because that may be a secret.
#[derive(Debug)]
pub enum UrlKeyError {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// The path is a folder, FIFO, socket or device.
    NotRegular,
    /// The file is too large, or has too many keys.
    TooLarge,
    /// Every user of the machine can write to the file.
    WritableByAll,
    /// The file has no key.
    Empty,
    /// A line is invalid: its number, counted from 1, and the reason.
    Line(usize, &'static str),
}

impl UrlKeyError {
    fn help(&self) -> &'static str {
        match self {
            UrlKeyError::Unreadable(_) => "create the file, or give the server's user permission to read it",
            UrlKeyError::NotRegular | UrlKeyError::Empty | UrlKeyError::Line(..) => {
                "write id:secret on each line: rocknet sign --new-key >> FILE"
            }
            UrlKeyError::TooLarge => "remove keys that no URL uses any longer",
            UrlKeyError::WritableByAll => "run chmod 640 on it: every user of this machine can add a key",
        }
    }
}

/// Completes a sentence whose subject is the path.
impl fmt::Display for UrlKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UrlKeyError::Unreadable(error) => write!(f, "cannot be read: {error}"),
            UrlKeyError::NotRegular => f.write_str("is not a regular file"),
            UrlKeyError::TooLarge => write!(f, "has more than {MAX_KEYS} keys or {MAX_FILE_BYTES} bytes"),
            UrlKeyError::WritableByAll => f.write_str("is writable by every user of this machine"),
            UrlKeyError::Empty => f.write_str("has no key"),
            UrlKeyError::Line(line, reason) => write!(f, "is invalid: line {line}: {reason}"),
        }
    }
}

impl std::error::Error for UrlKeyError {}

/// Returns true for the identifier of a key: letters, digits, `-` and `_`.
pub fn is_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=MAX_ID_BYTES).contains(&id.len()) && id.bytes().all(is_plain)
}

/// Parses the text of a file. Blank lines and lines that begin with `#` are skipped.
///
/// # Errors
///
/// Fails for an invalid line, for more than [`MAX_KEYS`] keys, and for a text without a key.
pub fn parse(text: &[u8]) -> Result<Vec<UrlKey>, UrlKeyError> {
    let mut keys: Vec<UrlKey> = Vec::new();
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let invalid = |reason| UrlKeyError::Line(number, reason);
        let line = std::str::from_utf8(line).map_err(|_| invalid("not UTF-8"))?;
        let (id, secret) = line.split_once(':').ok_or_else(|| invalid("no colon"))?;
        let is_secret = |byte: u8| byte.is_ascii_graphic() && byte != b':';
        if !is_id(id) {
            return Err(invalid("the id takes 1 to 32 letters, digits, `-` and `_`"));
        }
        if !SECRET_BYTES.contains(&secret.len()) || !secret.bytes().all(is_secret) {
            return Err(invalid(
                "the secret takes 32 to 512 ASCII characters without spaces and colons",
            ));
        }
        if keys.iter().any(|other| *other.id == *id) {
            return Err(invalid("the same id as on an earlier line"));
        }
        if keys.len() == MAX_KEYS {
            return Err(UrlKeyError::TooLarge);
        }
        keys.push(UrlKey {
            id: id.into(),
            secret: secret.into(),
        });
    }
    if keys.is_empty() {
        return Err(UrlKeyError::Empty);
    }
    Ok(keys)
}

/// Reads a file.
///
/// # Errors
///
/// Fails if the file cannot be read or parsed, exceeds a bound, or is writable by every user of the machine.
pub fn read(path: &Path) -> Result<Vec<UrlKey>, UrlKeyError> {
    read_with_stamp(path).map(|(keys, _)| keys)
}

fn read_with_stamp(path: &Path) -> Result<(Vec<UrlKey>, Stamp), UrlKeyError> {
    let (bytes, stamp) = match crate::htpasswd::read_bytes(path, MAX_FILE_BYTES) {
        Ok(read) => read,
        Err(crate::htpasswd::PasswordFileError::NotRegular) => return Err(UrlKeyError::NotRegular),
        Err(crate::htpasswd::PasswordFileError::WritableByAll) => return Err(UrlKeyError::WritableByAll),
        Err(crate::htpasswd::PasswordFileError::Unreadable(error)) => return Err(UrlKeyError::Unreadable(error)),
        // `read_bytes` parses nothing, so it returns no `Lines`.
        Err(_) => return Err(UrlKeyError::TooLarge),
    };
    parse(&bytes).map(|keys| (keys, stamp))
}

/// Returns the findings about a file, for the check of a configuration.
pub fn inspect(path: &Path) -> Vec<PasswordFileFinding> {
    let shown = path.display();
    match read_with_stamp(path) {
        Err(problem) => finding(Severity::Error, format!("{shown} {problem}"), problem.help()),
        Ok((_, stamp)) if stamp.is_readable_by_all() => {
            let help = "give it the server's group and run chmod 640 on it";
            let message = format!("{shown} is readable by every user of this machine");
            finding(Severity::Warning, message, help)
        }
        Ok(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_an_id_and_a_long_secret() {
        let (one, two) = ("a".repeat(64), "B".repeat(32));
        let text = format!("# keys\r\n\nmain:{one}\r\n 2026-11:{two}\n");
        let keys = parse(text.as_bytes()).unwrap();
        let keys: Vec<_> = keys.iter().map(|key| (&*key.id, &*key.secret)).collect();
        assert_eq!(keys, [("main", &*one), ("2026-11", &*two)]);
        for (text, expected) in [
            (String::new(), "has no key"),
            (one.clone(), "line 1: no colon"),
            (format!("#\na.b:{one}"), "line 2: the id"),
            (format!(":{one}"), "the id"),
            (format!("main:{}", &two[1..]), "the secret takes"),
            (format!("main:a b{one}"), "the secret takes"),
            (format!("main:{one}\nmain:{two}"), "line 2: the same id"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains(&one), "{error}");
        }
        let many: String = (0..=MAX_KEYS).map(|n| format!("k{n}:{one}\n")).collect();
        assert!(matches!(parse(many.as_bytes()), Err(UrlKeyError::TooLarge)));
        assert!(!format!("{:?}", parse(text.as_bytes())).contains(&one));
    }
}
