//! Sends the body of a response, one piece at a time.

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
    /// A piece was queued, or stays ready until flow-control windows allow it.
    Piece,
    /// The response is complete and recorded, or its exchange is gone.
    Done,
    /// The response was aborted and must be recorded as cut.
    Cut,
}

impl ActiveExchange {
    /// Sends the next piece of the body. If frames of several responses share the connection (any `Delivery` but
    /// `Direct`), a piece of a file has at most `max_bytes` bytes. Called only if no piece is ready.
    pub fn poll_body<R: Responder>(
        &mut self,
        task: &mut Context<'_>,
        worker: &Worker,
        info: &mut ConnectionInfo,
        max_bytes: u64,
        responder: &mut R,
    ) -> Poll<Progress> {
        let Stage::Sending { body, .. } = &mut self.stage else {
            return Poll::Ready(Progress::Done);
        };
        let polled = catch_unwind(AssertUnwindSafe(|| body.poll(task, &worker.shared.pool, max_bytes)));
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
                        // A body whose last bytes are known in advance is not streamed, so it has no trailer fields.
                        self.finish(None, worker, info, responder);
                        Progress::Done
                    }
                    PieceResult::Offered => Progress::Piece,
                    PieceResult::Gone => Progress::Done,
                }
            }
            None => {
                let trailers = body.take_trailers();
                self.finish(trailers.as_ref(), worker, info, responder);
                Progress::Done
            }
            Some(Err(error)) => {
                // The head was sent already, so only a cut shows the client that the response is incomplete.
                tracing::warn!("a response was cut short: {error}");
                responder.abort();
                Progress::Cut
            }
        })
    }

    /// Ends the response with trailer fields, or without them if they cannot be encoded, and records it.
    fn finish<R: Responder>(
        &self,
        trailers: Option<&FieldList>,
        worker: &Worker,
        info: &mut ConnectionInfo,
        responder: &mut R,
    ) {
        if let Err(error) = responder.finish(trailers) {
            tracing::warn!("trailers of a response were not sent: {error}");
            // Without trailer fields `finish` cannot fail.
            let _ = responder.finish(None);
        }
        self.context.for_each_held(|held| responder.keep_until_sent(held));
        self.record(worker, info);
    }
}
