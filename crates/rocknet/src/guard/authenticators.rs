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
    /// Creates the authenticator of a route; `None` if its `auth` is another one.
    make: fn(&GuardRoute<'_>) -> AuthenticatorResult,
    /// Returns the names of the fields that only the authenticator may set, so that clients cannot.
    names: fn(&Settings) -> Vec<Box<str>>,
}

/// All authenticators, one for each variant of `auth` but passwords. A route has at most one. A new one is its file
/// and one entry here.
const AUTHENTICATORS: &[AuthenticatorEntry] = &[
    AuthenticatorEntry {
        make: forward::make,
        names: forward::identity_names,
    },
    AuthenticatorEntry {
        make: oidc::make,
        names: oidc::identity_names,
    },
    AuthenticatorEntry {
        make: signed_url::make,
        names: |_| Vec::new(),
    },
    AuthenticatorEntry {
        make: client_certificate::make,
        names: client_certificate::identity_names,
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
