//! Access control: `allow`, `deny` and `auth` of a route, by addresses, passwords and an authenticator.

use std::error::Error;
use std::sync::Arc;

use rocknet_access::{self as access, Access, AccessError, Check as AccessCheck, Decision};
use rocknet_config::model::{self, Auth, Limit, Priority, Satisfy, Settings};
use rocknet_handler::guard::{Admission, Admitted, Check, Guard, GuardContext};
use rocknet_proto::fields::{Fields, KnownField};
use rocknet_proto::status::Status;

use super::authenticator::Authenticator;
use super::authenticators;
use super::route::GuardRoute;
use crate::bans::{Bans, Offence};
use crate::blocking::Pool;
use crate::exchange::Client;
use crate::fixed;

/// Returns true if a route with these settings restricts access.
pub(super) fn is_needed(settings: &Settings) -> bool {
    !settings.is_open()
}

/// Restrictions of access to a route, and its limits. A client that was admitted to one route is admitted to every
/// route with equal restrictions.
#[derive(PartialEq, Eq)]
pub struct Restrictions {
    access: model::Access,
    auth: Option<Auth>,
    satisfy: Satisfy,
    limits: Vec<Limit>,
}

impl Restrictions {
    /// Returns the restrictions of a route with these settings; `None` if every client may enter
    /// without a limit.
    pub fn of(settings: &Settings) -> Option<Box<Restrictions>> {
        (is_needed(settings) || !settings.limits.is_empty()).then(|| {
            Box::new(Restrictions {
                access: settings.access.clone(),
                auth: settings.auth.clone(),
                satisfy: settings.satisfy,
                limits: settings.limits.clone(),
            })
        })
    }
}

/// Creates the guard of a route.
///
/// # Errors
///
/// Fails if `auth` has neither users nor a file, or if the authenticator cannot be used.
pub(super) fn make(route: &GuardRoute<'_>) -> Result<Arc<dyn Guard>, Box<dyn Error>> {
    // `Access::new` returns `None` only for a route that restricts nothing, which `is_needed` excludes.
    let access = Access::new(route.settings, &route.registries.access)?.ok_or(AccessError::NoUsers)?;
    Ok(Arc::new(AccessGuard {
        access,
        bans: Arc::clone(&route.registries.bans),
        authenticator: authenticators::of_route(route)?,
    }))
}

/// Guard that applies the access control of a route.
struct AccessGuard {
    access: Access,
    bans: Arc<Bans>,
    /// Decides about requests that `access` leaves to it.
    authenticator: Option<Arc<dyn Authenticator>>,
}

impl Guard for AccessGuard {
    fn check(&self, context: &GuardContext<'_>) -> Check {
        let now_ms = context.services.clock.uptime_ms();
        let (client, authorization) = (access_client(context.client), authorization(context.request.fields));
        match self.access.check(now_ms, client, authorization) {
            AccessCheck::Decided(decision) => {
                note(&self.bans, context.client, &decision);
                Check::Decided(admission(decision).map(|admitted| match &self.authenticator {
                    Some(authenticator) => authenticator.anonymous(context, admitted),
                    None => admitted,
                }))
            }
            AccessCheck::Authenticate => match &self.authenticator {
                Some(authenticator) => Arc::clone(authenticator).check(context),
                // Cannot occur: `Access` leaves the decision only to an authenticator that the settings name.
                None => Check::Decided(Err(Box::new(fixed::error(Status::FORBIDDEN)))),
            },
            // A route with passwords has no authenticator.
            AccessCheck::Verify(pending) => {
                let (pool, bans, client) = (context.services.pool.clone(), Arc::clone(&self.bans), context.client);
                Check::Deferred(Box::pin(async move {
                    let decision = verify(pool, pending).await;
                    note(&bans, client, &decision);
                    admission(decision)
                }))
            }
        }
    }

    // The outer `None`: the caller has to use `check`, for instance to verify a password or to reject the request. The
    // inner `None`: the request is admitted without a user.
    fn admit_cached(&self, context: &GuardContext<'_>) -> Option<Option<Arc<str>>> {
        let now_ms = context.services.clock.uptime_ms();
        let (client, authorization) = (access_client(context.client), authorization(context.request.fields));
        let granted = self.access.granted(now_ms, client, authorization);
        match &self.authenticator {
            None => granted,
            // The address admits the request. If `Authenticator::anonymous` changes it, the slow path has to do that.
            Some(authenticator) if granted.is_some() => granted.filter(|_| !authenticator.changes_anonymous_requests()),
            Some(authenticator) if self.access.admits_address(client) => authenticator.admit_cached(context),
            Some(_) => None,
        }
    }
}

/// Verifies a password in the blocking pool. The priority is low, so that password guesses from many addresses do not
/// delay file reads.
async fn verify(pool: Pool, pending: access::Pending) -> Decision {
    let job = pool.spawn(Priority::Low, move || pending.run());
    job.await.unwrap_or(Decision::Unavailable {
        retry_after_s: RETRY_AFTER_S,
    })
}

/// Counts a failed login. The same wrong password counts once, because browsers repeat it.
fn note(bans: &Arc<Bans>, client: Client, decision: &Decision) {
    // A throttled request is not counted here, because its password may be right. Its status 429 counts as
    // `Offence::Refused`.
    if matches!(decision, Decision::Challenge { is_guess: true, .. }) {
        bans.offend(client, Offence::Login);
    }
}

/// Delay in seconds after which a client may retry if the pool was full or the job failed. A verification takes at most
/// about a second, so the pool soon has room.
const RETRY_AFTER_S: u64 = 1;

fn access_client(client: Client) -> access::Client {
    match client {
        Client::Ip { address, .. } => access::Client::Ip(address),
        Client::Local => access::Client::Unix,
    }
}

/// Returns the value of the `Authorization` field. Returns `None` if the field is repeated, because applications
/// disagree about which value counts.
fn authorization(fields: Fields<'_>) -> Option<&[u8]> {
    fields
        .get(KnownField::Authorization)
        .filter(|_| !fields.is_repeated(KnownField::Authorization))
}

/// Converts a decision to an admission, with a response for each kind of rejection.
fn admission(decision: Decision) -> Admission {
    let (status, name, value) = match decision {
        Decision::Granted { user } => return Ok(Admitted::user(user)),
        Decision::Forbidden => return Err(Box::new(fixed::error(Status::FORBIDDEN))),
        Decision::Challenge { www_authenticate, .. } => (Status::UNAUTHORIZED, "WWW-Authenticate", www_authenticate),
        Decision::Throttled { retry_after_s } => retry(Status::TOO_MANY_REQUESTS, retry_after_s),
        Decision::Unavailable { retry_after_s } => retry(Status::SERVICE_UNAVAILABLE, retry_after_s),
    };
    Err(Box::new(fixed::error(status).with(name, value)))
}

/// Returns a status with the name and value of its `Retry-After` field. `after_s`: delay in seconds.
fn retry(status: Status, after_s: u64) -> (Status, &'static str, Arc<str>) {
    (status, "Retry-After", after_s.to_string().into())
}
