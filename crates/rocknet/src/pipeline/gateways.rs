//! Where applications answer by FastCGI, SCGI or uwsgi, or programs by CGI: their answers are finished as any other.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::model::Mode;
use rocknet_proto::status::Status;

use super::Answer;
use crate::exchange::Exchange;
use crate::handler::files::named;
use crate::handler::gateway::Around;
use crate::handler::{application, cgi, fixed};
use crate::scope::Action;
use crate::worker::Worker;

/// Answers by whoever answers in the scope. The site has its number from the snapshot of now.
pub(super) fn answer(worker: Rc<Worker>, site: u32, exchange: Exchange) -> impl Future<Output = Answer> + use<> {
    let snapshot = Arc::clone(&worker.view().snapshot);
    async move {
        let site = &snapshot.sites[site as usize];
        let places = site.places(exchange.secure.is_some());
        let around = Around {
            site: site.name.as_str().into(),
            dev: snapshot.config.server.mode == Mode::Dev,
        };
        let (scope, request) = (Arc::clone(&exchange.scope), Rc::clone(&exchange.request));
        let response = match &scope.action {
            Action::Application(application) => application::answer(&worker, application, exchange, &around).await,
            Action::Files(_) => cgi::answer(&worker, exchange, &around).await,
            _ => fixed::error(Status::NOT_FOUND),
        };
        named::follow(&worker, &site.name, places, &request, response)
            .await
            .into()
    }
}
