//! Where scripts are run: a path leads to one, or to what else is there.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_config::model::Mode;
use rocknet_proto::method::Method;
use rocknet_proto::status::Status;

use super::Answer;
use super::files::look_up;
use super::ready::refresh;
use crate::cache::entry::{Found, REFRESH_AFTER_MS, STALE_AFTER_MS};
use crate::cache::front::{BEHIND_RULES, Lead};
use crate::exchange::Exchange;
use crate::handler::files::named;
use crate::handler::gateway::Around;
use crate::handler::php::Script;
use crate::handler::{fixed, php};
use crate::response::Response;
use crate::scope::{Action, FileTree};
use crate::worker::Worker;

/// Answers by a script, or by what else the path leads to. Sites have their numbers from the snapshot of now, so what is
/// asked by a number is asked before anybody waits.
pub(super) fn answer(worker: Rc<Worker>, site: u32, exchange: Exchange) -> impl Future<Output = Answer> + use<> {
    let snapshot = Arc::clone(&worker.view().snapshot);
    let remembered = remembered(&worker, site, exchange.request.view().path);
    let around = Around {
        site: snapshot.sites[(site & !BEHIND_RULES) as usize].name.as_str().into(),
        dev: snapshot.config.server.mode == Mode::Dev,
    };
    async move {
        let (scope, request) = (Arc::clone(&exchange.scope), Rc::clone(&exchange.request));
        let found = match remembered {
            Some(script) => Ok(script),
            None => {
                let (scope, path) = (Arc::clone(&scope), Arc::from(&*exchange.path));
                match look_up(Rc::clone(&worker), site, snapshot.generation, scope, path, request).await {
                    Answer::Cached(known, request) => match &known.entry.found {
                        Found::Script(script) => Ok(Arc::clone(script)),
                        _ => Err(Answer::Cached(known, request)),
                    },
                    outcome => Err(outcome),
                }
            }
        };
        let response = match (found, &scope.action) {
            (Ok(script), Action::Files(FileTree { php: Some(php), .. })) => {
                let site = &snapshot.sites[(site & !BEHIND_RULES) as usize];
                let places = site.places(exchange.secure.is_some());
                let request = Rc::clone(&exchange.request);
                let response = php::answer(Rc::clone(&worker), Arc::clone(php), script, exchange, around).await;
                named::follow(&worker, &site.name, places, &request, response).await
            }
            (Ok(_), _) => fixed::error(Status::NOT_FOUND),
            (Err(Answer::Cached(known, request)), _) => match request.view().method {
                Method::Get | Method::Head => return Answer::Cached(known, request),
                Method::Options => fixed::options(),
                // Empty, for the site's own page.
                _ => Response::new(Status::METHOD_NOT_ALLOWED).with("Allow", fixed::FILE_METHODS),
            },
            (Err(outcome), _) => return outcome,
        };
        response.into()
    }
}

/// The script that a raw path led to so short a time ago that nobody needs to look again.
fn remembered(worker: &Worker, site: u32, path: &[u8]) -> Option<Arc<Script>> {
    let mut front = worker.front.borrow_mut();
    let Lead::Entry(known) = front.find(site, path)? else {
        return None;
    };
    let Found::Script(script) = &known.entry.found else {
        return None;
    };
    let now = worker.clock.uptime_ms();
    let age = known.entry.age_ms(now);
    if known.entry.is_gone() || age >= STALE_AFTER_MS {
        front.forget(site, path);
        return None;
    }
    if age >= REFRESH_AFTER_MS {
        refresh(worker, known);
    }
    known.entry.touch(now);
    Some(Arc::clone(script))
}
