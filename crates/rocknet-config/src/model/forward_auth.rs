//! Authentication by an authorization service that is queried for each request.

use std::fmt;
use std::time::Duration;

use super::upstream::Upstream;

/// Authentication by an authorization service: a server that is queried for each request and decides about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardAuth {
    /// The authorization service.
    pub to: Upstream,
    /// Target of the requests to the service: path and query string, in origin form (RFC 9112 §3.2.1).
    pub target: String,
    /// Names of the fields of the service's response that are copied to the request. Fields of the client with these
    /// names are removed.
    pub headers: Vec<String>,
    /// Name of the field of the service's response that contains the name of the user.
    pub user_field: String,
    /// Redirect of clients for whom the service responds with 401; `None`: they get that response.
    pub sign_in: Option<SignIn>,
    /// Timeout of a query.
    pub timeout: Duration,
}

/// Target of the redirect of clients that have to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignIn {
    /// The field `Location` of the authorization service's response.
    Location,
    /// Path or URL with placeholders.
    Target(String),
}

impl SignIn {
    /// Text that stands for the field `Location` of the authorization service's response.
    pub const LOCATION: &str = "{location}";

    /// Returns the target as it is written in the configuration.
    pub fn text(&self) -> &str {
        match self {
            SignIn::Location => SignIn::LOCATION,
            SignIn::Target(target) => target,
        }
    }
}

impl ForwardAuth {
    /// Fields that are copied by default: those of Authelia, which other services can send, too.
    pub const HEADERS: [&str; 4] = ["Remote-User", "Remote-Groups", "Remote-Name", "Remote-Email"];

    /// Default of `user_field`.
    pub const USER_FIELD: &str = "Remote-User";

    /// Default of `timeout`.
    pub const TIMEOUT: Duration = Duration::from_secs(10);

    /// Returns the authentication by this authorization service, with defaults for everything else.
    pub fn at(to: Upstream, target: String) -> ForwardAuth {
        ForwardAuth {
            to,
            target,
            headers: ForwardAuth::HEADERS.map(str::to_owned).to_vec(),
            user_field: ForwardAuth::USER_FIELD.to_owned(),
            sign_in: None,
            timeout: ForwardAuth::TIMEOUT,
        }
    }
}

/// Formats the URL of the authorization service as in the configuration.
impl fmt::Display for ForwardAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // After the path of a Unix socket, a colon begins the target.
        let separator = if matches!(self.to.host, super::Host::Unix(_)) {
            ":"
        } else {
            ""
        };
        write!(f, "{}{separator}{}", self.to, self.target)
    }
}
