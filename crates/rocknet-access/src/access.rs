//! The decision for one request of one route.

use std::fmt;
use std::sync::Arc;

use rocknet_config::model::{self, Settings};

use crate::addresses::{Addresses, Client};
use crate::attempts::{Admission, MAX_GUESSES};
use crate::credentials::Credentials;
use crate::fingerprint::Fingerprint;
use crate::password;
use crate::state::{Permit, State};
use crate::users::{User, UserLookup, Users};

/// The access control of one route, shared by all workers.
pub struct Access {
    addresses: Addresses,
    auth: Option<Arc<Basic>>,
}

/// The first answer about a request.
pub enum Check {
    Decided(Decision),
    /// A password has to be verified, or a file to be looked at.
    Verify(Pending),
}

/// The outcome of access control for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It goes on. `user` is set where a password was needed: it is REMOTE_USER of applications.
    Granted { user: Option<Arc<str>> },
    /// 403: the address may not enter.
    Forbidden,
    /// 401, with this value of `WWW-Authenticate`.
    Challenge { www_authenticate: Arc<str> },
    /// 429, with `Retry-After`.
    Throttled { retry_after_s: u64 },
    /// 503: too many verifications are under way, or the file of users was never readable.
    Unavailable { retry_after_s: u64 },
}

/// Why a route cannot be protected as its configuration says.
#[derive(Debug, PartialEq, Eq)]
pub enum AccessError {
    /// Neither users nor a file: no one could enter, so it is a mistake. The check of a configuration refuses it before.
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
    /// `None`: every request may enter. Reads the file of users, so it blocks.
    pub fn new(settings: &Settings, state: &Arc<State>) -> Result<Option<Access>, AccessError> {
        if settings.is_open() {
            return Ok(None);
        }
        let auth = settings.auth.as_ref().map(|auth| Basic::new(auth, state)).transpose()?;
        Ok(Some(Access {
            addresses: Addresses::new(&settings.access),
            auth: auth.map(Arc::new),
        }))
    }

    /// Decides about a request. `authorization` is the value of its one `Authorization` field; a request with several has
    /// none.
    pub fn check(&self, now_ms: u64, client: Client, authorization: Option<&[u8]>) -> Check {
        if !self.addresses.admit(client) {
            return Check::Decided(Decision::Forbidden);
        }
        match &self.auth {
            None => Check::Decided(Decision::Granted { user: None }),
            Some(auth) => match authorization.and_then(Credentials::parse) {
                None => Check::Decided(auth.challenge()),
                Some(credentials) => auth.check(now_ms, client, credentials),
            },
        }
    }

    /// Returns the user of a request that is granted without any work. `None`: the caller has to use [`Access::check`].
    /// Changes nothing: it takes no turn to look at the file of users and counts no attempt.
    pub fn granted(&self, now_ms: u64, client: Client, authorization: Option<&[u8]>) -> Option<Option<Arc<str>>> {
        if !self.addresses.admit(client) {
            return None;
        }
        match &self.auth {
            None => Some(None),
            Some(auth) => auth
                .granted(now_ms, client, &Credentials::parse(authorization?)?)
                .map(Some),
        }
    }

    /// Returns true if requests need a password, so that their responses belong in no shared cache (RFC 9111 §3.5).
    pub fn needs_password(&self) -> bool {
        self.auth.is_some()
    }
}

/// HTTP Basic authentication (RFC 7617).
struct Basic {
    users: Users,
    www_authenticate: Arc<str>,
    state: Arc<State>,
}

impl Basic {
    fn new(auth: &model::Auth, state: &Arc<State>) -> Result<Basic, AccessError> {
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
        // Before the verified credentials, because these would tell a throttled client which of its guesses is right.
        if let Some(retry_after_s) = self.state.attempts.throttled_s(client, now_ms) {
            return Check::Decided(Decision::Throttled { retry_after_s });
        }
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

    /// Returns the user if the credentials were verified lately and nothing else has to be done first.
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

    /// Decides what is known without a verification.
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
            Admission::KnownWrong => Step::Decided(self.challenge()),
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

    fn challenge(&self) -> Decision {
        Decision::Challenge {
            www_authenticate: Arc::clone(&self.www_authenticate),
        }
    }
}

/// A verification takes less than a second, and so does the wait for a place.
const BUSY: Decision = Decision::Unavailable { retry_after_s: 1 };

/// A person has to make the file readable.
const UNREADABLE: Decision = Decision::Unavailable { retry_after_s: 60 };

fn granted(user: &User) -> Decision {
    Decision::Granted {
        user: Some(Arc::clone(&user.name)),
    }
}

/// Names credentials in the table of attempts: 64 bits of a keyed hash, which a client cannot choose.
fn tag(fingerprint: &Fingerprint) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&fingerprint[..8]);
    u64::from_le_bytes(first)
}

/// Work for the blocking pool, which ends in a decision. Dropped without being run it leaves no trace.
pub struct Pending {
    step: Step,
    credentials: Credentials,
    request: PendingRequest,
    _permit: Permit,
}

/// Where a request stands.
enum Step {
    Decided(Decision),
    /// The file of users is looked at first.
    CheckFile,
    Verify(Attempt),
}

struct PendingRequest {
    basic: Arc<Basic>,
    client: Client,
    now_ms: u64,
}

impl Pending {
    /// Does the work: tens of milliseconds to about a second of a core, and a look at a file.
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
            Step::CheckFile => BUSY,
            Step::Verify(attempt) => match attempt.run(&self.credentials, now_ms) {
                Some(user) => granted(&user),
                None => basic.challenge(),
            },
        }
    }
}

/// Credentials that count as a guess of their client while they are verified.
struct Attempt {
    state: Arc<State>,
    client: Client,
    /// The user whose hash is verified. If the name is unknown, this is another user, so that the time is the same.
    user: Arc<User>,
    is_known: bool,
    fingerprint: Fingerprint,
    is_ended: bool,
}

impl Attempt {
    /// Returns the user if the password is right.
    fn run(mut self, credentials: &Credentials, now_ms: u64) -> Option<Arc<User>> {
        let State { verified, attempts, .. } = &*self.state;
        let tag = tag(&self.fingerprint);
        // A request with the same credentials may have been first.
        if attempts.is_wrong(self.client, tag, now_ms) {
            return None;
        }
        let is_right = self.is_known && verified.contains(&self.fingerprint, now_ms)
            || password::verify(&self.user.hash, credentials.password()) & self.is_known;
        self.is_ended = true;
        if is_right {
            verified.insert(self.fingerprint, now_ms);
            attempts.succeed(self.client, tag);
            return Some(Arc::clone(&self.user));
        }
        if let Some(retry_after_s) = attempts.fail(self.client, tag, now_ms) {
            let client = self.client;
            tracing::warn!(
                "client {client} sent {MAX_GUESSES} wrong passwords within a minute; its passwords are refused for \
                 {retry_after_s} s"
            );
        }
        None
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
