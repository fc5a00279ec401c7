//! Writes response bodies as DATA frames, as flow-control windows and priorities allow.

use std::rc::Rc;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_io::tls::MAX_RECORD_PLAINTEXT;
use rocknet_proto::h2::FRAME_HEADER_SIZE;

use super::connection::Connection;
use super::streams::ExchangeState;
use crate::lifecycle::connection::End;
use crate::worker::Worker;

/// Maximum payload of a frame over TLS, so that a frame with its header fills exactly one record. Otherwise each record
/// would contain the end of one frame and the start of another. The two parts would have to be copied from two places,
/// or read from their files by two calls.
const FRAME_IN_RECORD: u64 = (MAX_RECORD_PLAINTEXT - FRAME_HEADER_SIZE) as u64;

impl<L: Link> Connection<L> {
    /// Writes the DATA frames that may be sent, and records the responses that end with them. Returns true if an
    /// exchange has no ready bytes left and its body continues, or if an internal error has closed the connection.
    #[inline]
    pub(super) fn write_frames(&mut self, worker: &Rc<Worker>, output: &mut SendQueue) -> bool {
        let mut drained = false;
        let frame = if self.core.info.secure.is_some() {
            FRAME_IN_RECORD
        } else {
            u64::MAX
        };
        self.is_urgent_pending = self.send_budget.is_limited() && self.is_urgent_response_pending();
        let bound = self.send_budget.round_bytes(self.is_urgent_pending);
        while output.len() < bound {
            let max_length = frame.min(bound - output.len());
            let Some(grant) = self.engine.next_data(max_length, output.buffer()) else {
                break;
            };
            let Some(entry) = self.streams.get_mut(grant.stream) else {
                return self.fail_framing(output);
            };
            let ExchangeState::Active(exchange) = &mut entry.state else {
                return self.fail_framing(output);
            };
            let Some(queued) = exchange.queue_ready(grant.length, output) else {
                return self.fail_framing(output);
            };
            entry.deadlines.moved(grant.length);
            // The end of one direction of a tunnel does not end the other direction.
            if grant.end && !queued.is_tunnel {
                exchange.record(worker, &mut self.core.info);
                self.streams.take(grant.stream);
            } else if queued.is_drained {
                drained = true;
            }
        }
        drained
    }

    /// Returns true if a response without ready bytes would precede the response that is sent next.
    fn is_urgent_response_pending(&self) -> bool {
        self.engine.may_send()
            && self
                .streams
                .awaited()
                .any(|stream| self.engine.queued(stream) == 0 && self.engine.precedes_next(stream))
    }

    /// Closes the connection after an internal error: a frame header was written, but there is no body for the frame.
    /// Always returns true, as [`Connection::write_frames`] has to in this case.
    #[cold]
    fn fail_framing(&mut self, output: &mut SendQueue) -> bool {
        tracing::error!("a data frame has no response body; the connection is closed");
        output.clear();
        self.core.end = End::Closed;
        true
    }
}
