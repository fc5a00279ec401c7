//! Where controllers answer: at once where that can be, and what they say is not replaced.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::method::Method;
use rocknet_proto::request::{OwnedRequest, Request};

use super::{Arrival, Asker, Dispatched, Outcome, respond};
use crate::cache::front::{Lead, Place};
use crate::exchange::RequestContent;
use crate::filter;
use crate::handler::controller::{self, Controller};
use crate::response::{Body, Response};
use crate::scope::{Action, Scope};
use crate::worker::Worker;

/// `number`: as in [`super::known::remembered`]. `is_named`: a route is for this path alone.
pub(super) fn answer<F: FnOnce() -> Rc<OwnedRequest>>(
    worker: &Rc<Worker>,
    number: u32,
    scope: &Arc<Scope>,
    controller: &Arc<Controller>,
    path: Cow<'_, str>,
    is_named: bool,
    arrival: Arrival<'_, F>,
) -> Dispatched {
    let (request, asker) = (arrival.request, arrival.asker());
    let client = asker.client(worker, request);
    if let Some(response) = controller.answer_now(request, &path, &arrival.content, client, asker.secure) {
        // There are as many of these as the configuration names, so that no client can fill the front with them.
        if is_named && path.as_bytes() == request.path && matches!(request.method, Method::Get | Method::Head) {
            let place = Place {
                scope: Arc::clone(scope),
                path: path.into(),
            };
            let lead = Lead::Place(Rc::new(place));
            worker.front.borrow_mut().keep(number, request.path, lead);
        }
        return finish(worker, scope, response);
    }
    Dispatched::Later(arrival.later(worker, scope, path, |exchange| {
        let answering = controller::answer(Rc::clone(worker), Arc::clone(controller), exchange);
        let (cache, scope) = (worker.shared.cache.clone(), Arc::clone(scope));
        async move {
            let mut response = answering.await;
            filter::finish(&cache, &scope, &mut response).await;
            Outcome::Response(Box::new(response))
        }
    }))
}

/// Answers at a path whose controller has answered before, at once and on this thread.
pub(super) fn ready(worker: &Rc<Worker>, place: &Place, request: &Request<'_>, asker: Asker<'_>) -> Option<Dispatched> {
    let Action::Controller(controller) = &place.scope.action else {
        return None;
    };
    let (none, client) = (RequestContent::none(), asker.client(worker, request));
    let response = controller.answer_now(request, &place.path, &none, client, asker.secure)?;
    Some(finish(worker, &place.scope, response))
}

fn finish(worker: &Rc<Worker>, scope: &Arc<Scope>, mut response: Response) -> Dispatched {
    if matches!(response.body, Body::Empty) {
        filter::errors::fill(&mut response);
        return respond(worker, Some(scope), response);
    }
    filter::headers::apply(scope, response.status, &mut response.fields);
    Dispatched::Respond(Box::new(response))
}
