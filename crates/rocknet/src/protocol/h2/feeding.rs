//! Feeding: content of answers into frames, as windows and priorities allow.

use std::rc::Rc;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;
use rocknet_io::tls::RECORD;
use rocknet_proto::h2::FRAME_HEADER;

use super::answer::State;
use super::connection::{self, Connection};
use crate::worker::Worker;

/// Most that is rendered before it is sent, so that a client that requests without reading cannot fill memory. On slow links
/// `send_ahead` allows less.
pub(super) const OUTPUT_BOUND: u64 = 256 * 1024;

/// Under TLS a frame fills a record together with its header: else each record holds the end of a frame and the beginning
/// of another, which lie apart and are copied together, or read from their file by two calls.
const FRAME_IN_RECORD: u64 = (RECORD - FRAME_HEADER) as u64;

impl<L: Link> Connection<L> {
    /// Frames what may be sent; true if an answer has nothing ready any more and more to come.
    #[inline]
    pub(super) fn frame(&mut self, worker: &Rc<Worker>, output: &mut SendQueue) -> bool {
        let mut drained = false;
        let frame = if self.secure.is_some() {
            FRAME_IN_RECORD
        } else {
            u64::MAX
        };
        self.is_tight = self.ahead.is_limited() && self.awaits_urgent();
        let bound = self.ahead.round(self.is_tight);
        while output.len() < bound {
            let most = frame.min(bound - output.len());
            let Some(grant) = self.engine.next_data(most, output.buffer()) else {
                break;
            };
            let Some(answer) = self.answers.get_mut(grant.stream) else {
                return self.lose(output);
            };
            let (supply, sent, status) = match &mut answer.state {
                State::Feeding { supply, sent, status } => (supply, sent, Some(*status)),
                State::Tunnelling(tunnel) => (&mut tunnel.supply, &mut tunnel.sent, None),
                State::Held(_) | State::Waiting(_) => return self.lose(output),
            };
            supply.put(grant.length, output);
            *sent += grant.length;
            answer.deadlines.moved(grant.length);
            // The end of one direction of a tunnel is not the end of the other.
            if let (true, Some(status)) = (grant.end, status) {
                let sent = *sent;
                if let Some(answer) = self.answers.take(grant.stream) {
                    let request = answer.request_context.request.as_ref().map(|request| request.view());
                    self.answered(worker, answer.request_context.access, request.as_ref(), status, sent);
                }
            } else if supply.ready() == 0 {
                drained = true;
            }
        }
        drained
    }

    /// Whether a response with nothing ready would go ahead of what is sent next.
    fn awaits_urgent(&self) -> bool {
        self.engine.may_send()
            && self
                .answers
                .awaited()
                .any(|stream| self.engine.offered(stream) == 0 && self.engine.goes_ahead(stream))
    }

    /// A frame was begun that nothing belongs into: a mistake of ours, which only the end of the connection mends.
    #[cold]
    fn lose(&mut self, output: &mut SendQueue) -> bool {
        tracing::error!("content of an answer was lost; its connection is cut");
        output.clear();
        self.state = connection::State::Closed;
        true
    }
}
