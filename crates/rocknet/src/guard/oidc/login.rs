//! Beginning of a login by OpenID Connect: the redirect to the provider.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_handler::guard::{Check, GuardContext};
use rocknet_oidc::{AuthorizationRequest, PendingLogin, ProviderMetadata};
use rocknet_proto::fields::KnownField;
use rocknet_proto::method::Method;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use super::client::OidcClient;
use super::deadline::within;
use super::responses::{unavailable, uncached, with_cookies};
use super::scope::RequestScope;
use crate::fixed;
use crate::metrics::LoginOutcome;
use crate::oidc::ProviderFailure;
use crate::response::Response;
use crate::services::Services;
use crate::values;

/// Returns true if a browser opens a page with this request, so that a redirect to another site is useful. Requests of
/// scripts, programs and embedded resources could not follow it.
pub(super) fn is_navigation(request: &Request<'_>) -> bool {
    // Frames and other embedded resources have other destinations, such as `iframe`.
    let destination = request.fields.get(KnownField::SecFetchDest);
    let is_document = destination.is_none_or(|to| to.eq_ignore_ascii_case(b"document"));
    if request.method != Method::Get || request.upgrade.is_some() || !is_document || is_prefetch(request) {
        return false;
    }
    match request.fields.get(KnownField::SecFetchMode) {
        Some(mode) => mode.eq_ignore_ascii_case(b"navigate"),
        None => {
            let mut accepted = request.fields.get_all(KnownField::Accept);
            accepted.any(|line| memchr::memmem::find(line, b"text/html").is_some())
        }
    }
}

/// Returns true for a prefetch (`Sec-Purpose`), whose page the user may never open.
pub(super) fn is_prefetch(request: &Request<'_>) -> bool {
    let mut fields = request.fields.iter();
    fields.any(|(name, _)| name.eq_ignore_ascii_case(b"sec-purpose"))
}

/// Redirects a browser to the provider. The redirect is an `Err` of the admission, so that no handler responds.
pub(super) fn begin(client: &Arc<OidcClient>, scope: &RequestScope<'_>, context: &GuardContext<'_>) -> Check {
    let redirect_uri = format!("{}{}", scope.origin, client.settings.callback);
    let target = values::origin_form(context.request);
    let begun = PendingLogin::begin(redirect_uri, target, |label| client.has_login(label, scope), scope.now).and_then(
        |login| {
            let cookies = client.login_cookies(&login, scope, context.services)?;
            Some((login, cookies))
        },
    );
    let Some((login, cookies)) = begun else {
        client.logins.count(context.services, LoginOutcome::Error);
        return Check::Decided(Err(Box::new(fixed::error(Status::INTERNAL_SERVER_ERROR))));
    };
    if let Some(metadata) = client.provider.current_metadata() {
        client.logins.count(context.services, LoginOutcome::Begun);
        return Check::Decided(Err(Box::new(redirect(client, &login, &cookies, &metadata))));
    }
    let (client, services) = (Arc::clone(client), Rc::clone(context.services));
    Check::Deferred(Box::pin(async move {
        let (outcome, response) = match metadata(&client, &services).await {
            Ok(metadata) => (LoginOutcome::Begun, redirect(&client, &login, &cookies, &metadata)),
            Err(failure) => (LoginOutcome::Error, unavailable(&client, &failure)),
        };
        client.logins.count(&services, outcome);
        Err(Box::new(response))
    }))
}

/// Returns the metadata of the provider, and fetches it if necessary.
pub(super) async fn metadata(
    client: &OidcClient,
    services: &Rc<Services>,
) -> Result<Arc<ProviderMetadata>, ProviderFailure> {
    let timeout = client.settings.timeout;
    // Twice the timeout, because the request may wait for that of another login first.
    let result = within(services, 2 * timeout, client.provider.metadata(timeout)).await;
    result.unwrap_or_else(|| Err(ProviderFailure::timed_out()))
}

fn redirect(client: &OidcClient, login: &PendingLogin, cookies: &[String], metadata: &ProviderMetadata) -> Response {
    let location = login.url(&AuthorizationRequest {
        endpoint: &metadata.authorization_endpoint,
        client_id: &client.settings.client_id,
        scope: &client.scope,
    });
    with_cookies(uncached(fixed::redirect(Status::FOUND, location)), cookies)
}
