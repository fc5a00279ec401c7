//! Authenticators of routes, one for each way of `auth` but passwords. Each has its own file.

use std::error::Error;
use std::sync::Arc;

use rocknet_config::model::{Auth, Settings};

use super::authenticator::Authenticator;
use super::route::GuardRoute;
use super::{client_certificate, forward, oidc, signed_url};

/// Creates the authenticator of a route; `None` if clients have passwords, or need not authenticate themselves.
///
/// # Errors
///
/// Fails if an authorization service cannot be used, or a placeholder is unknown.
pub(super) fn of_route(route: &GuardRoute<'_>) -> Result<Option<Arc<dyn Authenticator>>, Box<dyn Error>> {
    Ok(Some(match &route.settings.auth {
        None | Some(Auth::Passwords(_)) => return Ok(None),
        Some(Auth::Forward(service)) => forward::make(service, route)?,
        Some(Auth::Signed(keys)) => signed_url::make(keys, route),
        Some(Auth::Certificate(rule)) => client_certificate::make(rule)?,
        Some(Auth::Oidc(provider)) => oidc::make(provider, route),
    }))
}

/// Returns the names of the fields that only the authenticator of a route with these settings may set, so that clients
/// cannot.
pub(super) fn identity_names(settings: &Settings) -> Vec<Box<str>> {
    match &settings.auth {
        None | Some(Auth::Passwords(_) | Auth::Signed(_)) => Vec::new(),
        Some(Auth::Forward(service)) => forward::identity_names(service),
        Some(Auth::Certificate(rule)) => client_certificate::identity_names(rule),
        Some(Auth::Oidc(_)) => oidc::identity_names(),
    }
}
