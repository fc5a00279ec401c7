//! Polls handlers, and continues with their responses.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll};

use super::connection_info::ConnectionInfo;
use super::deadlines::Deadlines;
use super::exchange::{ActiveExchange, Stage};
use super::flow::{Flow, advance, respond_panicked};
use super::responder::Responder;
use crate::interim::InterimResponse;
use crate::pipeline::{self, CompletedResponse, ResponseState, StartedExchange};
use crate::worker::Worker;

/// Error of a handler that has panicked.
pub struct Panicked;

/// Result of polling a handler.
pub struct HandlerPoll {
    pub result: Poll<Result<CompletedResponse, Panicked>>,
    /// Interim response to send first. If the result is pending, the handler must then be polled again.
    pub interim: Option<Box<InterimResponse>>,
}

impl ActiveExchange {
    /// Polls the handler. Returns a pending result without polling unless the stage is `Waiting`. The caller must not
    /// borrow a buffer of the worker, because handlers use the buffers. `deadlines`: those of the exchange, which get
    /// the timeout of a handler that was selected after a wait.
    pub fn poll_handler(&mut self, task: &mut Context<'_>, deadlines: &mut Deadlines) -> HandlerPoll {
        let Stage::Waiting(pending) = &mut self.stage else {
            return HandlerPoll {
                result: Poll::Pending,
                interim: None,
            };
        };
        let result = match catch_unwind(AssertUnwindSafe(|| pending.poll(task))) {
            Ok(polled) => polled.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        };
        if pending.take_just_routed() {
            // The next wait gets the full time of the handler.
            deadlines.set_handler_timeout(pending.timeout);
            deadlines.end_handler_wait();
        }
        HandlerPoll {
            result,
            interim: pending.interim(),
        }
    }

    /// Continues with the result of the handler.
    pub fn handler_done<R: Responder>(
        self,
        worker: &Rc<Worker>,
        info: &mut ConnectionInfo,
        result: Result<CompletedResponse, Panicked>,
        responder: &mut R,
    ) -> Flow {
        let timeout = self.handler_timeout();
        let ActiveExchange { context, close, .. } = self;
        let started = match result {
            Ok(CompletedResponse::Response(response)) => StartedExchange {
                context,
                state: ResponseState::Ready(response),
                close,
            },
            Ok(CompletedResponse::Cached(entry, request, of_handler)) => {
                let started = catch_unwind(AssertUnwindSafe(|| {
                    pipeline::respond_from_entry(worker, of_handler, &entry, &request.view(), responder)
                }));
                match started {
                    // The first context has the time at which the request began, and the values that guards keep.
                    Ok(started) => StartedExchange { context, ..started },
                    Err(_) => return respond_panicked(worker, info, context, responder),
                }
            }
            Err(Panicked) => return respond_panicked(worker, info, context, responder),
        };
        let mut flow = advance(worker, info, started, responder);
        if let Flow::Active(exchange) = &mut flow {
            exchange.keep_timeout(timeout);
        }
        flow
    }
}

/// Writes an interim response.
#[cold]
pub fn send_interim(interim: &InterimResponse, responder: &mut impl Responder) {
    if let Err(error) = responder.send_interim(interim) {
        tracing::error!("an interim response was not sent: {error}");
    }
}
