//! Taking leave: one GOAWAY that names no stream, and when the client has heard it, the one that counts (RFC 9113 §6.8).

use super::ServerConnection;
use super::drain_state::DrainState;
use crate::h2::error::ErrorCode;
use crate::h2::flow::WINDOW_MAX;
use crate::h2::frame;

/// What the PING behind the first GOAWAY carries: its answer says that the client has read both.
const DRAIN_PING: [u8; 8] = *b"farewell";

/// The greatest stream number: any request under way is still taken.
const MAX_STREAM_ID: u32 = WINDOW_MAX;

impl ServerConnection {
    /// Tells the client to open no more streams. Those that are open or under way are answered; when the client has heard,
    /// the last one it opened is named.
    pub fn begin_drain(&mut self, out: &mut Vec<u8>) {
        if self.drain_state == DrainState::Active && !self.is_closed() {
            self.drain_state = DrainState::Announced;
            frame::go_away(MAX_STREAM_ID, ErrorCode::NoError, out);
            frame::ping(DRAIN_PING, false, out);
        }
    }

    /// Names the last stream that is answered, without waiting for the client any longer.
    pub fn finish_drain(&mut self, out: &mut Vec<u8>) {
        if !matches!(self.drain_state, DrainState::Final { .. }) && !self.is_closed() {
            self.drain_state = DrainState::Final {
                last: self.last_client_stream,
            };
            frame::go_away(self.last_client_stream, ErrorCode::NoError, out);
        }
    }

    /// Whether a PING that was answered is the one behind GOAWAY.
    pub(super) fn finish_drain_on_ack(&mut self, opaque: [u8; 8], out: &mut Vec<u8>) -> bool {
        let is_ack = self.drain_state == DrainState::Announced && opaque == DRAIN_PING;
        if is_ack {
            self.finish_drain(out);
        }
        is_ack
    }

    /// The client knows that the server leaves.
    pub fn is_draining(&self) -> bool {
        self.drain_state != DrainState::Active
    }

    /// All that was to be answered is: the connection can be closed.
    pub fn is_drained(&self) -> bool {
        let is_final = matches!(self.drain_state, DrainState::Final { .. }) || self.client_is_leaving;
        is_final && self.is_idle()
    }
}
