//! Login by a provider of OpenID Connect.

use std::time::Duration;

use super::acme::Secret;

/// Login of users by a provider of OpenID Connect. A user has to be in each of the lists `users`, `emails` and `groups`
/// that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oidc {
    /// Issuer: the URL of the provider, exactly as in its metadata.
    pub issuer: String,
    /// Identifier of this server at the provider.
    pub client_id: String,
    /// Secret that the provider has given to this server; `None` for a public client.
    pub client_secret: Option<Secret>,
    /// Scopes that are requested. `openid` is always among them.
    pub scopes: Vec<String>,
    /// Path to which the provider redirects browsers after a login.
    pub callback: String,
    /// Path that ends a session.
    pub logout: String,
    /// URL to which browsers are sent after a logout; `None`: a page of the provider or of this server.
    pub after_logout: Option<String>,
    /// Claim with the name of the user.
    pub user_claim: String,
    /// Claim with the groups of the user. A dot leads into an object.
    pub groups_claim: String,
    /// Accepts email addresses that the provider has not verified.
    pub trust_email: bool,
    /// Users who may enter; empty: all.
    pub users: Vec<String>,
    /// Email addresses of users who may enter, or domains such as `@example.com`; empty: all.
    pub emails: Vec<String>,
    /// Groups of which a user needs one; empty: no group is needed.
    pub groups: Vec<String>,
    /// Maximum time from a login to the next one.
    pub lifetime: Duration,
    /// Maximum time between two requests of a session.
    pub idle: Duration,
    /// Timeout of a request to the provider.
    pub timeout: Duration,
}

impl Oidc {
    /// Default of `scopes`.
    pub const SCOPES: [&str; 3] = ["openid", "profile", "email"];

    /// Default of `callback`.
    pub const CALLBACK: &str = "/.rocknet/oidc/callback";

    /// Default of `logout`.
    pub const LOGOUT: &str = "/.rocknet/oidc/logout";

    /// Default of `user_claim`.
    pub const USER_CLAIM: &str = "sub";

    /// Default of `groups_claim`.
    pub const GROUPS_CLAIM: &str = "groups";

    /// Default of `lifetime`.
    pub const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);

    /// Default of `idle`.
    pub const IDLE: Duration = Duration::from_secs(60 * 60);

    /// Fields of requests with the identity of a user. Fields of clients with these names are removed.
    pub const FIELDS: [&str; 4] = ["Remote-User", "Remote-Groups", "Remote-Name", "Remote-Email"];

    /// Returns the login by a provider, with defaults for everything else.
    pub fn at(issuer: String, client_id: String) -> Oidc {
        Oidc {
            issuer,
            client_id,
            client_secret: None,
            scopes: Oidc::SCOPES.map(str::to_owned).to_vec(),
            callback: Oidc::CALLBACK.to_owned(),
            logout: Oidc::LOGOUT.to_owned(),
            after_logout: None,
            user_claim: Oidc::USER_CLAIM.to_owned(),
            groups_claim: Oidc::GROUPS_CLAIM.to_owned(),
            trust_email: false,
            users: Vec::new(),
            emails: Vec::new(),
            groups: Vec::new(),
            lifetime: Oidc::LIFETIME,
            idle: Oidc::IDLE,
            timeout: super::ForwardAuth::TIMEOUT,
        }
    }
}
