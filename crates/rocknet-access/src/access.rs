//! Access control for the requests of one route.

use std::fmt;
use std::sync::Arc;

use rocknet_config::model::{self, Auth, ClientRange, Satisfy, Settings};

use crate::addresses::{Addresses, Client};
use crate::attempts::{Admission, MAX_GUESSES};
use crate::credentials::Credentials;
use crate::fingerprint::Fingerprint;
use crate::password;
use crate::state::{Permit, State};
use crate::users::{User, UserLookup, Users};

/// Access control of one route, shared by all workers.
pub struct Access {
    addresses: Addresses,
    /// True if an allowed address needs no password, and any other address needs one.
    any_suffices: bool,
    auth: Authentication,
}

/// Authentication of the clients whose addresses do not suffice.
enum Authentication {
    /// None: requests need no password.
    Open,
    /// By password.
    Basic(Arc<Basic>),
    /// By an authenticator outside of this crate.
    External,
}

/// Result of checking a request.
pub enum Check {
    /// The decision about the request is known.
    Decided(Decision),
    /// A password must be verified, or the password file must be checked. The caller runs this work in the blocking
    /// pool.
    Verify(Pending),
    /// An authenticator outside of this crate has to decide about the request.
    Authenticate,
}

/// Decision about one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The request may proceed.
    Granted {
        /// Verified user, if a password was required. Applications receive it as `REMOTE_USER`.
        user: Option<Arc<str>>,
    },
    /// 403: the client's address is not allowed.
    Forbidden,
    /// 401: credentials are missing or wrong.
    Challenge {
        /// Value of `WWW-Authenticate`.
        www_authenticate: Arc<str>,
        /// True if the credentials are wrong, and the client has not tried them before.
        is_guess: bool,
    },
    /// 429: the client tried too many wrong passwords. Passwords that are being verified count too.
    Throttled {
        /// Value of `Retry-After`, in seconds.
        retry_after_s: u64,
    },
    /// 503: too many verifications are pending, or no valid version of the password file has been read yet.
    Unavailable {
        /// Value of `Retry-After`, in seconds.
        retry_after_s: u64,
    },
}

/// Reason why a route cannot be protected as configured.
#[derive(Debug, PartialEq, Eq)]
pub enum AccessError {
    /// `auth` names neither users nor a password file, so no client could get access. The check of the configuration
    /// rejects this case earlier.
    NoUsers,
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessError::NoUsers => f.write_str("`auth` has neither users nor a file"),
        }
    }
}

impl std::error::Error for AccessError {}

impl Access {
    /// Creates the access control of a route; `None` if all requests are allowed. Reads the password file, so it
    /// blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if authentication has no users.
    pub fn new(settings: &Settings, state: &Arc<State>) -> Result<Option<Access>, AccessError> {
        if settings.is_open() {
            return Ok(None);
        }
        let auth = match &settings.auth {
            Some(Auth::Passwords(auth)) => Authentication::Basic(Arc::new(Basic::new(auth, state)?)),
            Some(_) => Authentication::External,
            None => Authentication::Open,
        };
        let is_open = matches!(auth, Authentication::Open);
        Ok(Some(Access {
            addresses: Addresses::new(&settings.access),
            any_suffices: settings.satisfy == Satisfy::Any && !is_open && names_clients(&settings.access.allow),
            auth,
        }))
    }

    /// Checks a request. `now_ms` is the current time of a monotonic clock in milliseconds. `authorization` is the
    /// value of the `Authorization` field; `None` unless the request has exactly one such field.
    pub fn check(&self, now_ms: u64, client: Client, authorization: Option<&[u8]>) -> Check {
        match self.addresses.admit(client) {
            true if self.any_suffices => return Check::Decided(Decision::Granted { user: None }),
            false if !self.any_suffices => return Check::Decided(Decision::Forbidden),
            _ => {}
        }
        match &self.auth {
            Authentication::Open => Check::Decided(Decision::Granted { user: None }),
            Authentication::External => Check::Authenticate,
            Authentication::Basic(auth) => match authorization.and_then(Credentials::parse) {
                // `false`: a request without credentials is no guess.
                None => Check::Decided(auth.challenge(false)),
                Some(credentials) => auth.check(now_ms, client, credentials),
            },
        }
    }

