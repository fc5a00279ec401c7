//! The table of open streams: places used again, found by number, and those that were closed lately.

mod slot_index;

use super::flow::{SendWindow, TooLarge};
use super::scheduler::Ready;
use super::stream::{NO_PLACE, State, Stream};
use slot_index::Numbers;

/// A stream by its number and its place in the table; a stale one is told from the stream that took its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StreamId {
    pub(crate) number: u32,
    pub(crate) place: u16,
}

impl StreamId {
    /// A small number of its own among the streams that are open now.
    pub fn place(self) -> usize {
        usize::from(self.place)
    }

    /// The number on the wire.
    pub const fn number(self) -> u32 {
        self.number
    }

    /// We opened it, by a promise.
    pub const fn is_promised(self) -> bool {
        self.number & 1 == 0
    }
}

/// Streams of a connection at once, whatever the configuration says: places are kept in 16 bits, and nobody needs more.
pub(crate) const STREAMS_CEILING: usize = 1 << 12;

/// Frames of data that a connection may have cut to less than is worth a frame by its client's windows; each larger frame makes
/// up for one. A client whose windows are used up to a rest now and then never gets there. Beyond it data waits until the
/// windows admit a useful piece.
const SMALL_FRAMES: u8 = 64;

/// Places kept by a connection without streams; what more there was goes when it is trimmed.
const SPARE_PLACES: usize = 4;

/// Streams reset by us that are remembered, so that frames under way to them are passed over. As many as the streams a
/// client may have by default, since all of them may be reset at once.
const RESET_MEMORY: usize = 128;

/// Streams ended by both sides that are remembered, so that a frame behind their end is told from one out of order. What is
/// older is passed over as well and booked as stale.
const ENDED_MEMORY: usize = 8;

#[derive(Debug)]
pub(crate) struct Streams {
    places: Vec<Stream>,
    /// First of the free places, linked by `next`.
    free: u16,
    live: u16,
    /// Streams whose answer is not yet ended.
    owing: u16,
    /// Streams that the client opened.
    by_client: u16,
    slot_index: Numbers,
    pub ready: Ready,
    /// Content offered on all streams together.
    pub offered: u64,
    /// Small frames sent, less those that useful ones made up for.
    small_frames: u8,
    reset: Vec<u32>,
    ended: [u32; ENDED_MEMORY],
    /// Where in the two memories the next number goes.
    reset_next: u8,
    ended_next: u8,
}

