//! Authentication of the clients of sites and routes.

use super::certificate_rule::CertificateRule;
use super::forward_auth::ForwardAuth;
use super::oidc::Oidc;
use super::password_auth::PasswordAuth;
use super::signed_urls::SignedUrls;

/// Way in which a site or route authenticates its clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// By password.
    Passwords(PasswordAuth),
    /// By an authorization service that is queried for each request.
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
