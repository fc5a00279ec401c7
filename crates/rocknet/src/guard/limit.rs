//! Limits of requests: `limit` of a site or route, such as `{ rate = "10/s", burst = 20 }` or `{ connections = 3 }`.

use std::cell::OnceCell;
use std::error::Error;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use rocknet_config::client_ranges::ClientRanges;
use rocknet_config::model::{Amount, Excess, Limit};
use rocknet_handler::guard::{Admitted as AdmittedRequest, Check, Guard, GuardContext};
use rocknet_limit::{ConnectionPermit, KeySeed, Rate, Taken};
use rocknet_proto::status::Status;
use tracing::Level;

use super::route::GuardRoute;
use crate::exchange::Client;
use crate::fixed;
use crate::limits::{LimitKey, LimitState, WaitingPlace};
use crate::log::throttle::Cause;
use crate::response::Response;

/// Returns true if a limit does not depend on the user, so that it applies before passwords are verified. Guesses are
/// then refused without the cost of a verification.
pub(super) fn is_before_access(limit: &Limit) -> bool {
    is_checked(limit) && !depends_on_user(limit)
}

/// Returns true if a limit depends on the user, so that it applies after passwords are verified.
pub(super) fn is_after_access(limit: &Limit) -> bool {
    is_checked(limit) && depends_on_user(limit)
}

/// Returns true if a guard applies the limit. The bandwidth is limited by a filter.
fn is_checked(limit: &Limit) -> bool {
    !matches!(limit.amount, Amount::Bandwidth(_))
}

fn depends_on_user(limit: &Limit) -> bool {
    limit.key.as_ref().is_some_and(|key| key.contains("{user}"))
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
    // Routes that inherit the limits of their site share a guard, so that a request that leads to several of these
    // routes counts once.
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
    seed: KeySeed,
}

/// A limit with its state.
struct ActiveLimit {
    state: Arc<LimitState>,
    amount: ActiveAmount,
    key: LimitKey,
    exempt: ClientRanges,
    dry_run: bool,
}

/// Amount of a limit, prepared for the check of requests.
enum ActiveAmount {
    Rate {
        rate: Rate,
        /// The same rate for requests that cannot wait.
        immediate: Rate,
        /// Value of `RateLimit-Policy`.
        policy: String,
    },
    /// Maximum number of requests in progress.
    Connections(u32),
}

/// Path on which a request is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CountingPath {
    /// The request can wait.
    Slow,
    /// The request cannot wait. `ends_at_once`: true if the response is so small that the system usually takes it at
    /// once, so that the request needs no permits.
    Fast { ends_at_once: bool },
}

/// A request that is above a limit.
struct Excessive<'g> {
    limit: &'g ActiveLimit,
    /// Time after which a request is admitted; `None` if it depends on other requests.
    retry_after_ns: Option<u64>,
}

/// A request that is admitted.
#[derive(Default)]
struct Admitted<'g> {
    /// Time that the request has to wait, in nanoseconds, with its limit.
    wait: Option<(u64, &'g ActiveLimit)>,
    /// Permits of the limits of requests in progress.
    permits: Vec<ConnectionPermit>,
    /// One bit for each limit that has taken a token.
    taken: u32,
}

impl ActiveLimit {
    fn new(limit: &Limit, route: &GuardRoute<'_>) -> Result<ActiveLimit, String> {
        Ok(ActiveLimit {
            state: route.registries.limits.state(route.site, &route.limit_scope(), limit),
            amount: ActiveAmount::new(&limit.amount),
            key: LimitKey::new(limit)?,
            exempt: ClientRanges::new(&limit.exempt),
            dry_run: limit.dry_run,
        })
    }

    /// Returns the hash of the key of a request.
    fn key(&self, seed: &KeySeed, context: &GuardContext<'_>) -> u64 {
        self.key.hash(seed, context.client, context.values)
    }

