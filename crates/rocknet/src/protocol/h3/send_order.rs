//! Order in which the responses of a connection are written to the transport (RFC 9218 §10). More urgent responses come
//! first. Within an urgency, incremental responses are written in turns, and other responses one after the other.
//!
//! The transport sends the written bytes of the most urgent streams first, and streams of one urgency in turns. It
//! accepts little more than the path carries at once, so the order of writing is the order of sending. Within an
//! urgency, all streams that are not incremental have one turn together, so neither kind of stream has to wait until
//! the other kind has ended. A round is one pass over the streams of the connection in this order.

use rocknet_proto::h3::{Priority, StreamId, URGENCY_LEVELS};

/// State of the order, kept between rounds.
#[derive(Debug, Default)]
pub struct SendOrder {
    /// Owner of the last turn of each urgency.
    last: [Option<Writer>; URGENCY_LEVELS],
    /// Bit set of the urgencies in which a stream that is not incremental has more to write in this round.
    occupied: u8,
}

/// Owner of a turn: one incremental stream, or all streams that are not incremental.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    /// Any stream that is not incremental.
    Sequential,
    Incremental(StreamId),
}

/// Place in a round: urgency, part of the round (see [`SendOrder::place`]), and stream.
pub type Place = (u8, u8, StreamId);

impl SendOrder {
    /// Begins a round, in which every stream may write once.
    pub fn begin_round(&mut self) {
        self.occupied = 0;
    }

    /// Returns the place of a stream in the round. Streams write in ascending order. Each urgency has three parts: the
    /// incremental streams after the one that wrote last, the streams that are not incremental, and the remaining
    /// incremental streams.
    pub fn place(&self, id: StreamId, priority: Priority) -> Place {
        let last = self.last[usize::from(priority.urgency)];
        let part = match (priority.incremental, last) {
            (true, Some(Writer::Incremental(last))) if id <= last => 2,
            (true, _) => 0,
            (false, _) => 1,
        };
        (priority.urgency, part, id)
    }

    /// Returns true if a stream must wait until an earlier stream of its urgency has written its response, because
    /// neither stream is incremental.
    pub fn is_held_back(&self, priority: Priority) -> bool {
        !priority.incremental && self.occupied & bit(priority) != 0
    }

    /// Records that the turn of a stream has ended although the stream has more to write.
    pub fn turn_ended(&mut self, priority: Priority) {
        if !priority.incremental {
            self.occupied |= bit(priority);
        }
    }

    /// Records that a stream has written bytes.
    pub fn wrote(&mut self, id: StreamId, priority: Priority) {
        self.last[usize::from(priority.urgency)] = Some(if priority.incremental {
            Writer::Incremental(id)
        } else {
            Writer::Sequential
        });
    }
}

/// Returns the bit of an urgency in `SendOrder::occupied`.
fn bit(priority: Priority) -> u8 {
    1 << priority.urgency
}

/// Returns the priority of the transport for the streams of an urgency. The transport sends streams of a higher value
/// first, and its default is 0.
pub fn transport_priority(priority: Priority) -> i32 {
    i32::from(Priority::DEFAULT.urgency) - i32::from(priority.urgency)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the request stream with this number. The IDs of request streams are multiples of 4 (RFC 9000 §2.1).
    fn id(number: u64) -> StreamId {
        StreamId::new(4 * number)
    }

    fn priority(urgency: u8, incremental: bool) -> Priority {
        Priority { urgency, incremental }
    }

    /// Returns the numbers of the streams in the order of a round.
    fn round(order: &SendOrder, streams: &[(u64, Priority)]) -> Vec<u64> {
        let mut streams = streams.to_vec();
        streams.sort_by_key(|&(number, priority)| order.place(id(number), priority));
        streams.into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn urgent_streams_write_first() {
        let order = SendOrder::default();
        let streams = [(0, priority(7, true)), (1, priority(3, false)), (2, priority(0, true))];
        assert_eq!(round(&order, &streams), [2, 1, 0]);
        assert!(transport_priority(priority(0, false)) > transport_priority(priority(3, true)));
        assert_eq!(transport_priority(Priority::DEFAULT), 0);
    }

    #[test]
    fn sequential_streams_have_one_turn_among_the_incremental_ones() {
        let mut order = SendOrder::default();
        let streams = [
            (0, priority(3, false)),
            (1, priority(3, true)),
            (2, priority(3, false)),
            (3, priority(3, true)),
        ];
        // The window lets only the first stream of each round write.
        let mut wrote = Vec::new();
        for _ in 0..6 {
            let first = round(&order, &streams)[0];
            order.wrote(id(first), streams[first as usize].1);
            wrote.push(first);
        }
        assert_eq!(wrote, [1, 3, 0, 1, 3, 0]);
    }

    #[test]
    fn a_sequential_stream_holds_back_the_later_ones_of_its_urgency() {
        let mut order = SendOrder::default();
        order.begin_round();
        order.turn_ended(priority(3, false));
        assert!(order.is_held_back(priority(3, false)));
        assert!(!order.is_held_back(priority(3, true)));
        assert!(!order.is_held_back(priority(4, false)));
        order.begin_round();
        assert!(!order.is_held_back(priority(3, false)));
        order.turn_ended(priority(3, true));
        assert!(!order.is_held_back(priority(3, false)));
    }
}
