//! Where controllers answer: at once where that can be, and what they say is not replaced.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::request::OwnedRequest;

use super::{Arrival, Dispatched, Outcome, respond};
use crate::filter;
use crate::handler::controller::{self, Controller};
use crate::response::{Body, Response};
use crate::scope::Scope;
use crate::worker::Worker;

pub(super) fn answer<F: FnOnce() -> Rc<OwnedRequest>>(
    worker: &Rc<Worker>,
    scope: &Arc<Scope>,
    controller: &Arc<Controller>,
    path: Cow<'_, str>,
    arrival: Arrival<'_, F>,
) -> Dispatched {
    let secure = arrival.secure.map(|secure| &**secure);
    let client = arrival.client(worker);
    if let Some(response) = controller.answer_now(arrival.request, &path, &arrival.content, client, secure) {
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

fn finish(worker: &Rc<Worker>, scope: &Arc<Scope>, mut response: Response) -> Dispatched {
    if matches!(response.body, Body::Empty) {
        filter::errors::fill(&mut response);
        return respond(worker, Some(scope), response);
    }
    filter::headers::apply(scope, response.status, &mut response.fields);
    Dispatched::Respond(Box::new(response))
}
