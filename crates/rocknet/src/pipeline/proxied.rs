//! Routes that another server answers: the request is passed on, and the response may name a file of the site.

use std::rc::Rc;
use std::sync::Arc;

use super::Answer;
use crate::exchange::Exchange;
use crate::handler::files::named;
use crate::handler::fixed;
use crate::handler::proxy::{self, Answered, Around, Wish};
use crate::response::{Body, ErrorPage, Response};
use crate::scope::Action;
use crate::tunnel;
use crate::worker::Worker;
use rocknet_proto::method::Method;
use rocknet_proto::request::OwnedRequest;
use rocknet_proto::status::Status;

/// Answers by another server. Sites have their numbers from the snapshot of now, so that is kept until the response has begun.
pub(super) fn answer(worker: Rc<Worker>, site: u32, mut exchange: Exchange) -> impl Future<Output = Answer> + use<> {
    let around = Around {
        view: worker.view(),
        site,
    };
    async move {
        // The exchange is lent to all that is called from here: each move of it into another future would be a copy.
        let (scope, request) = (Arc::clone(&exchange.scope), Rc::clone(&exchange.request));
        let asked = request.view();
        let Action::Proxy(proxy) = &scope.action else {
            return fixed::error(Status::NOT_FOUND).into();
        };
        if asked.method == Method::Connect && Wish::of(&asked).is_none() {
            // There is no way to say that to an upstream.
            return fixed::error(Status::NOT_IMPLEMENTED).into();
        }
        let answered = match proxy::answer(&worker, proxy, &asked, &mut exchange, &around).await {
            Ok(response) => Answered::Passed(response),
            Err(failed) => failed.tell(&asked, &around),
        };
        let mut response = match answered {
            Answered::Passed(response) => response,
            Answered::Failed(response) => return response.into(),
        };
        tunnel::settle(&asked, &mut response);
        if proxy.intercepts {
            response.error_page = ErrorPage::Always;
        }
        if proxy.sends_files && !matches!(response.body, Body::Tunnel(_)) && named::is_named(&response) {
            // In a box: it is rare, and would make every request's future larger.
            return Box::pin(follow(&worker, &around, &exchange, &request, response))
                .await
                .into();
        }
        response.into()
    }
}

/// The file that the response names.
async fn follow(
    worker: &Worker,
    around: &Around,
    exchange: &Exchange,
    request: &OwnedRequest,
    response: Response,
) -> Response {
    let site = &around.view.snapshot.sites[around.site as usize];
    let places = site.places(exchange.secure.is_some());
    named::follow(worker, &site.name, places, request, response).await
}
