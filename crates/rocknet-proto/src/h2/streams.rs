//! Table of open streams: reuses slots, finds streams by number, and remembers recently closed streams.

mod slot_index;

use super::flow::{SendWindow, WindowOverflow};
use super::scheduler::Scheduler;
use super::stream::{NO_SLOT, OpenStream, StreamState};
use crate::multiplexed::Priority;
use slot_index::SlotIndex;

/// Number of a stream (RFC 9113 §5.1.1) and its slot in the table. A stale identifier is never mistaken for the stream
/// that reuses the slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StreamId {
    pub(crate) number: u32,
    pub(crate) slot: u16,
}

impl StreamId {
    /// Returns the slot of the stream: a small number that is unique among the connection's open streams.
    pub fn slot(self) -> usize {
        usize::from(self.slot)
    }

    /// Returns the number on the wire (RFC 9113 §5.1.1).
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Returns whether the server opened the stream by a promise (RFC 9113 §8.4).
    pub const fn is_promised(self) -> bool {
        self.number & 1 == 0
    }
}

/// Upper bound for the configured number of concurrent streams, which limits the streams that the client opens and,
/// separately, those that the server pushes. Slots have 16 bits, and no client needs more streams.
pub(crate) const STREAMS_CEILING: usize = 1 << 12;

/// Number of DATA frames of a connection that the client's windows may cut below a useful size. Each larger frame
/// compensates for one such frame. A client whose windows are used up only occasionally never reaches the limit. Above
/// the limit, data waits until the windows admit a useful frame.
const SMALL_FRAMES: u8 = 64;

/// Maximum number of slots that a connection without streams keeps when it is trimmed. If it has more slots, all slots
/// are freed. `Vec` allocates four slots at first, so a client with few concurrent requests causes one allocation.
const SPARE_SLOTS: usize = 4;

/// Number of streams reset by the server that are remembered, so that frames in flight to them are ignored. It equals
/// the default limit of concurrent streams, because all of them can be reset at the same time.
const RESET_HISTORY: usize = 128;

/// Number of streams ended by both sides, or reset by the client, that are remembered. They distinguish a frame after
/// the end of its stream from a frame with an invalid stream number. A few suffice: DATA on an older stream is ignored
/// and counted as stale, and HEADERS on it are an error in any case.
const ENDED_HISTORY: usize = 8;

/// Table of open streams.
#[derive(Debug)]
pub(crate) struct Streams {
    slots: Vec<OpenStream>,
    /// First free slot. Free slots are linked by `next`.
    free: u16,
    /// Number of open streams.
    live: u16,
    /// Number of streams whose response has not ended.
    pending_responses: u16,
    /// Number of open streams that the client opened.
    client_initiated: u16,
    slot_index: SlotIndex,
    pub scheduler: Scheduler,
    /// Number of small frames sent, minus the small frames that larger frames have compensated for.
    small_frames: u8,
    /// Numbers of the streams that the server reset last.
    recently_reset: Vec<u32>,
    /// Numbers of the streams that both sides ended or the client reset last.
    recently_ended: [u32; ENDED_HISTORY],
    /// Position at which the next number enters `recently_reset` once this list is full.
    reset_next: u8,
    /// Position at which the next number enters `recently_ended`.
    ended_next: u8,
}

