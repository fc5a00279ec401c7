//! Where another server answers: a request is passed on, and errors of the way there get their pages.

use std::rc::Rc;
use std::sync::Arc;

use super::Outcome;
use crate::exchange::Exchange;
use crate::filter;
use crate::handler::fixed;
use crate::handler::proxy::{self, Answered, Around, Wish};
use crate::scope::{Action, Scope};
use crate::tunnel;
use crate::worker::Worker;
use rocknet_proto::method::Method;
use rocknet_proto::status::Status;

/// Sites have their numbers from the snapshot of now, so that is kept until the answer has begun.
pub(super) fn answer(worker: Rc<Worker>, site: u32, exchange: Exchange) -> impl Future<Output = Outcome> + use<> {
    let around = Around {
        snapshot: Arc::clone(&worker.view().snapshot),
        site,
    };
    async move {
        let scope: Arc<Scope> = Arc::clone(&exchange.scope);
        let cache = worker.shared.cache.clone();
        let request = Rc::clone(&exchange.request);
        let asked = request.view();
        let answered = match &scope.action {
            // There is no way to say that to an upstream.
            _ if asked.method == Method::Connect && Wish::of(&asked).is_none() => {
                Answered::Failed(fixed::error(Status::NOT_IMPLEMENTED))
            }
            Action::Proxy(proxy) => proxy::answer(worker, proxy, exchange, &around).await,
            _ => Answered::Failed(fixed::error(Status::NOT_FOUND)),
        };
        let response = match answered {
            // What another server says is not replaced, though it be an error with no content.
            Answered::Passed(mut response) => {
                tunnel::settle(&asked, &mut response);
                filter::headers::apply(&scope, &mut response.fields);
                response
            }
            Answered::Failed(mut response) => {
                Box::pin(filter::finish(&cache, &scope, &mut response)).await;
                response
            }
        };
        Outcome::Response(Box::new(response))
    }
}
