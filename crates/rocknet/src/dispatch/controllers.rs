//! Where controllers answer: at once where that can be, and what they say is not replaced.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::request::{OwnedRequest, Request};

use super::{Dispatched, Later, Outcome, respond};
use crate::exchange::{Client, Exchange, RequestContent, Secure};
use crate::filter;
use crate::handler::controller::{self, Controller};
use crate::interim::{Interim, Making};
use crate::preload;
use crate::response::{Body, Response};
use crate::scope::Scope;
use crate::worker::Worker;

pub(super) fn answer(
    worker: &Rc<Worker>,
    scope: &Arc<Scope>,
    controller: &Arc<Controller>,
    request: &Request<'_>,
    owned: impl FnOnce() -> Rc<OwnedRequest>,
    content: RequestContent,
    path: String,
    client: Client,
    secure: Option<&Rc<Secure>>,
) -> Dispatched {
    if let Some(response) = controller.answer_now(request, &path, &content, client, secure.map(|secure| &**secure)) {
        return finish(worker, scope, response);
    }
    let preloads = scope.preloads(&path).filter(|_| preload::is_first_look(request));
    let preloads = preloads.cloned();
    let exchange = Exchange {
        request: owned(),
        content,
        interim: Interim::default(),
        path: path.into(),
        scope: Arc::clone(scope),
        client,
        secure: secure.map(Rc::clone),
    };
    let patience = worker.wheel.ticks(scope.answer_timeout);
    let answering = controller::answer(Rc::clone(worker), Arc::clone(controller), exchange);
    let (cache, scope) = (worker.shared.cache.clone(), Arc::clone(scope));
    let answer = Making::new(async move {
        let mut response = answering.await;
        if matches!(response.body, Body::Empty) {
            filter::errors::page(&cache, &scope, &mut response).await;
        }
        filter::errors::fill(&mut response);
        filter::headers::apply(&scope, &mut response.fields);
        Outcome::Response(Box::new(response))
    });
    Dispatched::Later(Later {
        answer,
        preloads,
        patience: Some(patience),
    })
}

fn finish(worker: &Rc<Worker>, scope: &Arc<Scope>, mut response: Response) -> Dispatched {
    if matches!(response.body, Body::Empty) {
        filter::errors::fill(&mut response);
        return respond(worker, Some(scope), response);
    }
    filter::headers::apply(scope, &mut response.fields);
    Dispatched::Respond(Box::new(response))
}
