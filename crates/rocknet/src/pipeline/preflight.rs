//! Preflight: checks the scheme, site, target and method of a request before its route is resolved.
//!
//! Over TLS, the requested site must be one that the handshake permits. In clear text, a site with TLS redirects to
//! https://, unless its `tls.redirect` is off. ACME challenges, which certificate authorities request in clear text,
//! are answered here.

use rocknet_proto::method::Method;
use rocknet_proto::request::{Request, TargetForm};
use rocknet_proto::semantics::authority::{Authority, HOST_BUFFER};
use rocknet_proto::status::Status;

use crate::fixed;
use crate::handshake::Handshake;
use crate::response::Response;
use crate::site::{HTTPS_PORT, Site};
use crate::worker::{Worker, WorkerConfig};

/// Path prefix of ACME HTTP challenges (RFC 8555 §8.3).
const CHALLENGES: &[u8] = b"/.well-known/acme-challenge/";

/// Returns the response to a target or method that no route handles; `None` if the request continues.
pub fn target(request: &Request<'_>) -> Option<Response> {
    match (request.form, request.method) {
        (TargetForm::Asterisk, _) => Some(fixed::options()),
        (TargetForm::Authority, _) | (_, Method::Trace) => Some(fixed::method_not_allowed()),
        _ => None,
    }
}

/// Returns the response to a request that is not passed on; `None` if the request continues. In clear text, the
/// response is for an ACME challenge or for a request with the wrong scheme. Over TLS, the response rejects a site that
/// is unknown or that the handshake does not permit. `secure`: `None` for a connection in clear text. `site`: number of
/// the requested site; `None` if it is unknown.
pub fn check(
    worker: &Worker,
    config: &WorkerConfig,
    secure: Option<&Handshake>,
    site: Option<u32>,
    request: &Request<'_>,
) -> Option<Response> {
    let site = site.and_then(|number| config.snapshot.sites.get(number as usize));
    match secure {
        Some(secure) => {
            let policy = site.and_then(|site| site.secure.as_ref()).map(|site| &site.policy);
            if policy.is_some_and(|policy| secure.may_serve(policy)) {
                return None;
            }
            Some(fixed::error(Status::MISDIRECTED_REQUEST))
        }
        None => challenge(worker, request).or_else(|| to_https(worker, site?, request)),
    }
}

/// Returns the response to a request for an ACME HTTP challenge; `None` for any other request, or if no such challenge
/// is pending.
fn challenge(worker: &Worker, request: &Request<'_>) -> Option<Response> {
    let token = request.path.strip_prefix(CHALLENGES)?;
    if !matches!(request.method, Method::Get | Method::Head) {
        return None;
    }
    let key_authorization = worker
        .shared
        .certificates
        .store
        .http_challenge(std::str::from_utf8(token).ok()?)?;
    let content = key_authorization.as_bytes().to_vec();
    Some(
        Response::new(Status::OK)
            .with("Content-Type", "application/octet-stream")
            .with("Cache-Control", "no-store")
            .body(content),
    )
}

/// Returns the redirect to HTTPS, or 403 if the request must use HTTPS but names no valid host. `None` if the request
/// is served in clear text.
fn to_https(worker: &Worker, site: &Site, request: &Request<'_>) -> Option<Response> {
    let port = site.https_redirect_port?;
    let secure = site.secure.as_ref()?;
    // A target in asterisk or authority form has no path to redirect. The function `target` responds to it.
    if !matches!(request.form, TargetForm::Origin | TargetForm::Absolute) {
        return None;
    }
    // A site with client certificates always redirects, because it can demand them only under TLS. Any other site
    // without a certificate is served in clear text, which is better than no response.
    let demands_client = secure.policy.requires_client_certificate();
    if !demands_client && !secure.has_certificate(&worker.shared.certificates.store) {
        return None;
    }
    match location(port, request) {
        Some(location) => Some(fixed::redirect(Status::PERMANENT_REDIRECT, location)),
        None => demands_client.then(|| fixed::error(Status::FORBIDDEN)),
    }
}

/// Returns the same URL under https://, if the request has a valid host.
fn location(port: u16, request: &Request<'_>) -> Option<String> {
    // Only a valid host is copied into the response, not the whole `Host` field.
    let mut lower = [0; HOST_BUFFER];
    let host = Authority::parse(request.authority)?.lower_host(&mut lower).to_owned();
    if host.is_empty() {
        return None;
    }
    let mut location = format!("https://{host}");
    if port != HTTPS_PORT {
        location.push_str(&format!(":{port}"));
    }
    location.push_str(&String::from_utf8_lossy(request.path));
    if let Some(query) = request.query {
        location.push('?');
        location.push_str(&String::from_utf8_lossy(query));
    }
    Some(location)
}