impl Streams {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: NO_SLOT,
            live: 0,
            pending_responses: 0,
            client_initiated: 0,
            slot_index: SlotIndex::new(),
            scheduler: Scheduler::new(),
            small_frames: 0,
            recently_reset: Vec::new(),
            recently_ended: [0; ENDED_HISTORY],
            reset_next: 0,
            ended_next: 0,
        }
    }

    /// Returns the number of open streams.
    pub(crate) fn live(&self) -> usize {
        usize::from(self.live)
    }

    /// Returns the number of streams whose response has not ended.
    pub(crate) fn pending_responses(&self) -> usize {
        usize::from(self.pending_responses)
    }

    /// Returns the number of open streams that the client opened.
    pub(crate) fn client_initiated(&self) -> usize {
        usize::from(self.client_initiated)
    }

    /// Returns the memory used, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<OpenStream>()
            + self.slot_index.memory()
            + self.recently_reset.capacity() * size_of::<u32>()
    }

    /// Frees memory that a connection without streams does not need.
    pub(crate) fn trim(&mut self) {
        if self.live == 0 && self.slots.capacity() > SPARE_SLOTS {
            (self.slots, self.free, self.slot_index) = (Vec::new(), NO_SLOT, SlotIndex::new());
        }
    }

    /// Adds a stream whose response is pending.
    #[inline]
    pub(crate) fn insert(&mut self, stream: OpenStream) -> StreamId {
        let number = stream.id;
        let slot = if self.free != NO_SLOT {
            let slot = self.free;
            self.free = self.slots[usize::from(slot)].next;
            self.slots[usize::from(slot)] = stream;
            slot
        } else {
            self.slots.push(stream);
            (self.slots.len() - 1) as u16
        };
        self.slot_index.insert(number, slot);
        self.live += 1;
        self.pending_responses += 1;
        self.client_initiated += (number & 1) as u16;
        StreamId { number, slot }
    }

    /// Returns the open stream with this number; `None` if no open stream has it.
    #[inline]
    pub(crate) fn find(&self, number: u32) -> Option<StreamId> {
        let slot = self.slot_index.find(number)?;
        Some(StreamId { number, slot })
    }

    /// Returns the stream, unless it has been removed.
    #[inline]
    pub(crate) fn get(&self, id: StreamId) -> Option<&OpenStream> {
        self.slots
            .get(usize::from(id.slot))
            .filter(|stream| stream.id == id.number)
    }

    /// Returns the stream, unless it has been removed.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut OpenStream> {
        self.slots
            .get_mut(usize::from(id.slot))
            .filter(|stream| stream.id == id.number)
    }

    /// Returns the stream that sends next, its window, and its queued bytes; `None` if no stream has data to send.
    #[inline]
    pub(crate) fn next_to_send(&self) -> Option<(StreamId, SendWindow, u64)> {
        let slot = self.scheduler.front()?;
        let stream = self.slots.get(usize::from(slot))?;
        let number = stream.id;
        Some((StreamId { number, slot }, stream.send_window, stream.queued))
    }

    /// Adds the stream to the scheduler or removes it, depending on its window and its queued bytes.
    #[inline]
    pub(crate) fn reschedule(&mut self, id: StreamId) {
        let Some(stream) = self.get(id) else { return };
        if stream.queued > 0 && self.admits(stream.send_window, stream.queued) {
            self.scheduler.insert(&mut self.slots, id.slot);
        } else if stream.is_scheduled {
            self.scheduler.remove(&mut self.slots, id.slot);
        }
    }

    /// Returns whether a window permits sending some of `ready` bytes. As long as small frames are permitted, any
    /// number of bytes is enough. After that, the window must admit a useful frame.
    #[inline]
    pub(crate) fn admits(&self, window: SendWindow, ready: u64) -> bool {
        if self.small_frames < SMALL_FRAMES {
            window.available() > 0
        } else {
            window.admits(ready)
        }
    }

    /// Counts a sent DATA frame. `small` is true if a window cut it below a useful size.
    #[inline]
    pub(crate) fn count_frame(&mut self, small: bool) {
        self.small_frames = if small {
            (self.small_frames + 1).min(SMALL_FRAMES)
        } else {
            self.small_frames.saturating_sub(1)
        };
    }

    /// Selects the next stream to send, after the stream `id` has sent a frame.
    #[inline]
    pub(crate) fn rotate(&mut self, id: StreamId) {
        if self.get(id).is_some_and(|stream| stream.is_scheduled) {
            self.scheduler.rotate(&mut self.slots, id.slot);
        }
    }

    /// Changes the priority of a stream and moves it to its new queue.
    pub(crate) fn set_priority(&mut self, id: StreamId, priority: Priority) {
        if self.get(id).is_some() {
            self.scheduler.remove(&mut self.slots, id.slot);
            self.slots[usize::from(id.slot)].priority = priority;
            self.reschedule(id);
        }
    }

    /// Applies a change of the client's initial window to all streams (RFC 9113 §6.9.2).
    pub(crate) fn adjust_windows(&mut self, by: i64) -> Result<(), WindowOverflow> {
        for slot in 0..self.slots.len() {
            let stream = &mut self.slots[slot];
            // A free slot has the stream number 0.
            if stream.id != 0 {
                stream.send_window.change(by)?;
                let number = stream.id;
                self.reschedule(StreamId {
                    number,
                    slot: slot as u16,
                });
            }
        }
        Ok(())
    }

    /// Counts a response as ended. The caller has already changed the state, so that [`remove`](Self::remove) does not
    /// count it again.
    #[inline]
    pub(crate) fn response_ended(&mut self) {
        self.pending_responses -= 1;
    }

    /// Removes a stream and drops its queued bytes. Returns the number of bytes of its request body that were not
    /// released.
    #[inline]
    pub(crate) fn remove(&mut self, id: StreamId) -> u32 {
        if self.get(id).is_none() {
            return 0;
        }
        self.scheduler.remove(&mut self.slots, id.slot);
        self.slot_index.remove(id.number);
        let stream = &mut self.slots[usize::from(id.slot)];
        self.pending_responses -= u16::from(stream.state.can_send());
        self.live -= 1;
        self.client_initiated -= (id.number & 1) as u16;
        let unreleased = stream.unreleased;
        (stream.id, stream.state, stream.queued, stream.unreleased) = (0, StreamState::Closed, 0, 0);
        stream.next = std::mem::replace(&mut self.free, id.slot);
        unreleased
    }

    /// Remembers a stream that both sides ended or the client reset.
    #[inline]
    pub(crate) fn remember_end(&mut self, number: u32) {
        self.recently_ended[usize::from(self.ended_next) % ENDED_HISTORY] = number;
        self.ended_next = self.ended_next.wrapping_add(1);
    }

    /// Remembers a stream that the server reset.
    pub(crate) fn remember_reset(&mut self, number: u32) {
        if self.recently_reset.len() < RESET_HISTORY {
            self.recently_reset.push(number);
        } else {
            self.recently_reset[usize::from(self.reset_next) % RESET_HISTORY] = number;
            self.reset_next = self.reset_next.wrapping_add(1);
        }
    }

    /// Returns true if both sides ended the stream, or the client reset it, and the stream is still remembered.
    pub(crate) fn was_ended(&self, number: u32) -> bool {
        self.recently_ended.contains(&number)
    }

    /// Returns true if the server reset the stream, and the stream is still remembered.
    pub(crate) fn was_reset(&self, number: u32) -> bool {
        self.recently_reset.contains(&number)
    }
}

