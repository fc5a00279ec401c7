//! Where another server answers: a request is passed on, and errors of the way there get their pages.

use std::rc::Rc;
use std::sync::Arc;

use super::Outcome;
use crate::exchange::Exchange;
use crate::filter;
use crate::handler::files::named;
use crate::handler::fixed;
use crate::handler::proxy::{self, Answered, Around, Proxy, Wish};
use crate::response::{Body, Response};
use crate::scope::{Action, Scope};
use crate::tunnel;
use crate::worker::Worker;
use rocknet_proto::method::Method;
use rocknet_proto::request::{OwnedRequest, Request};
use rocknet_proto::status::Status;

/// Sites have their numbers from the snapshot of now, so that is kept until the answer has begun.
pub(super) fn answer(worker: Rc<Worker>, site: u32, mut exchange: Exchange) -> impl Future<Output = Outcome> + use<> {
    let around = Around {
        view: worker.view(),
        site,
    };
    async move {
        // The exchange is lent to all that is called from here: each move of it into another future would be a copy.
        let (scope, request) = (Arc::clone(&exchange.scope), Rc::clone(&exchange.request));
        let asked = request.view();
        let answered = match &scope.action {
            // There is no way to say that to an upstream.
            _ if asked.method == Method::Connect && Wish::of(&asked).is_none() => {
                Answered::Failed(fixed::error(Status::NOT_IMPLEMENTED))
            }
            Action::Proxy(proxy) => match proxy::answer(&worker, proxy, &asked, &mut exchange, &around).await {
                Ok(response) => Answered::Passed(response),
                Err(failed) => failed.tell(&asked, &around),
            },
            _ => Answered::Failed(fixed::error(Status::NOT_FOUND)),
        };
        let ending = Ending::of(answered, &asked, &scope);
        let response = match ending {
            Ending::Told(response) => response,
            // In a box: it is rare, and would make every request's future larger.
            ending => Box::pin(end(&worker, &around, &exchange, &request, ending)).await,
        };
        Outcome::Response(Box::new(response))
    }
}

/// What is still to be done about an answer.
enum Ending {
    Told(Response),
    /// The site has something in place of it.
    Replaced(Response),
    /// It is this server's own, and gets its page.
    Error(Response),
}

impl Ending {
    /// What another server says is not replaced, though it be an error with no content.
    fn of(answered: Answered, asked: &Request<'_>, scope: &Scope) -> Ending {
        match answered {
            Answered::Passed(mut response) => {
                tunnel::settle(asked, &mut response);
                match &scope.action {
                    Action::Proxy(proxy) if is_replaced(proxy, scope, &response) => Ending::Replaced(response),
                    _ => {
                        filter::headers::apply(scope, response.status, &mut response.fields);
                        Ending::Told(response)
                    }
                }
            }
            Answered::Failed(response) => Ending::Error(response),
        }
    }
}

async fn end(
    worker: &Worker,
    around: &Around,
    exchange: &Exchange,
    request: &OwnedRequest,
    ending: Ending,
) -> Response {
    let scope = &exchange.scope;
    match (ending, &scope.action) {
        (Ending::Replaced(response), Action::Proxy(proxy)) => {
            let is_secure = exchange.secure.is_some();
            let mut response = replaced(worker, proxy, around, scope, is_secure, request, response).await;
            filter::headers::apply(scope, response.status, &mut response.fields);
            response
        }
        (Ending::Told(response) | Ending::Replaced(response), _) => response,
        (Ending::Error(mut response), _) => {
            filter::finish(&worker.shared.cache, scope, &mut response).await;
            response
        }
    }
}

/// Whether the site has something in place of the answer. What was agreed to is none that could be another one.
fn is_replaced(proxy: &Proxy, scope: &Scope, response: &Response) -> bool {
    let is_named = proxy.sends_files && named::is_named(response);
    let has_page = proxy.intercepts && filter::errors::has_page(scope, response);
    (is_named || has_page) && !matches!(response.body, Body::Tunnel(_))
}

/// What the site has in place of the answer, where the proxy says so: the file that it names, or a page for an error.
async fn replaced(
    worker: &Worker,
    proxy: &Proxy,
    around: &Around,
    scope: &Arc<Scope>,
    is_secure: bool,
    request: &OwnedRequest,
    mut response: Response,
) -> Response {
    let cache = &worker.shared.cache;
    if proxy.sends_files && named::is_named(&response) {
        let site = &around.view.snapshot.sites[around.site as usize];
        let places = site.places(is_secure);
        response = Box::pin(named::follow(worker, &site.name, places, request, response)).await;
        if matches!(response.body, Body::Empty) {
            Box::pin(filter::errors::page(cache, scope, &mut response)).await;
        }
        filter::errors::fill(&mut response);
    } else if proxy.intercepts && filter::errors::has_page(scope, &response) {
        response = Box::pin(filter::errors::replace(cache, scope, response)).await;
    }
    response
}
