//! Streams that have something to send and may: in lanes by urgency, those that share the connection and those that follow
//! each other (RFC 9218 §10).

use super::priority::URGENCIES;
use super::stream::{NO_PLACE, Stream};

/// Two lanes for each urgency: streams that follow each other by number, and incremental ones that take turns. Where both
/// have streams, the lanes take turns too, so that a large file that was said to be whole or nothing does not keep the
/// others waiting to its end.
#[derive(Debug)]
pub(crate) struct Ready {
    lanes: [Lane; 2 * URGENCIES],
    /// A bit for each lane that has streams.
    filled: u16,
    /// A bit for each urgency whose incremental lane is next.
    turns: u8,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    first: u16,
    last: u16,
}

impl Ready {
    pub(crate) const fn new() -> Self {
        const EMPTY: Lane = Lane {
            first: NO_PLACE,
            last: NO_PLACE,
        };
        Self {
            lanes: [EMPTY; 2 * URGENCIES],
            filled: 0,
            turns: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// The urgency of the stream that is next.
    #[inline]
    pub(crate) fn urgency(&self) -> Option<u8> {
        (self.filled != 0).then(|| (self.filled.trailing_zeros() / 2) as u8)
    }

    /// The place of the stream that is next.
    #[inline]
    pub(crate) fn front(&self) -> Option<u16> {
        let urgency = self.urgency()?;
        let both = self.filled >> (2 * urgency) & 0b11;
        let incremental = both == 0b10 || both == 0b11 && self.turns & 1 << urgency != 0;
        Some(self.lanes[usize::from(urgency) * 2 + usize::from(incremental)].first)
    }

    /// Puts a stream where it belongs; one that is in already stays.
    pub(crate) fn insert(&mut self, streams: &mut [Stream], place: u16) {
        let stream = &streams[usize::from(place)];
        if stream.is_ready {
            return;
        }
        let (lane, id, incremental) = (lane_of(stream), stream.id, stream.priority.incremental);
        // Numbers mostly come in order, so the place is at the end or near it.
        let mut before = self.lanes[lane].last;
        while !incremental && before != NO_PLACE && streams[usize::from(before)].id > id {
            before = streams[usize::from(before)].previous;
        }
        let after = match before {
            NO_PLACE => std::mem::replace(&mut self.lanes[lane].first, place),
            before => std::mem::replace(&mut streams[usize::from(before)].next, place),
        };
        match after {
            NO_PLACE => self.lanes[lane].last = place,
            after => streams[usize::from(after)].previous = place,
        }
        let stream = &mut streams[usize::from(place)];
        (stream.previous, stream.next, stream.is_ready) = (before, after, true);
        self.filled |= 1 << lane;
    }

    /// Takes a stream out, if it is in.
    pub(crate) fn remove(&mut self, streams: &mut [Stream], place: u16) {
        let stream = &mut streams[usize::from(place)];
        if !stream.is_ready {
            return;
        }
        let (before, after, lane) = (stream.previous, stream.next, lane_of(stream));
        (stream.previous, stream.next, stream.is_ready) = (NO_PLACE, NO_PLACE, false);
        match before {
            NO_PLACE => self.lanes[lane].first = after,
            before => streams[usize::from(before)].next = after,
        }
        match after {
            NO_PLACE => self.lanes[lane].last = before,
            after => streams[usize::from(after)].previous = before,
        }
        if self.lanes[lane].first == NO_PLACE {
            self.filled &= !(1 << lane);
        }
    }

    /// The stream in front has sent a frame: the next one's turn.
    pub(crate) fn turn(&mut self, streams: &mut [Stream], place: u16) {
        let priority = streams[usize::from(place)].priority;
        let bit = 1 << priority.urgency;
        if priority.incremental {
            self.turns &= !bit;
            if streams[usize::from(place)].next != NO_PLACE {
                self.remove(streams, place);
                self.insert(streams, place);
            }
        } else {
            self.turns |= bit;
        }
    }
}

#[inline]
fn lane_of(stream: &Stream) -> usize {
    usize::from(stream.priority.urgency) * 2 + usize::from(stream.priority.incremental)
}

#[cfg(test)]
mod tests {
    use super::super::priority::Priority;
    use super::super::stream::State;
    use super::*;

    fn streams(priorities: &[(u8, bool)]) -> Vec<Stream> {
        let stream = |(place, &(urgency, incremental)): (usize, &(u8, bool))| Stream {
            priority: Priority { urgency, incremental },
            ..Stream::new(place as u32 * 2 + 1, State::Open, 0, 0)
        };
        priorities.iter().enumerate().map(stream).collect()
    }

    /// The order in which streams send so many frames each, when they become ready in this order.
    fn order(priorities: &[(u8, bool)], arrival: &[u16], frames: usize) -> Vec<u16> {
        let (mut streams, mut ready) = (streams(priorities), Ready::new());
        let mut left = vec![frames; priorities.len()];
        for &place in arrival {
            ready.insert(&mut streams, place);
            ready.insert(&mut streams, place);
        }
        let mut order = Vec::new();
        while let Some(place) = ready.front() {
            order.push(place);
            ready.turn(&mut streams, place);
            left[usize::from(place)] -= 1;
            if left[usize::from(place)] == 0 {
                ready.remove(&mut streams, place);
            }
        }
        assert!(ready.is_empty() && streams.iter().all(|stream| !stream.is_ready));
        order
    }

    #[test]
    fn urgency_goes_first_and_turns_are_taken_within() {
        type Row<'a> = (&'a [(u8, bool)], &'a [u16], &'a [u16]);
        let rows: &[Row<'_>] = &[
            // Incremental ones take turns.
            (&[(3, true), (3, true), (3, true)], &[0, 1, 2], &[0, 1, 2, 0, 1, 2]),
            // The others follow each other by number, whenever they became ready.
            (&[(3, false), (3, false), (3, false)], &[2, 0, 1], &[0, 0, 1, 1, 2, 2]),
            // The more urgent one goes first.
            (&[(7, true), (0, false), (3, true)], &[0, 1, 2], &[1, 1, 2, 2, 0, 0]),
            // Both kinds share an urgency.
            (&[(3, false), (3, true), (3, false)], &[0, 1, 2], &[0, 1, 0, 1, 2, 2]),
        ];
        for (priorities, arrival, expected) in rows {
            assert_eq!(order(priorities, arrival, 2), *expected, "{priorities:?}");
        }
    }

    #[test]
    fn any_stream_may_leave() {
        for leaver in 0..4 {
            let (mut streams, mut ready) = (streams(&[(1, true); 4]), Ready::new());
            for place in 0..4 {
                ready.insert(&mut streams, place);
            }
            ready.remove(&mut streams, leaver);
            ready.remove(&mut streams, leaver);
            let mut found = Vec::new();
            while let Some(place) = ready.front() {
                found.push(place);
                ready.remove(&mut streams, place);
            }
            let expected: Vec<u16> = (0..4).filter(|&place| place != leaver).collect();
            assert_eq!(found, expected);
        }
    }
}
