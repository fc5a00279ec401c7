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
pub(crate) enum State {
    ReservedLocal,
    Open,
    HalfClosedLocal,
    HalfClosedRemote,
    Closed,
}

/// What moves a stream on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    HeadSent,
    EndSent,
    EndReceived,
}

impl State {
    /// The state after a step; `None` where the step cannot be.
    #[inline]
    pub(crate) const fn after(self, step: Step) -> Option<State> {
        match (self, step) {
            (Self::Open, Step::HeadSent) => Some(Self::Open),
            (Self::Open, Step::EndSent) => Some(Self::HalfClosedLocal),
            (Self::Open, Step::EndReceived) => Some(Self::HalfClosedRemote),
            (Self::HalfClosedLocal, Step::EndReceived) => Some(Self::Closed),
            (Self::HalfClosedRemote | Self::ReservedLocal, Step::HeadSent) => Some(Self::HalfClosedRemote),
            (Self::HalfClosedRemote, Step::EndSent) => Some(Self::Closed),
            _ => None,
        }
    }

    /// Whether the client may still send content.
    #[inline]
    pub(crate) const fn receives(self) -> bool {
        matches!(self, Self::Open | Self::HalfClosedLocal)
    }

    /// Whether the answer is not yet ended.
    #[inline]
    pub(crate) const fn sends(self) -> bool {
        matches!(self, Self::Open | Self::HalfClosedRemote | Self::ReservedLocal)
    }
}

/// Stands where no place in the table is meant.
pub(crate) const NO_PLACE: u16 = u16::MAX;

#[derive(Debug)]
pub(crate) struct Stream {
    /// 0 while the place is free.
    pub id: u32,
    pub state: State,
    /// The final head is sent; only content and trailers may follow.
    pub answered: bool,
    /// Content is neither told nor granted again: nobody wants it.
    pub ignores_content: bool,
    /// Bytes both ways: the end of ours is not the end of the client's.
    pub is_tunnel: bool,
    /// Content that is offered ends the stream.
    pub ends: bool,
    /// It stands in a lane of those that may send.
    pub is_ready: bool,
    pub priority: Priority,
    /// Neighbours in that lane; `next` also links free places.
    pub next: u16,
    pub previous: u16,
    pub send_window: SendWindow,
    pub receive_window: ReceiveWindow,
    /// Content the server has ready and that is not yet framed.
    pub offered: u64,
    /// Content told to the server and not yet released by it.
    pub unreleased: u32,
    /// Content still to come by Content-Length.
    pub announced: Option<u64>,
    /// Content that the site still allows.
    pub allowed: u64,
}

impl Stream {
    pub(crate) fn new(id: u32, state: State, send_window: u32, receive_window: u32) -> Self {
        Self {
            id,
            state,
            answered: false,
            ignores_content: false,
            is_tunnel: false,
            ends: false,
            is_ready: false,
            priority: Priority::UNTOLD,
            next: NO_PLACE,
            previous: NO_PLACE,
            send_window: SendWindow::new(send_window),
            receive_window: ReceiveWindow::new(receive_window),
            offered: 0,
            unreleased: 0,
            announced: None,
            allowed: u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::State::*;
    use super::Step::*;

    #[test]
    fn steps_are_those_of_the_drawing() {
        let rows = [
            (ReservedLocal, [Some(HalfClosedRemote), None, None]),
            (Open, [Some(Open), Some(HalfClosedLocal), Some(HalfClosedRemote)]),
            (HalfClosedLocal, [None, None, Some(Closed)]),
            (HalfClosedRemote, [Some(HalfClosedRemote), Some(Closed), None]),
            (Closed, [None, None, None]),
        ];
        for (state, expected) in rows {
            let found = [HeadSent, EndSent, EndReceived].map(|step| state.after(step));
            assert_eq!(found, expected, "{state:?}");
            assert_eq!(state.receives(), state.after(EndReceived).is_some(), "{state:?}");
        }
    }
}