impl Streams {
    pub(crate) const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: NO_PLACE,
            live: 0,
            owing: 0,
            by_client: 0,
            slot_index: Numbers::new(),
            ready: Ready::new(),
            offered: 0,
            small_frames: 0,
            reset: Vec::new(),
            ended: [0; ENDED_MEMORY],
            reset_next: 0,
            ended_next: 0,
        }
    }

    pub(crate) fn live(&self) -> usize {
        usize::from(self.live)
    }

    pub(crate) fn owing(&self) -> usize {
        usize::from(self.owing)
    }

    pub(crate) fn by_client(&self) -> usize {
        usize::from(self.by_client)
    }

    pub(crate) fn memory(&self) -> usize {
        self.places.capacity() * size_of::<Stream>()
            + self.slot_index.memory()
            + self.reset.capacity() * size_of::<u32>()
    }

    /// Gives back what a connection without streams does not need.
    pub(crate) fn trim(&mut self) {
        if self.live == 0 && self.places.capacity() > SPARE_PLACES {
            (self.places, self.free, self.slot_index) = (Vec::new(), NO_PLACE, Numbers::new());
        }
    }

    /// Adds a stream whose answer is owed.
    #[inline]
    pub(crate) fn insert(&mut self, stream: Stream) -> StreamId {
        let number = stream.id;
        let place = if self.free != NO_PLACE {
            let place = self.free;
            self.free = self.places[usize::from(place)].next;
            self.places[usize::from(place)] = stream;
            place
        } else {
            self.places.push(stream);
            (self.places.len() - 1) as u16
        };
        self.slot_index.insert(number, place);
        self.live += 1;
        self.owing += 1;
        self.by_client += (number & 1) as u16;
        StreamId { number, place }
    }

    /// The stream of a number, if it is open.
    #[inline]
    pub(crate) fn find(&self, number: u32) -> Option<StreamId> {
        let place = self.slot_index.find(number)?;
        Some(StreamId { number, place })
    }

    #[inline]
    pub(crate) fn get(&self, id: StreamId) -> Option<&Stream> {
        self.places
            .get(usize::from(id.place))
            .filter(|stream| stream.id == id.number)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.places
            .get_mut(usize::from(id.place))
            .filter(|stream| stream.id == id.number)
    }

    /// The stream that sends next, its window, and what it has to send.
    #[inline]
    pub(crate) fn first(&self) -> Option<(StreamId, SendWindow, u64)> {
        let place = self.ready.front()?;
        let stream = self.places.get(usize::from(place))?;
        let number = stream.id;
        Some((StreamId { number, place }, stream.send_window, stream.offered))
    }

    /// Puts the stream among those that may send, or takes it from among them, as its windows and its content have it.
    #[inline]
    pub(crate) fn settle(&mut self, id: StreamId) {
        let Some(stream) = self.get(id) else { return };
        if stream.offered > 0 && self.admits(stream.send_window, stream.offered) {
            self.ready.insert(&mut self.places, id.place);
        } else if stream.is_ready {
            self.ready.remove(&mut self.places, id.place);
        }
    }

    /// Whether a window lets something of `ready` bytes leave: anything while small frames may be sent, else a piece that is
    /// worth a frame.
    #[inline]
    pub(crate) fn admits(&self, window: SendWindow, ready: u64) -> bool {
        if self.small_frames < SMALL_FRAMES {
            window.available() > 0
        } else {
            window.admits(ready)
        }
    }

    /// Books a frame of data that left; `small`: it was made as small as it is by a window.
    #[inline]
    pub(crate) fn book_frame(&mut self, small: bool) {
        self.small_frames = if small {
            (self.small_frames + 1).min(SMALL_FRAMES)
        } else {
            self.small_frames.saturating_sub(1)
        };
    }

    /// The stream in front has sent a frame.
    #[inline]
    pub(crate) fn turn(&mut self, id: StreamId) {
        if self.get(id).is_some_and(|stream| stream.is_ready) {
            self.ready.turn(&mut self.places, id.place);
        }
    }

    /// Changes how urgent a stream is, with its place in the lanes.
    pub(crate) fn set_priority(&mut self, id: StreamId, priority: super::priority::Priority) {
        if self.get(id).is_some() {
            self.ready.remove(&mut self.places, id.place);
            self.places[usize::from(id.place)].priority = priority;
            self.settle(id);
        }
    }

    /// The client changed the initial window by so much, for all streams there are (RFC 9113 §6.9.2).
    pub(crate) fn change_windows(&mut self, by: i64) -> Result<(), TooLarge> {
        for place in 0..self.places.len() {
            let stream = &mut self.places[place];
            if stream.id != 0 {
                stream.send_window.change(by)?;
                let number = stream.id;
                self.settle(StreamId {
                    number,
                    place: place as u16,
                });
            }
        }
        Ok(())
    }

    /// The answer of a stream is ended; its state says so already.
    #[inline]
    pub(crate) fn answer_ended(&mut self) {
        self.owing -= 1;
    }

    /// Takes a stream out; what it had to send is forgotten. Gives the content the server has not released.
    #[inline]
    pub(crate) fn remove(&mut self, id: StreamId) -> u32 {
        if self.get(id).is_none() {
            return 0;
        }
        self.ready.remove(&mut self.places, id.place);
        self.slot_index.remove(id.number);
        let stream = &mut self.places[usize::from(id.place)];
        self.offered -= stream.offered;
        self.owing -= u16::from(stream.state.sends());
        self.live -= 1;
        self.by_client -= (id.number & 1) as u16;
        let unreleased = stream.unreleased;
        (stream.id, stream.state, stream.offered, stream.unreleased) = (0, State::Closed, 0, 0);
        stream.next = std::mem::replace(&mut self.free, id.place);
        unreleased
    }

    /// Remembers a stream that both sides ended.
    #[inline]
    pub(crate) fn remember_end(&mut self, number: u32) {
        self.ended[usize::from(self.ended_next) % ENDED_MEMORY] = number;
        self.ended_next = self.ended_next.wrapping_add(1);
    }

    /// Remembers a stream that we reset.
    pub(crate) fn remember_reset(&mut self, number: u32) {
        if self.reset.len() < RESET_MEMORY {
            self.reset.push(number);
        } else {
            self.reset[usize::from(self.reset_next) % RESET_MEMORY] = number;
            self.reset_next = self.reset_next.wrapping_add(1);
        }
    }

    pub(crate) fn was_ended(&self, number: u32) -> bool {
        self.ended.contains(&number)
    }

    pub(crate) fn was_reset(&self, number: u32) -> bool {
        self.reset.contains(&number)
    }
}

const _: () = assert!(
    256 % RESET_MEMORY == 0 && 256 % ENDED_MEMORY == 0,
    "the places wrap with their bytes"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(number: u32) -> Stream {
        Stream::new(number, State::Open, 10, 10)
    }

    #[test]
    fn a_stale_id_finds_nothing() {
        let mut streams = Streams::new();
        let first = streams.insert(stream(1));
        assert_eq!(streams.find(1), Some(first));
        streams.remove(first);
        let second = streams.insert(stream(3));
        assert_eq!((first.place, streams.live(), streams.owing()), (second.place, 1, 1));
        assert!(streams.get(first).is_none() && streams.find(1).is_none());
        assert_eq!(streams.remove(first), 0);
        assert_eq!(streams.live(), 1);
    }

    #[test]
    fn memory_goes_when_nothing_is_open() {
        let mut streams = Streams::new();
        let ids: Vec<StreamId> = (0..100).map(|n| streams.insert(stream(n * 2 + 1))).collect();
        for &id in &ids {
            streams.trim();
            streams.remove(id);
        }
        assert!(streams.memory() > 0);
        streams.trim();
        assert_eq!(streams.memory(), 0);
        assert_eq!(streams.insert(stream(201)).place, 0);
    }

    #[test]
    fn memories_keep_the_last_numbers() {
        let mut streams = Streams::new();
        for number in 1..=1000 {
            streams.remember_reset(number);
            streams.remember_end(number);
        }
        let (reset, ended) = (1000 - RESET_MEMORY as u32, 1000 - ENDED_MEMORY as u32);
        assert!((1..=1000).all(|number| streams.was_reset(number) == (number > reset)));
        assert!((1..=1000).all(|number| streams.was_ended(number) == (number > ended)));
    }
}
