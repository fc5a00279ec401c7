//! Feeding: content of answers into frames, as windows and priorities allow.

use std::rc::Rc;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_io::tls::MAX_RECORD_PLAINTEXT;
use rocknet_proto::h2::FRAME_HEADER_SIZE;

use super::connection::Connection;
use super::streams::ExchangeState;
use crate::lifecycle::connection::End;
use crate::worker::Worker;

/// Under TLS a frame fills a record together with its header: else each record holds the end of a frame and the beginning
/// of another, which lie apart and are copied together, or read from their file by two calls.
const FRAME_IN_RECORD: u64 = (MAX_RECORD_PLAINTEXT - FRAME_HEADER_SIZE) as u64;

impl<L: Link> Connection<L> {
    /// Frames what may be sent; true if an answer has nothing ready any more and more to come.
    #[inline]
    pub(super) fn write_frames(&mut self, worker: &Rc<Worker>, output: &mut SendQueue) -> bool {
        let mut drained = false;
        let frame = if self.core.info.secure.is_some() {
            FRAME_IN_RECORD
        } else {
            u64::MAX
        };
        self.is_urgent_pending = self.send_budget.is_limited() && self.is_urgent_response_pending();
        let bound = self.send_budget.round(self.is_urgent_pending);
        while output.len() < bound {
            let most = frame.min(bound - output.len());
            let Some(grant) = self.engine.next_data(most, output.buffer()) else {
                break;
            };
            let Some(entry) = self.streams.get_mut(grant.stream) else {
                return self.fail_framing(output);
            };
            let ExchangeState::Active(exchange) = &mut entry.state else {
                return self.fail_framing(output);
            };
            let Some(put) = exchange.queue_ready(grant.length, output) else {
                return self.fail_framing(output);
            };
            entry.deadlines.moved(grant.length);
            // The end of one direction of a tunnel is not the end of the other.
            if grant.end && !put.is_tunnel {
                exchange.record(worker, &mut self.core.info);
                self.streams.take(grant.stream);
            } else if put.is_drained {
                drained = true;
            }
        }
        drained
    }

    /// Whether a response with nothing ready would go ahead of what is sent next.
    fn is_urgent_response_pending(&self) -> bool {
        self.engine.may_send()
            && self
                .streams
                .awaited()
                .any(|stream| self.engine.queued(stream) == 0 && self.engine.precedes_next(stream))
    }

    /// A frame was begun that nothing belongs into: a mistake of ours, which only the end of the connection mends.
    #[cold]
    fn fail_framing(&mut self, output: &mut SendQueue) -> bool {
        tracing::error!("content of an answer was lost; its connection is cut");
        output.clear();
        self.core.end = End::Closed;
        true
    }
}
