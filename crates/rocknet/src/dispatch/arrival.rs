//! A request that has come in, and what is made of it once something takes its time.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::request::{OwnedRequest, Request};

use super::{Later, Outcome};
use crate::exchange::{Client, Exchange, RequestContent, Secure};
use crate::forwarded;
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
    /// The other end of its connection.
    pub peer: Client,
    /// `None`: it came in the clear.
    pub secure: Option<&'a Rc<Secure>>,
}

/// The connection that a request came by.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// Its other end.
    pub peer: Client,
    /// `None`: it is in the clear.
    pub secure: Option<&'a Secure>,
}

impl Asker<'_> {
    /// Whom a request is from.
    #[inline]
    pub fn client(self, worker: &Worker, request: &Request<'_>) -> Client {
        match worker.believes.get() {
            true => forwarded::client(&worker.view().snapshot.config.server, self.peer, request.fields),
            false => self.peer,
        }
    }
}

impl<F: FnOnce() -> Rc<OwnedRequest>> Arrival<'_, F> {
    pub fn asker(&self) -> Asker<'_> {
        Asker {
            peer: self.peer,
            secure: self.secure.map(|secure| &**secure),
        }
    }

    /// Whom it is from.
    pub fn client(&self, worker: &Worker) -> Client {
        self.asker().client(worker, self.request)
    }

    /// What a handler is given. `path` is decoded and normalised.
    pub fn exchange(self, worker: &Worker, scope: &Arc<Scope>, path: impl Into<Box<str>>) -> Exchange {
        Exchange {
            client: self.client(worker),
            peer: self.peer,
            request: (self.owned)(),
            content: self.content,
            interim: Interim::default(),
            path: path.into(),
            scope: Arc::clone(scope),
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
        let exchange = self.exchange(worker, scope, path);
        let door = exchange.interim.door();
        Later {
            answer: Making::new(answering(exchange)).telling(door),
            preloads,
            patience: Some(worker.wheel.ticks(scope.answer_timeout)),
        }
    }
}
