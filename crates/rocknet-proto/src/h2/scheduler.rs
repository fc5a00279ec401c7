//! Scheduler for streams with data to send, by urgency and incremental flag (RFC 9218 §10).

use super::stream::{NO_SLOT, OpenStream};
use crate::multiplexed::URGENCY_LEVELS;

/// Scheduler with two queues per urgency: one for streams that are sent one after the other by number, and one for
/// incremental streams, which alternate. If both queues have streams, the queues alternate, too. Otherwise a large
/// response that is not incremental would block the incremental streams until its end.
#[derive(Debug)]
pub(crate) struct Scheduler {
    queues: [StreamQueue; 2 * URGENCY_LEVELS],
    /// Bit set of the queues that have streams.
    nonempty: u16,
    /// Bit set of the urgencies whose incremental queue is next.
    incremental_next: u8,
}

/// Ends of a doubly linked list of slots.
#[derive(Clone, Copy, Debug)]
struct StreamQueue {
    first: u16,
    last: u16,
}

impl Scheduler {
    pub(crate) const fn new() -> Self {
        const EMPTY: StreamQueue = StreamQueue {
            first: NO_SLOT,
            last: NO_SLOT,
        };
        Self {
            queues: [EMPTY; 2 * URGENCY_LEVELS],
            nonempty: 0,
            incremental_next: 0,
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.nonempty == 0
    }

    /// Returns the urgency of the stream that is next; `None` if no stream is in a queue.
    #[inline]
    pub(crate) fn urgency(&self) -> Option<u8> {
        (self.nonempty != 0).then(|| (self.nonempty.trailing_zeros() / 2) as u8)
    }

    /// Returns the slot of the stream that is next; `None` if no stream is in a queue.
    #[inline]
    pub(crate) fn front(&self) -> Option<u16> {
        let urgency = self.urgency()?;
        // Bits of the two queues of this urgency. The higher bit belongs to incremental streams.
        let both = self.nonempty >> (2 * urgency) & 0b11;
        let incremental = both == 0b10 || both == 0b11 && self.incremental_next & 1 << urgency != 0;
        Some(self.queues[usize::from(urgency) * 2 + usize::from(incremental)].first)
    }

    /// Inserts a stream into its queue. Does nothing if the stream is already in a queue.
    pub(crate) fn insert(&mut self, streams: &mut [OpenStream], slot: u16) {
        let stream = &streams[usize::from(slot)];
        if stream.is_scheduled {
            return;
        }
        let (queue, id, incremental) = (queue_of(stream), stream.id, stream.priority.incremental);
        // Numbers mostly increase, so the position is at the end or near it.
        let mut before = self.queues[queue].last;
        while !incremental && before != NO_SLOT && streams[usize::from(before)].id > id {
            before = streams[usize::from(before)].previous;
        }
        let after = match before {
            NO_SLOT => std::mem::replace(&mut self.queues[queue].first, slot),
            before => std::mem::replace(&mut streams[usize::from(before)].next, slot),
        };
        match after {
            NO_SLOT => self.queues[queue].last = slot,
            after => streams[usize::from(after)].previous = slot,
        }
        let stream = &mut streams[usize::from(slot)];
        (stream.previous, stream.next, stream.is_scheduled) = (before, after, true);
        self.nonempty |= 1 << queue;
    }

    /// Removes a stream. Does nothing if it is not in a queue.
    pub(crate) fn remove(&mut self, streams: &mut [OpenStream], slot: u16) {
        let stream = &mut streams[usize::from(slot)];
        if !stream.is_scheduled {
            return;
        }
        let (before, after, queue) = (stream.previous, stream.next, queue_of(stream));
        (stream.previous, stream.next, stream.is_scheduled) = (NO_SLOT, NO_SLOT, false);
        match before {
            NO_SLOT => self.queues[queue].first = after,
            before => streams[usize::from(before)].next = after,
        }
        match after {
            NO_SLOT => self.queues[queue].last = before,
            after => streams[usize::from(after)].previous = before,
        }
        if self.queues[queue].first == NO_SLOT {
            self.nonempty &= !(1 << queue);
        }
    }

    /// Selects the next stream to send, after the stream in `slot` has sent a frame.
    pub(crate) fn rotate(&mut self, streams: &mut [OpenStream], slot: u16) {
        let priority = streams[usize::from(slot)].priority;
        let bit = 1 << priority.urgency;
        if priority.incremental {
            self.incremental_next &= !bit;
            // `insert` puts an incremental stream at the end of its queue.
            if streams[usize::from(slot)].next != NO_SLOT {
                self.remove(streams, slot);
                self.insert(streams, slot);
            }
        } else {
            self.incremental_next |= bit;
        }
    }
}

/// Returns the index of the queue that a stream belongs to.
#[inline]
fn queue_of(stream: &OpenStream) -> usize {
    usize::from(stream.priority.urgency) * 2 + usize::from(stream.priority.incremental)
}

#[cfg(test)]
mod tests {
    use super::super::stream::StreamState;
    use super::*;
    use crate::multiplexed::Priority;

