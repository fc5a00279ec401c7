//! A request that has come in, and what is made of it once something takes its time.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::request::{OwnedRequest, Request};

use super::{Later, Outcome};
use crate::exchange::{Client, Exchange, RequestContent, Secure};
use crate::interim::{Interim, Making};
use crate::preload;
use crate::scope::Scope;
use crate::worker::Worker;

/// The request as it stands in the buffers of its connection, and what else a handler may want of it.
pub struct Arrival<'a, F> {
    pub request: &'a Request<'a>,
    /// Makes the request that outlives those buffers: a copy, which no answer at once needs.
    pub owned: F,
    pub content: RequestContent,
    pub client: Client,
    /// `None`: it came in the clear.
    pub secure: Option<&'a Rc<Secure>>,
}

impl<F: FnOnce() -> Rc<OwnedRequest>> Arrival<'_, F> {
    /// What a handler is given. `path` is decoded and normalised.
    pub fn exchange(self, scope: &Arc<Scope>, path: impl Into<Box<str>>) -> Exchange {
        Exchange {
            request: (self.owned)(),
            content: self.content,
            interim: Interim::default(),
            path: path.into(),
            scope: Arc::clone(scope),
            client: self.client,
            secure: self.secure.map(Rc::clone),
        }
    }

    /// An answer that `answering` makes out of it, in the time that its place allows. Clients are told meanwhile what the
    /// page will need.
    pub fn later<A>(
        self,
        worker: &Worker,
        scope: &Arc<Scope>,
        path: impl Into<Box<str>>,
        answering: impl FnOnce(Exchange) -> A,
    ) -> Later
    where
        A: Future<Output = Outcome> + 'static,
    {
        let path = path.into();
        let preloads = scope.preloads(&path).filter(|_| preload::is_first_look(self.request));
        let preloads = preloads.cloned();
        let exchange = self.exchange(scope, path);
        let door = exchange.interim.door();
        Later {
            answer: Making::new(answering(exchange)).telling(door),
            preloads,
            patience: Some(worker.wheel.ticks(scope.answer_timeout)),
        }
    }
}
