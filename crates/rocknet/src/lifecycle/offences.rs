//! Offences of clients, recognized by the status of a response. They are counted when the response begins, because a
//! client can delay its end.

use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use crate::bans::{CountedLogin, Offence};
use crate::exchange::Client;
use crate::forwarded;
use crate::worker::Worker;

/// Counts the offence that a response shows, if it shows one. `peer`: the other end of the connection. `client`: the
/// client of the request, if it is known. `login`: the login that was counted as failed when the request began.
#[inline(never)]
pub fn note(
    worker: &Worker,
    peer: Client,
    client: Option<Client>,
    request: Option<&Request<'_>>,
    login: Option<&CountedLogin>,
    status: Status,
) {
    let bans = &worker.shared.registries.bans;
    let is_login = bans.has_login_paths() && request.is_some_and(|request| bans.is_login(request));
    let offence = offence(status, is_login);
    // A login with status 429 remains counted, because an application may have tested the guess before it refuses more.
    if let Some(login) = login
        && offence != Some(Offence::Login)
        && status != Status::TOO_MANY_REQUESTS
    {
        bans.give_back_login(login);
    }
    let Some(offence) = offence else { return };
    let client = client.unwrap_or_else(|| match request {
        Some(request) if worker.trusts_proxies.get() => {
            forwarded::client(&worker.config().snapshot.config.server, peer, request.fields)
        }
        _ => peer,
    });
    bans.offend(client, offence);
}

/// Returns the offence that a response with this status shows. `is_login`: the request was a POST request to the path
/// of a login form. A redirect confirms a login, errors of the server are not the client's fault, and 429 is a refusal.
/// A site without the form responds with 404 or 405. For other requests, 401 is no offence: browsers provoke it before
/// they send a password, and access control counts wrong passwords itself.
fn offence(status: Status, is_login: bool) -> Option<Offence> {
    match status.code() {
        status if is_login && !matches!(status, 300..=399 | 404 | 405 | 410 | 429 | 500..) => Some(Offence::Login),
        404 | 410 => Some(Offence::NotFound),
        400 | 403 | 405 | 413 | 414 | 421 | 429 | 431 => Some(Offence::Refused),
        _ => None,
    }
}
