//! Rules of HTTP caching (RFC 9111) as pure functions: whether a response may be stored, for how long it is fresh, and
//! whether it may be sent in response to a request. Times are arguments.

use rocknet_config::model::ResponseCache;
use rocknet_proto::fields::{FieldList, Fields, KnownField};
use rocknet_proto::semantics::date;
use rocknet_proto::status::Status;

use crate::cache_control::{self, Directives, MAX_SECONDS};

mod persistent;

pub use persistent::{Moment, PersistentTerms};

/// Reason why a response is not stored. Its name is the parameter `detail` of `Cache-Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotStored {
    /// The status is not final, or depends on conditions or ranges of the request. Or the response has
    /// `must-understand`, and this cache does not implement the caching rules of the status.
    Status,
    /// `no-store` of the request or response.
    NoStore,
    /// `private`.
    Private,
    /// The response sets a cookie.
    SetCookie,
    /// The request has `Authorization`, and the response does not permit sharing (RFC 9111 §3.5).
    Authorization,
    /// The response has no explicit freshness, and the route has no `ttl`.
    NoFreshness,
    /// The response is stale when it arrives, and cannot be validated.
    Stale,
    /// `Vary` is `*`, names too many fields, or names a field that the server sets in requests.
    Vary,
    /// The body is larger than `max_object`, has no room in the store, or is of a kind that is not stored, such as a
    /// file or a stream of events.
    Body,
    /// The memory store of the site has the size 0.
    NoMemory,
    /// The response names a file, such as `X-Accel-Redirect`.
    NamesFile,
    /// The resource was purged or changed while the response was under way.
    Purged,
}

impl NotStored {
    /// Returns the name, a token.
    pub fn as_str(self) -> &'static str {
        match self {
            NotStored::Status => "status",
            NotStored::NoStore => "no-store",
            NotStored::Private => "private",
            NotStored::SetCookie => "set-cookie",
            NotStored::Authorization => "authorization",
            NotStored::NoFreshness => "no-freshness",
            NotStored::Stale => "stale",
            NotStored::Vary => "vary",
            NotStored::Body => "body",
            NotStored::NoMemory => "no-memory",
            NotStored::NamesFile => "names-file",
            NotStored::Purged => "purged",
        }
    }
}

/// Times at which a response was requested and received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Uptime in milliseconds when the request was sent.
    pub requested_ms: u64,
    /// Uptime in milliseconds when the head of the response was received.
    pub received_ms: u64,
    /// Time in seconds since 1970 at which the origin made the response: its `Date`, or the time when its head was
    /// received (RFC 9110 §6.6.1).
    pub made_unix: u64,
}

/// Properties of the request that decide whether its response may be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestFacts {
    /// Directives of `Cache-Control`.
    pub directives: Directives,
    /// True if the request has `Authorization`.
    pub has_authorization: bool,
}

impl RequestFacts {
    /// Returns the properties of a request with these fields.
    pub fn of(fields: &Fields<'_>) -> RequestFacts {
        let mut directives = Directives::default();
        if fields.contains(KnownField::CacheControl) {
            directives = Directives::parse(fields.get_all(KnownField::CacheControl));
        } else if fields.contains(KnownField::Pragma) {
            // RFC 9111 §5.4: `Pragma: no-cache` is read only without `Cache-Control`.
            directives.no_cache = Directives::parse(fields.get_all(KnownField::Pragma)).no_cache;
        }
        RequestFacts {
            directives,
            has_authorization: fields.contains(KnownField::Authorization),
        }
    }
}

/// Freshness of a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Uptime in milliseconds when the response was received, or last validated.
    received_ms: u64,
    /// Age in milliseconds when the response was received (RFC 9111 §4.2.3).
    initial_age_ms: u64,
    /// Freshness lifetime in milliseconds.
    lifetime_ms: u64,
    /// Time after the lifetime in which the response is sent while it is validated in the background.
    stale_while_revalidate_ms: u64,
    /// Time after the lifetime in which the response is sent if the upstream fails.
    stale_if_error_ms: u64,
    /// True if every use needs a validation (`no-cache`).
    must_validate: bool,
    /// True if a request with `max-stale` does not get the stale response (`must-revalidate`, `proxy-revalidate`,
    /// `s-maxage`, `no-cache`).
    ignores_max_stale: bool,
    /// True if the response may be sent to requests with `Authorization`.
    is_shared: bool,
}

