//! Logout from OpenID Connect: deletes the session cookies, and redirects to the provider or to `after_logout`.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_handler::guard::{Check, GuardContext};
use rocknet_oidc::ProviderMetadata;
use rocknet_proto::fields::KnownField;
use rocknet_proto::method::Method;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use super::client::OidcClient;
use super::login::{is_prefetch, metadata};
use super::responses::{uncached, with_cookies};
use super::scope::RequestScope;
use crate::fixed;
use crate::response::Response;

/// Confirmation page of a logout. Its form is sent to the address of the page.
const QUESTION: &str = "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport \
                        content=\"width=device-width\"><title>Log out</title><style>:root{color-scheme:light dark}\
                        body{font:1.1em system-ui;margin:20vh auto;max-width:30em;padding:0 1em}button{font:inherit}\
                        </style><h1>Log out?</h1><form method=post><button>Log out</button></form>";

/// Policy of the page: no script and no frame.
const QUESTION_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

/// Responds to a request for the logout path of one or several OpenID Connect clients of the site. The admission is
/// always an `Err` with the response, so that no handler responds.
pub(super) fn respond(clients: &[&Arc<OidcClient>], scope: &RequestScope<'_>, context: &GuardContext<'_>) -> Check {
    let decided = |response: Response| Check::Decided(Err(Box::new(uncached(response))));
    match context.request.method {
        Method::Get if is_wanted(context.request) => {}
        Method::Get => {
            let page = Response::new(Status::OK)
                .with("Content-Type", rocknet_pages::CONTENT_TYPE)
                .with("Content-Security-Policy", QUESTION_POLICY)
                .with("X-Frame-Options", "DENY")
                .body(QUESTION);
            return decided(page);
        }
        Method::Post if is_own_form(context.request, scope) => {}
        Method::Post => return decided(fixed::error(Status::FORBIDDEN)),
        _ => return decided(fixed::error(Status::METHOD_NOT_ALLOWED).with("Allow", "GET, POST")),
    }
    let forget = |client: &&Arc<OidcClient>| client.forget_session(scope);
    let cookies: Vec<String> = clients.iter().flat_map(forget).collect();
    let with_session = clients.iter().find(|client| client.session(scope).is_ok());
    let Some(client) = with_session.or(clients.first()) else {
        return decided(fixed::error(Status::NOT_FOUND));
    };
    if let Some(metadata) = client.provider.current_metadata() {
        return decided(with_cookies(leave(client, Some(&metadata)), &cookies));
    }
    let (client, services) = (Arc::clone(client), Rc::clone(context.services));
    Check::Deferred(Box::pin(async move {
        // The session of this server ends even if the provider does not work.
        let metadata = metadata(&client, &services).await.ok();
        Err(Box::new(uncached(with_cookies(
            leave(&client, metadata.as_deref()),
            &cookies,
        ))))
    }))
}

/// Returns true if the user has followed a link of the site itself, or has typed the address. Other requests get the
/// confirmation page, because another site, an image in a page of this one, or a prefetch could cause them. So do
/// requests of browsers that do not send the `Sec-Fetch` fields.
fn is_wanted(request: &Request<'_>) -> bool {
    let is = |name, values: [&[u8]; 2]| request.fields.get(name).is_some_and(|value| values.contains(&value));
    is(KnownField::SecFetchSite, [b"same-origin", b"none"])
        && is(KnownField::SecFetchMode, [b"navigate"; 2])
        && is(KnownField::SecFetchDest, [b"document"; 2])
        && !is_prefetch(request)
}

/// Returns true for a form of the site itself.
fn is_own_form(request: &Request<'_>, scope: &RequestScope<'_>) -> bool {
    match request.fields.get(KnownField::SecFetchSite) {
        Some(from) => from == b"same-origin",
        None => request
            .fields
            .get(KnownField::Origin)
            .is_some_and(|origin| origin.eq_ignore_ascii_case(scope.origin.as_bytes())),
    }
}

/// Returns the response after a logout: a redirect to the provider, to `after_logout`, or a page.
fn leave(client: &OidcClient, metadata: Option<&ProviderMetadata>) -> Response {
    let after = client.settings.after_logout.as_deref();
    let provider = metadata.and_then(|metadata| metadata.end_session_endpoint.as_deref());
    let location = match (provider, after) {
        (Some(endpoint), after) => {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair("client_id", &client.settings.client_id);
            if let Some(after) = after {
                query.append_pair("post_logout_redirect_uri", after);
            }
            let separator = if endpoint.contains('?') { '&' } else { '?' };
            format!("{endpoint}{separator}{}", query.finish())
        }
        (None, Some(after)) => after.to_owned(),
        (None, None) => {
            return Response::new(Status::OK)
                .with("Content-Type", "text/plain; charset=utf-8")
                .body("You are logged out.\n");
        }
    };
    fixed::redirect(Status::SEE_OTHER, location)
}
