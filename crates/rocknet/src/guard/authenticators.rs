//! Table of authenticators. Each has its own file.

use std::error::Error;
use std::sync::Arc;

use rocknet_config::model::Settings;

use super::authenticator::Authenticator;
use super::route::GuardRoute;
use super::{client_certificate, forward, oidc, signed_url};

/// Authenticator of a route, if it has one.
pub(super) type AuthenticatorResult = Result<Option<Arc<dyn Authenticator>>, Box<dyn Error>>;

/// One entry of the table.
struct AuthenticatorEntry {
    /// Creates the authenticator of a route; `None` if its settings do not have it.
    make: fn(&GuardRoute<'_>) -> AuthenticatorResult,
    /// Returns the names of the fields that only the authenticator may set, so that clients cannot.
    names: fn(&Settings) -> Vec<Box<str>>,
}

/// All authenticators. A route has at most one. A new one is one entry here. Its settings also belong
/// in `Restrictions` and `Settings::has_external_auth`; without them, routes would count as equal or as open.
const AUTHENTICATORS: &[AuthenticatorEntry] = &[
    AuthenticatorEntry {
        make: forward::make,
        names: |settings| settings.forward_auth.iter().flat_map(forward::identity_names).collect(),
    },
    AuthenticatorEntry {
        make: oidc::make,
        names: |settings| settings.oidc.iter().flat_map(|_| oidc::identity_names()).collect(),
    },
    AuthenticatorEntry {
        make: signed_url::make,
        names: |_| Vec::new(),
    },
    AuthenticatorEntry {
        make: client_certificate::make,
        names: |settings| {
            settings
                .certificate
                .iter()
                .flat_map(client_certificate::identity_names)
                .collect()
        },
    },
];

/// Creates the authenticator of a route, if it has one.
///
/// # Errors
///
/// Fails if an authority cannot be used, or a placeholder is unknown.
pub(super) fn of_route(route: &GuardRoute<'_>) -> AuthenticatorResult {
    for entry in AUTHENTICATORS {
        if let Some(authenticator) = (entry.make)(route)? {
            return Ok(Some(authenticator));
        }
    }
    Ok(None)
}

/// Returns the names of the fields that only the authenticator of a route with these settings may set.
pub(super) fn identity_names(settings: &Settings) -> impl Iterator<Item = Box<str>> {
    AUTHENTICATORS.iter().flat_map(|entry| (entry.names)(settings))
}
