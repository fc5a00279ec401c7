//! Network path on virtual time that delays, drops, duplicates and reorders datagrams.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::BytesMut;

/// Side of the path: sender or receiver of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// Properties of a path, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub struct PathProperties {
    /// One-way delay.
    pub delay: Duration,
    /// Maximum additional delay of a datagram. Datagrams are reordered if it exceeds the time between them.
    pub jitter: Duration,
    /// Number of lost datagrams per 1,000.
    pub loss: u64,
    /// Number of duplicated datagrams per 1,000.
    pub duplicates: u64,
}

/// Datagrams on their way.
pub struct Network {
    path: PathProperties,
    /// State of a xorshift generator, so that a failure can be repeated.
    random: u64,
    /// Datagrams by arrival time. The number keeps the order of datagrams with equal times.
    in_flight: BTreeMap<(Instant, u64), (Side, BytesMut)>,
    /// Number of datagrams that were put on the path, duplicates included.
    sent: u64,
    /// Sent bytes, lost ones included, by the side that they were sent to.
    bytes: [usize; 2],
    /// True after [`cut`](Self::cut): all datagrams are dropped.
    is_broken: bool,
}

impl Network {
    pub fn new(path: PathProperties, seed: u64) -> Network {
        Network {
            path,
            // The state must not be 0.
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            in_flight: BTreeMap::new(),
            sent: 0,
            bytes: [0; 2],
            is_broken: false,
        }
    }

    /// Returns a random number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound.max(1)
    }

    /// Drops all datagrams from now on.
    pub fn cut(&mut self) {
        self.is_broken = true;
        self.in_flight.clear();
    }

    /// Returns the number of bytes that were sent to a side.
    pub fn bytes_to(&self, side: Side) -> usize {
        self.bytes[side as usize]
    }

    /// Sends a datagram.
    pub fn send(&mut self, now: Instant, to: Side, datagram: &[u8]) {
        self.bytes[to as usize] += datagram.len();
        if self.is_broken || self.below(1000) < self.path.loss {
            return;
        }
        let copies = 1 + u64::from(self.below(1000) < self.path.duplicates);
        for _ in 0..copies {
            let jitter = self.below(self.path.jitter.as_micros() as u64 + 1);
            let arrival = now + self.path.delay + Duration::from_micros(jitter);
            self.in_flight.insert((arrival, self.sent), (to, datagram.into()));
            self.sent += 1;
        }
    }

    /// Returns the time of the next arrival; `None` if no datagram is on its way.
    pub fn next_arrival(&self) -> Option<Instant> {
        self.in_flight.first_key_value().map(|(&(arrival, _), _)| arrival)
    }

    /// Returns the next datagram that has arrived, with the side that it is sent to.
    pub fn receive(&mut self, now: Instant) -> Option<(Side, BytesMut)> {
        let first = self.in_flight.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}
