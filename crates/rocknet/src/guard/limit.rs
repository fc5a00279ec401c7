//! Limits of requests: `limit` of a site or route.

use std::error::Error;
use std::future::poll_fn;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use rocknet_config::client_ranges::ClientRanges;
use rocknet_config::model::{Excess, Limit};
use rocknet_config::template::{Piece, Placeholder, Scope, Template};
use rocknet_handler::guard::{Check, Guard, GuardContext};
use rocknet_limit::{Rate, Taken};
use rocknet_proto::status::Status;
use tracing::Level;

use super::route::GuardRoute;
use crate::exchange::Client;
use crate::fixed;
use crate::limits::{LimitState, WaitingPlace};
use crate::log::throttle::Cause;
use crate::response::Response;

/// Returns true if a limit does not depend on the user, so that it applies before passwords are verified. Guesses are
/// then refused without the cost of a verification.
pub(super) fn is_before_access(limit: &Limit) -> bool {
    !limit.key.as_ref().is_some_and(|key| key.contains("{user}"))
}

/// Creates the guard with those limits of a route that `which` selects.
///
/// # Errors
///
/// Fails if a key has an unknown placeholder.
pub(super) fn make(route: &GuardRoute<'_>, which: fn(&Limit) -> bool) -> Result<Arc<dyn Guard>, Box<dyn Error>> {
    let registry = &route.registries.limits;
    let limits: Vec<&Limit> = route.settings.limits.iter().filter(|limit| which(limit)).collect();
    let active: Result<Box<[_]>, String> = limits.iter().map(|limit| ActiveLimit::new(limit, route)).collect();
    let active = active?;
    let id = (Arc::clone(route.site), route.limit_scope(), format!("{limits:?}"));
    Ok(registry.guard(id, || {
        Arc::new(LimitGuard {
            limits: active,
            seed: registry.seed().clone(),
        })
    }))
}

/// Guard that applies limits. All of them must admit a request.
struct LimitGuard {
    limits: Box<[ActiveLimit]>,
    seed: RandomState,
}

/// A limit with its state.
struct ActiveLimit {
    state: Arc<LimitState>,
    rate: Rate,
    /// The same rate for requests that cannot wait.
    immediate: Rate,
    /// `None`: the client.
    key: Option<Template>,
    exempt: ClientRanges,
    dry_run: bool,
    /// Value of `RateLimit-Policy`.
    policy: String,
}

/// A request that is above a limit.
struct Excessive<'g> {
    limit: &'g ActiveLimit,
    retry_after_ns: u64,
}

/// A request that is admitted, after a wait if it has one.
type Admitted<'g> = Option<(u64, &'g ActiveLimit)>;

impl ActiveLimit {
    fn new(limit: &Limit, route: &GuardRoute<'_>) -> Result<ActiveLimit, String> {
        let key = limit.key.as_ref().map(|key| Template::parse(key, Scope::Request));
        let key = key
            .transpose()
            .map_err(|error| format!("limit: {}; {}", error.message, error.help))?;
        let interval = limit.rate.interval().as_nanos() as u64;
        let undelayed = match limit.excess {
            Excess::Immediate => limit.burst,
            Excess::Delayed { after } => after,
        };
        let rate = Rate::new(interval, limit.burst, Some(undelayed));
        let window = Duration::from_nanos(rate.capacity());
        Ok(ActiveLimit {
            state: route.registries.limits.state(route.site, &route.limit_scope(), limit),
            rate,
            immediate: Rate::new(interval, undelayed.min(limit.burst), None),
            key,
            exempt: ClientRanges::new(&limit.exempt),
            dry_run: limit.dry_run,
            policy: format!("\"{}\";q={};w={}", limit.rate, limit.burst, whole_seconds(window)),
        })
    }

    /// Returns the hash of the key of a request.
    fn key(&self, seed: &RandomState, context: &GuardContext<'_>) -> u64 {
        let client = || seed.hash_one(network(context.client));
        let Some(template) = &self.key else {
            return client();
        };
        let mut hasher = seed.build_hasher();
        let mut is_empty = true;
        for piece in template.pieces() {
            match piece {
                Piece::Text(_) => continue,
                Piece::Value(Placeholder::ClientIp) => {
                    is_empty = false;
                    hasher.write_u128(network(context.client));
                }
                Piece::Value(placeholder) => {
                    let value = context.values.value(placeholder);
                    is_empty &= value.is_empty();
                    // The length separates a value from the next one.
                    hasher.write_usize(value.len());
                    hasher.write(&value);
                }
            }
        }
        // A text without placeholders is the same for all requests, and is not empty.
        match is_empty && template.as_constant().is_none() {
            true => client(),
            false => hasher.finish(),
        }
    }

    /// Counts a request that would have been refused or delayed, and logs it.
    #[cold]
    fn report_dry_run(&self, client: Client) {
        self.state.dry_run.fetch_add(1, Ordering::Relaxed);
        self.log("requests above a limit that is a dry run", client);
    }

