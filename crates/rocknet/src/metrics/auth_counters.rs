//! Counters of the guards that identify clients: forward authentication, logins by OpenID Connect, and signed URLs.

use rocknet_handler::guard::Admission;
use rocknet_handler::outcomes::{CountedOutcome, SiteCounters};

/// Counters by site. A route has its counters only if it has the guard, so other requests cost nothing. A reload keeps
/// all counters.
#[derive(Debug, Default)]
pub struct AuthCounters {
    /// Queries to authorization services.
    pub forward: SiteCounters<ForwardOutcome>,
    /// Logins by OpenID Connect.
    pub logins: SiteCounters<LoginOutcome>,
    /// Requests with a session of OpenID Connect that does not admit them.
    pub sessions: SiteCounters<RejectedSession>,
    /// Verifications of signed URLs.
    pub signed_urls: SiteCounters<SignedUrlOutcome>,
}

impl AuthCounters {
    /// Returns the number of requests about which an authorization service or a provider should have decided, and did
    /// not.
    pub fn errors(&self) -> u64 {
        let AuthCounters { forward, logins, .. } = self;
        forward.sum(ForwardOutcome::Error) + forward.sum(ForwardOutcome::Timeout) + logins.sum(LoginOutcome::Error)
    }
}

/// Outcome of a query to an authorization service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardOutcome {
    /// The request is admitted.
    Allowed,
    /// The client gets a response with a status of 400 to 499.
    Denied,
    /// The client is redirected, for instance to a login page.
    Redirected,
    /// The service cannot be reached, or its response is invalid or has a status of 500 or more.
    Error,
    /// The service does not respond in time.
    Timeout,
}

impl ForwardOutcome {
    /// Returns the outcome of a query by its result.
    pub fn of(admission: &Admission) -> ForwardOutcome {
        match admission.as_ref().map_err(|response| response.status.code()) {
            Ok(_) => ForwardOutcome::Allowed,
            // The guard responds with 504 if its own time limit passes. A 504 of the service counts in the same way.
            Err(504) => ForwardOutcome::Timeout,
            Err(500..) => ForwardOutcome::Error,
            Err(300..=399) => ForwardOutcome::Redirected,
            Err(_) => ForwardOutcome::Denied,
        }
    }
}

impl CountedOutcome for ForwardOutcome {
    const NAMES: &'static [&'static str] = &["allowed", "denied", "redirected", "error", "timeout"];

    fn index(self) -> usize {
        self as usize
    }
}

/// Event of a login by OpenID Connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginOutcome {
    /// The browser is redirected to the provider. Not every user completes the login.
    Begun,
    /// The user is logged in.
    Completed,
    /// A callback belongs to no login of the browser, or the login is refused with a status of 400 to 499.
    Failed,
    /// The provider cannot be reached, its response is invalid, or an internal error of this server ends the login.
    Error,
}

impl LoginOutcome {
    /// Returns the outcome of a callback by the status of its response.
    pub fn of_callback(status: u16) -> LoginOutcome {
        match status {
            500.. => LoginOutcome::Error,
            400..=499 => LoginOutcome::Failed,
            _ => LoginOutcome::Completed,
        }
    }
}

impl CountedOutcome for LoginOutcome {
    const NAMES: &'static [&'static str] = &["begun", "completed", "failed", "error"];

    fn index(self) -> usize {
        self as usize
    }
}

/// Reason why a session does not admit a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectedSession {
    /// `lifetime` or `idle` has passed.
    Expired,
    /// The cookie cannot be decrypted: it was changed, or belongs to other settings or to keys that were removed.
    Invalid,
    /// The user does not meet the rules of the route.
    Forbidden,
}

impl CountedOutcome for RejectedSession {
    const NAMES: &'static [&'static str] = &["expired", "invalid", "forbidden"];

    fn index(self) -> usize {
        self as usize
    }
}

/// Outcome of the verification of a signed URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedUrlOutcome {
    /// The signature is valid.
    Admitted,
    /// The signature is valid and has expired.
    Expired,
    /// There is no signature, or it is not valid for the request.
    Invalid,
    /// The route has no usable key.
    Error,
}

impl CountedOutcome for SignedUrlOutcome {
    const NAMES: &'static [&'static str] = &["admitted", "expired", "invalid", "error"];

    fn index(self) -> usize {
        self as usize
    }
}