/// Permitted use of a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The response is fresh, or the request accepts its age by `max-stale`.
    Fresh,
    /// The response is stale, and may be sent while it is validated in the background.
    StaleWhileRevalidate,
    /// The response must be validated first.
    AfterValidation,
}

impl Terms {
    /// Returns the age in milliseconds.
    pub fn age_ms(&self, now_ms: u64) -> u64 {
        self.initial_age_ms + now_ms.saturating_sub(self.received_ms)
    }

    /// Returns the remaining lifetime in whole seconds, rounded down; negative for a stale response.
    pub fn ttl(&self, now_ms: u64) -> i64 {
        let (lifetime, age) = (self.lifetime_ms as i64, self.age_ms(now_ms) as i64);
        (lifetime - age).div_euclid(1000)
    }

    /// Returns the uptime in milliseconds at which the age or the remaining lifetime of a fresh response next changes,
    /// both in whole seconds, or at which the response becomes stale.
    pub fn unchanged_until_ms(&self, now_ms: u64) -> u64 {
        let age = self.age_ms(now_ms);
        let remaining = self.lifetime_ms.saturating_sub(age);
        let age_changes_in = 1000 - age % 1000;
        // Rounded down, the remaining seconds change one millisecond after a whole number of seconds is left.
        let remaining_changes_in = remaining % 1000 + 1;
        now_ms + remaining.min(age_changes_in).min(remaining_changes_in)
    }

    /// Returns true while the age is below the lifetime and no validation is required.
    pub fn is_fresh(&self, now_ms: u64) -> bool {
        !self.must_validate && self.age_ms(now_ms) < self.lifetime_ms
    }

    /// Returns the permitted use. `request`: directives of the request that are obeyed, if any.
    pub fn permitted(&self, now_ms: u64, request: Option<&Directives>) -> Use {
        let (age, mut lifetime) = (self.age_ms(now_ms), self.lifetime_ms);
        let mut stale = self.stale_while_revalidate_ms;
        if self.must_validate {
            return Use::AfterValidation;
        }
        if let Some(request) = request {
            if request.no_cache {
                return Use::AfterValidation;
            }
            if let Some(max_age) = request.max_age {
                lifetime = lifetime.min(max_age * 1000);
            }
            if let Some(min_fresh) = request.min_fresh {
                lifetime = lifetime.saturating_sub(min_fresh * 1000);
            }
            if let Some(max_stale) = request.max_stale
                && !self.ignores_max_stale
            {
                lifetime += max_stale * 1000;
            }
            // Such a client accepts a stale response only by `max-stale` (RFC 9111 §5.2.1).
            if request.max_age.is_some() || request.min_fresh.is_some() {
                stale = 0;
            }
        }
        if age < lifetime {
            Use::Fresh
        } else if age < lifetime + stale {
            Use::StaleWhileRevalidate
        } else {
            Use::AfterValidation
        }
    }

    /// Returns true if the response may be sent because the upstream has failed (RFC 5861 §4).
    pub fn serves_errors(&self, now_ms: u64) -> bool {
        let until = self.lifetime_ms + self.stale_if_error_ms;
        !self.must_validate && self.age_ms(now_ms) < until
    }

    /// Returns true if the response may be sent to requests with `Authorization` (RFC 9111 §3.5).
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }
}

