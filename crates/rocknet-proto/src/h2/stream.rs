//! One stream: its state, its windows, and the data that each side may still send on it (RFC 9113 §5.1).

use super::flow::{ReceiveWindow, SendWindow};
use crate::multiplexed::Priority;

/// State of a stream, from the server's point of view.
///
/// ```text
///             HEADERS received
///      idle ────────────────────► Open ──────── end sent ────────► HalfClosedLocal
///       │                          │                                     │
///       │ PUSH_PROMISE sent        │ end received                        │ end received
///       ▼                          ▼                                     ▼
///  ReservedLocal ── head sent ─► HalfClosedRemote ──── end sent ─────► Closed
///
///      any ── RST_STREAM, sent or received ─► Closed
/// ```
///
/// A sent head does not change `Open` or `HalfClosedRemote`.
///
/// Idle and closed streams are not in the stream table: a number above the last opened stream is idle, and any other
/// number that is not in the table is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StreamState {
    ReservedLocal,
    Open,
    HalfClosedLocal,
    HalfClosedRemote,
    Closed,
}

/// Transition between states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StreamTransition {
    HeadSent,
    EndSent,
    EndReceived,
}

impl StreamState {
    /// Returns the state after a transition, or `None` if the transition is invalid.
    #[inline]
    pub(crate) const fn after(self, transition: StreamTransition) -> Option<StreamState> {
        match (self, transition) {
            (Self::Open, StreamTransition::HeadSent) => Some(Self::Open),
            (Self::Open, StreamTransition::EndSent) => Some(Self::HalfClosedLocal),
            (Self::Open, StreamTransition::EndReceived) => Some(Self::HalfClosedRemote),
            (Self::HalfClosedLocal, StreamTransition::EndReceived) => Some(Self::Closed),
            (Self::HalfClosedRemote | Self::ReservedLocal, StreamTransition::HeadSent) => Some(Self::HalfClosedRemote),
            (Self::HalfClosedRemote, StreamTransition::EndSent) => Some(Self::Closed),
            _ => None,
        }
    }

    /// Returns whether the client may still send frames of the request.
    #[inline]
    pub(crate) const fn can_receive(self) -> bool {
        matches!(self, Self::Open | Self::HalfClosedLocal)
    }

    /// Returns whether the response has not ended.
    #[inline]
    pub(crate) const fn can_send(self) -> bool {
        matches!(self, Self::Open | Self::HalfClosedRemote | Self::ReservedLocal)
    }
}

/// Number that marks a missing slot, and the ends of a list of slots.
pub(crate) const NO_SLOT: u16 = u16::MAX;

/// One slot of the stream table.
#[derive(Debug)]
pub(crate) struct OpenStream {
    /// Number of the stream; 0 while the slot is free.
    pub id: u32,
    pub state: StreamState,
    /// Set once the final head is sent. Only the body and trailers may follow.
    pub head_sent: bool,
    /// True if the request body is discarded: it is not reported, and its data does not replenish the stream's
    /// window.
    pub discards_body: bool,
    /// True if the method of the request is HEAD.
    pub is_head: bool,
    /// True if the stream carries a tunnel, whose two directions end separately.
    pub is_tunnel: bool,
    /// True if the queued bytes end the response.
    pub end_queued: bool,
    /// True if the stream is in a queue of the scheduler.
    pub is_scheduled: bool,
    pub priority: Priority,
    /// Slot of the next stream in the scheduler's queue, or, in a free slot, the next free slot.
    pub next: u16,
    /// Slot of the previous stream in the scheduler's queue.
    pub previous: u16,
    pub send_window: SendWindow,
    pub receive_window: ReceiveWindow,
    /// Bytes of the response body that are ready and not framed.
    pub queued: u64,
    /// Bytes of the request body that were reported and not released.
    pub unreleased: u32,
    /// Bytes of the request body still due according to Content-Length; `None` if the head has no Content-Length.
    pub remaining_length: Option<u64>,
    /// Bytes of the request body that the limit still allows.
    pub remaining_limit: u64,
}

impl OpenStream {
    /// Creates a stream. Both windows are in bytes.
    pub(crate) fn new(id: u32, state: StreamState, send_window: u32, receive_window: u32) -> Self {
        Self {
            id,
            state,
            head_sent: false,
            discards_body: false,
            is_head: false,
            is_tunnel: false,
            end_queued: false,
            is_scheduled: false,
            priority: Priority::DEFAULT,
            next: NO_SLOT,
            previous: NO_SLOT,
            send_window: SendWindow::new(send_window),
            receive_window: ReceiveWindow::new(receive_window),
            queued: 0,
            unreleased: 0,
            remaining_length: None,
            remaining_limit: u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StreamState::*;
    use super::StreamTransition::*;

    #[test]
    fn transitions_match_the_diagram() {
        // State, and the states that follow after `HeadSent`, `EndSent` and `EndReceived`.
        let rows = [
            (ReservedLocal, [Some(HalfClosedRemote), None, None]),
            (Open, [Some(Open), Some(HalfClosedLocal), Some(HalfClosedRemote)]),
            (HalfClosedLocal, [None, None, Some(Closed)]),
            (HalfClosedRemote, [Some(HalfClosedRemote), Some(Closed), None]),
            (Closed, [None, None, None]),
        ];
        for (state, expected) in rows {
            let found = [HeadSent, EndSent, EndReceived].map(|transition| state.after(transition));
            assert_eq!(found, expected, "{state:?}");
            assert_eq!(state.can_receive(), state.after(EndReceived).is_some(), "{state:?}");
        }
    }
}
