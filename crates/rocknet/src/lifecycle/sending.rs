//! Sending the body of a response, a piece at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, ready};

use super::connection_info::ConnectionInfo;
use super::exchange::{ActiveExchange, Stage};
use super::responder::{PieceResult, Responder};
use crate::pipeline::refusals;
use crate::response::FieldList;
use crate::worker::Worker;

/// Result of polling the body of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A piece was handed to the version, which may still have to let it leave.
    Piece,
    /// The response is over: it is complete and recorded, or its exchange is gone.
    Done,
    /// The response was given up, and is still to be recorded as cut.
    Cut,
}

impl ActiveExchange {
    /// Hands over the next piece of the body, of a file at most `most` bytes. To be called when none is ready.
    pub fn poll_body<R: Responder>(
        &mut self,
        task: &mut Context<'_>,
        worker: &Worker,
        info: &mut ConnectionInfo,
        most: u64,
        responder: &mut R,
    ) -> Poll<Progress> {
        let Stage::Sending { body, .. } = &mut self.stage else {
            return Poll::Ready(Progress::Done);
        };
        let polled = catch_unwind(AssertUnwindSafe(|| body.poll(task, &worker.shared.pool, most)));
        let polled = match polled {
            Ok(polled) => ready!(polled),
            Err(_) => {
                worker.counters.panics.add(1);
                refusals::log_panic(&self.context);
                responder.abort();
                return Poll::Ready(Progress::Cut);
            }
        };
        Poll::Ready(match polled {
            Some(Ok(())) => {
                let is_last = body.is_last();
                match responder.send_piece(body) {
                    PieceResult::Queued(bytes) => {
                        self.sent += bytes;
                        if !is_last {
                            return Poll::Ready(Progress::Piece);
                        }
                        finish(None, responder);
                        self.record(worker, info);
                        Progress::Done
                    }
                    PieceResult::Offered => Progress::Piece,
                    PieceResult::Gone => Progress::Done,
                }
            }
            None => {
                finish(body.take_trailers().as_ref(), responder);
                self.record(worker, info);
                Progress::Done
            }
            Some(Err(error)) => {
                // The head promises more: only a cut tells the client.
                tracing::warn!("a response was cut short: {error}");
                responder.abort();
                Progress::Cut
            }
        })
    }
}

/// Ends the response with these trailer fields, or without them where they cannot be sent.
fn finish(trailers: Option<&FieldList>, responder: &mut impl Responder) {
    if let Err(error) = responder.finish(trailers) {
        tracing::warn!("trailers of a response were not sent: {error}");
        // Without fields nothing can be wrong with them.
        let _ = responder.finish(None);
    }
}
