//! Pushing: what a page needs is promised and sent with it, once a connection; a client that takes no pushes is told of it.

use std::rc::Rc;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::request::Request;

use super::answer::Asked;
use super::connection::Connection;
use super::pushes::{Page, Promised};
use super::reply::RequestBody;
use crate::pipeline::{Pending, RequestContext};
use crate::preload;
use crate::worker::Worker;

impl<L: Link> Connection<L> {
    /// Answers what was promised, as if the client had asked.
    #[inline(never)]
    pub(super) fn answer_promised(&mut self, worker: &Rc<Worker>, promised: Vec<Promised>, output: &mut SendQueue) {
        let view = worker.config();
        for Promised { id, request } in promised {
            let owned = || Rc::clone(&request);
            self.answer_request(
                worker,
                &view,
                &request.view(),
                owned,
                id,
                RequestBody::None,
                None,
                output,
            );
        }
    }

    /// Keeps what is to be pushed with a page that is waited for, or announces it now to a client that takes no pushes.
    pub(super) fn prepare_page(
        &mut self,
        pending: &Pending,
        request: &Request<'_>,
        context: &RequestContext,
        asked: &mut Asked,
        output: &mut SendQueue,
    ) {
        let preloads = &pending.preloads;
        if self.engine.may_push(asked.id) && preload::is_first_visit(request) {
            asked.page = context.request.clone().map(|request| {
                let preloads = preloads.clone();
                Box::new(Page { request, preloads })
            });
        } else if let Some(preloads) = preloads.as_ref().filter(|_| !asked.id.is_promised()) {
            // The handler takes its time, in which the client can ask for what it will need.
            self.pushes
                .hint(&mut self.engine, asked.id, request, preloads, output.buffer());
        }
    }
}
