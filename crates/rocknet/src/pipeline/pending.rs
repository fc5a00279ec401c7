//! Response that is not complete yet: the handler's work, then the remaining phases of the pipeline.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rocknet_proto::request::OwnedRequest;
use rocknet_proto::status::Status;

use super::accel_redirect;
use super::context::RequestContext;
use super::exit::{self, Exit};
use super::handler_timeout::HandlerTimeout;
use crate::files::cache::l1::CachedEntry;
use crate::fixed;
use crate::handler::{self, HandlerFuture};
use crate::interim::{InterimChannel, InterimResponse};
use crate::preload::Preloads;
use crate::response::Response;
use crate::upgrade;
use crate::worker::Worker;

/// Result of a pending response.
pub enum CompletedResponse {
    /// The response has passed all phases.
    Response(Box<Response>),
    /// The response is a cache entry, which is sent as prepared, in the form that suits the request. The context is the
    /// one of the handler. A request that was deferred began with a different context, which the connection keeps.
    Cached(Rc<CachedEntry>, Rc<OwnedRequest>, Rc<RequestContext>),
}

/// Result of selecting a handler, which may have waited for a guard.
pub enum RoutingResult {
    /// No handler was needed; the response has passed all phases.
    Response(Box<Response>),
    /// A handler makes the response.
    Handler(Box<PendingResponse>),
}

/// Work that a pending response waits for.
enum PendingWork {
    /// The handler, or phases after it that have to wait.
    Response(HandlerFuture),
    /// The selection of a handler. Once a handler is selected, its work replaces the selection.
    Routing(Pin<Box<dyn Future<Output = RoutingResult>>>),
}

/// Response that is not complete yet. Its result is sent unchanged, because all phases have been applied to it by then.
pub struct PendingResponse {
    work: PendingWork,
    /// `None` if the handler cannot send interim responses.
    interim_channel: Option<Rc<InterimChannel>>,
    /// Worker and context for the phases after the handler. `None` if `work` includes these phases, or they have been
    /// applied.
    exit: Option<(Rc<Worker>, Rc<RequestContext>)>,
    /// Files that the response probably needs if it is a page. They are known before the response.
    pub preloads: Option<Arc<Preloads>>,
    /// Response timeout; `None` if the server's `limits.answer_timeout` applies.
    pub timeout: Option<HandlerTimeout>,
    /// Status of a complete error response that waits only for its error page or a filter; otherwise `None`. After the
    /// timeout, the plain page of this status is sent.
    pub plain_fallback: Option<Status>,
    /// True if the response of the handler may name a file of the site.
    pub allows_accel_redirect: bool,
    /// True if a wait has ended with the selection of the handler, whose timeout begins then.
    is_just_routed: bool,
}

/// Returns the cache entry that a handler has returned, with the request for it. Returns `None` if the entry does not
/// belong to the file cache, or if there is no context (`exit`) with a request.
fn cached_response(entry: Rc<dyn Any>, exit: Option<&(Rc<Worker>, Rc<RequestContext>)>) -> Option<CompletedResponse> {
    let (_, context) = exit?;
    let request = context.request.clone()?;
    Some(CompletedResponse::Cached(
        entry.downcast().ok()?,
        request,
        Rc::clone(context),
    ))
}

impl PendingResponse {
    /// Creates a pending response that waits for a handler. The phases after the handler are then applied to its
    /// output.
    pub fn handler(worker: &Rc<Worker>, context: &Rc<RequestContext>, work: HandlerFuture) -> PendingResponse {
        PendingResponse {
            work: PendingWork::Response(work),
            interim_channel: None,
            exit: Some((Rc::clone(worker), Rc::clone(context))),
            preloads: None,
            timeout: context
                .route
                .as_ref()
                .map(|route| HandlerTimeout::of_route(&worker.wheel, route)),
            plain_fallback: None,
            allows_accel_redirect: false,
            is_just_routed: false,
        }
    }

