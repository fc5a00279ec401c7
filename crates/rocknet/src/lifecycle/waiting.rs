//! Waiting for a handler, and what comes of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll};

use super::exchange::{ActiveExchange, Stage};
use super::flow::{Flow, go_on, panicked};
use super::peer::Peer;
use super::responder::Responder;
use crate::interim::InterimResponse;
use crate::pipeline::{self, Answer, Going, Step};
use crate::worker::Worker;

/// The handler has panicked.
pub struct Panicked;

/// Result of polling a handler.
pub struct Polled {
    pub answer: Poll<Result<Answer, Panicked>>,
    /// To be sent first. While the answer is pending the handler is to be polled again then.
    pub interim: Option<Box<InterimResponse>>,
}

impl ActiveExchange {
    /// Polls the handler. No buffer of the worker may be borrowed, because handlers use them.
    pub fn poll_handler(&mut self, task: &mut Context<'_>) -> Polled {
        let Stage::Waiting(pending) = &mut self.stage else {
            return Polled {
                answer: Poll::Pending,
                interim: None,
            };
        };
        let answer = match catch_unwind(AssertUnwindSafe(|| pending.poll(task))) {
            Ok(polled) => polled.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        };
        Polled {
            answer,
            interim: pending.interim(),
        }
    }

    /// Goes on with what the handler has answered.
    pub fn answer<R: Responder>(
        self,
        worker: &Rc<Worker>,
        peer: &mut Peer,
        answer: Result<Answer, Panicked>,
        responder: &mut R,
    ) -> Flow {
        let ActiveExchange { context, close, .. } = self;
        let going = match answer {
            Ok(Answer::Response(response)) => Going {
                context,
                step: Step::Respond(response),
                close,
            },
            Ok(Answer::Cached(known, request)) => {
                let going = catch_unwind(AssertUnwindSafe(|| {
                    pipeline::from_known(worker, Rc::clone(&context), &known, &request.view(), responder)
                }));
                match going {
                    Ok(going) => going,
                    Err(_) => return panicked(worker, peer, context, responder),
                }
            }
            Err(Panicked) => return panicked(worker, peer, context, responder),
        };
        go_on(worker, peer, going, responder)
    }
}

/// Writes an interim response.
#[cold]
pub fn inform(early: &InterimResponse, responder: &mut impl Responder) {
    if let Err(error) = responder.inform(early) {
        tracing::error!("an interim response was not sent: {error}");
    }
}