    /// Counts a request that would have been refused or delayed, and logs it.
    #[cold]
    fn report_dry_run(&self, client: Client) {
        self.state.dry_run.fetch_add(1, Ordering::Relaxed);
        self.log("requests above a limit that is a dry run", client);
    }

    /// Logs a request above the limit, at most once a second for each route and `what`.
    fn log(&self, what: &'static str, client: Client) {
        let id = &self.state.id;
        let cause = Cause {
            level: Level::WARN,
            what,
            site: &id.site,
            subject: &id.route,
        };
        if cause.may_be_logged() {
            let (site, route, amount) = (&*id.site, &*id.route, id.amount);
            let outcome = if self.dry_run { "would be refused" } else { "refused" };
            tracing::warn!(site, route, %client, "request above the limit of {amount} {outcome}");
        }
    }
}

impl ActiveAmount {
    fn new(amount: &Amount) -> ActiveAmount {
        let limit = match amount {
            Amount::Rate(limit) => limit,
            Amount::Connections(max) => return ActiveAmount::Connections(*max),
            // The guard has no such limits.
            Amount::Bandwidth(_) => return ActiveAmount::Connections(u32::MAX),
        };
        let interval = limit.rate.interval().as_nanos() as u64;
        // Number of requests that may come at once without waiting.
        let undelayed = match limit.excess {
            Excess::Immediate => limit.burst,
            Excess::Delayed { after } => after,
        };
        let rate = Rate::new(interval, limit.burst, Some(undelayed));
        let window = Duration::from_nanos(rate.capacity());
        ActiveAmount::Rate {
            rate,
            immediate: Rate::new(interval, undelayed.min(limit.burst), None),
            policy: format!("\"{}\";q={};w={}", limit.rate, limit.burst, whole_seconds(window)),
        }
    }
}

impl LimitGuard {
    /// Counts a request in all limits. If one of them refuses it, none has counted it.
    fn count(&self, context: &GuardContext<'_>, path: CountingPath) -> Result<Admitted<'_>, Excessive<'_>> {
        let (may_wait, ends_at_once) = match path {
            CountingPath::Slow => (true, false),
            CountingPath::Fast { ends_at_once } => (false, ends_at_once),
        };
        // The clock is read only for rates. A limit of requests in progress needs no time.
        let now = OnceCell::new();
        let address = context.client.address();
        let mut admitted = Admitted::default();
        // One bit for each limit that has taken a token. There are at most 16 limits.
        let mut taken = 0u32;
        // One bit for each limit without effect (`dry_run`) that the request exceeds. They are reported only if no
        // other limit refuses the request, because a refused request may be counted again on a slower path.
        let mut exceeded = 0u32;
        for (at, limit) in self.limits.iter().enumerate() {
            if !limit.exempt.is_empty() && limit.exempt.contain(address) {
                continue;
            }
            let key = limit.key(&self.seed, context);
            let (wait, retry_after_ns) = match &limit.amount {
                ActiveAmount::Rate { rate, immediate, .. } => {
                    let rate = if may_wait { rate } else { immediate };
                    let now = *now.get_or_init(|| context.services.clock.precise_uptime_ns());
                    match limit.state.rates.take(rate, key, now) {
                        Taken::Admitted { wait } => {
                            taken |= 1 << at;
                            if wait == 0 {
                                continue;
                            }
                            (Some(wait), None)
                        }
                        Taken::Refused { retry_after } => (None, Some(retry_after)),
                    }
                }
                ActiveAmount::Connections(max) if ends_at_once => {
                    if limit.state.connections.has_room(key, *max) {
                        continue;
                    }
                    (None, None)
                }
                ActiveAmount::Connections(max) => match limit.state.connections.take(key, *max) {
                    Some(permit) => {
                        admitted.permits.push(permit);
                        continue;
                    }
                    None => (None, None),
                },
            };
            match wait {
                _ if limit.dry_run => exceeded |= 1 << at,
                Some(wait) => {
                    let is_longest = admitted.wait.is_none_or(|(other, _)| other < wait);
                    if is_longest {
                        admitted.wait = Some((wait, limit));
                    }
                }
                None => {
                    self.give_back(context, taken);
                    return Err(Excessive { limit, retry_after_ns });
                }
            }
        }
        let limits = self.limits.iter().enumerate();
        for (_, limit) in limits.filter(|(at, _)| exceeded & (1 << at) != 0) {
            limit.report_dry_run(context.client);
        }
        admitted.taken = taken;
        Ok(admitted)
    }

