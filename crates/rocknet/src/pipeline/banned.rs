//! Refuses requests of banned clients: those on connections that were accepted before the ban, and those that a trusted
//! proxy forwards. Also refuses a login of a client whose logins in progress would lead to a ban if all of them failed.

use std::rc::Rc;

use rocknet_proto::request::OwnedRequest;
use rocknet_proto::status::Status;

use super::context::RequestContext;
use super::finish;
use super::incoming::IncomingRequest;
use super::interface::StartedExchange;
use crate::fixed;
use crate::worker::{Worker, WorkerConfig};

/// Refuses a request of a banned client. Closes the connection, unless it belongs to a proxy and carries requests of
/// other clients too. Returns `None` if the client is not banned. `site`: number of the requested site.
#[inline(never)]
pub(super) fn refuse<F: Fn() -> Rc<OwnedRequest>>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    incoming: &IncomingRequest<'_, F>,
    site: Option<u32>,
) -> Option<StartedExchange> {
    if !worker.is_banned(incoming.client(worker)) {
        return None;
    }
    worker.shared.registries.bans.count_request();
    let context = RequestContext::new(worker, config, incoming, site, None);
    let response = fixed::error(Status::FORBIDDEN);
    Some(StartedExchange {
        close: worker.is_banned(incoming.peer),
        ..finish::respond(worker, Rc::new(context), Some(incoming.request), response)
    })
}

/// Refuses a login of a client whose logins in progress would lead to a ban if all of them failed. Otherwise a client
/// could send many guesses at once, before the first response is known. Returns `None` for other requests.
#[inline(never)]
pub(super) fn refuse_login<F: Fn() -> Rc<OwnedRequest>>(
    worker: &Rc<Worker>,
    config: &Rc<WorkerConfig>,
    incoming: &IncomingRequest<'_, F>,
    site: Option<u32>,
) -> Option<StartedExchange> {
    let bans = &worker.shared.registries.bans;
    if !bans.is_login(incoming.request) {
        return None;
    }
    let retry_after_s = match bans.take_login(incoming.client(worker)) {
        // Failed logins of this client lead to no ban.
        Ok(None) => return None,
        Ok(Some(login)) => {
            let _ = incoming.login.set(Rc::new(login));
            return None;
        }
        Err(retry_after_s) => retry_after_s,
    };
    let context = RequestContext::new(worker, config, incoming, site, None);
    let response = fixed::error(Status::TOO_MANY_REQUESTS).with("Retry-After", retry_after_s.to_string());
    Some(finish::respond(
        worker,
        Rc::new(context),
        Some(incoming.request),
        response,
    ))
}
