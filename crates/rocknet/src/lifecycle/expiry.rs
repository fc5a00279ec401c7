//! Selects the action on an exchange whose deadline has passed.

use super::deadlines::{Deadlines, Wait};
use super::exchange::{ActiveExchange, Stage};
use crate::exchange::{BodyChannel, BodyError};
use crate::pipeline::refusals;
use crate::worker::Worker;

/// Action on an exchange whose deadline has passed.
pub enum Expiry {
    /// Respond with an error, because the response has not begun.
    Respond,
    /// Close both directions of a tunnel in an orderly way, because the client has taken all that was sent.
    EndTunnel,
    /// Cut the response or tunnel.
    Cut,
}

impl ActiveExchange {
    /// Logs a handler timeout, fails the request body if the client was too slow, and returns the action.
    /// `channel`: carries the request body to the handler; `None` without a body. `is_half_closed`: true if the
    /// client has closed its sending side. The handler then had only the shorter timeout of a half-closed connection,
    /// which is not logged.
    #[cold]
    pub fn expire(
        &self,
        worker: &Worker,
        deadlines: &Deadlines,
        channel: Option<&BodyChannel>,
        is_half_closed: bool,
    ) -> Expiry {
        let wait = deadlines.wait();
        if wait == Wait::Handler && !is_half_closed {
            let has_fallback = matches!(&self.stage, Stage::Waiting(pending) if pending.plain_fallback.is_some());
            let limits = deadlines.handler_limits();
            refusals::log_handler_timeout(worker, Some(&self.context), limits, has_fallback);
        }
        if let (Wait::RequestBody, Some(channel)) = (wait, channel) {
            channel.end(Err(BodyError::TooSlow));
        }
        match &self.stage {
            Stage::Waiting(_) if matches!(wait, Wait::RequestBody | Wait::Handler) => Expiry::Respond,
            Stage::Tunnel(tunnel) if tunnel.ready.ready() == 0 && wait != Wait::Send => Expiry::EndTunnel,
            _ => Expiry::Cut,
        }
    }
}
