//! Offences of clients, recognized by the status of a response.

use rocknet_proto::method::Method;
use rocknet_proto::request::Request;
use rocknet_proto::semantics::safe_path::SafePath;
use rocknet_proto::status::Status;

use crate::bans::Offence;
use crate::exchange::Client;
use crate::forwarded;
use crate::values::origin_form;
use crate::worker::Worker;

/// Counts the offence that a response shows, if it shows one. `peer`: the other end of the connection. `client`: the
/// client of the request, if it is known.
#[inline(never)]
pub fn note(worker: &Worker, peer: Client, client: Option<Client>, request: Option<&Request<'_>>, status: Status) {
    let bans = &worker.shared.registries.bans;
    let is_login = bans.has_login_paths() && request.is_some_and(|request| is_login(worker, request, status));
    let Some(offence) = offence(status, is_login) else {
        return;
    };
    let client = client.unwrap_or_else(|| match request {
        Some(request) if worker.trusts_proxies.get() => {
            forwarded::client(&worker.config().snapshot.config.server, peer, request.fields)
        }
        _ => peer,
    });
    bans.offend(client, offence);
}

/// Returns the offence that a response with this status shows. `is_login`: the request was a POST request to the path
/// of a login form. A site without the form responds with 404 or 405.
fn offence(status: Status, is_login: bool) -> Option<Offence> {
    match status.code() {
        status if is_login && !matches!(status, 404 | 405 | 410) => Some(Offence::Login),
        404 | 410 => Some(Offence::NotFound),
        400 | 403 | 405 | 413 | 414 | 421 | 429 | 431 => Some(Offence::Refused),
        _ => None,
    }
}

/// Returns true for a POST request to a login form that was not confirmed by a redirect. Errors of the server are not
/// the client's fault.
fn is_login(worker: &Worker, request: &Request<'_>, status: Status) -> bool {
    if request.method != Method::Post || matches!(status.code(), 300..=399 | 500..) {
        return false;
    }
    let target = origin_form(request);
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let path = SafePath::parse(path);
    path.is_ok_and(|path| worker.shared.registries.bans.is_login_path(path.as_str()))
}