/// Returns the freshness of a response to GET that may be stored.
///
/// # Errors
///
/// Returns the reason why the response must not be stored.
pub fn terms(
    request: &RequestFacts,
    status: Status,
    fields: &FieldList,
    times: Times,
    settings: &ResponseCache,
) -> Result<Terms, NotStored> {
    if matches!(status.code(), ..200 | 206 | 304 | 412 | 416) {
        return Err(NotStored::Status);
    }
    if request.directives.no_store {
        return Err(NotStored::NoStore);
    }
    if NAMES_FILE.iter().any(|name| fields.value(name).is_some()) {
        return Err(NotStored::NamesFile);
    }
    let (control, is_targeted) = control_of(fields, settings.litespeed);
    if control.must_understand && !is_understood(status) {
        return Err(NotStored::Status);
    }
    // `must-understand` replaces `no-store` for a status that the cache understands (RFC 9111 §5.2.2.3).
    if control.no_store && !control.must_understand {
        return Err(NotStored::NoStore);
    }
    if control.private {
        return Err(NotStored::Private);
    }
    // A cookie is meant for one client. The standard permits storing it, but the loss of a session to another client is
    // worse than a request to the upstream.
    if fields.contains(KnownField::SetCookie) {
        return Err(NotStored::SetCookie);
    }
    let shares = control.public || control.s_maxage.is_some() || control.must_revalidate;
    if request.has_authorization && !shares {
        return Err(NotStored::Authorization);
    }
    let explicit = lifetime(&control, is_targeted, fields, times.made_unix);
    let lifetime = match explicit {
        Some(seconds) => seconds,
        None if control.no_cache => 0,
        None => default_lifetime(status, &control, fields, times.made_unix, settings).ok_or(NotStored::NoFreshness)?,
    };
    let delay_ms = times.received_ms.saturating_sub(times.requested_ms);
    let never_stale = control.must_revalidate || control.proxy_revalidate || control.no_cache;
    // `s-maxage` has the meaning of `proxy-revalidate` (RFC 9111 §5.2.2.10), which forbids the windows of the
    // configuration. The response itself may state windows: origins combine `s-maxage` with `stale-while-revalidate`.
    let uses_defaults = !never_stale && control.s_maxage.is_none();
    let window = |directive: Option<u64>, default| match directive {
        _ if never_stale => 0,
        Some(seconds) => seconds * 1000,
        None if uses_defaults => milliseconds(default),
        None => 0,
    };
    let terms = Terms {
        received_ms: times.received_ms,
        initial_age_ms: age(fields) * 1000 + delay_ms,
        lifetime_ms: lifetime * 1000,
        stale_while_revalidate_ms: window(control.stale_while_revalidate, settings.stale_while_revalidate),
        stale_if_error_ms: window(control.stale_if_error, settings.stale_if_error),
        must_validate: control.no_cache,
        ignores_max_stale: !uses_defaults,
        is_shared: shares,
    };
    let has_validator = fields.contains(KnownField::Etag) || fields.contains(KnownField::LastModified);
    if !terms.is_fresh(times.received_ms) && !has_validator {
        return Err(NotStored::Stale);
    }
    Ok(terms)
}

/// Returns the time in milliseconds, at most [`MAX_SECONDS`].
fn milliseconds(time: std::time::Duration) -> u64 {
    let time = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    time.min(MAX_SECONDS * 1000)
}

/// Returns the age that the upstream states, in seconds. A value that cannot be parsed, or several, count as the
/// largest age, so that the response is stale. RFC 9111 §5.1 recommends the first value, and no age for an invalid one,
/// but a response whose age is not known may be older than its lifetime.
fn age(fields: &FieldList) -> u64 {
    let mut values = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("Age"));
    match (values.next(), values.next()) {
        (None, _) => 0,
        (Some((_, value)), None) => cache_control::seconds(value.as_bytes()).unwrap_or(MAX_SECONDS),
        (Some(_), Some(_)) => MAX_SECONDS,
    }
}

/// Fields by which applications name a file that the server sends in place of the response.
const NAMES_FILE: [&str; 3] = ["X-Accel-Redirect", "X-Sendfile", "X-LiteSpeed-Location"];

/// Directives for the cache of a LiteSpeed server; they precede `Cache-Control` if `litespeed` is set.
pub(crate) const LITESPEED_CONTROL: &str = "X-LiteSpeed-Cache-Control";

/// Returns the directives for this cache, and true if they come from a targeted field (RFC 9213 §2.2).
fn control_of(fields: &FieldList, litespeed: bool) -> (Directives, bool) {
    let values = |name: &'static str| {
        fields
            .bytes()
            .filter(move |(other, _)| other.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    };
    if litespeed && fields.value(LITESPEED_CONTROL).is_some() {
        let mut control = Directives::parse(values(LITESPEED_CONTROL));
        // `no-cache` of this field means that the response is not stored.
        control.no_store |= control.no_cache;
        return (control, true);
    }
    if let Some(targeted) = Directives::parse_targeted(values("CDN-Cache-Control")) {
        return (targeted, true);
    }
    if !fields.contains(KnownField::CacheControl) {
        return (Directives::default(), false);
    }
    (Directives::parse(values("Cache-Control")), false)
}

