//! Parts that the responses of logins have in common.

use super::client::OidcClient;
use crate::fixed;
use crate::oidc::ProviderFailure;
use crate::response::Response;

/// Keeps a response out of all caches.
pub(super) fn uncached(response: Response) -> Response {
    response.with("Cache-Control", "no-store")
}

/// Adds `Set-Cookie` fields to a response.
pub(super) fn with_cookies(mut response: Response, cookies: &[String]) -> Response {
    for cookie in cookies {
        response.fields.add("Set-Cookie", cookie);
    }
    response
}

/// Returns the response to a login for which the provider is needed and does not work.
pub(super) fn unavailable(client: &OidcClient, failure: &ProviderFailure) -> Response {
    client.log("the provider of `oidc` does not work", failure);
    let hint = "This site needs its login provider, which does not work at the moment.";
    uncached(fixed::replaceable(fixed::error_with_hint(failure.status, Some(hint))))
}