    /// Returns `Some` if a request is granted without further work, with its user if a password was required. Otherwise
    /// returns `None`, and the caller must use [`Access::check`]. Changes no state: it neither claims a check of the
    /// password file nor counts an attempt.
    pub fn granted(&self, now_ms: u64, client: Client, authorization: Option<&[u8]>) -> Option<Option<Arc<str>>> {
        match self.addresses.admit(client) {
            true if self.any_suffices => return Some(None),
            false if !self.any_suffices => return None,
            _ => {}
        }
        match &self.auth {
            Authentication::Open => Some(None),
            Authentication::External => None,
            Authentication::Basic(auth) => auth
                .granted(now_ms, client, &Credentials::parse(authorization?)?)
                .map(Some),
        }
    }

    /// Returns true if [`Access::check`] does not refuse a request because of its address.
    pub fn admits_address(&self, client: Client) -> bool {
        self.any_suffices || self.addresses.admit(client)
    }

    /// Returns true if requests need authentication, by password or otherwise, so that shared caches must not store
    /// their responses (RFC 9111 §3.5).
    pub fn needs_password(&self) -> bool {
        !matches!(self.auth, Authentication::Open)
    }
}

/// Returns true if a list names some clients. An empty list and `"all"` allow every client, and must not replace the
/// passwords of a route.
fn names_clients(allow: &[ClientRange]) -> bool {
    !allow.is_empty() && !allow.contains(&ClientRange::All)
}

/// HTTP Basic authentication (RFC 7617).
struct Basic {
    users: Users,
    www_authenticate: Arc<str>,
    state: Arc<State>,
}

impl Basic {
    fn new(auth: &model::PasswordAuth, state: &Arc<State>) -> Result<Basic, AccessError> {
        if auth.users.is_empty() && auth.file.is_none() {
            return Err(AccessError::NoUsers);
        }
        let realm = auth.realm.replace('\\', "\\\\").replace('"', "\\\"");
        Ok(Basic {
            users: Users::new(auth, &state.files),
            www_authenticate: format!("Basic realm=\"{realm}\", charset=\"UTF-8\"").into(),
            state: Arc::clone(state),
        })
    }

    fn check(self: &Arc<Self>, now_ms: u64, client: Client, credentials: Credentials) -> Check {
        // The throttle is checked before the verified credentials. Otherwise a throttled client would learn which of
        // its guesses is right.
        if let Some(retry_after_s) = self.state.attempts.throttled_s(client, now_ms) {
            return Check::Decided(Decision::Throttled { retry_after_s });
        }
        // The first request of each second checks whether the password file has changed.
        let step = if self.users.claim_check(now_ms) {
            Step::CheckFile
        } else {
            self.step(now_ms, client, &credentials)
        };
        if let Step::Decided(decision) = step {
            return Check::Decided(decision);
        }
        let Some(permit) = Permit::take(&self.state) else {
            return Check::Decided(BUSY);
        };
        Check::Verify(Pending {
            step,
            credentials,
            request: PendingRequest {
                basic: Arc::clone(self),
                client,
                now_ms,
            },
            _permit: permit,
        })
    }

    /// Returns the user if the credentials were verified recently. Returns `None` if the password file has to be
    /// checked first, or if the client is throttled.
    fn granted(&self, now_ms: u64, client: Client, credentials: &Credentials) -> Option<Arc<str>> {
        if self.users.is_check_due(now_ms) || self.state.attempts.throttled_s(client, now_ms).is_some() {
            return None;
        }
        let UserLookup::User(user) = self.users.find(credentials.user()) else {
            return None;
        };
        let fingerprint = self.state.fingerprints.of(credentials, &user.hash);
        let is_verified = self.state.verified.contains(&fingerprint, now_ms);
        is_verified.then(|| Arc::clone(&user.name))
    }

    /// Decides the request if that is possible without a verification. Otherwise begins an attempt, which
    /// [`Step::Verify`] contains.
    fn step(self: &Arc<Self>, now_ms: u64, client: Client, credentials: &Credentials) -> Step {
        let (user, is_known) = match self.users.find(credentials.user()) {
            UserLookup::User(user) => (user, true),
            UserLookup::Unknown(decoy) => (decoy, false),
            UserLookup::Unavailable => return Step::Decided(UNREADABLE),
        };
        let fingerprint = self.state.fingerprints.of(credentials, &user.hash);
        if is_known && self.state.verified.contains(&fingerprint, now_ms) {
            return Step::Decided(granted(&user));
        }
        match self.state.attempts.begin(client, tag(&fingerprint), now_ms) {
            // `false`: the client has tried these credentials before.
            Admission::KnownWrong => Step::Decided(self.challenge(false)),
            Admission::Throttled { retry_after_s } => Step::Decided(Decision::Throttled { retry_after_s }),
            Admission::Attempt => Step::Verify(Attempt {
                state: Arc::clone(&self.state),
                client,
                user,
                is_known,
                fingerprint,
                is_ended: false,
            }),
        }
    }

