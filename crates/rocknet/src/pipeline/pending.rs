//! A response that takes its time: the handler's work, then what the pipeline still has to do with its response.

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
use crate::files::cache::front::Known;
use crate::fixed;
use crate::handler::{self, HandlerFuture};
use crate::interim::{InterimChannel, InterimResponse};
use crate::preload::Preloads;
use crate::response::Response;
use crate::upgrade;
use crate::worker::Worker;

/// The result of a wait.
pub enum CompletedResponse {
    /// It has passed all phases.
    Response(Box<Response>),
    /// The file cache has the response: it is sent as it was prepared.
    Cached(Rc<Known>, Rc<OwnedRequest>),
}

/// Where a request stands that had to wait before a handler was chosen.
pub enum RoutingResult {
    /// It was answered on the spot, and the response has passed all phases.
    Response(Box<Response>),
    /// A handler answers it.
    Handler(Box<PendingResponse>),
}

/// The event that a pending request waits for.
enum PendingWork {
    Response(HandlerFuture),
    /// The choice of a handler, whose work takes the place of this.
    Routing(Pin<Box<dyn Future<Output = RoutingResult>>>),
}

/// A response in the making. Whoever polls it sends what comes out as it is: all phases have been applied.
pub struct PendingResponse {
    work: PendingWork,
    /// `None`: no interim responses can come from this handler.
    interim_channel: Option<Rc<InterimChannel>>,
    /// `None`: the response has passed the phases after the handler, or passes them as a part of `work`.
    exit: Option<(Rc<Worker>, Rc<RequestContext>)>,
    /// Files that the page most likely needs, known before its response is.
    pub preloads: Option<Arc<Preloads>>,
    /// Ticks that it may take; `None`: as long as `limits.answer_timeout` of the server.
    pub timeout_ticks: Option<u32>,
    /// All that is waited for is the page of an error with this status: after its time the plain one is sent.
    pub plain_fallback: Option<Status>,
    /// The response of the handler may name a file of the site.
    pub allows_accel_redirect: bool,
}

/// The entry of the file cache that a handler has answered with, and the request that it is for.
fn cached_response(entry: Rc<dyn Any>, exit: Option<&(Rc<Worker>, Rc<RequestContext>)>) -> Option<CompletedResponse> {
    let (_, context) = exit?;
    let request = context.request.clone()?;
    Some(CompletedResponse::Cached(entry.downcast().ok()?, request))
}

impl PendingResponse {
    /// A handler's work, whose response then passes the phases after the handler.
    pub fn handler(worker: &Rc<Worker>, context: &Rc<RequestContext>, work: HandlerFuture) -> PendingResponse {
        PendingResponse {
            work: PendingWork::Response(work),
            interim_channel: None,
            exit: Some((Rc::clone(worker), Rc::clone(context))),
            preloads: None,
            timeout_ticks: context
                .route
                .as_ref()
                .map(|route| worker.wheel.ticks(route.answer_timeout)),
            plain_fallback: None,
            allows_accel_redirect: false,
        }
    }

    /// Work whose response has passed all phases.
    pub fn finished(work: impl Future<Output = Box<Response>> + 'static) -> PendingResponse {
        PendingResponse {
            work: PendingWork::Response(Box::pin(async { handler::HandlerOutput::Response(work.await) })),
            interim_channel: None,
            exit: None,
            preloads: None,
            timeout_ticks: None,
            plain_fallback: None,
            allows_accel_redirect: false,
        }
    }

    /// Work that ends in the choice of a handler. Nothing is pushed or announced before that.
    pub fn routing(work: impl Future<Output = RoutingResult> + 'static) -> PendingResponse {
        PendingResponse {
            work: PendingWork::Routing(Box::pin(work)),
            interim_channel: None,
            exit: None,
            preloads: None,
            timeout_ticks: None,
            plain_fallback: None,
            allows_accel_redirect: false,
        }
    }

    /// Takes interim responses from the handler that has the other side of `interim_channel`.
    pub fn with_interim(mut self, interim_channel: Rc<InterimChannel>) -> PendingResponse {
        self.interim_channel = Some(interim_channel);
        self
    }

    pub fn poll(&mut self, task: &mut Context<'_>) -> Poll<CompletedResponse> {
        loop {
            let answer = match &mut self.work {
                PendingWork::Response(work) => ready!(work.as_mut().poll(task)),
                PendingWork::Routing(work) => match ready!(work.as_mut().poll(task)) {
                    RoutingResult::Response(response) => return Poll::Ready(CompletedResponse::Response(response)),
                    RoutingResult::Handler(pending) => {
                        *self = *pending;
                        continue;
                    }
                },
            };
            let exit = self.exit.take();
            let mut response = match answer {
                handler::HandlerOutput::Response(response) => response,
                handler::HandlerOutput::Cached(entry) => match cached_response(entry, exit.as_ref()) {
                    Some(cached) => return Poll::Ready(cached),
                    // Only the file cache has entries that can be sent.
                    None => {
                        tracing::error!("a handler has answered with an entry that is not of the file cache");
                        Box::new(fixed::error(Status::INTERNAL_SERVER_ERROR))
                    }
                },
            };
            let Some((worker, context)) = exit else {
                return Poll::Ready(CompletedResponse::Response(response));
            };
            let request = context.request.as_ref().map(|request| request.view());
            if let Some(request) = &request {
                upgrade::enforce(request, &mut response);
            }
            if std::mem::take(&mut self.allows_accel_redirect) && accel_redirect::names_file(&response) {
                let work = accel_redirect::follow(Rc::clone(&worker), Rc::clone(&context), *response);
                self.work = PendingWork::Response(Box::pin(work));
                self.exit = Some((worker, context));
                continue;
            }
            let exit = exit::begin(&worker, context.route.as_ref(), request.as_ref(), &mut response);
            if matches!(exit, Exit::Done) {
                return Poll::Ready(CompletedResponse::Response(response));
            }
            self.interim_channel = None;
            self.work = PendingWork::Response(Box::pin(async move {
                exit::complete(worker, context, exit, &mut response).await;
                handler::HandlerOutput::Response(response)
            }));
        }
    }

    /// Returns the interim response that is to be sent now. To be called after each poll; if there was one, poll again.
    #[inline]
    pub fn interim(&self) -> Option<Box<InterimResponse>> {
        self.interim_channel.as_ref()?.take()
    }
}