    /// Takes back that a request was counted just before. `taken`: one bit for each limit that has taken a token.
    fn give_back(&self, context: &GuardContext<'_>, taken: u32) {
        let limits = self.limits.iter().enumerate();
        for (_, limit) in limits.filter(|(at, _)| taken & (1 << at) != 0) {
            if let ActiveAmount::Rate { rate, .. } = &limit.amount {
                // 0: no time has passed since the token was taken.
                limit.state.rates.give_back(rate, limit.key(&self.seed, context), 0);
            }
        }
    }
}

impl Guard for LimitGuard {
    fn check(&self, context: &GuardContext<'_>) -> Check {
        let admitted = match self.count(context, CountingPath::Slow) {
            Ok(admitted) => admitted,
            Err(excessive) => return Check::Decided(Err(excessive.refuse(context.client))),
        };
        for permit in admitted.permits {
            context.held.keep(permit);
        }
        let Some((wait_ns, limit)) = admitted.wait else {
            return Check::Decided(Ok(AdmittedRequest::default()));
        };
        let Some(place) = limit.state.wait() else {
            // Too many requests wait at this limit already.
            self.give_back(context, admitted.taken);
            let excessive = Excessive {
                limit,
                retry_after_ns: Some(wait_ns),
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
            Ok(AdmittedRequest::default())
        }))
    }

    fn admit_cached(&self, _context: &GuardContext<'_>) -> Option<Option<Arc<str>>> {
        Some(None)
    }

    fn counts(&self) -> bool {
        true
    }

    fn count_cached(&self, context: &GuardContext<'_>, ends_at_once: bool) -> Option<u32> {
        let admitted = self.count(context, CountingPath::Fast { ends_at_once }).ok()?;
        for permit in admitted.permits {
            context.held.keep(permit);
        }
        Some(admitted.taken)
    }

    fn uncount_cached(&self, context: &GuardContext<'_>, counted: u32) {
        self.give_back(context, counted);
    }
}

impl Excessive<'_> {
    /// Counts and logs the request, and returns its response.
    #[cold]
    fn refuse(self, client: Client) -> Box<Response> {
        let limit = self.limit;
        limit.state.refused.fetch_add(1, Ordering::Relaxed);
        limit.log("requests above a limit", client);
        let retry_after = self
            .retry_after_ns
            .map_or(1, |ns| whole_seconds(Duration::from_nanos(ns)));
        // A key without placeholders, such as `all`, limits the route as a whole. The route is busy then, and no client
        // is at fault.
        let is_of_route = limit.key.is_constant();
        let status = match limit.amount {
            ActiveAmount::Connections(_) if is_of_route => Status::SERVICE_UNAVAILABLE,
            _ => Status::TOO_MANY_REQUESTS,
        };
        let response = fixed::error(status).with("Retry-After", retry_after.to_string());
        let mut response = match &limit.amount {
            ActiveAmount::Connections(_) => response,
            ActiveAmount::Rate { policy, .. } => response.with("RateLimit-Policy", policy).with(
                "RateLimit",
                format!("\"{}\";r=0;t={retry_after}", limit.state.id.amount),
            ),
        };
        // The status 503 is no offence in any case.
        response.is_no_offence = is_of_route && status == Status::TOO_MANY_REQUESTS;
        Box::new(response)
    }
}

/// Returns a time in seconds, rounded up; at least 1.
fn whole_seconds(time: Duration) -> u64 {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1)
}