    /// Returns the decision 401. `is_guess`: see [`Decision::Challenge`].
    fn challenge(&self, is_guess: bool) -> Decision {
        Decision::Challenge {
            www_authenticate: Arc::clone(&self.www_authenticate),
            is_guess,
        }
    }
}

/// Decision when all permits are taken. A verification takes less than a second, so a permit is soon available.
const BUSY: Decision = Decision::Unavailable { retry_after_s: 1 };

/// Decision if no valid version of the password file has been read yet. The operator has to correct the file.
const UNREADABLE: Decision = Decision::Unavailable { retry_after_s: 60 };

fn granted(user: &User) -> Decision {
    Decision::Granted {
        user: Some(Arc::clone(&user.name)),
    }
}

/// Identifies credentials in the table of attempts: 64 bits of a keyed hash, which a client cannot choose.
fn tag(fingerprint: &Fingerprint) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&fingerprint[..8]);
    u64::from_le_bytes(first)
}

/// Work for the blocking pool that leads to a decision. If it is dropped without being run, no guess is counted. If the
/// dropped work contained a check of the password file, the first request after a second makes that check instead.
pub struct Pending {
    step: Step,
    credentials: Credentials,
    request: PendingRequest,
    _permit: Permit,
}

/// Next step for a request.
enum Step {
    Decided(Decision),
    /// The password file must be checked first.
    CheckFile,
    Verify(Attempt),
}

/// A request that waits for the blocking pool, with the time at which [`Access::check`] received it.
struct PendingRequest {
    basic: Arc<Basic>,
    client: Client,
    now_ms: u64,
}

impl Pending {
    /// Runs the work: checks the file if that is due, and verifies the password. The verification occupies a core for a
    /// few milliseconds up to about a second.
    pub fn run(self) -> Decision {
        let PendingRequest { basic, client, now_ms } = self.request;
        let step = match self.step {
            Step::CheckFile => {
                basic.users.check_file();
                basic.step(now_ms, client, &self.credentials)
            }
            step => step,
        };
        match step {
            Step::Decided(decision) => decision,
            // `Basic::step` never returns this step.
            Step::CheckFile => BUSY,
            Step::Verify(attempt) => match attempt.run(&self.credentials, now_ms) {
                Ok(user) => granted(&user),
                Err(WrongPassword { is_guess }) => basic.challenge(is_guess),
            },
        }
    }
}

/// Credentials that count as a guess of their client while they are verified.
struct Attempt {
    state: Arc<State>,
    client: Client,
    /// User whose hash is verified. For an unknown name this is another user, so that the time is the same.
    user: Arc<User>,
    /// False if the name is unknown. The attempt then fails with every password.
    is_known: bool,
    fingerprint: Fingerprint,
    /// True once the password has been verified. An attempt that is dropped earlier is cancelled.
    is_ended: bool,
}

/// Result of credentials that are wrong.
struct WrongPassword {
    /// True if the client has not tried them before.
    is_guess: bool,
}

impl Attempt {
    /// Returns the user if the password is right.
    fn run(mut self, credentials: &Credentials, now_ms: u64) -> Result<Arc<User>, WrongPassword> {
        let State { verified, attempts, .. } = &*self.state;
        let tag = tag(&self.fingerprint);
        // A concurrent request with the same credentials may have been decided in the meantime.
        if attempts.is_wrong(self.client, tag, now_ms) {
            return Err(WrongPassword { is_guess: false });
        }
        // The password is verified for an unknown name too, so that the time does not reveal that the name is unknown.
        let is_right = self.is_known && verified.contains(&self.fingerprint, now_ms)
            || password::verify(&self.user.hash, credentials.password()) & self.is_known;
        self.is_ended = true;
        if is_right {
            verified.insert(self.fingerprint, now_ms);
            attempts.succeed(self.client, tag);
            return Ok(Arc::clone(&self.user));
        }
        let is_guess = !attempts.is_wrong(self.client, tag, now_ms);
        if let Some(retry_after_s) = attempts.fail(self.client, tag, now_ms) {
            let client = self.client;
            tracing::warn!(
                "client {client} sent {MAX_GUESSES} wrong passwords within a minute; its passwords are refused for \
                 {retry_after_s} s"
            );
        }
        Err(WrongPassword { is_guess })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_ended {
            self.state.attempts.cancel(self.client, tag(&self.fingerprint));
        }
    }
}

#[cfg(test)]
mod tests;
