//! Table of guards. Guards decide whether a request may enter a route. Each guard has its own file.

mod access;
mod anonymity;
mod client_certificate;
mod forward;
mod limit;
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

/// One entry of the table.
struct GuardEntry {
    /// Returns true if a route with these settings needs the guard.
    is_needed: fn(&Settings) -> bool,
    /// Creates the guard of a route.
    make: fn(&GuardRoute<'_>) -> GuardResult,
}

type GuardResult = Result<Arc<dyn Guard>, Box<dyn Error>>;

/// All guards, in the order in which they check a request. A new guard is one entry here.
const GUARDS: &[GuardEntry] = &[
    GuardEntry {
        is_needed: |settings| settings.cors.is_some(),
        make: |route| Ok(preflight_guard(route.settings.cors.clone().unwrap_or_default())),
    },
    GuardEntry {
        is_needed: |settings| settings.limits.iter().any(limit::is_before_access),
        make: |route| limit::make(route, limit::is_before_access),
    },
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
    let needed = GUARDS.iter().filter(|entry| (entry.is_needed)(route.settings));
    let own = needed.map(|entry| (entry.make)(route));
    // The anonymity guard is the first, so that it removes no field that an authority adds.
    own.collect::<Result<Vec<_>, _>>()
        .map(|own| route.anonymity.cloned().into_iter().chain(own).collect())
}

/// Returns true if a route with these settings has no guard.
pub fn is_unguarded(settings: &Settings) -> bool {
    !GUARDS.iter().any(|entry| (entry.is_needed)(settings))
}