    /// Returns streams with these urgencies and incremental flags.
    fn streams(priorities: &[(u8, bool)]) -> Vec<OpenStream> {
        let stream = |(slot, &(urgency, incremental)): (usize, &(u8, bool))| OpenStream {
            priority: Priority { urgency, incremental },
            ..OpenStream::new(slot as u32 * 2 + 1, StreamState::Open, 0, 0)
        };
        priorities.iter().enumerate().map(stream).collect()
    }

    /// Returns the order in which streams send `frames` frames each if they become ready in the order of `arrival`.
    fn order(priorities: &[(u8, bool)], arrival: &[u16], frames: usize) -> Vec<u16> {
        let (mut streams, mut scheduler) = (streams(priorities), Scheduler::new());
        let mut left = vec![frames; priorities.len()];
        for &slot in arrival {
            scheduler.insert(&mut streams, slot);
            // A second insertion has no effect.
            scheduler.insert(&mut streams, slot);
        }
        let mut order = Vec::new();
        while let Some(slot) = scheduler.front() {
            order.push(slot);
            scheduler.rotate(&mut streams, slot);
            left[usize::from(slot)] -= 1;
            if left[usize::from(slot)] == 0 {
                scheduler.remove(&mut streams, slot);
            }
        }
        assert!(scheduler.is_empty() && streams.iter().all(|stream| !stream.is_scheduled));
        order
    }

    #[test]
    fn urgent_streams_go_first_and_incremental_ones_alternate() {
        type ScheduleRow<'a> = (&'a [(u8, bool)], &'a [u16], &'a [u16]);
        // Urgency and incremental flag of each stream, arrival of the streams by slot, and the order of slots in which
        // the streams send two frames each.
        let rows: &[ScheduleRow<'_>] = &[
            // Incremental streams alternate.
            (&[(3, true), (3, true), (3, true)], &[0, 1, 2], &[0, 1, 2, 0, 1, 2]),
            // Streams that are not incremental are sent one after the other by number, not in the order of arrival.
            (&[(3, false), (3, false), (3, false)], &[2, 0, 1], &[0, 0, 1, 1, 2, 2]),
            // The more urgent stream goes first.
            (&[(7, true), (0, false), (3, true)], &[0, 1, 2], &[1, 1, 2, 2, 0, 0]),
            // Incremental and other streams of the same urgency alternate.
            (&[(3, false), (3, true), (3, false)], &[0, 1, 2], &[0, 1, 0, 1, 2, 2]),
        ];
        for (priorities, arrival, expected) in rows {
            assert_eq!(order(priorities, arrival, 2), *expected, "{priorities:?}");
        }
    }

    #[test]
    fn any_stream_can_be_removed() {
        for removed in 0..4 {
            let (mut streams, mut scheduler) = (streams(&[(1, true); 4]), Scheduler::new());
            for slot in 0..4 {
                scheduler.insert(&mut streams, slot);
            }
            scheduler.remove(&mut streams, removed);
            // A second removal has no effect.
            scheduler.remove(&mut streams, removed);
            let mut found = Vec::new();
            while let Some(slot) = scheduler.front() {
                found.push(slot);
                scheduler.remove(&mut streams, slot);
            }
            let expected: Vec<u16> = (0..4).filter(|&slot| slot != removed).collect();
            assert_eq!(found, expected);
        }
    }
}
