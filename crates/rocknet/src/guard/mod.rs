//! Table of guards. Guards decide whether a request may enter a route. Each guard has its own file.

mod access;
mod anonymity;
mod authenticator;
mod authenticators;
mod client_certificate;
mod forward;
mod limit;
mod oidc;
mod route;
mod signed_url;

use std::error::Error;
use std::sync::Arc;

use rocknet_config::model::Settings;
use rocknet_handler::cors::preflight_guard;
use rocknet_handler::guard::Guard;

pub use self::route::{GuardRoute, limit_scope};

pub use access::Restrictions;
pub use anonymity::anonymity;
pub use oidc::endpoints as login_endpoints;

/// One entry of the table.
struct GuardEntry {
    /// Returns true if a route with these settings needs the guard.
    is_needed: fn(&Settings) -> bool,
    /// Creates the guard of a route.
    make: fn(&GuardRoute<'_>) -> GuardResult,
}

type GuardResult = Result<Arc<dyn Guard>, Box<dyn Error>>;

/// Guards that check a request before the login endpoints (callback and logout of `oidc`) respond. A new guard is one
/// entry here or in [`ACCESS_GUARDS`], in the order in which they check a request.
const EARLY_GUARDS: &[GuardEntry] = &[
    GuardEntry {
        is_needed: |settings| settings.cors.is_some(),
        make: |route| Ok(preflight_guard(route.settings.cors.clone().unwrap_or_default())),
    },
    GuardEntry {
        is_needed: |settings| settings.limits.iter().any(limit::is_before_access),
        make: |route| limit::make(route, limit::is_before_access),
    },
];

/// Guards that check all other requests.
const ACCESS_GUARDS: &[GuardEntry] = &[
    GuardEntry {
        is_needed: access::is_needed,
        make: access::make,
    },
    GuardEntry {
        is_needed: |settings| settings.limits.iter().any(limit::is_after_access),
        make: |route| limit::make(route, limit::is_after_access),
    },
];

/// The guards of one route. Empty if every request may enter.
pub type Guards = Box<[Arc<dyn Guard>]>;

/// Creates the guards of a route.
///
/// # Errors
///
/// The error names the setting that cannot be used.
pub fn of_route(route: &GuardRoute<'_>) -> Result<Guards, Box<dyn Error>> {
    let needed = |entries: &[GuardEntry]| -> Result<Vec<_>, Box<dyn Error>> {
        let needed = entries.iter().filter(|entry| (entry.is_needed)(route.settings));
        needed.map(|entry| (entry.make)(route)).collect()
    };
    // The anonymity guard removes fields such as `Remote-User` that a client has sent to appear as a user. It is the
    // first, so that it does not remove such a field of an authorization service (`auth = { forward = "…" }`).
    let mut guards: Vec<_> = route.anonymity.cloned().into_iter().collect();
    guards.extend(needed(EARLY_GUARDS)?);
    guards.extend(route.login_endpoints.cloned());
    guards.extend(needed(ACCESS_GUARDS)?);
    Ok(guards.into())
}

/// Returns true if a route with these settings needs no guard of its own. If this is true for all routes of a site,
/// the site has no guards: those that its routes share (anonymity, login endpoints) exist only with access control.
pub fn is_unguarded(settings: &Settings) -> bool {
    let mut entries = EARLY_GUARDS.iter().chain(ACCESS_GUARDS);
    !entries.any(|entry| (entry.is_needed)(settings))
}
