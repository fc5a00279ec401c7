//! A response that takes its time: the handler's work, then what the pipeline still has to do with its response.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rocknet_proto::request::OwnedRequest;
use rocknet_proto::status::Status;

use super::context::RequestContext;
use super::exit::{self, Exit};
use crate::cache::front::Known;
use crate::interim::{Door, Early};
use crate::preload::Preloads;
use crate::response::Response;
use crate::worker::Worker;

/// A handler's result.
pub enum Answer {
    Response(Box<Response>),
    /// The worker cache has the response: it is sent as it was prepared.
    Cached(Rc<Known>, Rc<OwnedRequest>),
}

impl From<Response> for Answer {
    fn from(response: Response) -> Answer {
        Answer::Response(Box::new(response))
    }
}

pub type Answering = Pin<Box<dyn Future<Output = Answer>>>;

/// A response in the making. Whoever polls it sends what comes out as it is: all phases have been applied.
pub struct Pending {
    work: Answering,
    /// `None`: no interim responses can come from this handler.
    door: Option<Rc<Door>>,
    /// `None`: the response has passed the phases after the handler, or passes them as a part of `work`.
    exit: Option<(Rc<Worker>, Rc<RequestContext>)>,
    /// Files that the page most likely needs, known before its response is.
    pub preloads: Option<Arc<Preloads>>,
    /// Ticks that it may take; `None`: as long as `limits.answer_timeout`.
    pub patience: Option<u32>,
    /// All that is waited for is the page of an error with this status: after its time the plain one is sent.
    pub instead: Option<Status>,
}

impl Pending {
    /// A handler's work, whose response then passes the phases after the handler.
    pub fn handler(
        worker: &Rc<Worker>,
        context: &Rc<RequestContext>,
        work: impl Future<Output = Answer> + 'static,
    ) -> Pending {
        Pending {
            work: Box::pin(work),
            door: None,
            exit: Some((Rc::clone(worker), Rc::clone(context))),
            preloads: None,
            patience: None,
            instead: None,
        }
    }

    /// Work whose response has passed all phases.
    pub fn finished(work: impl Future<Output = Answer> + 'static) -> Pending {
        Pending {
            work: Box::pin(work),
            door: None,
            exit: None,
            preloads: None,
            patience: None,
            instead: None,
        }
    }

    /// Takes interim responses from the handler that has the other side of `door`.
    pub fn with_interim(mut self, door: Rc<Door>) -> Pending {
        self.door = Some(door);
        self
    }

    pub fn poll(&mut self, task: &mut Context<'_>) -> Poll<Answer> {
        loop {
            let answer = ready!(self.work.as_mut().poll(task));
            let (mut response, (worker, context)) = match (answer, self.exit.take()) {
                (Answer::Response(response), Some(exit)) => (response, exit),
                (answer, _) => return Poll::Ready(answer),
            };
            let request = context.request.as_ref().map(|request| request.view());
            let exit = exit::begin(&worker, context.route.as_ref(), request.as_ref(), &mut response);
            if matches!(exit, Exit::Done) {
                return Poll::Ready(Answer::Response(response));
            }
            self.door = None;
            self.work = Box::pin(async move {
                exit::complete(worker, context, exit, &mut response).await;
                Answer::Response(response)
            });
        }
    }

    /// Returns the interim response that is to be sent now. To be called after each poll; if there was one, poll again.
    #[inline]
    pub fn interim(&self) -> Option<Box<Early>> {
        self.door.as_ref()?.take()
    }
}
