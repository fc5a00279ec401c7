//! Routes of controllers and of embedding programs: answered on the spot where that can be.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::method::Method;
use rocknet_proto::request::{OwnedRequest, Request};

use super::{Answer, Incoming};
use crate::cache::front::{Lead, Place};
use crate::exchange::{Exchange, RequestContent};
use crate::handler::Answering;
use crate::handler::controller::{self, Controller};
use crate::response::Response;
use crate::scope::{Action, Scope};
use crate::site::Places;
use crate::tunnel;
use crate::worker::Worker;

/// Answers by a controller that has to be waited for.
pub(super) async fn answer(worker: Rc<Worker>, controller: Arc<Controller>, exchange: Exchange) -> Answer {
    controller::answer(worker, controller, exchange).await.into()
}

/// Answers by a handler of the program that embeds the server.
pub(super) async fn embedded(request: Rc<OwnedRequest>, answering: Answering) -> Answer {
    let mut response = answering.await;
    tunnel::settle(&request.view(), &mut response);
    response.into()
}

/// Remembers a route for one path whose controller has answered on the spot. There are as many of these as the configuration
/// names, so that no client can fill the front with them.
pub(super) fn remember(
    worker: &Worker,
    key: u32,
    request: &Request<'_>,
    route: &Arc<Scope>,
    places: &Places,
    path: Cow<'_, str>,
) {
    let is_plain = path.as_bytes() == request.path && matches!(request.method, Method::Get | Method::Head);
    if is_plain && places.names(&path) {
        let place = Place {
            scope: Arc::clone(route),
            path: path.into(),
        };
        let lead = Lead::Place(Rc::new(place));
        worker.front.borrow_mut().keep(key, request.path, lead);
    }
}

/// Answers at a path whose controller has answered on the spot before.
pub(super) fn ready<F: Fn() -> Rc<OwnedRequest>>(
    worker: &Worker,
    place: &Place,
    incoming: &Incoming<'_, F>,
) -> Option<Response> {
    let Action::Controller(controller) = &place.scope.action else {
        return None;
    };
    let (none, client) = (RequestContent::none(), incoming.client(worker));
    let secure = incoming.secure.map(|secure| &**secure);
    controller.answer_now(incoming.request, &place.path, &none, client, secure)
}
