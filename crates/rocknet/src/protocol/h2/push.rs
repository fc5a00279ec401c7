//! Server push: promises and sends the files that a page needs, each file once per connection. A client that accepts no
//! pushes gets 103 (Early Hints) instead.

use std::rc::Rc;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_proto::request::Request;

use super::connection::Connection;
use super::push_state::{PendingPage, PromisedStream};
use super::responder::RequestBody;
use super::streams::RequestStream;
use crate::pipeline::{PendingResponse, RequestContext};
use crate::preload;
use crate::worker::Worker;

impl<L: Link> Connection<L> {
    /// Starts the exchanges of promised streams, as if the client had sent the requests.
    #[inline(never)]
    pub(super) fn begin_promised(
        &mut self,
        worker: &Rc<Worker>,
        promised: Vec<PromisedStream>,
        output: &mut SendQueue,
    ) {
        let config = worker.config();
        for PromisedStream { id, request } in promised {
            let owned = || Rc::clone(&request);
            self.begin_exchange(
                worker,
                &config,
                &request.view(),
                owned,
                id,
                RequestBody::None,
                None,
                output,
            );
        }
    }

    /// Prepares the push of the files that a page needs. If this may be the client's first visit and the client accepts
    /// pushes, the page is stored in the stream, and its files are pushed with the response. If the client accepts no
    /// pushes, the files that the configuration names are announced at once by 103 (Early Hints), except on a promised
    /// stream. A returning client gets neither, because `pending.preloads` is then `None`.
    pub(super) fn prepare_page_push(
        &mut self,
        pending: &PendingResponse,
        request: &Request<'_>,
        context: &RequestContext,
        stream: &mut RequestStream,
        output: &mut SendQueue,
    ) {
        let preloads = &pending.preloads;
        // Without `preloads`, the `Link` fields of the response can still name files, so the visit is checked here too.
        if self.engine.may_push(stream.id) && preload::is_first_visit(request) {
            stream.page = context.request.clone().map(|request| {
                let preloads = preloads.clone();
                Box::new(PendingPage { request, preloads })
            });
        } else if let Some(preloads) = preloads.as_ref().filter(|_| !stream.id.is_promised()) {
            // While the handler works, the client can already request these files.
            self.pushes
                .send_early_hints(&mut self.engine, stream.id, request, preloads, output.buffer());
        }
    }
}