    /// Logs a request above the limit, at most once a second for each limit.
    fn log(&self, what: &'static str, client: Client) {
        let id = &self.state.id;
        let cause = Cause {
            level: Level::WARN,
            what,
            site: &id.site,
            subject: &id.route,
        };
        if cause.may_be_logged() {
            let (site, route, rate) = (&*id.site, &*id.route, id.rate);
            let outcome = if self.dry_run { "would be refused" } else { "refused" };
            tracing::warn!(site, route, %client, "request above the limit {rate} {outcome}");
        }
    }
}

impl LimitGuard {
    /// Counts a request in all limits. If one of them refuses it, none has counted it. `rate` selects whether the
    /// request may wait.
    fn count(
        &self,
        context: &GuardContext<'_>,
        rate: impl Fn(&ActiveLimit) -> &Rate,
    ) -> Result<Admitted<'_>, Excessive<'_>> {
        let now = context.services.clock.precise_uptime_ns();
        let address = address(context.client);
        let mut longest: Admitted<'_> = None;
        for (at, limit) in self.limits.iter().enumerate() {
            if limit.exempt.contain(address) {
                continue;
            }
            let key = limit.key(&self.seed, context);
            match limit.state.table.take(rate(limit), key, now) {
                Taken::Admitted { wait: 0 } => {}
                Taken::Admitted { .. } | Taken::Refused { .. } if limit.dry_run => limit.report_dry_run(context.client),
                Taken::Admitted { wait } => {
                    longest = longest.filter(|(other, _)| *other >= wait).or(Some((wait, limit)));
                }
                Taken::Refused { retry_after } => {
                    self.give_back(context, at);
                    return Err(Excessive {
                        limit,
                        retry_after_ns: retry_after,
                    });
                }
            }
        }
        Ok(longest)
    }

    /// Takes back that a request was counted in the first `count` limits.
    fn give_back(&self, context: &GuardContext<'_>, count: usize) {
        let address = address(context.client);
        for limit in self.limits[..count]
            .iter()
            .filter(|limit| !limit.exempt.contain(address))
        {
            limit.state.table.give_back(&limit.rate, limit.key(&self.seed, context));
        }
    }
}

impl Guard for LimitGuard {
    fn check(&self, context: &GuardContext<'_>) -> Check {
        let (wait_ns, limit) = match self.count(context, |limit| &limit.rate) {
            Ok(None) => return Check::Decided(Ok(None)),
            Ok(Some(wait)) => wait,
            Err(excessive) => return Check::Decided(Err(excessive.refuse(context.client))),
        };
        let Some(place) = limit.state.wait() else {
            self.give_back(context, self.limits.len());
            let excessive = Excessive {
                limit,
                retry_after_ns: wait_ns,
            };
            return Check::Decided(Err(excessive.refuse(context.client)));
        };
        limit.state.delayed.fetch_add(1, Ordering::Relaxed);
        let deadline = context.services.wheel.deadline();
        deadline.set(context.services.wheel.ticks(Duration::from_nanos(wait_ns)));
        Check::Deferred(Box::pin(async move {
            // The place is free again once the wait ends, or the client has disconnected.
            let _place: WaitingPlace = place;
            poll_fn(|context| match deadline.poll_past(context.waker()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            Ok(None)
        }))
    }

    fn admit_cached(&self, _context: &GuardContext<'_>) -> Option<Option<Arc<str>>> {
        Some(None)
    }

    fn counts(&self) -> bool {
        true
    }

    fn count_cached(&self, context: &GuardContext<'_>) -> bool {
        self.count(context, |limit| &limit.immediate).is_ok()
    }
}

impl Excessive<'_> {
    /// Counts and logs the request, and returns its response.
    #[cold]
    fn refuse(self, client: Client) -> Box<Response> {
        let ActiveLimit { state, policy, .. } = self.limit;
        state.refused.fetch_add(1, Ordering::Relaxed);
        self.limit.log("requests above a limit", client);
        let retry_after = whole_seconds(Duration::from_nanos(self.retry_after_ns));
        Box::new(
            fixed::error(Status::TOO_MANY_REQUESTS)
                .with("Retry-After", retry_after.to_string())
                .with("RateLimit-Policy", policy)
                .with("RateLimit", format!("\"{}\";r=0;t={retry_after}", state.id.rate)),
        )
    }
}

/// Returns a time in seconds, rounded up; at least 1.
fn whole_seconds(time: Duration) -> u64 {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1)
}

fn address(client: Client) -> Option<IpAddr> {
    match client {
        Client::Ip { address, .. } => Some(address),
        Client::Local => None,
    }
}

/// Returns the network that counts as one client.
fn network(client: Client) -> u128 {
    address(client).map_or(u128::MAX, rocknet_config::client_ranges::client_network)
}
