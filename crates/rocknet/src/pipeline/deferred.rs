//! The wait for the decision of a guard, after which the request begins again with that decision.

use std::net::IpAddr;
use std::rc::Rc;

use rocknet_proto::refusal::Refusal;
use rocknet_proto::request::OwnedRequest;
use rocknet_proto::status::Status;

use super::admission::{Decisions, Undecided};
use super::context::RequestContext;
use super::exit;
use super::incoming::Incoming;
use super::pending::{Pending, Routed};
use super::reply::{Going, Reply, Step};
use crate::exchange::{Client, RequestBody};
use crate::files::cache::front::Known;
use crate::files::entry::Variant;
use crate::fixed;
use crate::handshake::Handshake;
use crate::worker::Worker;
use rocknet_proto::PreparedHeads;

/// A request that has outlived the read it came with.
pub(super) type Kept<'a> = Incoming<'a, &'a dyn Fn() -> Rc<OwnedRequest>>;

/// Takes a request through the phases again.
type Begin = fn(&Rc<Worker>, &Kept<'_>, Decisions, &mut Opened) -> Going;

/// A request that waits, with the facts of its connection.
struct Waiting {
    request: Rc<OwnedRequest>,
    content: RequestBody,
    has_body: bool,
    peer: Client,
    secure: Option<Rc<Handshake>>,
    local: Option<IpAddr>,
}

/// Waits for a decision, and goes on with `begin`. `content`: the request body, which is bounded.
pub(super) fn wait<F: Fn() -> Rc<OwnedRequest>>(
    worker: &Rc<Worker>,
    mut context: RequestContext,
    incoming: &Incoming<'_, F>,
    content: RequestBody,
    patience: u32,
    undecided: Undecided,
    mut decisions: Decisions,
    begin: Begin,
) -> Going {
    let request = (incoming.owned)();
    context.request = Some(Rc::clone(&request));
    let waiting = Waiting {
        request,
        content,
        has_body: incoming.has_body,
        peer: incoming.peer,
        secure: incoming.secure.cloned(),
        local: incoming.local,
    };
    let context = Rc::new(context);
    let (worker, context_of) = (Rc::clone(worker), Rc::clone(&context));
    let mut pending = Pending::routing(async move {
        decisions.complete(undecided).await;
        waiting.go_on(&worker, &context_of, decisions, begin)
    });
    pending.patience = Some(patience);
    Going {
        context,
        step: Step::Wait(pending),
        close: false,
    }
}

impl Waiting {
    /// Begins again. `context`: the one that the protocol records.
    fn go_on(self, worker: &Rc<Worker>, context: &RequestContext, decisions: Decisions, begin: Begin) -> Routed {
        let request = self.request.view();
        let incoming = Incoming {
            request: &request,
            owned: &(|| Rc::clone(&self.request)) as &dyn Fn() -> Rc<OwnedRequest>,
            has_body: self.has_body,
            peer: self.peer,
            secure: self.secure.as_ref(),
            local: self.local,
        };
        let going = begin(worker, &incoming, decisions, &mut Opened(self.content));
        context.set_user(going.context.user.get().cloned());
        match going.step {
            Step::Wait(pending) => Routed::Handler(Box::new(pending)),
            Step::Respond(response) => Routed::Response(response),
            // Only the worker cache answers by `Reply::send`, and it is not consulted again.
            Step::Sent(_) => {
                let mut response = Box::new(fixed::error(Status::INTERNAL_SERVER_ERROR));
                exit::apply_without_page(worker, context.route.as_ref(), &mut response);
                Routed::Response(response)
            }
        }
    }
}

/// Stands for the protocol: the request body was bounded and opened before.
pub(super) struct Opened(RequestBody);

impl Reply for Opened {
    fn send(&mut self, _: &PreparedHeads, _: Option<(&Known, &Variant)>) {}

    fn limit_body(&mut self, _: u64) -> Result<(), Refusal> {
        Ok(())
    }

    fn open_body(&mut self) -> RequestBody {
        std::mem::replace(&mut self.0, RequestBody::empty())
    }
}
