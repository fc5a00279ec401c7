//! Deadlines of an exchange while its handler runs and may wait for more of the request body.

use super::deadlines::Deadlines;
use super::exchange::ActiveExchange;
use crate::exchange::BodyChannel;

impl ActiveExchange {
    /// Sets the deadline: for the client if the handler waits for more of the request body (`wants_body`) and the sides
    /// may not pause, otherwise for the handler. `channel`: carries the request body to the handler; `None` if no more
    /// of the body is to be received.
    pub fn await_handler(
        &self,
        wants_body: bool,
        channel: Option<&BodyChannel>,
        deadlines: &mut Deadlines,
        (body_ticks, handler_ticks): (u32, u32),
    ) {
        if channel.is_some_and(BodyChannel::take_progress) {
            // The handler has read from the spool, so it does not hang.
            deadlines.leave_handler();
        }
        if wants_body && !self.may_pause(channel) {
            deadlines.enter_request_body(body_ticks);
        } else {
            deadlines.enter_handler(handler_ticks);
        }
    }

    /// Restarts the deadline after data of the request body has reached the handler, if both sides may pause, because a
    /// client that sends is not idle.
    pub fn got_body(&self, channel: Option<&BodyChannel>, deadlines: &mut Deadlines) {
        if self.may_pause(channel) {
            deadlines.leave_handler();
        }
    }

    /// Returns true if both sides may pause: the response has begun, or the request body channel permits pauses.
    fn may_pause(&self, channel: Option<&BodyChannel>) -> bool {
        self.is_sending() || channel.is_some_and(BodyChannel::may_pause)
    }
}
