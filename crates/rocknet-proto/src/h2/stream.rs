//! One stream: where it is between idle and closed, and what each side may still send on it (RFC 9113 §5.1).

use super::flow::{ReceiveWindow, SendWindow};
use super::priority::Priority;

/// The state of a stream, seen from the server.
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
/// Idle and closed streams take no memory: a number above the last one is idle, one that is not in the table is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StreamState {
    ReservedLocal,
    Open,
    HalfClosedLocal,
    HalfClosedRemote,
    Closed,
}

/// What moves a stream on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StreamTransition {
    HeadSent,
    EndSent,
    EndReceived,
}

impl StreamState {
    /// The state after a step; `None` where the step cannot be.
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

    /// Whether the client may still send content.
    #[inline]
    pub(crate) const fn can_receive(self) -> bool {
        matches!(self, Self::Open | Self::HalfClosedLocal)
    }

    /// Whether the answer is not yet ended.
    #[inline]
    pub(crate) const fn can_send(self) -> bool {
        matches!(self, Self::Open | Self::HalfClosedRemote | Self::ReservedLocal)
    }
}

/// Stands where no place in the table is meant.
pub(crate) const NO_SLOT: u16 = u16::MAX;

#[derive(Debug)]
pub(crate) struct OpenStream {
    /// 0 while the place is free.
    pub id: u32,
    pub state: StreamState,
    /// The final head is sent; only content and trailers may follow.
    pub head_sent: bool,
    /// Content is neither told nor granted again: nobody wants it.
    pub discards_body: bool,
    /// Bytes both ways: the end of ours is not the end of the client's.
    pub is_tunnel: bool,
    /// Content that is offered ends the stream.
    pub end_queued: bool,
    /// It stands in a lane of those that may send.
    pub is_scheduled: bool,
    pub priority: Priority,
    /// Neighbours in that lane; `next` also links free places.
    pub next: u16,
    pub previous: u16,
    pub send_window: SendWindow,
    pub receive_window: ReceiveWindow,
    /// Content the server has ready and that is not yet framed.
    pub queued: u64,
    /// Content told to the server and not yet released by it.
    pub unreleased: u32,
    /// Content still to come by Content-Length.
    pub remaining_length: Option<u64>,
    /// Content that the site still allows.
    pub remaining_limit: u64,
}

impl OpenStream {
    pub(crate) fn new(id: u32, state: StreamState, send_window: u32, receive_window: u32) -> Self {
        Self {
            id,
            state,
            head_sent: false,
            discards_body: false,
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
    fn transitions_match_the_drawing() {
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