const _: () = assert!(
    256 % RESET_HISTORY == 0 && 256 % ENDED_HISTORY == 0,
    "the positions have 8 bits, so the length of each history must divide 256"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(number: u32) -> OpenStream {
        OpenStream::new(number, StreamState::Open, 10, 10)
    }

    #[test]
    fn stale_ids_are_not_found() {
        let mut streams = Streams::new();
        let first = streams.insert(stream(1));
        assert_eq!(streams.find(1), Some(first));
        streams.remove(first);
        let second = streams.insert(stream(3));
        assert_eq!(
            (first.slot, streams.live(), streams.pending_responses()),
            (second.slot, 1, 1)
        );
        assert!(streams.get(first).is_none() && streams.find(1).is_none());
        assert_eq!(streams.remove(first), 0);
        assert_eq!(streams.live(), 1);
    }

    #[test]
    fn memory_is_freed_when_no_stream_is_open() {
        let mut streams = Streams::new();
        let ids: Vec<StreamId> = (0..100).map(|n| streams.insert(stream(n * 2 + 1))).collect();
        for &id in &ids {
            streams.trim();
            streams.remove(id);
        }
        assert!(streams.memory() > 0);
        streams.trim();
        assert_eq!(streams.memory(), 0);
        assert_eq!(streams.insert(stream(201)).slot, 0);
    }

    #[test]
    fn histories_keep_the_latest_numbers() {
        let mut streams = Streams::new();
        for number in 1..=1000 {
            streams.remember_reset(number);
            streams.remember_end(number);
        }
        let (reset, ended) = (1000 - RESET_HISTORY as u32, 1000 - ENDED_HISTORY as u32);
        assert!((1..=1000).all(|number| streams.was_reset(number) == (number > reset)));
        assert!((1..=1000).all(|number| streams.was_ended(number) == (number > ended)));
    }
}
