//! Authentication of clients by password.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::password_hash::PasswordHash;

/// Realm of the challenge if the configuration sets none.
pub const DEFAULT_REALM: &str = "restricted";

/// Maximum length of a user name, in bytes: the usual bound in LDAP and SQL schemas.
pub const MAX_USER_BYTES: usize = 255;

/// HTTP Basic authentication (RFC 7617), with users, a file of users, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswordAuth {
    /// Realm of the challenge, in printable ASCII.
    pub realm: String,
    /// Password hashes by user name; [`is_user_name`] is true for every name.
    pub users: BTreeMap<String, PasswordHash>,
    /// File in the format of Apache's `htpasswd`.
    pub file: Option<PathBuf>,
}

/// Returns true if the user name is accepted: it has 1 to [`MAX_USER_BYTES`] bytes, and neither a colon nor a control
/// character, which clients cannot send (RFC 7617 §2).
pub fn is_user_name(name: &str) -> bool {
    let is_bad = |c: char| c == ':' || c.is_control();
    !name.is_empty() && name.len() <= MAX_USER_BYTES && !name.contains(is_bad)
}