/// Returns the explicit freshness lifetime in seconds (RFC 9111 §4.2.1); `None` if the response states no lifetime.
/// `Expires` counts from `made_unix`, so that a difference between the clocks of the origin and of this server does
/// not matter. The cost: an old response without `Age` counts as new, though RFC 9111 §4.2.3 adds the time since
/// `Date`.
fn lifetime(control: &Directives, is_targeted: bool, fields: &FieldList, made_unix: u64) -> Option<u64> {
    if let Some(seconds) = control.s_maxage.or(control.max_age) {
        return Some(seconds);
    }
    // `Expires` is ignored if there is a targeted field.
    let expires = fields.value("Expires").filter(|_| !is_targeted)?;
    // A value that is not a date, such as `0`, means a time in the past (RFC 9111 §5.3).
    let expires = date::parse(expires.trim().as_bytes()).unwrap_or(0);
    Some(expires.saturating_sub(made_unix).min(MAX_SECONDS))
}

/// Returns the lifetime in seconds that the configuration gives to responses without explicit freshness. An entry of
/// `statuses` for the status comes first, then the heuristic lifetime, then `ttl`. `ttl` applies to five statuses only;
/// for others, such as 404, the operator writes an entry of `statuses`.
fn default_lifetime(
    status: Status,
    control: &Directives,
    fields: &FieldList,
    made_unix: u64,
    settings: &ResponseCache,
) -> Option<u64> {
    // Old applications send only `Pragma`.
    if fields
        .value("Pragma")
        .is_some_and(|pragma| pragma.eq_ignore_ascii_case("no-cache"))
    {
        return None;
    }
    let seconds = |time: &std::time::Duration| time.as_secs().min(MAX_SECONDS);
    if let Some(ttl) = settings.statuses.get(&status.code()) {
        return Some(seconds(ttl));
    }
    let heuristic = || heuristic_lifetime(status, control, fields, made_unix);
    if let Some(lifetime) = settings.heuristic.then(heuristic).flatten() {
        return Some(lifetime);
    }
    let applies = matches!(status.code(), 200 | 203 | 300 | 301 | 308);
    let ttl = Some(&settings.ttl).filter(|ttl| applies && !ttl.is_zero());
    ttl.map(seconds)
}

/// Divisor of the time since the last modification. A response is heuristically fresh for a tenth of this time, which
/// RFC 9111 §4.2.2 names as a typical setting.
const HEURISTIC_DIVISOR: u64 = 10;

/// Maximum heuristic lifetime in seconds: one day, as in Apache. Old resources change too, and nothing else ends it.
const MAX_HEURISTIC: u64 = 86_400;

/// Returns the heuristic lifetime in seconds (RFC 9111 §4.2.2); `None` without a valid `Last-Modified` in the past, and
/// if neither the status nor `public` permits it. A query does not matter: only RFC 2616 made an exception for it.
fn heuristic_lifetime(status: Status, control: &Directives, fields: &FieldList, made_unix: u64) -> Option<u64> {
    // Statuses that are heuristically cacheable (RFC 9110 §15.1), except for 206, which is not stored.
    let is_permitted = matches!(
        status.code(),
        200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
    );
    if !is_permitted && !control.public {
        return None;
    }
    let modified = date::parse(fields.value("Last-Modified")?.trim().as_bytes())?;
    let unchanged = made_unix.checked_sub(modified)?;
    Some((unchanged / HEURISTIC_DIVISOR).min(MAX_HEURISTIC))
}

/// Returns true for a status whose caching rules this cache implements.
fn is_understood(status: Status) -> bool {
    matches!(
        status.code(),
        200 | 203 | 204 | 300..=303 | 307 | 308 | 404 | 405 | 410 | 414 | 451 | 501
    )
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
