//! Taking leave: one GOAWAY that names no stream, and when the client has heard it, the one that counts (RFC 9113 §6.8).

use super::ServerConnection;
use super::drain_state::Leaving;
use crate::h2::error::ErrorCode;
use crate::h2::flow::WINDOW_MAX;
use crate::h2::frame;

/// What the PING behind the first GOAWAY carries: its answer says that the client has read both.
const FAREWELL: [u8; 8] = *b"farewell";

/// The greatest stream number: any request under way is still taken.
const ANY_STREAM: u32 = WINDOW_MAX;

impl ServerConnection {
    /// Tells the client to open no more streams. Those that are open or under way are answered; when the client has heard,
    /// the last one it opened is named.
    pub fn begin_drain(&mut self, out: &mut Vec<u8>) {
        if self.leaving == Leaving::Staying && !self.is_closed() {
            self.leaving = Leaving::Announced;
            frame::go_away(ANY_STREAM, ErrorCode::NoError, out);
            frame::ping(FAREWELL, false, out);
        }
    }

    /// Names the last stream that is answered, without waiting for the client any longer.
    pub fn finish_drain(&mut self, out: &mut Vec<u8>) {
        if !matches!(self.leaving, Leaving::Final { .. }) && !self.is_closed() {
            self.leaving = Leaving::Final { last: self.last_client };
            frame::go_away(self.last_client, ErrorCode::NoError, out);
        }
    }

    /// Whether a PING that was answered is the one behind GOAWAY.
    pub(super) fn farewell_heard(&mut self, opaque: [u8; 8], out: &mut Vec<u8>) -> bool {
        let heard = self.leaving == Leaving::Announced && opaque == FAREWELL;
        if heard {
            self.finish_drain(out);
        }
        heard
    }

    /// The client knows that the server leaves.
    pub fn is_draining(&self) -> bool {
        self.leaving != Leaving::Staying
    }

    /// All that was to be answered is: the connection can be closed.
    pub fn is_drained(&self) -> bool {
        let is_final = matches!(self.leaving, Leaving::Final { .. }) || self.client_leaves;
        is_final && self.is_idle()
    }
}
