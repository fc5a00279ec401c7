//! Users that may enter a site or route, and how their passwords are known.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::password_hash::PasswordHash;

/// The words of the challenge where the configuration has none.
pub const DEFAULT_REALM: &str = "restricted";

/// Longest name of a user, in bytes: the bound of user names in LDAP and SQL schemas, which no person reaches.
pub const MAX_USER_BYTES: usize = 255;

/// HTTP Basic authentication at one place. There are users, a file, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// Printable ASCII.
    pub realm: String,
    /// Names for which [`is_user_name`] holds.
    pub users: BTreeMap<String, PasswordHash>,
    /// A file in the form of Apache's `htpasswd`.
    pub file: Option<PathBuf>,
}

/// Returns true if a client can send the name: it is not empty and has no colon and no control character (RFC 7617 §2).
pub fn is_user_name(name: &str) -> bool {
    let is_bad = |c: char| c == ':' || c.is_control();
    !name.is_empty() && name.len() <= MAX_USER_BYTES && !name.contains(is_bad)
}
