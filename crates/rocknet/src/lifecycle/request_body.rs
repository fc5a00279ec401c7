//! Deadlines of an exchange while its handler runs and may wait for more of the request body.

use super::deadlines::Deadlines;
use super::exchange::ActiveExchange;
use crate::exchange::BodyChannel;

impl ActiveExchange {
    /// Sets the deadline of the side that has to act next. If the handler waits for more of the request body
    /// (`wants_body`), this is the client, unless client and handler may pause (see `may_pause`). Otherwise it is the
    /// handler. `channel`: carries the request body to the handler; `None` if no more of the body is to be received.
    /// `body_ticks`, `handler_ticks`: timeouts of the waits for the client and for the handler, in ticks.
    pub fn await_handler(
        &self,
        wants_body: bool,
        channel: Option<&BodyChannel>,
        deadlines: &mut Deadlines,
        (body_ticks, handler_ticks): (u32, u32),
    ) {
        if channel.is_some_and(BodyChannel::take_progress) {
            // The handler has read stored bytes of the body, so it does not hang.
            deadlines.end_handler_wait();
        }
        if wants_body && !self.may_pause(channel) {
            deadlines.enter_request_body(body_ticks);
        } else {
            deadlines.enter_handler(handler_ticks);
        }
    }

    /// Called when data of the request body has reached the handler. If client and handler may pause, the deadline of
    /// the handler also covers the client. A client that sends is not idle, so this wait ends, and the next call of
    /// [`ActiveExchange::await_handler`] begins it again with the full time.
    pub fn body_progressed(&self, channel: Option<&BodyChannel>, deadlines: &mut Deadlines) {
        if self.may_pause(channel) {
            deadlines.end_handler_wait();
        }
    }

    /// Returns true if client and handler may pause, each for up to the timeout of the handler. They may if the
    /// response has begun, or if the handler permits pauses of the request body, as for a call of gRPC.
    fn may_pause(&self, channel: Option<&BodyChannel>) -> bool {
        self.is_sending() || channel.is_some_and(BodyChannel::may_pause)
    }
}
