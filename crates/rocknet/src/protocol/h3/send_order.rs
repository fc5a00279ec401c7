//! Order in which the transport sends streams: by urgency, and one after the other if they are not incremental (RFC
//! 9218 §10).
//!
//! The transport sends streams of the highest priority first, and streams of one priority take turns. So the streams of
//! an urgency that are not incremental have decreasing priorities, except for the first of them, which takes turns with
//! the incremental ones. Otherwise one kind could hold back the other until its end.

use rocknet_proto::h3::{Priority, StreamId};

/// Difference between the transport priorities of two urgencies. Priorities between them order the streams of one
/// urgency.
const LEVEL: i32 = 1 << 24;

/// Streams of a connection that are sent one after the other.
#[derive(Debug, Default)]
pub struct SendOrder {
    /// Urgency and stream. The first entry of each urgency takes turns with the incremental streams.
    sequential: Vec<(u8, StreamId)>,
}

/// Priority of the transport that has to be set for a stream. The default of the transport is 0.
pub type TransportPriority = (StreamId, i32);

impl SendOrder {
    /// Adds a stream that has no priority of the transport yet. Returns the priority to set, unless it is the default.
    pub fn add(&mut self, id: StreamId, priority: Priority) -> Option<TransportPriority> {
        Some((id, self.insert(id, priority))).filter(|(_, value)| *value != 0)
    }

    fn insert(&mut self, id: StreamId, priority: Priority) -> i32 {
        if priority.incremental {
            return level(priority.urgency);
        }
        let is_first = self.first(priority.urgency).is_none();
        self.sequential.push((priority.urgency, id));
        if is_first {
            level(priority.urgency)
        } else {
            // Stream numbers are multiples of 4.
            let number = (id.number() / 4 % (LEVEL as u64 / 2)) as i32;
            level(priority.urgency) - 1 - number
        }
    }

    fn first(&self, urgency: u8) -> Option<StreamId> {
        let first = self.sequential.iter().find(|(known, _)| *known == urgency);
        first.map(|(_, id)| *id)
    }

    /// Changes the priority of a stream. Returns the priorities to set: for the stream, and for the stream that becomes
    /// the first of the old urgency.
    pub fn change(&mut self, id: StreamId, priority: Priority) -> [Option<TransportPriority>; 2] {
        let next = self.remove(id);
        [next, Some((id, self.insert(id, priority)))]
    }

    /// Removes a stream that was sent or reset. Returns the priority to set for the stream that becomes the first of
    /// its urgency.
    pub fn remove(&mut self, id: StreamId) -> Option<TransportPriority> {
        let position = self.sequential.iter().position(|(_, known)| *known == id)?;
        let (urgency, _) = self.sequential.remove(position);
        let was_first = self.sequential[..position].iter().all(|(known, _)| *known != urgency);
        let next = self.first(urgency).filter(|_| was_first)?;
        Some((next, level(urgency)))
    }
}

/// Returns the transport priority of the incremental streams of an urgency.
fn level(urgency: u8) -> i32 {
    (i32::from(Priority::DEFAULT.urgency) - i32::from(urgency)) * LEVEL
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> StreamId {
        StreamId::new(number)
    }

    fn priority(urgency: u8, incremental: bool) -> Priority {
        Priority { urgency, incremental }
    }

    #[test]
    fn streams_are_sent_by_urgency_and_then_in_the_order_of_their_numbers() {
        let mut order = SendOrder::default();
        assert_eq!(order.add(id(0), Priority::DEFAULT), None);
        let mut added = |number, urgency, incremental| {
            let added = order.add(id(number), priority(urgency, incremental));
            added.map_or(0, |(_, value)| value)
        };
        // The first sequential stream takes turns with the incremental streams of its urgency.
        let (first, second, third) = (added(4, 3, false), added(8, 3, false), added(12, 3, false));
        assert_eq!(first, 0);
        let (urgent, urgent_incremental) = (added(16, 1, false), added(20, 1, true));
        assert_eq!(urgent, urgent_incremental);
        let least = added(24, 7, true);
        assert!(urgent > first && first > second && second > third && third > least);
        // An urgency stays above the next one even after very many streams.
        assert!(added(4 * (1 << 40) - 4, 1, false) > first);

        assert_eq!(order.remove(id(8)), None);
        assert_eq!(order.remove(id(4)), Some((id(12), 0)));
        assert_eq!(order.remove(id(12)), None);
        assert_eq!(order.remove(id(12)), None);
        assert_eq!(order.remove(id(0)), None);
    }

    #[test]
    fn a_changed_priority_moves_a_stream() {
        let mut order = SendOrder::default();
        order.add(id(0), priority(3, false));
        order.add(id(4), priority(3, false));
        let changed = order.change(id(0), priority(0, false));
        assert_eq!(changed, [Some((id(4), 0)), Some((id(0), 3 * LEVEL))]);
        // From sequential to incremental.
        assert_eq!(order.change(id(0), priority(3, true)), [None, Some((id(0), 0))]);
        // It is not the first any more.
        let [next, changed] = order.change(id(0), priority(3, false));
        assert_eq!((next, changed.map(|(_, value)| value < 0)), (None, Some(true)));
    }
}
