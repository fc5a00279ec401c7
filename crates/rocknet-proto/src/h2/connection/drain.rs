//! Graceful shutdown in two steps: a GOAWAY that refuses no stream, then, once the client has read that frame, the
//! final GOAWAY (RFC 9113 §6.8).

use super::ServerConnection;
use super::drain_state::DrainState;
use crate::h2::error::ErrorCode;
use crate::h2::flow::WINDOW_MAX;
use crate::h2::frame;

/// Payload of the PING sent after the first GOAWAY. Its acknowledgement proves that the client has read the GOAWAY
/// before it.
const DRAIN_PING: [u8; 8] = *b"farewell";

/// Largest stream number: 2^31-1, as for windows. A GOAWAY with this number refuses no request in flight.
const MAX_STREAM_ID: u32 = WINDOW_MAX;

impl ServerConnection {
    /// Announces that the connection will close (RFC 9113 §6.8). Requests that are open or in flight still get their
    /// responses. A PING follows; once the client acknowledges it, a final GOAWAY names the last stream.
    pub fn begin_drain(&mut self, out: &mut Vec<u8>) {
        if self.drain_state == DrainState::Active && !self.is_closed() {
            self.drain_state = DrainState::Announced;
            frame::go_away(MAX_STREAM_ID, ErrorCode::NoError, out);
            frame::ping(DRAIN_PING, out);
        }
    }

    /// Writes the final GOAWAY without waiting for the client's acknowledgement. Later streams are ignored.
    pub fn finish_drain(&mut self, out: &mut Vec<u8>) {
        if !matches!(self.drain_state, DrainState::Final { .. }) && !self.is_closed() {
            self.drain_state = DrainState::Final {
                last: self.last_client_stream,
            };
            frame::go_away(self.last_client_stream, ErrorCode::NoError, out);
        }
    }

    /// Finishes the drain if the acknowledged PING is the PING sent after the first GOAWAY. Returns true in that case.
    pub(super) fn finish_drain_on_ack(&mut self, opaque: [u8; 8], out: &mut Vec<u8>) -> bool {
        let is_ack = self.drain_state == DrainState::Announced && opaque == DRAIN_PING;
        if is_ack {
            self.finish_drain(out);
        }
        is_ack
    }

    /// Returns whether the server has written a GOAWAY.
    pub fn is_draining(&self) -> bool {
        self.drain_state != DrainState::Active
    }

    /// Returns whether the connection is [idle](Self::is_idle) after the server's final GOAWAY or any GOAWAY of the
    /// client. It can then be closed.
    pub fn is_drained(&self) -> bool {
        let is_final = matches!(self.drain_state, DrainState::Final { .. }) || self.client_is_leaving;
        is_final && self.is_idle()
    }
}