    /// Creates a pending response that waits for `work`, which also applies all remaining phases.
    pub fn finished(work: impl Future<Output = Box<Response>> + 'static) -> PendingResponse {
        PendingResponse {
            work: PendingWork::Response(Box::pin(async { handler::HandlerOutput::Response(work.await) })),
            interim_channel: None,
            exit: None,
            preloads: None,
            timeout: None,
            plain_fallback: None,
            allows_accel_redirect: false,
            is_just_routed: false,
        }
    }

    /// Creates a pending response that waits for the selection of its handler. Until then nothing is pushed or
    /// announced.
    pub fn routing(work: impl Future<Output = RoutingResult> + 'static) -> PendingResponse {
        PendingResponse {
            work: PendingWork::Routing(Box::pin(work)),
            interim_channel: None,
            exit: None,
            preloads: None,
            timeout: None,
            plain_fallback: None,
            allows_accel_redirect: false,
            is_just_routed: false,
        }
    }

    /// Receives interim responses from the handler that holds the sender of `interim_channel`.
    pub fn with_interim(mut self, interim_channel: Rc<InterimChannel>) -> PendingResponse {
        self.interim_channel = Some(interim_channel);
        self
    }

    /// Polls the work, and applies the remaining phases to its response.
    pub fn poll(&mut self, task: &mut Context<'_>) -> Poll<CompletedResponse> {
        loop {
            let output = match &mut self.work {
                PendingWork::Response(work) => ready!(work.as_mut().poll(task)),
                PendingWork::Routing(work) => match ready!(work.as_mut().poll(task)) {
                    RoutingResult::Response(response) => {
                        // The response is complete, so the timeout of the wait no longer applies.
                        self.timeout = None;
                        return Poll::Ready(CompletedResponse::Response(response));
                    }
                    RoutingResult::Handler(pending) => {
                        *self = *pending;
                        self.is_just_routed = true;
                        continue;
                    }
                },
            };
            let exit = self.exit.take();
            let mut response = match output {
                handler::HandlerOutput::Response(response) => response,
                handler::HandlerOutput::Cached(entry) => match cached_response(entry, exit.as_ref()) {
                    Some(cached) => return Poll::Ready(cached),
                    // Only entries of the file cache can be sent, and only in the form that suits a known request.
                    None => {
                        tracing::error!(
                            "a handler returned a cache entry that is not of the file cache, or for an unknown request"
                        );
                        Box::new(fixed::error(Status::INTERNAL_SERVER_ERROR))
                    }
                },
            };
            let Some((worker, context)) = exit else {
                return Poll::Ready(CompletedResponse::Response(response));
            };
            let request = context.request.as_ref().map(|request| request.view());
            if let Some(request) = &request {
                // Replaces a response that does not fit the request, such as a tunnel without a request for one.
                upgrade::enforce(request, &mut response);
            }
            // Clears the flag, because the response with the named file must not name another file.
            if std::mem::take(&mut self.allows_accel_redirect) && accel_redirect::names_file(&response) {
                let work = accel_redirect::follow(Rc::clone(&worker), Rc::clone(&context), *response);
                self.work = PendingWork::Response(Box::pin(work));
                self.exit = Some((worker, context));
                continue;
            }
            let exit = exit::begin(&worker, &context, request.as_ref(), &mut response);
            if matches!(exit, Exit::Done) {
                return Poll::Ready(CompletedResponse::Response(response));
            }
            // The handler has ended, so no interim response follows.
            self.interim_channel = None;
            self.work = PendingWork::Response(Box::pin(async move {
                exit::complete(worker, context, exit, &mut response).await;
                handler::HandlerOutput::Response(response)
            }));
        }
    }

    /// Returns true once after a wait has ended with the selection of the handler. The route of the handler can be
    /// another one than before the wait, and `timeout` is then that of the handler.
    #[inline]
    pub fn take_just_routed(&mut self) -> bool {
        std::mem::take(&mut self.is_just_routed)
    }

    /// Returns the interim response to send now, if any, and wakes the handler that waits for it to be sent. Must be
    /// called after each poll. If that poll was pending and there is an interim response, this object must be polled
    /// again.
    #[inline]
    pub fn interim(&self) -> Option<Box<InterimResponse>> {
        self.interim_channel.as_ref()?.take()
    }
}
