//! Authentication of the clients of sites and routes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::certificate_rule::CertificateRule;
use super::forward_auth::ForwardAuth;
use super::oidc::Oidc;
use super::password_hash::PasswordHash;
use super::signed_urls::SignedUrls;

/// Realm of the challenge if the configuration sets none.
pub const DEFAULT_REALM: &str = "restricted";

/// Maximum length of a user name, in bytes: the usual bound in LDAP and SQL schemas.
pub const MAX_USER_BYTES: usize = 255;

/// Way in which a site or route authenticates its clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// By password.
    Passwords(PasswordAuth),
    /// By an authority that is queried for each request.
    Forward(ForwardAuth),
    /// By the signatures of URLs.
    Signed(SignedUrls),
    /// By client certificates.
    Certificate(CertificateRule),
    /// By a login at a provider of OpenID Connect.
    Oidc(Oidc),
}

impl Auth {
    /// Returns true if clients can send passwords or cookies that admit them, which others could read without TLS.
    pub fn receives_passwords(&self) -> bool {
        match self {
            Auth::Passwords(_) | Auth::Forward(_) | Auth::Oidc(_) => true,
            Auth::Signed(_) | Auth::Certificate(_) => false,
        }
    }

    /// Returns true if a client needs a certificate.
    pub fn needs_certificate(&self) -> bool {
        matches!(self, Auth::Certificate(_))
    }
}

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
